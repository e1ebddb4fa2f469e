"""Kills at any moment, and processes side by side: nothing that was answered is lost."""

import sys
from pathlib import Path

import pytest
from killing import Killed, kill_at_random_moments, run_together
from recorded import KEY, echo, loaded, record
from recording_work import kept_words, noted
from turn_values import turn

from pytest_regen.cassettes import read_cassette, use_cassette
from pytest_regen.emulator import Emulator
from pytest_regen.errors import CassetteUnreadableError
from pytest_regen.turns import AnthropicProvider, TurnRequest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="fork and SIGKILL")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "template"
    record(folder / "c.yaml", [turn(f"old-{number}") for number in range(4)])
    return folder


def left_by_kills(folder: Path, work: str, count: int, *, within: int) -> list[Killed]:
    space = folder.parent / "copies"
    name = f"recording_work:{work}"
    return kill_at_random_moments(name, folder, space, count, within=within, begun="noted")


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


@pytest.mark.parametrize("count", [pytest.param(2, marks=pytest.mark.sweep), 3])
def test_processes_record_one_cassette(folder: Path, count: int) -> None:
    """Six turns of each stand in it, and nothing else is left in the folder."""
    run_together("recording_work:record_one_of_many", folder, count)

    expected = {f"{n}-{b}-{t}" for n in range(count) for b in range(2) for t in range(3)}
    assert kept_words(folder) == expected | {f"old-{number}" for number in range(4)}
    assert [path.name for path in folder.iterdir()] == ["c.yaml"]
