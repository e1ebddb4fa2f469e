"""``next:`` leads on: what it names can be run where the user stands, and ends elsewhere."""

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from plugin_project import Project, emulated
from store_factory import GOOD

from pytest_regen.stores import RegenStore

STORE = "generated/GET_v1_projects"


def told_next(result: pytest.RunResult) -> str:
    """Return the last line that says what comes next."""
    lines = [
        line.lstrip("E ") for line in result.outlines if line.lstrip("E ").startswith("next: ")
    ]
    assert lines, result.stdout.str()
    return lines[-1].removeprefix("next: ")


def follow(project: Project, command: str) -> pytest.RunResult:
    """Run what a line names, where it is a command of pytest."""
    program, *options = shlex.split(command)
    assert program == "pytest", command
    return project.run(*options)


def owner(_: dict[str, object]) -> str:
    """Answer as a model that writes ``Owner`` as it must be."""
    return GOOD["Owner", 1]


def test_without_recording_and_key_the_next_is_a_key(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No recording: record. No key: set it and run the same again, which heals.

    What is printed can be pasted into a shell, whatever the folder is called.
    """
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    project.broken("GET_x[1] y")

    record = told_next(project.run("--regen"))
    keyless = told_next(follow(project, record))

    assert record == "pytest 'generated/GET_x[1] y::Owner' --regen --regen-record once"
    assert keyless == f"set ANTHROPIC_API_KEY, then {record}"
    with emulated(monkeypatch, owner):
        healed = follow(project, keyless.partition("then ")[2])
    assert healed.parseoutcomes() == {"regenerated": 1}


def test_a_budget_that_is_too_small_is_raised(
    project: Project, monkeypatch: pytest.MonkeyPatch, in_ci: Callable[[], None]
) -> None:
    """The command that follows has one that is large enough, and records as this run did."""
    in_ci()
    project.broken()
    with emulated(monkeypatch, owner):
        stopped = project.run("--regen", "--regen-record", "once", "--regen-budget", "1")
        following = told_next(stopped)
        healed = follow(project, following)

    assert "--regen-record once --regen-budget " in following
    assert healed.parseoutcomes() == {"regenerated": 1}


def test_more_attempts_are_asked_not_replayed(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has no recording yet can only be recorded, of the same model; and is told alone."""
    project.broken()
    replies = [GOOD["Owner", 1].replace('("name")', f'("{word}")') for word in ("nam", "na")]
    answers = iter([*replies, GOOD["Owner", 1]])
    heal = ("--regen", "--regen-record=once", "--regen-attempts=3", "--regen-model=claude-opus-5")
    with emulated(monkeypatch, lambda _: next(answers)):
        failed = project.run(*heal)
        healed = follow(project, told_next(failed))

    again = told_next(failed)
    options = "--regen-record new_episodes --regen-model claude-opus-5 --regen-attempts 4"
    assert options in again
    failed.stdout.fnmatch_lines([f"  next:          {again}"])
    failed.stdout.no_fnmatch_line("*regenerate:  *")
    assert healed.parseoutcomes() == {"regenerated": 1}


def test_commands_and_paths_hold_where_the_user_stands(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below the rootdir, what is printed is accepted as printed, and names files that exist.

    What follows shows what changed in the source, where git can be asked.
    """
    path = project.broken()
    (project.path / ".git").mkdir()
    below = project.path / "sess"
    below.mkdir()
    monkeypatch.chdir(below)

    gate = project.run(f"../{STORE}")
    place = next(line for line in gate.outlines if "PHANTOM_FIELD" in line).partition(":")[0]
    with emulated(monkeypatch, owner):
        heal = told_next(
            project.run(f"../{STORE}", "--regen", "--regen-only", f"../{STORE}::Owner")
        )
        healed = follow(project, heal)

    assert Path(place).samefile(RegenStore.open(path).source_path)
    assert healed.parseoutcomes() == {"regenerated": 1}
    assert told_next(healed) == f"git diff ../{STORE}"
    cassette = f"../cassettes/regen/{STORE}/Owner.yaml"
    healed.stdout.fnmatch_lines(
        [f"regenerated: ../{STORE}::Owner page 1*", f"changed: ../{STORE}*pages.json*, {cassette}"]
    )


def test_all_that_lacks_a_recording_is_one_command(project: Project) -> None:
    """The reason is said once, for all of them, and one run of all records them."""
    for name in ("GET_a", "GET_b", "GET_c"):
        project.broken(name)

    result = project.run("--regen", "-k", "Owner", "--regen-model", "claude-opus-5")

    of_all = "pytest -k Owner --regen --regen-record once --regen-model claude-opus-5"
    assert told_next(result) == of_all
    lines = [line for line in result.outlines if line.startswith(("still failing", "  nothing"))]
    assert lines == [
        (
            "still failing: generated/GET_a::Owner, generated/GET_b::Owner, generated/GET_c::Owner "
            "[cassette_miss]"
        ),
        "  nothing was sent: --regen alone replays recordings, and there is none for this",
    ]
