"""The section at the end of a run."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from plugin_project import Project
from store_factory import GOOD, MISSPELT
from syrupy.assertion import SnapshotAssertion

STORE = "generated/GET_v1_projects"


def section(result: pytest.RunResult) -> str:
    """Return our section and the line below it, without the times."""
    text = "\n".join(result.outlines)
    return re.sub(r"in \d+\.\d+s", "in …", text[text.index("= regen =") :]).strip("=\n ")


def test_a_regenerated_type(project: Project, snapshot: SnapshotAssertion) -> None:
    """Pages, calls, tokens, the diff, what changed and the next command."""
    project.broken()
    project.answered_by("Good")

    assert section(project.run("--regen")) == snapshot


def test_a_stale_type_is_regenerated_only_when_told(project: Project) -> None:
    """Its prompts may ask for the wrong thing; an option goes on all the same."""
    wrong = GOOD["State", 1].replace('"open"', '"opened"')
    make_stale(project.store(wrong={("State", 1): wrong}))
    project.answered_by("Good")

    left = project.run("--regen")
    healed = project.run("--regen", "--regen-ignore-stale")

    left.assert_outcomes(passed=2, failed=1)
    left.stdout.fnmatch_lines(["not regenerated: *State", "next: *--regen --regen-ignore-stale"])
    assert healed.parseoutcomes() == {"passed": 2, "regenerated": 1}


def make_stale(store: Path) -> None:
    """Change what ir.json says of ``State``, after its pages were written."""
    path = store / "ir.json"
    data = json.loads(path.read_text("utf-8"))
    data["types"][2]["description"] = "How far a project has come."
    path.write_text(json.dumps(data), "utf-8")


def test_a_long_diff_is_cut_and_kept(project: Project) -> None:
    """Sixty lines are printed; the report has the whole."""
    padding = "\n".join(f"    // {number}" for number in range(80))
    wrong = MISSPELT["Owner", 1].replace("{\n", "{\n" + padding + "\n", 1)
    project.store(wrong={("Owner", 1): wrong})
    project.answered_by("Good")

    result = project.run("--regen", "--regen-report=report.json")

    result.stdout.fnmatch_lines(["  … 31 more lines, in git diff or the report of --regen-report"])
    report = json.loads((project.path / "report.json").read_text("utf-8"))
    (heal,) = (heal for item in report["items"] for heal in item["heals"])
    assert heal["diff"].count("\n-    // ") == 80


@pytest.mark.parametrize(
    ("wanted", "ret", "told"),
    [("fail", 1, False), ("warn", 0, True), ("ignore", 0, False)],
)
def test_the_project_chooses_what_staleness_does(
    project: Project, in_ci: Callable[[], None], wanted: str, ret: int, *, told: bool
) -> None:
    """``regen_stale`` wins over the table, and the table over where the run takes place.

    A type that fails for it names the command that mends it.
    """
    make_stale(project.store())
    if wanted != "fail":
        in_ci()
    project.pytester.makepyprojecttoml("[tool.pytest-regen]\nstale = 'auto'\n")

    result = project.run("-o", f"regen_stale={wanted}")

    assert result.ret == ret
    assert ("STALE" in result.stdout.str()) is (told or bool(ret))
    assert (f"warning: {STORE}::State: STALE" in result.stdout.str()) is told
    mends = "pytest-regen generate SPEC 'GET /v1/projects' *"
    failing = [f"*update:*{mends}", f"FAILED {STORE}::State - STALE: *"]
    result.stdout.fnmatch_lines(failing if ret else [])
    project.pytester.makepyprojecttoml(f"[tool.pytest-regen]\nstale = '{wanted}'\n")
    assert project.run().ret == ret
