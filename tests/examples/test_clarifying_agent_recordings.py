"""The recordings of the clarifying agent: offline as committed, and recorded again alike."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pages import blocks
from warm_python import run_in

from pytest_regen.cassettes import read_cassette
from pytest_regen.context import ClarificationRequest, ClarifyingAgent
from pytest_regen.testing import completion, verify_transcript
from pytest_regen.testing.transcripts import TranscriptError, read_transcript
from pytest_regen.turns import Provider

EXAMPLE = Path(__file__).parents[2] / "examples" / "clarifying_agent"
TRANSCRIPTS = sorted((EXAMPLE / "transcripts").rglob("*.yaml"))


def test_the_readme_shows_what_the_program_prints(tmp_path: Path) -> None:
    """The flow, from the recording, in a copy of the example."""
    ignored = shutil.ignore_patterns("__pycache__", ".*")
    (session,) = blocks("examples/clarifying_agent/README.md", "console")

    done = run_in(shutil.copytree(EXAMPLE, tmp_path / "agent", ignore=ignored), "flow.py")

    assert done.returncode == 0, done.stderr
    printed = iter(done.stdout.splitlines())
    assert all(line in printed for line in session.splitlines()[1:])


def test_every_recording_says_that_it_is_emulated() -> None:
    """Nobody takes one for what a model said."""
    cassettes = [*map(read_cassette, sorted((EXAMPLE / "cassettes").rglob("*.yaml")))]

    assert len(cassettes) == len(TRANSCRIPTS) + 1
    assert {one and one.metadata["source"] for one in cassettes} == {"emulator"}
    assert {read_transcript(path).source for path in TRANSCRIPTS} == {"emulator"}


def make_terse(provider: Provider) -> Callable[[ClarificationRequest], str]:
    """Return an agent that sends nothing but the description."""
    return lambda request: completion(provider)([{"role": "user", "content": request.message}])


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_a_transcript_is_verified_without_a_model(path: Path) -> None:
    """Every prompt is made anew and compared; an agent that sends others is found out."""
    verify_transcript(path, ClarifyingAgent)
    with pytest.raises(TranscriptError, match="turn 1"):
        verify_transcript(path, make_terse)
