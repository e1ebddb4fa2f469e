"""The recordings of the clarifying agent: offline as committed, and recorded again alike."""

import shutil
from pathlib import Path

import pytest
from example_runs import run
from pages import blocks

from pytest_regen.cassettes import read_cassette
from pytest_regen.context import ClarifyingAgent
from pytest_regen.testing import KNOWN_BAD, verify_transcript
from pytest_regen.testing.transcripts import TranscriptError, read_transcript

EXAMPLE = Path(__file__).parents[2] / "examples" / "clarifying_agent"
TRANSCRIPTS = sorted((EXAMPLE / "transcripts").rglob("*.yaml"))


def copied(place: Path) -> Path:
    """Copy the example into a folder."""
    ignored = shutil.ignore_patterns("__pycache__", ".*")
    return shutil.copytree(EXAMPLE, place / "clarifying_agent", ignore=ignored)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What ``flow.py`` prints, run in a copy of the example."""
    folder = copied(tmp_path_factory.mktemp("flow"))
    done = run(folder, "flow.py")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_program_tells_the_flow(told: str) -> None:
    assert told.startswith("> rent is out of control in my city\n? Which city")
    assert "= Rent Is Out of Control and City Hall Lets It Happen" in told


def test_every_recording_says_that_it_is_emulated() -> None:
    cassettes = sorted((EXAMPLE / "cassettes").rglob("*.yaml"))

    assert len(cassettes) == len(TRANSCRIPTS) + 1
    for path in cassettes:
        cassette = read_cassette(path)
        assert cassette is not None
        assert cassette.metadata["source"] == "emulator"
    assert {read_transcript(path).source for path in TRANSCRIPTS} == {"emulator"}


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_a_transcript_is_verified_without_a_model(path: Path) -> None:
    """Every prompt is made anew and compared; an agent that sends others is found out."""
    verify_transcript(path, ClarifyingAgent)
    with pytest.raises(TranscriptError, match="turn 1"):
        verify_transcript(path, KNOWN_BAD["structure_holds"])


def test_the_readme_shows_what_the_program_prints(told: str) -> None:
    (session,) = blocks("examples/clarifying_agent/README.md", "console")
    shown = session.splitlines()[1:]

    printed = iter(told.splitlines())

    assert all(line in printed for line in shown)
