"""``--regen-jobs``: failing types and units are asked for at the same time, ahead of their turn."""

import json
import shutil
import sys
from collections.abc import Mapping
from typing import Any

import pytest
from plugin_project import Project, emulated
from store_factory import GOOD, MISSPELT
from unit_project import KIND, translate
from unit_work import ENGLISH, GERMAN, write_json

from pytest_regen.cassettes import read_cassette

WRONG = {**MISSPELT, ("State", 1): GOOD["State", 1].replace('"open"', '"opened"')}
LIVE = ("--regen", "--regen-record", "once")
JOBS = "--regen-jobs=4"
SOURCE = "ProjectDataObject.cs"


def answer(body: Mapping[str, Any]) -> Any:
    """Return the code of a type, or the German text of a unit."""
    text = json.dumps(body["messages"])
    found = [key for key in GOOD if f'TYPE: \\"{key[0]}\\"' in text]
    return GOOD[found[0]] if found else translate(body)


@pytest.fixture
def units(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with a store of which two types are wrong, another one, and a file of units."""
    monkeypatch.delitem(sys.modules, "regen_kinds", raising=False)
    (project.path / "regen_kinds.py").write_text(KIND, "utf-8")
    text = '[tool.pytest-regen]\nkinds = ["regen_kinds:German"]\n'
    (project.path / "pyproject.toml").write_text(text, "utf-8")
    write_json(project.path / "locales/en.json", ENGLISH)
    write_json(project.path / "locales/de.json", {**GERMAN, "berth": "Liegeplatz"})
    project.store("GET_0", WRONG)
    project.broken("GET_1")
    shutil.copytree(project.path / "generated", project.path / "kept/generated")
    shutil.copytree(project.path / "locales", project.path / "kept/locales")
    return project


def as_before(project: Project) -> None:
    """Let the project be as wrong as it was."""
    for name in ("generated", "locales", ".regen"):
        shutil.rmtree(project.path / name, ignore_errors=True)
    shutil.copytree(project.path / "kept", project.path, dirs_exist_ok=True)


def sources(project: Project) -> list[str]:
    """Return the files that people read."""
    paths = sorted(project.path.glob("[gl]*/**/*.[cj]s*"))
    return [path.read_text("utf-8") for path in paths if path.name in {"de.json", SOURCE}]


def recorded(project: Project) -> dict[str, list[bytes]]:
    """Return the requests that each cassette holds."""
    found = {}
    for path in sorted((project.path / "cassettes").rglob("*.yaml")):
        file = read_cassette(path)
        assert file is not None
        bodies = [stored.interaction.request_body for stored in file.interactions]
        found[str(path.relative_to(project.path))] = bodies
    return found


def reported(project: Project, *args: str) -> tuple[dict[str, int], Any]:
    """Run pytest and return the outcomes and the report."""
    result = project.run(*args, "--regen-report=report.json")
    return result.parseoutcomes(), json.loads((project.path / "report.json").read_text("utf-8"))


def test_all_is_as_it_is_one_by_one(units: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Report with diffs and calls, files and recordings; replayed with any number of jobs."""
    with emulated(monkeypatch, answer):
        alone = reported(units, *LIVE)
    known, files = recorded(units), sources(units)
    as_before(units)
    shutil.rmtree(units.path / "cassettes")

    with emulated(monkeypatch, answer) as api:
        together = reported(units, *LIVE, JOBS)
        assert len(api.requests) == 4

    assert together[0] == {"passed": 5, "regenerated": 4}
    assert together == alone
    assert recorded(units) == known
    assert sources(units) == files
    as_before(units)
    replayed = reported(units, "--regen", JOBS)
    as_before(units)
    assert (replayed, files) == (reported(units, "--regen"), sources(units))


def test_a_run_that_may_end_early_pays_for_nothing_ahead(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One by one: what comes after the failure is never asked."""
    for number in range(4):
        project.broken(f"GET_{number}")

    with emulated(monkeypatch, lambda _: MISSPELT["Owner", 1]) as api:
        project.run(*LIVE, JOBS, "--maxfail=3")

        assert len(api.requests) == 3


HOOKS = """
SEEN = []

def pytest_collection_modifyitems(items):
    # Of the stores, the last comes after the test.
    items.sort(key=lambda item: (item.nodeid.startswith("generated/GET_3"), item.path.is_file()))

def pytest_regen_after_turn(config, request, reply):
    SEEN.append("turn")

def pytest_regen_after_heal(item, result):
    SEEN.append(f"{item.nodeid}: {result.stop_reason}")
"""


def test_a_test_that_comes_between_waits(project: Project) -> None:
    """Nothing is under way while it runs; hooks are told of an item in its turn."""
    for number in range(4):
        project.broken(f"GET_{number}")
    project.answered_by("Good", HOOKS)
    project.pytester.makepyfile(
        test_between="""
        from conftest import SEEN

        def test_it():
            assert SEEN.count("turn") == 4
            told = [seen for seen in SEEN if seen != "turn"]
            assert told == [f"generated/GET_{number}::Owner: clean" for number in range(3)]
        """
    )

    result = project.run("--regen", JOBS)

    assert result.parseoutcomes() == {"passed": 9, "regenerated": 4}
