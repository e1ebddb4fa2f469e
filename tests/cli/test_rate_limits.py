"""Commands under a rate limit: everything is asked, and hardly anything refused."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from command_line import command, process
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


@pytest.mark.sweep
def test_commands_at_once_share_the_limit(here: Path, statuses: list[int]) -> None:
    """All leave nothing unasked; only before the first answer may more go out than are allowed."""
    folders = [here / str(number) for number in range(3)]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(3) as pool:
        ran = [*pool.map(lambda folder: process(*generate_all(folder, 10)), folders)]

    assert [one.code for one in ran] == [0, 0, 0]
    assert statuses.count(200) == 3 * 10 * PAGES
    assert statuses.count(429) <= 0.02 * len(statuses)
