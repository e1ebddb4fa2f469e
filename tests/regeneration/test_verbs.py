"""The verbs do alike in every place: a store, a file of units, and one that the package lacks."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cells
import pytest
import unit_work
from harbour_store import HARBOUR, harbour_store

from pytest_regen.errors import HandEditError, UsageError
from pytest_regen.regeneration import TurnSettings, verbs
from pytest_regen.regeneration.places import PLACES, Place, open_place, places_in
from pytest_regen.regeneration.queue import drive_flow
from pytest_regen.regeneration.store_place import StorePlace
from pytest_regen.stores import is_store
from pytest_regen.turns import CallableProvider
from pytest_regen.turns.values import Reply

PROMPTS = {"mean": "write a cell that computes a mean", "peak": "write a cell that finds a peak"}


@dataclass(frozen=True)
class Case:
    """A place with a unit in it that is right, and what its unit could be otherwise."""

    place: Place[Any]
    name: str
    right: str
    wrong: str
    edit: Callable[[str], None]
    """Replaces what stands there, as a person would."""

    def text(self) -> str:
        """Return what the verbs see there."""
        return self.place.open().output(self.name, 1) or ""

    def settings(self, *answers: str) -> TurnSettings:
        """Return those by which these answers are given."""
        left = list(answers)
        return TurnSettings(CallableProvider(lambda _: Reply(left.pop(0), model="model-b")))

    def ask(self, verb: Callable[..., Any], *answers: str, **options: Any) -> verbs.Result:
        """Ask for the unit."""
        settings = self.settings(*answers)
        flow = verb(self.place, [self.name], settings=settings, **options)
        result: verbs.Result = drive_flow(flow, settings)
        return result

    def reasons(self) -> list[str]:
        """Return why each past output of the unit is not the stored one."""
        return [entry.reason for entry in verbs.history(self.place, [self.name])]


def _store(root: Path) -> Case:
    right = HARBOUR["Tide", 1]
    store = harbour_store(root / "store")
    place = StorePlace(store.path, root=root)

    def edit(text: str) -> None:
        stored = place.open().output("Tide", 1) or ""
        store.source_path.write_text(store.source_path.read_text().replace(stored, text))

    return Case(place, "Tide", right, right.replace("JsonPropertyName", "JsonName"), edit)


def _units(root: Path) -> Case:
    file = unit_work.project(root)

    def edit(text: str) -> None:
        strings = json.loads(file.path.read_text("utf-8"))
        unit_work.write_json(file.path, {**strings, "berth": text})

    return Case(file, "berth", "Platz {number}", "Platz", edit)


def _cells(root: Path) -> Case:
    path = cells.notebook(root / "work.ipynb", {"mean": "1", "peak": "2"}, PROMPTS)

    def edit(text: str) -> None:
        data = json.loads(path.read_text())
        data["cells"][0]["source"] = text
        path.write_text(json.dumps(data, indent=1))

    return Case(cells.Cells(path, root), "mean", "1 / 2", "1 /", edit)


@pytest.fixture(params=[_store, _units, _cells], ids=["store", "units", "cells"])
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    """A place of each kind."""
    made: Case = request.param(tmp_path)
    return made


def test_healing_asks_for_what_is_wrong_and_keeps_the_better(case: Case) -> None:
    """What is no better is put aside; what was replaced can be read."""
    spoilt = case.ask(verbs.regenerate_steps, case.wrong, accept_any=True)
    assert spoilt.regenerated == [(case.name, 1)]

    stuck = case.ask(verbs.heal_steps, f"{case.wrong} ", attempts=3)
    result = case.ask(verbs.heal_steps, case.right)

    assert (stuck.stop_reasons, len(stuck.rejected)) == ({case.name: "no_progress"}, 1)
    assert case.text() == case.right
    assert (result.regenerated, result.calls) == ([(case.name, 1)], 1)
    assert result.results[0].stop_reason == "clean"
    assert result.diff.count("\n@@") == 1
    assert case.reasons()[-2:] == ["rejected", "replaced"]
    assert not case.ask(verbs.heal_steps).results


def test_an_edit_is_not_overwritten_and_can_be_dropped(case: Case) -> None:
    """Rebuilding puts back what was recorded, and keeps the edit; asking does so where it may."""
    case.ask(verbs.regenerate_steps, case.right)
    case.edit(f"{case.right}  # mine" if case.name != "Tide" else case.right.replace("Tide", "T"))

    with pytest.raises(HandEditError, match="was edited by hand"):
        case.ask(verbs.regenerate_steps)
    with pytest.raises(HandEditError, match="was edited by hand"):
        verbs.restore(case.place, case.name)
    changes = verbs.rebuild(case.place)

    assert (changes.names, len(changes.history)) == ((case.name,), 1)
    assert changes.diff
    assert case.place.open().output(case.name, 1) == case.right
    assert not case.place.open().issues(case.name)
    assert case.reasons()[-1] == "dropped"
    assert not verbs.rebuild(case.place).names
    case.edit("3" if case.name != "Tide" else case.right.replace("Berth? Berth", "Berth? Here"))
    result = case.ask(verbs.regenerate_steps, case.right, discard_edits=True)
    assert result.regenerated == [(case.name, 1)]
    assert case.text() == case.right
    assert case.reasons().count("dropped") == 2


def test_an_edit_is_adopted_and_what_it_replaced_restored(case: Case) -> None:
    """The history has what was recorded before; restored, it is recorded again.

    What was rejected meanwhile is not what is wanted back.
    """
    case.ask(verbs.regenerate_steps, case.right)
    is_type = case.name == "Tide"
    case.edit(case.right.replace("Berth? Berth", "Berth? Here") if is_type else f"{case.right} ")

    adopted = verbs.adopt(case.place)

    assert adopted.names == (case.name,)
    assert case.place.open().hand_edit(case.name) is None
    assert case.reasons()[-1] == "adopted"
    assert not verbs.adopt(case.place).names
    assert case.ask(verbs.regenerate_steps, case.wrong).rejected
    restored = verbs.restore(case.place, case.name)
    assert [page.name for page in restored.pages] == [case.name]
    assert case.text() == case.right


def test_what_is_restored_differs_from_what_is_there(case: Case) -> None:
    """Not the same text, which a model wrote twice or which was restored before."""
    case.ask(verbs.regenerate_steps, case.wrong, accept_any=True)
    case.ask(verbs.regenerate_steps, case.right)
    case.ask(verbs.regenerate_steps, case.right)

    texts = [case.text()]
    for _ in range(2):
        verbs.restore(case.place, case.name)
        texts.append(case.text())

    assert texts[:2] == [case.right, case.wrong]
    assert texts[2] != case.wrong


def test_a_name_that_nothing_has_is_refused(case: Case) -> None:
    """By every verb that takes one."""
    for verb in (verbs.generate_steps, verbs.regenerate_steps, verbs.heal_steps):
        with pytest.raises(UsageError):
            drive_flow(verb(case.place, ["Nope"], settings=case.settings()), case.settings())
    with pytest.raises(UsageError):
        verbs.history(case.place, ["Nope"])
    with pytest.raises(UsageError):
        verbs.adopt(case.place, ["Nope"])


def test_a_place_that_the_package_lacks_takes_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then all verbs are there for it: cells of a notebook are generated and forgotten, too."""
    monkeypatch.setattr("pytest_regen.regeneration.places.PLACES", [*PLACES, "cells"])
    path = cells.notebook(tmp_path / "work.ipynb", {"peak": "2"}, PROMPTS)
    kinds = unit_work.kinds_with(tmp_path)
    project: Any = SimpleNamespace(root=tmp_path, kinds=kinds, stores=lambda: (), ignored_codes=set)
    harbour_store(tmp_path / "harbour")
    (place,) = places_in(project)
    assert (place.path, place.noun, place.place) == (path, "cell", "work.ipynb")
    in_folder = places_in(project, [tmp_path])
    assert [each.noun for each in in_folder] == ["type", "cell"]
    assert is_store(in_folder[0].path)
    assert open_place(project, tmp_path / "nothing.txt") is None

    settings = TurnSettings(CallableProvider(lambda _: Reply("1 + 1", model="model-b")))
    result = drive_flow(verbs.generate_steps(place, settings=settings), settings)

    assert result.regenerated == [("mean", 1)]
    assert result.view.output("mean", 1) == "1 + 1"
    assert not drive_flow(verbs.generate_steps(place, settings=settings), settings).results
    assert verbs.forget(place, ["mean"]).names == ("mean",)
    assert place.open().names == ("peak",)
    assert [entry.reason for entry in verbs.history(place)] == ["forgotten"]
