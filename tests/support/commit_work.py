"""What children do to a folder of files that change together (see killing.py)."""

import sys
from dataclasses import replace
from pathlib import Path

from pytest_regen.commit import AtomicFiles, Candidate, Contents, View

FILES = {
    "locales/de.json": b"old text\n",
    ".regen/units/de/berth.json": b"old entry\n",
    ".regen/units/gone.json": b"old entry\n",
}
CHANGED: Contents = {
    ".regen/units/de/berth.json": b"new entry\n",
    ".regen/systems/abc.txt": b"new system\n",
    "locales/de.json": b"new text\n",
    ".regen/units/gone.json": None,
}
NEW = {"pages.json": b"new pages\n", "history/old.json": b"\xff\x00", "empty": b""}
"""What a root is made with."""

CANDIDATE = b"candidate\n"
UNTRIED: Contents = {".regen/units/de/berth.json": b"entry of the candidate\n"}


def files_of(root: Path) -> AtomicFiles:
    """Return the files below a folder as a ledger beside files of the user."""
    return AtomicFiles(
        root,
        what=f"the units of {root.name}",
        lock=root / ".regen" / "locks" / "units.lock",
        journal=".regen/journal",
        aside=".regen/history",
    )


def place(_: View) -> Candidate:
    """Return the candidate."""
    return Candidate({"locales/de.json": CANDIDATE, **UNTRIED})


def write(root: Path) -> None:
    """Change four files, one of them by removing it."""
    files = files_of(root)
    with files.locked():
        files.commit(CHANGED)


def root_files(folder: Path) -> AtomicFiles:
    """Return the files of a root that may be there, locked beside it."""
    return replace(files_of(folder / "root"), lock=folder / ".regen" / "root.lock")


def make_root(folder: Path) -> None:
    """Make a root with three files, in a folder that is there."""
    with root_files(folder).locked():
        root_files(folder).commit(NEW)


def recover_root(folder: Path) -> None:
    """Lock a root that may be there and do nothing."""
    with root_files(folder).locked():
        pass


def write_for_ever(root: Path) -> None:
    """Give two files the same new content again and again, until killed."""
    files = files_of(root)
    number = 0
    while True:
        number += 1
        with files.locked():
            files.commit(dict.fromkeys(("locales/de.json", ".regen/entry"), b"%d" % number))


def try_and_accept(root: Path) -> None:
    """Put a candidate on trial and keep it, with an entry of its own."""
    with files_of(root).trial(place) as trial:
        trial.accept()


def try_and_reject(root: Path) -> None:
    """Put a candidate on trial and leave."""
    with files_of(root).trial(place):
        pass


def recover(root: Path) -> None:
    """Lock the files and do nothing, which finishes what a killed writer left."""
    with files_of(root).locked():
        pass


def hold_trial(root: Path) -> None:
    """Put a candidate on trial, print a line, and keep it there until a line is read."""
    with files_of(root).trial(place):
        sys.stdout.write("on trial\n")
        sys.stdout.flush()
        sys.stdin.readline()
