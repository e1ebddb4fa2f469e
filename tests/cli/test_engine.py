"""``--engine batch``: pages are asked in batches, which outlive the command."""

from pathlib import Path

import pytest
from batch_work import emulator, submitted
from command_line import command
from reference_writer import ReferenceWriter

from pytest_regen.emulator import Emulator
from pytest_regen.turns.batches import POLL_VARIABLE


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> Emulator:
    """An emulated API in the environment whose batches end after a tenth of a second."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-a-test")
    monkeypatch.setenv(POLL_VARIABLE, "0.05")
    with emulator(answer=ReferenceWriter(), batch_seconds=0.1) as running:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", running.base_url)
        yield running


def test_pages_of_all_stores_go_into_one_batch(document: Path, batches: Emulator) -> None:
    """It is told of while it is under way, and nothing of it is left behind."""
    done = command("generate", document, "--all", "--engine", "batch")

    assert done.code == 0, done.err
    assert sum(map(len, submitted(batches))) == 3
    assert " done" in done.err
    assert not list(Path(".regen/batches").glob("*.jsonl"))
