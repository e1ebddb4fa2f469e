"""What SDKs warn of: it ends no turn, whatever the filters, and is told once."""

import asyncio
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from batch_work import ask, emulator, provider
from turn_values import turn

from pytest_regen.emulator import Emulator
from pytest_regen.turns import (
    AnthropicProvider,
    Reply,
    TurnRequest,
)
from pytest_regen.turns.sdk import notes

KEY = "opaque-key-of-a-gateway"
OLD = "claude-sonnet-4-5"
NOTE = f"note: {OLD} is deprecated by its provider and retires on November 30th, 2026"
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
    assert list(notes) == [NOTE]


def test_a_batch_of_a_deprecated_model_is_answered(tmp_path: Path) -> None:
    """Its calls are made in a thread of their own."""
    with emulator() as emulated, provider(emulated, tmp_path) as batches:
        assert ask(batches, turn("Hi.", model=OLD)) == ["You said: Hi."]


def test_turns_in_threads_leave_the_filters_of_others_alone() -> None:
    """Nothing is warned of, so that nothing of it need be hidden."""
    with Emulator(lambda _: "Hello.") as api, ThreadPoolExecutor(9) as pool:
        model, filters = anthropic(api), list(warnings.filters)
        replies = list(pool.map(lambda _: model.send(turn(model=OLD)).text, range(20)))
        model.close()

    assert replies == ["Hello."] * 20
    assert warnings.filters == filters
