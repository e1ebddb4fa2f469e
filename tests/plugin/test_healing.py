"""``--regen``: what fails is regenerated alone; what is kept, told, or waits for review."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import command
from plugin_project import Project, emulated
from reference_writer import ReferenceWriter
from store_factory import GOOD
from unit_project import UnitProject, translate
from unit_work import GERMAN

STORE = "generated/GET_v1_projects"


@pytest.mark.parametrize(
    ("choice", "ci", "code"),
    [("auto", False, 0), ("regenerated", False, 1), ("never", True, 0)],
)
def test_what_fails_a_run_that_changed_a_store(
    project: Project, in_ci: Callable[[], None], choice: str, code: int, *, ci: bool
) -> None:
    """The letter of what was regenerated is G, which has a count of its own."""
    if ci:
        in_ci()
    project.pytester.makeini(f"[pytest]\nregen_stores = generated/*\nregen_fail_on = {choice}\n")
    project.broken()
    project.answered_by("Good")

    result = project.run("--regen")

    assert result.ret == code
    assert result.parseoutcomes() == {"passed": 2, "regenerated": 1}
    result.stdout.fnmatch_lines([f"{STORE} .G.*"])


def test_a_dry_run_asks_for_nothing(project: Project) -> None:
    """It says which page would be asked; the type stays failed, as without the option."""
    path = project.broken()
    project.pytester.makeconftest("def pytest_regen_provider(config): raise SystemExit(9)")
    before = {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()}

    assert project.run().ret == 1
    result = project.run("--regen-dry-run")

    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines([f"dry run: {STORE}::Owner: would ask page 1, about * tokens in"])
    assert before == {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()}


def test_one_attempt_is_no_regeneration(project: Project) -> None:
    """Attempts count calls of the test, the first included; with a debugger nothing heals."""
    project.broken()
    project.answered_by("Good")

    project.run("--regen", "--regen-attempts=1").assert_outcomes(passed=2, failed=1)
    asks = "def pytest_collection_modifyitems(config): config.option.usepdb = True\n"
    project.answered_by("Good", asks)
    project.run("--regen").assert_outcomes(passed=2, failed=1)


OLD = ("--regen", "--regen-record", "once", "--regen-model", "claude-sonnet-4-5")


def test_a_deprecated_model_heals_where_warnings_are_errors(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One note says when it ends, however many types it wrote."""
    for name in ("GET_v1_projects", "GET_v1_others"):
        project.broken(name)

    with emulated(monkeypatch, ReferenceWriter()):
        result = project.run(*OLD, "-W", "error")

    assert result.ret == 0
    note = "note: claude-sonnet-4-5 is deprecated by its provider and *retire*"
    result.stdout.fnmatch_lines([note, "regenerated: *"])
    assert result.stdout.str().count("by its provider") == 1


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


def test_a_unit_that_would_be_healed_waits(
    units: UnitProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The item fails and names the candidate; accepted, it passes, and the recording is kept."""
    units.write(german={**GERMAN, "berth": "Liegeplatz"})
    before = contents(units.recorded().path)
    unrecorded = units.run("--regen", "--regen-pending")
    with emulated(monkeypatch, translate) as model:
        result = units.run(*PENDING)

    # Pasted, the command that records must not replace what was to be reviewed.
    following = [line for line in unrecorded.outlines if "pytest " in line and "--regen" in line]
    assert following
    assert not [line for line in following if "--regen-pending" not in line]

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


def test_candidates_of_stores(project: Project) -> None:
    """The folders of the stores stay byte for byte; each type is named with its id."""
    project.broken()
    project.broken("GET_v2_projects")
    project.answered_by("Good")
    before = contents(project.path)

    result = project.run("--regen", "--regen-pending", "--regen-jobs", "3")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert contents(project.path) == before
    waiting = candidates(project.path)
    assert [each["name"] for each in waiting] == ["Owner", "Owner"]
    result.stdout.fnmatch_lines(["*2 candidates wait for review: pytest-regen review"])
    assert all(f"[{each['id']}]" in result.stdout.str() for each in waiting)


def test_ignored_codes_do_not_count_in_the_score(project: Project) -> None:
    """An output that mends the error is kept, though it brings two of the ignored kind."""
    project.store(wrong={("Owner", 1): GOOD["Owner", 1].replace('("name")', '("nmae")')})
    project.path.joinpath("pyproject.toml").write_text(
        '[tool.pytest-regen.ignore]\n"generated/*::Owner" = ["WRONG_TYPE", "NULLABILITY"]\n',
        "utf-8",
    )
    project.pytester.makeconftest(
        """
        from pytest_regen import CallableProvider

        WORSE = '''public class Owner
        {
            [JsonPropertyName("name")]
            public long? Name { get; set; }

            [JsonPropertyName("state")]
            public long? State { get; set; }
        }'''

        def pytest_regen_provider(config):
            return CallableProvider(lambda _messages: WORSE)
        """
    )

    result = project.run("--regen", "--regen-record=all")

    result.stdout.fnmatch_lines(["*2 passed, 1 regenerated*"])
