"""Commands do alike in every place: a store, a file of units, and one that the package lacks."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import cells
import pytest
from command_line import Ran, command
from harbour_store import HARBOUR, harbour_store
from unit_project import KIND, SETTINGS, record_file
from unit_work import ENGLISH, GERMAN, write_json

from pytest_regen.cli.project import Project
from pytest_regen.regeneration import places
from pytest_regen.turns import CallableProvider
from pytest_regen.turns.values import Reply

PROMPTS = {"mean": "write a cell that computes a mean", "peak": "write a cell that finds a peak"}


@dataclass
class Case:
    """A place with a unit that is right, and what that could be otherwise."""

    path: str
    name: str
    right: str
    wrong: str
    mine: str
    """What a person makes of it."""
    edit: Callable[[str], None]
    """Replaces what stands there, as a person would."""
    noun: str
    option: str = "--unit"
    answers: list[str] = field(default_factory=list)
    """What a model answers, in turn."""

    @property
    def unit(self) -> tuple[str, str]:
        """The option that names the unit."""
        return self.option, self.name

    def ask(self, verb: str, *answers: str, words: tuple[str, ...] = ()) -> Ran:
        """Run a command that asks a model, which gives these answers."""
        self.answers[:] = answers
        return command(verb, self.path, *words, "--provider", "scripted:provider")

    def text(self) -> str:
        """Return what stands there."""
        return str(Project.here().place(Path(self.path)).open().output(self.name, 1))


def _store(root: Path) -> Case:
    right = HARBOUR["Tide", 1]
    store = harbour_store(root / "store")

    def edit(text: str) -> None:
        source = store.source_path.read_text()
        head, begin, block = source.partition("public class Tide")
        _, _, tail = block.partition("\n}")
        assert begin
        store.source_path.write_text(head + text + tail)

    wrong = right.replace("JsonPropertyName", "JsonName")
    mine = right.replace("Berth? Berth", "Berth? Here")
    return Case("store", "Tide", right, wrong, mine, edit, "type", "--type")


def _units(root: Path) -> Case:
    path = root / "locales/de.json"
    write_json(path, GERMAN)
    record_file(root, path)

    def edit(text: str) -> None:
        write_json(path, {**json.loads(path.read_text("utf-8")), "berth": text})

    return Case("locales/de.json", "berth", GERMAN["berth"], "Platz", "Steg {number}", edit, "unit")


def _cells(root: Path) -> Case:
    path = cells.notebook(root / "work.ipynb", {"mean": "1 / 2", "peak": "2"}, PROMPTS)

    def edit(text: str) -> None:
        data = json.loads(path.read_text())
        data["cells"][0]["source"] = text
        path.write_text(json.dumps(data, indent=1))

    return Case("work.ipynb", "mean", "1 / 2", "1 /", "3", edit, "cell")


MAKERS = {"store": _store, "units": _units, "cells": _cells}


@pytest.fixture
def project(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that knows all kinds of places; notebooks by one line."""
    (here / "pyproject.toml").write_text(f'{SETTINGS}stores = ["store"]\n', "utf-8")
    (here / "regen_kinds.py").write_text(KIND, "utf-8")
    write_json(here / "locales/en.json", ENGLISH)
    write_json(here / "locales/de.json", GERMAN)
    monkeypatch.delitem(sys.modules, "regen_kinds", raising=False)
    monkeypatch.setattr(places, "PLACES", [*places.PLACES, "cells"])
    return here


def _with_model(made: Case, monkeypatch: pytest.MonkeyPatch) -> Case:
    scripted = ModuleType("scripted")
    provider = CallableProvider(lambda _: Reply(made.answers.pop(0), model="model-b"))
    monkeypatch.setattr(scripted, "provider", provider, raising=False)
    monkeypatch.setitem(sys.modules, "scripted", scripted)
    return made


@pytest.fixture(params=MAKERS)
def case(request: pytest.FixtureRequest, project: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    """A place of each kind, and a model that answers as a test says."""
    return _with_model(MAKERS[request.param](project), monkeypatch)


def test_named_work_is_kept_where_it_makes_no_errors(case: Case) -> None:
    """What is worse is put aside, unless any is accepted; then only what has errors is asked."""
    before = case.text()

    worse = case.ask("regenerate", case.wrong, words=(*case.unit, "--attempts", "1", "--json"))
    assert (case.text(), len(worse.json["rejected"])) == (before, 1)
    taken = case.ask("regenerate", case.wrong, words=(*case.unit, "--accept-any", "--attempts=1"))
    assert (taken.code, case.text()) == (1, case.wrong)
    assert f"regenerate {case.path} --from-errors --provider scripted:provider" in taken.err

    planned = case.ask("regenerate", words=("--from-errors", "--dry-run"))
    assert f"{case.path}: 1 {'page' if case.noun == 'type' else case.noun} to ask" in planned.err
    healed = case.ask("regenerate", case.right, words=("--from-errors",))
    assert (healed.code, case.text()) == (0, case.right)
    assert "nothing to ask" in case.ask("regenerate", words=("--from-errors",)).err


def test_validate_says_what_is_wrong(case: Case) -> None:
    """In words and as JSON; errors are exit code 1."""
    assert command("validate", case.path).code == 0
    case.edit(case.wrong)

    told, as_json = command("validate", case.path), command("validate", case.path, "--json")

    assert (told.code, as_json.code) == (1, 1)
    assert f"{case.name} [DRIFT]" in told.out
    assert f"{case.path}: 1 of " in told.out
    (report,) = (report for listed in as_json.json.values() for report in listed)
    assert (report["path"], report["ok"]) == (case.path, False)
    (wrong,) = (unit for unit in report[f"{case.noun}s"] if unit["errors"])
    assert (wrong["name"], wrong["errors"][0]["code"]) == (case.name, "DRIFT")


def test_an_edit_is_refused_adopted_and_dropped(case: Case) -> None:
    """It is a person's until it is dropped."""
    recorded = case.text()
    case.edit(case.mine)

    refused = case.ask("regenerate", words=case.unit)
    assert (refused.code, "edited by hand" in refused.err) == (2, True)
    rebuilt = command("rebuild", case.path, *case.unit, "--json")
    assert (rebuilt.json["rebuilt"], case.text()) == ([case.name], recorded)
    assert "stands as it is recorded" in command("rebuild", case.path).err

    case.edit(case.mine)
    adopted = command("adopt", case.path)
    assert (adopted.code, case.name in adopted.err, case.text()) == (0, True, case.mine)
    assert "recorded as it stands" in command("adopt", case.path).err
    assert command("validate", case.path).code == 0


def test_what_was_replaced_is_listed_and_restored(case: Case) -> None:
    assert "nothing was replaced or rejected yet" in command("history", case.path).err
    case.edit(case.mine)
    command("adopt", case.path)

    listed = command("history", case.path, *case.unit)
    (entry,) = command("history", case.path, "--json").json["entries"]
    words = f"restore {case.path} {' '.join(case.unit)} --to {entry['id']}"
    assert listed.err.endswith(f"next: pytest-regen {words}\n")

    restored = command(*words.split())
    assert (restored.code, "  restored    " in restored.err) == (0, True)
    assert case.text() != case.mine
    which = command("restore", case.path)
    assert (which.code, f"does not say which {case.noun}" in which.err) == (2, True)


def test_candidates_wait_for_review(case: Case) -> None:
    """Listed, shown and accepted; the place stays as it is until then."""
    assert "nothing waits for review" in command("review").err
    case.ask("regenerate", case.wrong, words=(*case.unit, "--accept-any", "--attempts=1"))
    case.ask("regenerate", case.right, words=(*case.unit, "--pending"))
    assert case.text() == case.wrong

    (listed,) = command("review", "list", "--json").json["candidates"]
    assert (listed["path"], command("review", "--check").code) == (case.path, 1)
    shown = command("review", "show", listed["id"])
    assert f"{case.path}::{case.name}" in shown.err
    assert command("review", "accept", listed["id"]).code == 0

    assert case.text() == case.right


def test_status_says_who_wrote_it(case: Case) -> None:
    case.ask("regenerate", case.right, words=(*case.unit, "--accept-any"))
    case.edit(case.mine)

    told, as_json = command("status", case.path), command("status", case.path, "--json")

    assert f"1 {case.noun} edited by hand" in told.out
    (report,) = (r for group in as_json.json if group != "sum" for r in as_json.json[group])
    (row,) = (row for row in report[f"{case.noun}s"] if row["name"] == case.name)
    assert (row["state"], row["model"]) == ("DRIFT", "model-b")
    assert as_json.json["sum"]["edited"] == 1
    assert as_json.json["sum"]["next"].split()[:3] == ["pytest-regen", "adopt", case.path]


def test_a_name_that_nothing_has_is_refused(case: Case) -> None:
    """By every command that takes one, before anybody is asked."""
    for verb in ("regenerate", "history", "restore", "adopt", "rebuild", "status"):
        refused = command(verb, case.path, case.option, "Nope")
        assert (refused.code, "Nope" in refused.err) == (2, True), verb
    everything = case.ask("regenerate")
    assert (everything.code, "was not confirmed" in everything.err) == (2, True)


@pytest.mark.parametrize("make", [_units, _cells])
def test_what_is_missing_is_generated(
    make: Callable[[Path], Case], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``--check`` says so before, and a second time there is nothing to ask."""
    case = _with_model(make(project), monkeypatch)
    case.edit("")

    check = case.ask("generate", words=("--check", "--json"))
    assert (check.code, [unit["name"] for unit in check.json["asked"]]) == (1, [case.name])
    made = case.ask("generate", case.right)

    assert (made.code, case.text()) == (0, case.right)
    assert f"  written     1 {case.noun}: {case.name}" in made.err
    assert "nothing to ask" in case.ask("generate").err
    assert case.ask("generate", words=("--check",)).code == 0


def test_units_of_a_notebook_are_forgotten(project: Path) -> None:
    """Whatever its place can let go; a store cannot."""
    _cells(project)
    _store(project)

    assert command("forget", "work.ipynb", "--unit", "mean", "--json").json["forgotten"] == ["mean"]
    assert command("forget", "store").code == 2


def test_all_places_of_a_project_are_looked_at_together(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By validate, status and regenerate: each sort of place under its own name."""
    for make in MAKERS.values():
        case = _with_model(make(project), monkeypatch)

    validated, told = command("validate", "--json"), command("status")
    planned = case.ask("regenerate", words=(".", "--from-errors", "--dry-run", "--json"))
    everything = case.ask("regenerate", words=(".",))

    assert validated.code == 0, validated.err
    assert (
        set(validated.json) == set(planned.json) - {"estimate"} == {"stores", "files", "notebooks"}
    )
    counted = "5 types in 1 store, 3 units in 1 file, 2 cells in 1 notebook: nothing to do"
    assert counted in told.out
    # Neither pages nor units: a store has six of the ones, a file three of the others.
    assert "regenerating all 11 texts of 3 places was not confirmed" in everything.err
