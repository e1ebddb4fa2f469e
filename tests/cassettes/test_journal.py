"""A journal: a run that ended before its end goes on from what was answered."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from warm_python import run_python

from pytest_regen import AnthropicProvider, Emulator, use_cassette
from pytest_regen.cassettes import journal
from pytest_regen.emulator import Fault
from pytest_regen.errors import ProviderError, TransportError
from pytest_regen.turns import Message, TurnRequest

Answer = str | Fault


class Model:
    """Answers through an emulated API; ``fails`` says what happens instead at a prompt."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.fails: dict[str, Fault] = {}

    def __call__(self, body: dict[str, Any]) -> Answer:
        """Return the answer to the last prompt."""
        prompt = body["messages"][-1]["content"]
        self.asked.append(prompt)
        return self.fails.get(prompt) or f"answer to {prompt}"


@pytest.fixture
def model() -> Iterator[tuple[Model, AnthropicProvider, str]]:
    model = Model()
    with Emulator(model) as emulator:
        provider = AnthropicProvider(
            base_url=emulator.base_url, api_key="emulated", max_retries=0, timeout=5
        )
        yield model, provider, emulator.base_url
        provider.close()


def ask(provider: AnthropicProvider, *prompts: str) -> list[str]:
    return [
        provider.send(TurnRequest("", (Message("user", one),), "claude-sonnet-5-5", 100)).text
        for one in prompts
    ]


def interrupted(provider: AnthropicProvider) -> None:
    ask(provider, "1", "2")
    raise KeyboardInterrupt


def failed(provider: AnthropicProvider) -> None:
    ask(provider, "1", "2", "3")


@pytest.mark.parametrize(
    ("work", "fault"),
    [(interrupted, None), (failed, Fault(status=529)), (failed, Fault(kind="cut"))],
    ids=["interrupted", "overloaded", "broken off"],
)
def test_what_was_answered_is_not_asked_again(
    tmp_path: Path,
    model: tuple[Model, AnthropicProvider, str],
    work: Callable[[AnthropicProvider], None],
    fault: Fault | None,
) -> None:
    """However the first run ended; what failed is asked anew, and not played as a failure."""
    said, provider, _ = model
    path = tmp_path / "runs" / "journal.yaml"
    said.fails = {"3": fault} if fault else {}
    with pytest.raises((KeyboardInterrupt, ProviderError)), journal(path):
        work(provider)
    said.asked, said.fails = [], {}

    with journal(path):
        answers = ask(provider, "1", "2", "3")

    assert answers == ["answer to 1", "answer to 2", "answer to 3"]
    assert said.asked == ["3"]
    with use_cassette(path) as run:
        assert ask(provider, "1", "2", "3") == answers
    assert run.unplayed == 0


def test_a_killed_run_is_gone_on_from_as_well(
    tmp_path: Path, model: tuple[Model, AnthropicProvider, str]
) -> None:
    """What it had recorded beside the cassette becomes part of it; nothing is left over."""
    said, provider, address = model
    path = tmp_path / "journal.yaml"
    with journal(path):
        ask(provider, "1")
    script = """
import os, sys
from pytest_regen import AnthropicProvider
from pytest_regen.cassettes import journal
from pytest_regen.turns import Message, TurnRequest
provider = AnthropicProvider(base_url=sys.argv[2], api_key="emulated")
with journal(sys.argv[1]):
    for prompt in "12":
        provider.send(TurnRequest("", (Message("user", prompt),), "claude-sonnet-5-5", 100))
    os.kill(os.getpid(), 9)
"""
    ended = run_python(["-c", script, str(path), address], tmp_path, os.environ)
    assert ended.returncode == -9
    assert said.asked == ["1", "2"]

    with journal(path):
        ask(provider, "1", "2", "3")

    assert said.asked == ["1", "2", "3"]
    assert not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize(("fails", "asked"), [("1", ["1", "1", "2"]), ("2", ["1", "2", "2"])])
def test_of_a_first_run_that_ended_early_the_answers_are_played_and_no_failures(
    tmp_path: Path, model: tuple[Model, AnthropicProvider, str], fails: str, asked: list[str]
) -> None:
    """There is a partial file only, perhaps of failures alone, and no cassette yet."""
    said, provider, _ = model
    path = tmp_path / "journal.yaml"
    said.fails = {fails: Fault(status=529)}
    with suppress(TransportError), use_cassette(path, mode="new_episodes"):
        ask(provider, "1", "2")
    assert not path.exists()
    said.fails = {}

    with journal(path):
        answers = ask(provider, "1", "2")

    assert answers == ["answer to 1", "answer to 2"]
    assert said.asked == asked
