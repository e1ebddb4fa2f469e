"""What SDKs warn of: it ends no turn, whatever the filters, and is told once."""

import asyncio
import warnings
from collections.abc import Callable, Iterator
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
    notes.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
    notes.clear()


def anthropic(api: Emulator) -> AnthropicProvider:
    return AnthropicProvider(OLD, api_key=KEY, base_url=api.base_url)


WAYS: dict[str, Callable[[AnthropicProvider, TurnRequest], Reply]] = {
    "thread": lambda model, request: model.send(request),
    "loop": lambda model, request: asyncio.run(model.asend(request)),
}


@pytest.mark.parametrize("limit", [200, LONG], ids=["whole", "stream"])
@pytest.mark.parametrize("way", WAYS)
def test_a_deprecated_model_answers(way: str, limit: int, caplog: pytest.LogCaptureFixture) -> None:
    with Emulator(lambda _: "Hello.") as api:
        model = anthropic(api)
        replies = [WAYS[way](model, turn(model=OLD, max_tokens=limit)) for _ in "12"]
        model.close()

    assert [reply.text for reply in replies] == ["Hello."] * 2
    assert list(notes) == caplog.messages
    assert list(notes) == [NOTE]


def test_a_batch_of_a_deprecated_model_is_answered(tmp_path: Path) -> None:
    with emulator() as emulated, provider(emulated, tmp_path) as batches:
        assert ask(batches, turn("Hi.", model=OLD)) == ["You said: Hi."]
