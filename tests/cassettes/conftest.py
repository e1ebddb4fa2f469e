"""What the tests of cassettes share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from small_site import Site, small_site


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a cassette goes."""
    return tmp_path / "c.yaml"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where commands are called."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were asked for, none of which is made."""
    seconds: list[float] = []

    async def noted(pause: float) -> None:
        seconds.append(pause)

    monkeypatch.setattr("time.sleep", seconds.append)
    monkeypatch.setattr("anyio.sleep", noted)
    return seconds


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A site that answers as servers do."""
    with small_site() as served:
        yield served
