"""Files that cannot serve: one message with value, reason and next step; never a traceback."""

import resource
from pathlib import Path
from typing import Any

from command_line import Ran, command, process


def refused(ran: Ran) -> str:
    """Return the message of a command that was refused as it should be."""
    assert (ran.code, ran.out) == (2, ""), ran
    assert ran.err.startswith("error: ")
    assert "  next: " in ran.told
    assert "Traceback" not in ran.told
    return ran.err


def test_what_is_no_store_and_no_description() -> None:
    """A path that is not there, or is a folder."""
    assert "nowhere.yaml" in refused(command("generate", "nowhere.yaml", "GET /kites"))
    for words in (("validate", "."), ("regenerate", "."), ("history", "nowhere"), ("adopt", ".")):
        assert "pytest-regen generate" in refused(command(*words))


def test_settings_that_are_wrong_are_told(good: Path, here: Path) -> None:
    """The file, the key and the value are named."""
    here.joinpath("pyproject.toml").write_text("[tool.pytest-regen]\nattempts = 'many'\n", "utf-8")
    assert "attempts = 'many'" in refused(command("validate", good))

    here.joinpath("pyproject.toml").write_text("[tool", "utf-8")
    assert "pyproject.toml cannot be read" in refused(command("validate", good))


def test_a_full_disk_loses_nothing(broken: Path) -> None:
    """The write is refused with the reason; the store stays as it was, and heals with room."""
    before = {path: path.read_bytes() for path in broken.iterdir() if path.is_file()}
    words = ("regenerate", broken, "--from-errors", "--provider", "plugin_answers:Good")
    full: dict[str, Any] = {
        # Every file ends after so many bytes, as a full disk does.
        "preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
        # Because bytecode cut by the limit would break every later import.
        "env": {"PYTHONDONTWRITEBYTECODE": "1"},
    }

    verdict = process("validate", broken, **full)
    ran = process(*words, **full)

    assert verdict.code == 1
    assert verdict.told.startswith(f"note: the summary in {broken / 'ir.json'} was not updated: ")
    refused(ran)
    assert {path: path.read_bytes() for path in broken.iterdir() if path.is_file()} == before
    assert process(*words).code == 0
