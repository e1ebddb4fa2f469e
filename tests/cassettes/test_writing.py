"""Writing: what a crash, a full disk or several processes leave behind."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from recorded import outcome, record, replaying
from turn_values import turn

from pytest_regen.cassettes import read_cassette, use_cassette
from pytest_regen.errors import CassetteError

SUPPORT = str(Path(__file__).parents[1] / "support")
CHILD = f"""
import json, os, signal, sys
sys.path.insert(0, {SUPPORT!r})
from pathlib import Path
from turn_values import turn
from pytest_regen.cassettes import use_cassette
from pytest_regen.cassettes.recording import Exchange
from pytest_regen.turns.wire import request_body

path, name, calls, end = sys.argv[1:]
with use_cassette(Path(path), mode="new_episodes") as run:
    for number in range(int(calls)):
        sent = json.dumps(request_body(turn(f"{{name}} {{number}}"))).encode()
        said = json.dumps({{"content": [], "stop_reason": "end_turn"}}).encode()
        json_type = {{"content-type": ("application/json",)}}
        run.record(Exchange("POST", "https://api.anthropic.com/v1/messages", json_type, sent,
                            200, "OK", json_type, said))
    if end == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the cassette under test stands."""
    return tmp_path / "c.yaml"


def child(path: Path, name: str, calls: int, end: str) -> "subprocess.Popen[bytes]":
    """Start a process that records ``calls`` turns and ends well, or is killed."""
    return subprocess.Popen([sys.executable, "-c", CHILD, str(path), name, str(calls), end])


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL")
def test_a_killed_run_keeps_what_it_had(path: Path) -> None:
    """Five calls were answered, five stand in a file that loads; the cassette is as it was."""
    record(path, [turn("before")])
    before = path.read_bytes()

    assert child(path, "child", 5, "kill").wait() == -signal.SIGKILL

    assert path.read_bytes() == before
    with use_cassette(path.with_name("c.yaml.partial")) as run:
        for number in range(5):
            assert not isinstance(outcome(replaying(), turn(f"child {number}")), Exception)
    assert run.unplayed == 0
    record(path, [turn("after")], mode="new_episodes")
    assert len(getattr(read_cassette(path), "interactions", ())) == 2
    assert not path.with_name("c.yaml.partial").exists()


def test_processes_recording_one_cassette_lose_nothing(path: Path) -> None:
    """Four at once, three turns each: twelve recordings, and nothing else in the folder."""
    children = [child(path, f"child {n}", 3, "well") for n in range(4)]
    assert [one.wait() for one in children] == [0, 0, 0, 0]

    file = read_cassette(path)
    assert file is not None
    assert len({stored.key for stored in file.interactions}) == 12
    assert [p.name for p in path.parent.iterdir()] == ["c.yaml"]


def test_a_full_disk_is_told_and_keeps_the_old(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cassette is whole, the recordings stand in the partial file, the error says why."""
    record(path, [turn("one")])
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CassetteError, match="No space left"):
        record(path, [turn("two")], mode="new_episodes")

    assert path.read_bytes() == before
    assert sorted(p.name for p in path.parent.iterdir()) == ["c.yaml", "c.yaml.partial"]


def test_a_folder_that_cannot_be_made_is_told_at_the_first_turn(tmp_path: Path) -> None:
    """The caller of the turn gets our error, not one of the SDK's after its retries."""
    (tmp_path / "file").write_text("", "utf-8")

    outcomes, _ = record(tmp_path / "file" / "c.yaml", [turn()], mode="rewrite")

    assert isinstance(outcomes[0], CassetteError)
    assert "cannot be written" in str(outcomes[0])


def test_metadata_says_who_answered_and_by_which_versions(path: Path) -> None:
    """The day, the versions, the model, and that it was the emulator."""
    record(path, [turn("one"), turn("two", model="claude-opus-5-5")])

    file = read_cassette(path)

    assert file is not None
    assert file.metadata["source"] == "emulator"
    assert file.metadata["models"] == ["claude-opus-5-5", "claude-sonnet-5-5"]
    assert set(file.metadata["recorded_by"]) >= {"pytest-regen", "anthropic", "vcrpy"}


def test_a_prompt_can_be_read_in_the_file(path: Path) -> None:
    """Bodies are laid out as JSON over lines, non-ASCII as it is."""
    record(path, [turn("Schreibe die Klasse für Öl.")])

    assert '            "content": "Schreibe die Klasse für Öl."\n' in path.read_text("utf-8")
