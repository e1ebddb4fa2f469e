"""Projects whose candidates are reviewed; also by children that are killed or run side by side."""

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from plugin_answers import Good
from store_factory import MISSPELT, make_store
from unit_asking import ask_for_unit
from unit_project import KIND, SETTINGS, record_file
from unit_work import ENGLISH, GERMAN, German, kinds_with, project, write_json

from pytest_regen.errors import OutdatedCandidateError, UsageError
from pytest_regen.regeneration import TurnSettings, heal_store
from pytest_regen.regeneration.pending import Candidate, PendingFolder
from pytest_regen.regeneration.places import Place
from pytest_regen.regeneration.review import accept_candidate, reject_candidate
from pytest_regen.regeneration.store_place import StorePlace
from pytest_regen.regeneration.values import Pending
from pytest_regen.turns.values import Reply, TurnRequest, Usage
from pytest_regen.units.place import UnitFile, open_units

STORE = "generated/GET_v1_projects"
FILE = "locales/de.json"
WRONG = {**GERMAN, "berth": "Liegeplatz", "leave": "Ab"}


def write_project(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the project of the documentation into the working directory, and record its strings."""
    (root / "pyproject.toml").write_text(SETTINGS, "utf-8")
    (root / "regen_kinds.py").write_text(KIND, "utf-8")
    write_json(root / "locales/en.json", ENGLISH)
    write_json(root / FILE, WRONG)
    monkeypatch.delitem(sys.modules, "regen_kinds", raising=False)
    record_file(root, root / FILE)  # As a model wrote it: wrong.


def german(root: Path) -> dict[str, str]:
    """Return what stands in the file."""
    strings: dict[str, str] = json.loads((root / FILE).read_text("utf-8"))
    return strings


TRANSLATOR = ("--provider", "review_work:Translator")
"""Options of a command that asks one who knows the strings."""


class Translator:
    """Knows the strings, and the code of the stores of these tests."""

    def __init__(self) -> None:
        self._code = Good()

    def send(self, request: TurnRequest) -> Reply:
        """Answer as a model would."""
        text = request.messages[0].content
        known = (GERMAN[name] for name, english in ENGLISH.items() if english in text)
        if "harbour" in request.system:
            return Reply(next(known), model="a-model", usage=Usage(input_tokens=9))
        return self._code.send(request)


class Fixed:
    """Answers everything with one text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def send(self, request: TurnRequest) -> Reply:
        """Answer as a model would."""
        return Reply(self._text, model=request.model)


def make_project(root: Path) -> Path:
    """Make a project with a store and a file of units, each with a mistake."""
    project(root, {**GERMAN, "berth": "Liegeplatz"})
    make_store(root / STORE, MISSPELT)
    return root


def unit_file(root: Path) -> UnitFile:
    """Return the file of units."""
    return open_units(kinds_with(root, German()), root / FILE)


def place_of(root: Path, candidate: Candidate) -> Place[Any]:
    """Return the place of a candidate."""
    return StorePlace(root / STORE) if candidate.has_pages else unit_file(root)


def heal_for_review(root: Path) -> None:
    """Let what heals both wait; the unit is tried by a test of its own meanwhile."""
    settings = TurnSettings(Translator(), pending=Pending(root, "a test"))
    file = unit_file(root)

    def check() -> tuple[str, ...]:
        text = json.loads((root / FILE).read_text("utf-8"))["berth"]
        return () if text == GERMAN["berth"] else (f"it says {text}",)

    ask_for_unit(file, "berth", settings=settings, feedback=["a test fails"], check=check)
    heal_store(root / STORE, settings=settings)


def heal_each_its_own_way(root: Path, number: int) -> None:
    """Let another text wait for the same unit than the other processes."""
    provider = Fixed(f"Platz {number} {{number}}")
    settings = TurnSettings(provider, pending=Pending(root, f"test {number}"))
    ask_for_unit(unit_file(root), "berth", settings=settings)


def accept_everything(root: Path, number: int = 0) -> None:
    """Accept what waits, as one of several processes may."""
    folder = PendingFolder.of_project(root)
    found = folder.read().candidates
    for candidate in found if number % 2 == 0 else reversed(found):
        with suppress(UsageError, OutdatedCandidateError):  # Another process was first.
            accept_candidate(place_of(root, candidate), candidate, folder)


def accept_or_reject(root: Path, number: int) -> None:
    """Reject what waits in every third process; accept it in the others."""
    if number % 3:
        accept_everything(root, number)
        return
    folder = PendingFolder.of_project(root)
    for candidate in folder.read().candidates:
        with suppress(UsageError):
            reject_candidate(place_of(root, candidate), candidate, folder)
