"""A kind of place that a project registers: collected, gated and healed as those that ship."""

import sys

import pytest
from plugin_project import emulated
from unit_project import KIND, translate
from unit_work import ENGLISH, GERMAN, write_json

from pytest_regen.regeneration import places

CELLS = '''
import regen_kinds

from pytest_regen.units.loading import KindOfFile, ProjectKinds
from pytest_regen.units.place import UnitFile


class Notebook(UnitFile):
    """A file whose cells are units."""

    noun = "cell"
    title = "notebooks"


def below(project, folder):
    path = project.root / "book/de.json"
    return [path] if folder is None or path.is_relative_to(folder) else []


def at(project, path):
    if path != project.root / "book/de.json":
        return None
    kind = regen_kinds.German()
    kinds = ProjectKinds(project.root, (KindOfFile(kind, "cells"),))
    return Notebook(kinds, "book/de.json", kind, project.ignored_codes)
'''


@pytest.fixture
def notebook(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project with a notebook of which one cell is wrong, and nothing else of ours."""
    for name in ("cells", "regen_kinds"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(places, "PLACES", [*places.PLACES, "cells"])
    pytester.syspathinsert()
    pytester.makepyfile(cells=CELLS, regen_kinds=KIND)
    pytester.makeini("[pytest]\n")
    write_json(pytester.path / "book/en.json", ENGLISH)
    write_json(pytester.path / "book/de.json", {**GERMAN, "berth": "Liegeplatz"})
    return pytester


def run(notebook: pytest.Pytester, *args: str) -> pytest.RunResult:
    """Run pytest in this process."""
    return notebook.runpytest_inprocess("-p", "no:randomly", "-p", "no:xdist", *args)


def test_it_is_collected_gated_and_healed(
    notebook: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = run(notebook)
    assert failing.parseoutcomes() == {"passed": 2, "failed": 1}
    failing.stdout.fnmatch_lines(["book/de.json:2: PLACEHOLDER: *"])

    with emulated(monkeypatch, translate):
        healed = run(notebook, "--regen", "--regen-record=once")

    assert healed.parseoutcomes() == {"passed": 2, "regenerated": 1}
    assert run(notebook).ret == 0
    assert (notebook.path / "cassettes/regen/book/de.json").is_dir()


def test_one_of_its_units_is_named(notebook: pytest.Pytester) -> None:
    """By its id, as types and units are; one that is not there is refused."""
    assert run(notebook, "book/de.json::leave").parseoutcomes() == {"passed": 1}
    assert run(notebook, "book").parseoutcomes() == {"passed": 2, "failed": 1}

    refused = run(notebook, "book/de.json::nothing")

    refused.stderr.fnmatch_lines(["*has no cell 'nothing'; it has berth, mooring, leave"])
