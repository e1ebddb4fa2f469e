"""A reply that was paid for is found again by the next run, whoever was killed when."""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from killing import kill_at_every_effect, run_together
from reply_work import ANSWERER, PAGES, reply_to
from tables import each
from turn_values import turn

from pytest_regen.turns import AnthropicProvider, CallableProvider
from pytest_regen.turns.replies import ReplyJournal, name_answerer
from pytest_regen.turns.values import Message


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def replies_in(root: Path) -> list[Path]:
    return sorted((root / ".regen" / "replies").glob("*.json"))


def left_by_a_run(root: Path, *pages: int) -> None:
    with ReplyJournal.open(root) as journal:
        for page in pages:
            journal.add(turn(str(page)), ANSWERER, reply_to(page))


def found_in(root: Path) -> list[int]:
    with ReplyJournal.open(root) as journal:
        found = [journal.find(turn(str(page)), ANSWERER) for page in range(PAGES)]
    assert all(reply in (None, reply_to(page)) for page, reply in enumerate(found))
    return [page for page, reply in enumerate(found) if reply]


def test_a_reply_that_was_not_stored_is_found_by_the_next_run(root: Path) -> None:
    """As it came, half characters, blocks and usage included; and by no ask after the first.

    While the run is alive they are its own.
    """
    with ReplyJournal.open(root) as journal:
        journal.add(turn("1"), ANSWERER, reply_to(1))
        assert found_in(root) == []

    with ReplyJournal.open(root) as journal:
        assert journal.find(turn("1"), ANSWERER) == reply_to(1)
        assert journal.find(turn("1"), ANSWERER) is None


def test_what_is_stored_leaves_nothing(root: Path) -> None:
    """The folder is empty once every page is stored, those of an earlier run too."""
    left_by_a_run(root, 1)

    with ReplyJournal.open(root) as journal:
        journal.find(turn("1"), ANSWERER)
        journal.add(turn("2"), ANSWERER, reply_to(2))
        journal.stored([turn("1")])
        journal.stored([turn("2"), turn("never asked")])

    left = [path.name for path in (root / ".regen" / "replies").iterdir()]
    assert left == [".gitignore"]


@each(
    "change",
    [
        {"model": "claude-other"},
        {"system": "You are chatty."},
        {"response_schema": {"type": "object"}},
        {"messages": (Message("user", "1", "1h"),)},
        {"messages": (Message("user", "1"), Message("user", "1"))},
    ],
)
def test_another_request_has_another_reply(change: Mapping[str, Any], root: Path) -> None:
    """Or another answerer; a schema is compared by its content."""
    schema = {"type": "object", "required": []}
    with ReplyJournal.open(root) as journal:
        journal.add(turn("1", response_schema=schema), ANSWERER, reply_to(1))
    same = turn("1", response_schema=MappingProxyType(dict(reversed(schema.items()))))

    with ReplyJournal.open(root) as journal:
        assert journal.find(replace(same, **change), ANSWERER) is None
        assert journal.find(same, None) is None
        assert journal.find(same, ANSWERER) == reply_to(1)


def test_who_answers_is_named_by_address_and_provider() -> None:
    here = AnthropicProvider(base_url="http://127.0.0.1:1")
    there = AnthropicProvider(base_url="http://127.0.0.1:2")
    other = AnthropicProvider("claude-other", base_url="http://127.0.0.1:1")
    named = {name_answerer(asked) for asked in (here, there, other, CallableProvider(str))}

    assert len(named) == 4


def test_a_killed_run_loses_no_reply_that_it_had(root: Path, tmp_path: Path) -> None:
    """SIGKILL at any of its effects: the replies before it are found, those stored are not."""
    kills = kill_at_every_effect("reply_work:add_and_store", root, tmp_path / "copies")

    assert {killed.effect.split()[1] for killed in kills[:-1]} == {"append", "mkdir", "unlink"}
    # After each effect: a folder is made, three replies are written, two of them stored, then three
    # more written.
    left = [[], [], [0], [0, 1], [0, 1, 2], [1, 2], [2], [2, 3], [2, 3, 4], [2, 3, 4, 5]]
    for number, killed in enumerate(kills):
        assert found_in(killed.folder) == left[(number + 1) // 2], killed.effect


def test_of_several_runs_that_begin_at_once_one_takes_each_reply(root: Path) -> None:
    left_by_a_run(root, *range(PAGES))

    run_together("reply_work:take_one_by_one", root, 4)

    taken = [page for file in root.glob("taken-*") for page in file.read_text("utf-8").split()]
    assert sorted(taken) == [str(page) for page in range(PAGES)]
    assert not replies_in(root)


@each("harm", ["torn", "values", "request"])
def test_a_harmed_file_answers_nothing(tmp_path: Path, harm: str) -> None:
    left_by_a_run(tmp_path, 1, 2)
    file, _ = sorted(replies_in(tmp_path), key=lambda path: path.name.split(".")[2])
    content = json.loads(file.read_bytes())
    changes: dict[str, dict[str, Any]] = {
        "values": {"reply": {**content["reply"], "text": 3}},
        "request": {"key": "0" * 64},
    }
    changed = json.dumps({**content, **changes.get(harm, {})})
    file.write_text(changed[:-20] if harm == "torn" else changed, "utf-8")

    assert found_in(tmp_path) == [2]


def test_a_reply_of_last_week_is_not_found(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    past = time.time() - 8 * 86_400
    with monkeypatch.context() as patched:
        patched.setattr("time.time", lambda: past)
        left_by_a_run(root, 1)

    assert found_in(root) == []


def test_a_file_behind_a_link_is_not_read(root: Path) -> None:
    """Nor is one that is no file, and a linked folder has no journal at all."""
    left_by_a_run(root, 1)
    (file,) = replies_in(root)
    file.rename(root / "elsewhere.json")
    file.symlink_to(root / "elsewhere.json")
    os.mkfifo(file.with_name(f"0{file.name}"))

    assert found_in(root) == []

    folder = root / ".regen" / "replies"
    folder.rename(root / "folder")
    folder.symlink_to(root / "folder")
    left_by_a_run(root, 2)
    assert len([*(root / "folder").glob("*.json")]) == 2


def test_without_a_folder_or_a_key_of_the_user_there_is_no_journal(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no failure."""
    (root / ".regen").write_text("a file", "utf-8")
    left_by_a_run(root, 1)
    assert found_in(root) == []
    (root / ".regen").unlink()

    monkeypatch.setenv("XDG_CACHE_HOME", str(root / "within"))
    left_by_a_run(root, 1)

    assert not (root / ".regen").exists()


def test_only_the_user_reads_it_and_the_request_is_not_in_it(root: Path) -> None:
    """The file has mode 0600; of what was sent there is a digest."""
    with ReplyJournal.open(root) as journal:
        journal.add(turn("a word of the prompt"), ANSWERER, reply_to(1))

    (file,) = replies_in(root)
    assert file.stat().st_mode & 0o777 == 0o600
    assert b"a word of the prompt" not in file.read_bytes()
    assert b"terse" not in file.read_bytes()
