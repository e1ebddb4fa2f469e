"""Kills at any moment, processes side by side, and journals: nothing that was answered is lost."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from killing import Killed, kill_at_random_moments, run_together
from recorded import KEY, echo, loaded, record
from recording_work import kept_words, noted
from turn_values import turn
from warm_python import run_python

from pytest_regen.cassettes import journal, read_cassette, use_cassette
from pytest_regen.emulator import Emulator, Fault
from pytest_regen.errors import CassetteUnreadableError, ProviderError, TransportError
from pytest_regen.turns import AnthropicProvider, Message, TurnRequest

FORKS = pytest.mark.skipif(sys.platform == "win32", reason="fork and SIGKILL")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "template"
    record(folder / "c.yaml", [turn(f"old-{number}") for number in range(4)])
    return folder


def left_by_kills(folder: Path, work: str, count: int, *, within: int) -> list[Killed]:
    space = folder.parent / "copies"
    name = f"recording_work:{work}"
    return kill_at_random_moments(name, folder, space, count, within=within, begun="noted")


@FORKS
@pytest.mark.parametrize("count", [5, pytest.param(200, marks=pytest.mark.sweep)])
def test_killed_while_recording(folder: Path, count: int) -> None:
    """Four threads record long and short answers, plain and streamed, block after block."""
    kills = left_by_kills(folder, "record_for_ever", count, within=400)

    old = {f"old-{number}" for number in range(4)}
    for killed in kills:
        kept = kept_words(killed.folder)
        assert old <= kept
        assert noted(killed.folder) <= kept, killed.folder
    assert sum(len(noted(killed.folder)) for killed in kills) > len(kills), "none got far enough"


@FORKS
@pytest.mark.parametrize("count", [5, pytest.param(200, marks=pytest.mark.sweep)])
def test_killed_while_rewriting(folder: Path, count: int) -> None:
    """At no moment is there neither the old cassette nor the new one."""
    for killed in left_by_kills(folder, "rewrite_for_ever", count, within=300):
        file = loaded(killed.folder / "c.yaml")
        found = {
            stored.interaction.request_body.decode().partition('"content": "')[2].split()[0]
            for stored in file.interactions
        }
        blocks = {word.rpartition("-")[0] for word in found}
        done = [int(block) for block in noted(killed.folder)]
        last = max(done, default=-1)
        assert len(found) == 4
        assert blocks <= {"old" if last < 0 else str(last)} or blocks == {str(last + 1)}


def fail_after(path: Path, emulator: Emulator, requests: list[TurnRequest]) -> None:
    provider = AnthropicProvider(api_key=KEY, base_url=emulator.base_url)
    with use_cassette(path, mode="once"):
        for request in requests:
            provider.send(request)
        raise ZeroDivisionError


def test_a_partial_file_cut_at_any_byte_keeps_what_is_whole(tmp_path: Path) -> None:
    """A kill inside a write takes the recording that was being written, and no other."""
    path = tmp_path / "c.yaml"
    with pytest.raises(ZeroDivisionError), Emulator(echo) as emulator:
        fail_after(path, emulator, [turn("one"), turn("zwei ü", max_tokens=30_000)])
    partial = tmp_path / "c.yaml.partial"
    data = partial.read_bytes()
    starts = [n for n in range(len(data)) if data.startswith(b"- key: ", n)]
    assert len(starts) == 2

    seams = {end + near for end in (starts[1], len(data)) for near in range(-12, 12)}
    for length in sorted(seams | set(range(starts[0], len(data), 31))):
        partial.write_bytes(data[:length])
        whole = sum(length >= end for end in (starts[1], len(data)))
        if whole:
            file = loaded(partial)
            assert len(file.interactions) == whole
        else:
            with pytest.raises(CassetteUnreadableError):
                read_cassette(partial)


@FORKS
@pytest.mark.parametrize("count", [pytest.param(2, marks=pytest.mark.sweep), 3])
def test_processes_record_one_cassette(folder: Path, count: int) -> None:
    """Six turns of each stand in it, and nothing else is left in the folder."""
    run_together("recording_work:record_one_of_many", folder, count)

    expected = {f"{n}-{b}-{t}" for n in range(count) for b in range(2) for t in range(3)}
    assert kept_words(folder) == expected | {f"old-{number}" for number in range(4)}
    assert [path.name for path in folder.iterdir()] == ["c.yaml"]


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
