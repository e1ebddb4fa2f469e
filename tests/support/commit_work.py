"""What children do to a folder of files that change together (see killing.py)."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_regen.commit import AtomicFiles, Contents, View

__all__ = [
    "CHANGED",
    "FILES",
    "NEW",
    "UNTRIED",
    "VERSION_1",
    "files_of",
    "hold_trial",
    "make_root",
    "put_back",
    "recover",
    "recover_root",
    "try_and_accept",
    "try_and_reject",
    "write",
    "write_for_ever",
]

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

VERSION_1 = {
    ".gitignore": b"*\n",
    "0": b"new entry\n",
    "1": b"new system\n",
    "2": b"new text\n",
    "commit.json": b"""{
  "version": 1,
  "changes": [
    {
      "name": ".regen/units/de/berth.json",
      "staged": "0",
      "before": "28d0e87a7f551e2df1eecce29ea5e6fe3971b1b3def94a68d6ccd94a15cea7ad",
      "after": "ffd9c8c6dfef47a7bc906f53ce97058e9140b01630a1206a1d1b46f6515b5226"
    },
    {
      "name": ".regen/systems/abc.txt",
      "staged": "1",
      "before": null,
      "after": "a80d83af1783a00e81eac1a225354b2ef8dadfaadf83c0771dc8e952cc6a81a7"
    },
    {
      "name": "locales/de.json",
      "staged": "2",
      "before": "761ca39634e5caa7a20a8ff174b8c1adcb31b16f22a78fa58c4d501ff932b051",
      "after": "692953f85a5bc851dfb7f41bcf7b4f0ae9f96a7e6147541b648a8d7eaed0272d"
    },
    {
      "name": ".regen/units/gone.json",
      "staged": null,
      "before": "28d0e87a7f551e2df1eecce29ea5e6fe3971b1b3def94a68d6ccd94a15cea7ad",
      "after": null
    }
  ]
}""",
}
"""The journal of ``CHANGED`` as the version before this one left it when it was killed."""

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
        is_users=lambda name: not name.startswith(".regen/"),
    )


def put_back(record: Any, view: View) -> Contents:
    """Take the candidate out, unless somebody wrote over it."""
    if view.read("locales/de.json") != CANDIDATE:
        return {}
    return {"locales/de.json": record["before"].encode()}


def _place(view: View) -> tuple[Any, Contents]:
    before = view.read("locales/de.json") or b""
    return {"before": before.decode()}, {"locales/de.json": CANDIDATE}


def write(root: Path) -> None:
    """Change four files, one of them by removing it."""
    files = files_of(root)
    with files.locked():
        files.commit(CHANGED)


def make_root(folder: Path) -> None:
    """Make a root with three files, in a folder that is there."""
    files = replace(files_of(folder / "root"), lock=folder / ".regen" / "root.lock")
    with files.locked():
        files.commit(NEW)


def recover_root(folder: Path) -> None:
    """Lock a root that may be there and do nothing."""
    with replace(files_of(folder / "root"), lock=folder / ".regen" / "root.lock").locked():
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
    with files_of(root).trial(_place, put_back, of="locales/de.json") as trial:
        trial.accept(lambda _: UNTRIED)


def try_and_reject(root: Path) -> None:
    """Put a candidate on trial and leave."""
    with files_of(root).trial(_place, put_back, of="locales/de.json"):
        pass


def recover(root: Path) -> None:
    """Lock the files and do nothing, which finishes what a killed writer left."""
    with files_of(root).locked(recover=put_back):
        pass


def hold_trial(root: Path) -> None:
    """Put a candidate on trial, print a line, and keep it there until a line is read."""
    with files_of(root).trial(_place, put_back, of="locales/de.json"):
        sys.stdout.write("on trial\n")
        sys.stdout.flush()
        sys.stdin.readline()
