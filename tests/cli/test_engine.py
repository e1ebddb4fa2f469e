"""``--engine batch``: pages are asked in batches, which outlive the command."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from batch_work import LONG, emulator, has_id, noted, sizes, wait_for
from command_line import command
from reference_writer import ReferenceWriter

from pytest_regen.emulator import BatchStep, Emulator, Fault, Script
from pytest_regen.turns.batch_calls import POLL_VARIABLE

FOLDER = Path(".regen", "batches")


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    """An emulated API in the environment whose batches end after a tenth of a second."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-a-test")
    monkeypatch.setenv(POLL_VARIABLE, "0.1")
    with emulator(answer=ReferenceWriter(), batch_seconds=0.1) as running:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", running.base_url)
        yield running


def test_pages_of_all_stores_go_into_one_batch(document: Path, batches: Emulator) -> None:
    """It is told of while it is under way, and nothing is left behind."""
    shown = [
        "batch msgbatch_…: 3 requests submitted",
        "batch msgbatch_…: 0 of 3 done",
        "batch msgbatch_…: 3 of 3 done",
    ]
    done = command("generate", document, "--all", "--engine", "batch")

    assert done.code == 0, done.err
    assert "2 stores generated, 1 skipped" in done.err
    told = re.sub(r"msgbatch_\w+", "msgbatch_…", done.err).splitlines()
    assert [each for each in told if each in shown] == shown
    assert sizes(batches) == [3]
    assert not noted(FOLDER)


def test_a_page_that_fails_in_its_batch_ends_no_other(document: Path, batches: Emulator) -> None:
    """What the API refuses of one request says nothing about the next: corrections go on."""
    write = ReferenceWriter()
    wrong = ["There is no code in this."]

    def answer(body: dict[str, Any]) -> Any:
        if "MakerDataObject" in str(body):
            return Fault(400, message="Too long.")
        return wrong.pop() if "KiteDataObject" in str(body) and wrong else write(body)

    batches.responder = answer

    done = command("generate", document, "--all", "--engine", "batch")

    assert done.code == 3
    assert "Too long." in done.told
    assert command("validate", "generated/GET_kites").code == 0
    assert sizes(batches) == [3, 1]


def test_ctrl_c_cancels_no_batch_and_the_same_command_picks_it_up(
    document: Path, batches: Emulator
) -> None:
    """It says so; what was submitted is paid once."""
    words = ["generate", str(document), "--all", "--engine", "batch"]
    batches.script = Script(batches=[BatchStep(seconds=LONG)])
    running = subprocess.Popen(
        [sys.executable, "-m", "pytest_regen", *words], stderr=subprocess.PIPE, text=True
    )
    wait_for(lambda: has_id(FOLDER), 60)
    running.send_signal(signal.SIGINT)
    _, told = running.communicate()
    batches.clock.advance(LONG)
    again = command(*words)

    assert running.returncode == 130
    assert "none is cancelled, and the same command picks them up" in told
    assert again.code == 0, again.err
    assert "picked up" in again.told
    assert sizes(batches) == [3]
    assert not noted(FOLDER)


@pytest.mark.parametrize(
    "words",
    [
        ["--provider", "template"],
        ["--provider", "here:answers"],
        ["--cassette", "pages.json", "--record", "once"],
    ],
)
def test_what_cannot_be_asked_in_a_batch_is_refused(document: Path, words: list[str]) -> None:
    """Other providers have no batches, and a recording has no place for them."""
    done = command("generate", document, "--all", "--engine", "batch", *words)

    assert done.code == 2
    assert "--engine batch and" in done.told
    assert "contradict each other" in done.told
