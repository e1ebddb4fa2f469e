"""Warnings of SDKs: they end no turn, whatever the filters, and are told once."""

import asyncio
import re
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from batch_work import ask, emulator, provider
from chat_service import chat_service, skip_without_litellm
from turn_values import turn

from pytest_regen.emulator import Emulator
from pytest_regen.turns import (
    AnthropicProvider,
    LiteLLMProvider,
    OllamaProvider,
    OpenAIProvider,
    Reply,
    TurnRequest,
)
from pytest_regen.turns.sdk import heeding_warnings, notes

KEY = "opaque-key-of-a-gateway"
OLD = "claude-sonnet-4-5"
NOTE = f"note: {OLD} is deprecated by its provider and (retires 2026-11-30 [(].*[)]|has retired)"
LONG = 30_000


@pytest.fixture(autouse=True)
def strict() -> Iterator[None]:
    """Let every warning be an error, as many projects have it."""
    notes.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
    notes.clear()


def anthropic(api: Emulator) -> AnthropicProvider:
    """Return a provider of the API."""
    return AnthropicProvider(OLD, api_key=KEY, base_url=api.base_url)


WAYS: dict[str, Callable[[AnthropicProvider, TurnRequest], Reply]] = {
    "thread": lambda model, request: model.send(request),
    "loop": lambda model, request: asyncio.run(model.asend(request)),
}


@pytest.mark.parametrize("limit", [200, LONG], ids=["whole", "stream"])
@pytest.mark.parametrize("way", WAYS)
def test_a_deprecated_model_answers(way: str, limit: int, caplog: pytest.LogCaptureFixture) -> None:
    """Twice, and what is known of it is told once."""
    with Emulator(lambda _: "Hello.") as api:
        model = anthropic(api)
        replies = [WAYS[way](model, turn(model=OLD, max_tokens=limit)) for _ in "12"]
        model.close()

    assert [reply.text for reply in replies] == ["Hello."] * 2
    assert list(notes) == caplog.messages
    assert [bool(re.fullmatch(NOTE, note)) for note in notes] == [True]


def test_a_batch_of_a_deprecated_model_is_answered(tmp_path: Path) -> None:
    """Its calls are made in a thread of their own."""
    with emulator() as emulated, provider(emulated, tmp_path) as batches:
        assert ask(batches, turn("Hi.", model=OLD)) == ["You said: Hi."]


def test_turns_in_threads_leave_the_filters_of_others_alone() -> None:
    """While other threads change theirs: a turn is not failed, a warning of theirs not hidden."""
    is_over = threading.Event()

    def change_filters() -> int:
        count = 0
        while not is_over.is_set():
            with warnings.catch_warnings():
                count += 1
            time.sleep(0.0001)
        return count

    with Emulator(lambda _: "Hello.") as api, ThreadPoolExecutor(9) as pool:
        model = anthropic(api)
        others = pool.submit(change_filters)
        replies = list(pool.map(lambda _: model.send(turn(model=OLD)).text, range(200)))
        is_over.set()
        assert others.result()
        model.close()

    assert replies == ["Hello."] * 200
    with pytest.raises(UserWarning, match="mine"):
        warnings.warn("mine", UserWarning, stacklevel=1)


def test_only_the_call_itself_is_spared() -> None:
    """Not what is warned of elsewhere meanwhile."""
    with heeding_warnings("m"), ThreadPoolExecutor(1) as pool:
        warnings.warn("of the SDK", FutureWarning, stacklevel=1)
        elsewhere = pool.submit(warnings.warn, "mine", UserWarning)

        assert isinstance(elsewhere.exception(), UserWarning)
    assert not notes


@pytest.mark.parametrize("base", [OpenAIProvider, OllamaProvider, LiteLLMProvider])
@pytest.mark.parametrize("way", ["send", "asend"])
def test_other_sdks_may_warn_as_well(base: type, way: str) -> None:
    """Of the model, which is told, and of whatever else, which is not."""
    if base is LiteLLMProvider:
        skip_without_litellm()

    class Warned(base):  # type: ignore[misc]
        def _warn(self) -> None:
            warnings.warn("kite-1 goes away.\nTake kite-2.", DeprecationWarning, stacklevel=1)
            warnings.warn("install something", UserWarning, stacklevel=1)

        def _ask(self, key: str, request: TurnRequest) -> Reply:
            self._warn()
            reply: Reply = super()._ask(key, request)
            return reply

        async def _aask(self, key: str, request: TurnRequest) -> Reply:
            self._warn()
            reply: Reply = await super()._aask(key, request)
            return reply

    options = {} if base is OllamaProvider else {"api_key": KEY}
    with chat_service("Hello.") as service:
        path = "" if base is OllamaProvider else "/v1"
        model = Warned("kite-1", base_url=service.address + path, **options)
        reply = model.send(turn()) if way == "send" else asyncio.run(model.asend(turn()))

    assert reply.text == "Hello."
    assert list(notes) == ["note: kite-1 goes away."]
