"""Files that cannot serve: one message with value, reason and next step; never a traceback."""

import json
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

from command_line import Ran, command, process

KITES = "GET /kites"


def refused(ran: Ran, code: int = 2) -> str:
    """Return the message of a command that was refused as it should be."""
    assert (ran.code, ran.out) == (code, ""), ran
    assert ran.err.startswith("error: ")
    assert "  next: " in ran.told
    assert "Traceback" not in ran.told
    return ran.err


def test_missing_and_unreadable_descriptions() -> None:
    """A path that is not there, or is a folder."""
    assert "nowhere.yaml" in refused(command("generate", "nowhere.yaml", KITES))
    assert "there is no store at ." in refused(command("generate", ".", KITES))


def test_a_folder_without_a_store() -> None:
    for words in (("validate", "."), ("regenerate", "."), ("history", "nowhere"), ("adopt", ".")):
        assert "pytest-regen generate" in refused(command(*words))


def cut(data: bytes) -> bytes:
    """Return the first half."""
    return data[: len(data) // 2]


def without_last_page(data: bytes) -> bytes:
    """Return pages.json with a page taken out by hand."""
    envelope = json.loads(data)
    del envelope["pages"][-1]
    return json.dumps(envelope).encode()


def test_a_page_taken_out_by_hand_is_missed(good: Path) -> None:
    """The store still loads; the type that lacks a page has an error, and is mended by it."""
    path = good / "pages.json"
    path.write_bytes(without_last_page(path.read_bytes()))

    ran = command("validate", good, "--json")

    assert ran.code == 1
    state = next(one for one in ran.json["stores"][0]["types"] if one["name"] == "State")
    assert state["errors"]
    words = ("--from-errors", "--provider", "plugin_answers:Good")
    assert command("regenerate", good, *words).code == 0


def test_settings_that_are_wrong_are_told(good: Path, here: Path) -> None:
    """The file, the key and the value are named."""
    here.joinpath("pyproject.toml").write_text("[tool.pytest-regen]\nattempts = 'many'\n", "utf-8")
    assert "attempts = 'many'" in refused(command("validate", good))

    here.joinpath("pyproject.toml").write_text("[tool", "utf-8")
    assert "pyproject.toml cannot be read" in refused(command("validate", good))


NO_BYTECODE = {"PYTHONDONTWRITEBYTECODE": "1"}


def limit_files(size: int) -> Callable[[], None]:
    """Return what makes every file end after ``size`` bytes, as a full disk does.

    Run it with ``NO_BYTECODE``: bytecode cut by the limit would break every later import.
    """
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_full_disk_loses_nothing(broken: Path) -> None:
    """The write is refused with the reason; the store stays as it was, and heals with room."""
    before = {path: path.read_bytes() for path in broken.iterdir() if path.is_file()}
    words = ("regenerate", broken, "--from-errors", "--provider", "plugin_answers:Good")

    full: dict[str, Any] = {"env": NO_BYTECODE, "preexec_fn": limit_files(1000)}
    verdict = process("validate", broken, **full)
    ran = process(*words, **full)

    assert verdict.code == 1
    assert verdict.told.startswith(f"note: the summary in {broken / 'ir.json'} was not updated: ")
    refused(ran)
    assert {path: path.read_bytes() for path in broken.iterdir() if path.is_file()} == before
    assert process(*words).code == 0
