"""The exit code of every situation: 0 fine, 1 errors remain, 2 wrong usage or files, 3 no reply."""

import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import Ran, command, process
from store_factory import make_store
from store_states import damaged, edited, fine, missing, stale, wrong

GOOD = ("--provider", "plugin_answers:Good")
STUBBORN = ("--provider", "plugin_answers:Stubborn")
UNREACHABLE = ("--provider", "plugin_answers:Unreachable")

Make = Callable[[Path], object]


REGENERATE = ("regenerate", "STORE", "--type", "Owner")
HEAL = ("regenerate", "STORE", "--from-errors")

TABLE = [
    (fine, ("validate", "STORE"), 0),
    (wrong, ("validate", "STORE"), 1),
    (stale, ("validate", "STORE"), 0),
    (edited, ("validate", "STORE"), 1),
    (damaged, ("validate", "STORE"), 2),
    (fine, ("validate",), 2),
    (fine, (), 2),
    (fine, ("--help",), 0),
    (fine, (*HEAL, *UNREACHABLE), 0),
    (wrong, (*HEAL, *GOOD), 0),
    (wrong, (*HEAL, *STUBBORN), 1),
    (wrong, (*HEAL, *GOOD, "--budget", "1"), 1),
    (wrong, (*HEAL, *UNREACHABLE), 3),
    (wrong, HEAL, 3),
    (wrong, (*HEAL, "--cassette", "none.yaml"), 3),
    (stale, (*REGENERATE, *GOOD), 2),
    (stale, (*REGENERATE, *GOOD, "--ignore-stale"), 0),
    (edited, (*REGENERATE, *GOOD), 2),
    (edited, (*REGENERATE, *GOOD, "--discard-edits"), 0),
    (fine, ("regenerate", "STORE", *GOOD), 2),
    (fine, ("regenerate", "STORE", *GOOD, "--yes"), 0),
    (fine, ("history", "STORE"), 0),
    (missing, ("history", "STORE"), 2),
    (edited, ("adopt", "STORE"), 0),
]


@pytest.mark.parametrize(
    ("make", "words", "code"),
    [
        pytest.param(make, words, code, id=f"{make.__name__}-{' '.join(words)}-{code}")
        for make, words, code in TABLE
    ],
)
def test_the_table(here: Path, make: Make, words: tuple[str, ...], code: int) -> None:
    """Each situation ends with its code and without a traceback, said on one of two streams.

    The last line says what to do next.
    """
    path = Path("generated", "GET_v1_projects")
    make(here / path)

    ran = command(*(str(path) if word == "STORE" else word for word in words))

    assert ran.code == code, ran.err
    assert "Traceback" not in ran.err
    if "--budget" not in words:
        assert ("error: " in ran.err) == (code > 1 and words != ())
    answers = words[:1] in (("validate",), ("status",))
    assert not ran.out or "--help" in words or answers
    assert "--help" in words or not words or ran.told.splitlines()[-1].startswith("  next: ")


@pytest.mark.parametrize(
    ("make", "words", "code"), [row for row in TABLE if row[1] and "--help" not in row[1]][::4]
)
def test_json_is_one_document_in_every_situation(
    here: Path, make: Make, words: tuple[str, ...], code: int
) -> None:
    """With --json stdout is one JSON document, whatever happens."""
    path = Path("generated", "GET_v1_projects")
    make(here / path)

    ran = command(*(str(path) if word == "STORE" else word for word in words), "--json")

    assert ran.code == code
    assert isinstance(ran.json, dict)


def test_json_is_utf_8_whatever_the_locale(here: Path) -> None:
    """``python -m pytest_regen`` is the command, also at a terminal that knows ASCII only."""
    make_store(here / "generated" / "GET_ü")

    ran = process("validate", "generated/GET_ü", "--json", env={"PYTHONIOENCODING": "ascii"})
    told = process("validate", "generated/GET_ü", env={"PYTHONIOENCODING": "ascii"})

    assert ran.json["stores"][0]["path"] == "generated/GET_ü"
    assert (told.code, told.told) == (
        0,
        "generated/GET_\\xfc: 3 types, no errors\n  next: pytest\n",
    )


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
