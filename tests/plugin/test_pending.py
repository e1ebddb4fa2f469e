"""``--regen-pending``: healing as ever, and what it would keep waits for review."""

import json
import sys
from pathlib import Path

import pytest
from command_line import command
from plugin_project import Project, emulated
from unit_project import UnitProject, translate
from unit_work import GERMAN

PENDING = ("--regen", "--regen-pending", "--regen-record=once")


def contents(folder: Path) -> dict[str, bytes]:
    """Return what the files of a project hold that version control would see."""
    ignored = {f".regen/{name}/" for name in ("history", "locks", "pending", "replies")}
    found = (path for path in folder.rglob("*") if path.is_file())
    return {
        name: path.read_bytes()
        for path in found
        if "cache" not in (name := path.relative_to(folder).as_posix())
        and not any(name.startswith(each) for each in ignored)
        and "/history/" not in name
    }


def candidates(folder: Path) -> list[dict[str, object]]:
    """Return what waits in a project."""
    return [
        json.loads(path.read_text("utf-8"))
        for path in sorted((folder / ".regen/pending").glob("*.json"))
    ]


@pytest.fixture
def units(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> UnitProject:
    """The project of the documentation, with a mistake in one string."""
    monkeypatch.delitem(sys.modules, "regen_kinds", raising=False)
    made = UnitProject(pytester)
    made.write(german={**GERMAN, "berth": "Liegeplatz"})
    return made.recorded()


def test_a_unit_that_would_be_healed_waits(
    units: UnitProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The item fails and names the candidate; accepted, it passes, and the recording is kept."""
    before = contents(units.path)
    with emulated(monkeypatch, translate) as model:
        result = units.run(*PENDING)

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.parseoutcomes() == {"passed": 2, "failed": 1}
    assert len(model.requests) == 1
    after = contents(units.path)
    assert set(after) - set(before) == {"cassettes/regen/locales/de.json/berth.yaml"}
    assert {name: after[name] for name in before} == before
    (candidate,) = candidates(units.path)
    id_ = candidate["id"]
    result.stdout.fnmatch_lines(
        [
            f"Candidate {id_} waits for review: pytest-regen review",
            f"waits for review: locales/de.json::berth [[]{id_}[]], 1 call, *",
            '  +  "berth": "Liegeplatz {number}",',
            "1 candidate waits for review: pytest-regen review",
            "next: pytest-regen review",
        ]
    )
    assert candidate["asked_by"] == "locales/de.json::berth"
    assert "sk-ant" not in json.dumps(candidate)

    assert command("review", "accept", id_).code == 0
    again = units.run("--regen")
    assert again.parseoutcomes() == {"passed": 3}
    assert units.german() == GERMAN


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(("--regen-jobs", "3"), id="jobs"),
    ],
)
def test_candidates_of_stores(project: Project, options: tuple[str, ...]) -> None:
    """The folders of the stores stay byte for byte; each type is named with its id."""
    project.broken()
    project.broken("GET_v2_projects")
    project.answered_by("Good")
    before = contents(project.path)

    result = project.run("--regen", "--regen-pending", *options)

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert contents(project.path) == before
    waiting = candidates(project.path)
    assert [each["name"] for each in waiting] == ["Owner", "Owner"]
    result.stdout.fnmatch_lines(["*2 candidates wait for review: pytest-regen review"])
    assert all(f"[{each['id']}]" in result.stdout.str() for each in waiting)


def test_the_next_command_keeps_the_option(units: UnitProject) -> None:
    """Pasted, the command that records must not replace what was to be reviewed."""
    result = units.run("--regen", "--regen-pending")

    commands = [line for line in result.outlines if "pytest " in line and "--regen" in line]
    assert commands
    assert not [line for line in commands if "--regen-pending" not in line]


def test_pending_without_healing_is_a_usage_error(project: Project) -> None:
    project.store()

    result = project.run("--regen-pending")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*next: add --regen"])
