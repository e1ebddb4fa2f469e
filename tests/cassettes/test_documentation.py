"""What docs/cassettes.md shows is true: its code runs, its message is the one that is printed."""

import re
import shutil
from pathlib import Path

import pytest
from pages import ROOT, blocks, environment, printed, sessions
from talk import FILE, RECORDING, TEST, answering, record
from warm_python import run_python

from pytest_regen.cassettes import read_cassette

PAGE = "docs/cassettes.md"
CHANGED = ("Which of them feeds bees?", "Which of them feeds bees and moths?")


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    """A folder with the page's test and, where the fixture looks for it, its recording."""
    (tmp_path / "test_talk.py").write_text(TEST, "utf-8")
    (tmp_path / FILE).parent.mkdir(parents=True)
    shutil.copy(RECORDING, tmp_path / FILE)
    return tmp_path


def interactions(path: Path) -> list[bytes]:
    """Return the bytes of each recording."""
    return path.read_bytes().split(b"\n- key: ")[1:]


@pytest.mark.parametrize("text", [t for t in blocks(PAGE, "python") if t != TEST])
def test_a_piece_of_python_runs(text: str) -> None:
    """From the root of a checkout, without a key."""
    done = run_python(["-c", text], ROOT, environment())

    assert done.returncode == 0, done.stderr
    shown = re.findall(r"^print\(.*\)  # (.*)$", text, re.MULTILINE)
    assert done.stdout.splitlines() == shown


def test_the_recording_is_that_of_the_page(tmp_path: Path) -> None:
    """Made anew through the real SDK, it differs in the day and in versions at most."""
    varying = re.compile(rb"^ +(recorded_at|pytest-regen|anthropic|vcrpy): .*$", re.MULTILINE)

    made = record(tmp_path)

    assert varying.sub(b"", made.read_bytes()) == varying.sub(b"", RECORDING.read_bytes())
    cassette = read_cassette(RECORDING)
    assert cassette is not None
    assert cassette.metadata["source"] == "emulator"
    assert len(cassette.interactions) == 5


def test_the_message_and_the_command_are_those_of_the_page(talk: Path) -> None:
    """Once the third prompt is changed, it is printed line for line; the command mends it.

    Turns 1 and 2 keep their bytes, 3 to 5 are sent, and the test is green again.
    """
    [(run, shown), (mend, _)] = sessions(blocks(PAGE, "console")[0])
    assert TEST.count(CHANGED[0]) == 1
    (talk / "test_talk.py").write_text(TEST.replace(*CHANGED), "utf-8")
    before = interactions(talk / FILE)

    lines = printed(run, talk)
    with answering() as env:
        recorded = printed(mend, talk, env)
    replayed = printed(run, talk)

    assert [line for line in shown if line not in lines] == []
    assert all(text in "\n".join(shown) for text in ("turn 3", "$.messages[4].content", *CHANGED))
    assert any(line.endswith(f"next: {mend}") for line in lines)
    after = interactions(talk / FILE)
    assert any("1 passed" in line for line in recorded)
    assert (len(before), len(after)) == (5, 5)
    assert after[:2] == before[:2]
    assert not set(after[2:]) & set(before)
    assert any("1 passed" in line for line in replayed)


def test_a_run_that_records_says_what_the_page_says(tmp_path: Path) -> None:
    """Word for word, where an answer holds a credential."""
    [(run, shown)] = sessions(blocks(PAGE, "console")[1])
    test = next(text for text in blocks(PAGE, "python") if "def test_token" in text)
    (tmp_path / "test_token.py").write_text(test, "utf-8")

    with answering() as env:
        lines = printed(run, tmp_path, env)

    assert [line for line in shown if line not in lines] == []
    assert any("1 passed" in line for line in lines)
