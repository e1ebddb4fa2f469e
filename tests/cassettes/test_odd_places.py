"""Cassettes where no file can be, or none that may be read or written."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cassette_work import ask
from killing import run_alone

from pytest_regen.cassettes import RecordMode


@pytest.mark.skipif(os.name == "nt", reason="pipes")
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
@pytest.mark.parametrize("mode", ["none", "new_episodes", "rewrite"])
def test_what_is_no_file_is_told(
    tmp_path: Path, make: Callable[[Path], None], mode: RecordMode
) -> None:
    """It is not read, which might never end, nor taken for a missing cassette."""
    make(tmp_path / "c.yaml")
    before = sorted(tmp_path.rglob("*"))

    said = ask(tmp_path / "c.yaml", "x", mode=mode)

    assert f"c.yaml: the cassette cannot be {'written' if mode == 'rewrite' else 'read'}" in said
    assert "sent" not in said
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("name", "says"), [("x" * 300 + ".yaml", "too long"), ("file/c.yaml", "irectory")]
)
@pytest.mark.parametrize("mode", ["once", "rewrite"])
def test_a_name_that_cannot_be_is_told(
    tmp_path: Path, name: str, says: str, mode: RecordMode
) -> None:
    """With what to do about it; nothing is left of the attempt."""
    (tmp_path / "file").write_bytes(b"")

    said = ask(tmp_path / name, "x", mode=mode)

    assert says in said
    assert "next: " in said
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_cassette_behind_a_link_is_written_where_it_is(tmp_path: Path) -> None:
    """The link stays one, and others who share the file see what was recorded."""
    (tmp_path / "shared").mkdir()
    target, link = tmp_path / "shared/c.yaml", tmp_path / "c.yaml"
    ask(target, "one", mode="once")
    link.symlink_to("shared/c.yaml")

    for mode, text in (("new_episodes", "two"), ("all", "three"), ("rewrite", "four")):
        assert ask(link, text, mode=mode) == "recorded"  # type: ignore[arg-type]  # modes
        assert link.is_symlink()
        assert ask(target, text) == "played"


# What may not be written, or not whole


@pytest.fixture
def home() -> Iterator[Path]:
    space = Path(tempfile.mkdtemp())
    space.chmod(0o777)
    home = space / "cassettes"
    home.mkdir()
    ask(home / "c.yaml", "old", mode="once")
    yield home
    home.chmod(0o700)
    shutil.rmtree(space)


@pytest.mark.skipif(os.name == "nt", reason="users")
def test_a_folder_that_may_not_be_written_is_told_before_anything_is_sent(home: Path) -> None:
    """An answer that cannot be kept is not paid for."""
    before = (home / "c.yaml").read_bytes()
    home.chmod(0o555)

    said = run_alone("cassette_work:record_as_nobody", home)

    assert said.startswith(str(home / "c.yaml"))
    assert "Permission denied" in said
    assert "next: make the folder writable" in said
    assert [file.name for file in home.iterdir()] == ["c.yaml"]
    assert (home / "c.yaml").read_bytes() == before


@pytest.mark.skipif(os.name == "nt", reason="limits")
def test_a_file_that_may_not_grow_keeps_the_old(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recording is cut off in the partial file; the cassette is as it was."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    before = (home / "c.yaml").read_bytes()

    said = run_alone("cassette_work:record_with_little_room", home)

    assert "c.yaml: the cassette cannot be written" in said
    assert "File too large" in said
    assert (home / "c.yaml").read_bytes() == before
    assert ask(home / "c.yaml", "old") == "played"
    assert ask(home / "c.yaml", "next", mode="new_episodes") == "recorded"
