"""Commands under a rate limit: everything is asked, and hardly anything refused."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import command
from many_operations import FIELDS_PER_PAGE, PAGES, write_many_operations
from reference_writer import ReferenceWriter

from pytest_regen.emulator import Emulator, RateLimits


@pytest.fixture
def statuses(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """What an emulator in the environment answers with, which allows ten requests a second."""
    found: list[int] = []
    with Emulator(ReferenceWriter(), limits=RateLimits(requests=600, burst=1)) as running:
        running.answering = lambda _, status: found.append(status)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", running.base_url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-a-test")
        yield found


def generate_all(folder: Path, operations: int) -> list[str]:
    """Return the command that generates so many stores of five pages."""
    document = write_many_operations(folder / "api.json", operations)
    options = [f"--fields-per-page={FIELDS_PER_PAGE}", "--jobs=8", f"--out={folder / 'out'}"]
    return ["generate", str(document), "--all", *options]


def test_one_command_leaves_nothing_unasked(here: Path, statuses: list[int]) -> None:
    """There are more pages than the limit allows at once: the command waits."""
    assert command(*generate_all(here, 4)).code == 0

    assert statuses == [200] * 4 * PAGES
