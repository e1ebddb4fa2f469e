"""A run in which code was executed says how far it was kept apart."""

import json
import sys
from shutil import rmtree

import pytest
from command_line import command
from function_project import FunctionProject
from sandbox_levels import use_level

from pytest_regen.sandbox.levels import LEVELS, VARIABLE, Level

KIND = """
from pytest_regen import Kind, regions, sandbox

class Sums(Kind):
    files = "sums.json"
    region = regions.JsonStrings()
    system = "You write sums."

    def prompt(self, unit):
        return "A sum."

    def check(self, unit):
        job = sandbox.Job(sandbox.Module("sums", f"x = {unit.text}"), (None,))
        handler = "def answer(module, question): return module.x"
        [result] = sandbox.ask([job], handler=handler)
        if result.raised:
            yield "SUM", result.raised.message
"""


@pytest.fixture
def sums(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project whose units are Python."""
    monkeypatch.delitem(sys.modules, "regen_kinds", raising=False)
    pytester.makepyfile(regen_kinds=KIND)
    pytester.makefile(".json", sums='{"good": "1 + 1", "bad": "1 / 0"}')
    pytester.makepyprojecttoml(
        '[tool.pytest.ini_options]\n[tool.pytest-regen]\nkinds = ["regen_kinds:Sums"]\n'
    )
    return pytester


def test_the_level_is_told_where_code_was_run(
    sums: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a worker, too; one that does not work fails the unit in plain words."""
    monkeypatch.setenv(VARIABLE, "castle")
    wrong = sums.runpytest()
    monkeypatch.setenv(VARIABLE, "process")

    result = sums.runpytest("--regen-report=report.json", "-n", "1")

    assert wrong.parseoutcomes() == {"failed": 2}
    wrong.stdout.fnmatch_lines(["*REGEN_SANDBOX=castle is not a level of the sandbox*"])
    assert result.parseoutcomes() == {"passed": 1, "failed": 1}
    assert f"sandbox: process ({LEVELS['process']})" in result.stdout.lines
    assert json.loads((sums.path / "report.json").read_text("utf-8"))["run"]["sandbox"] == "process"


@pytest.fixture
def functions(functions: FunctionProject, monkeypatch: pytest.MonkeyPatch) -> FunctionProject:
    """A project with one function, which was recorded at the weakest level."""
    monkeypatch.setenv(VARIABLE, "process")
    functions.write("")
    return functions


FELL = "code was run in the sandbox process, and {} says bwrap; next: install what bwrap needs (b*"


def test_a_level_that_fell_is_no_secret(
    functions: FunctionProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CI fails and says both ways out; elsewhere it is a note."""
    (functions.pytester.path / ".regen" / "sandbox").write_text("bwrap\n", "utf-8")

    here = functions.pytester.runpytest()
    monkeypatch.setenv("CI", "true")
    in_ci = functions.pytester.runpytest()

    assert (here.ret, in_ci.ret) == (0, 1)
    line = FELL.format(".regen/sandbox")
    here.stdout.fnmatch_lines([f"note: {line}"])
    in_ci.stdout.fnmatch_lines([f'exit 1: {line} or accept less: sandbox = "process" in ?tool*'])


@pytest.mark.parametrize(
    ("remembered", "setting", "code"),
    [
        ("bwrap\n", "process", 0),
        ("", "bwrap", 1),
        ("<<<<<<< a\nprocess\n=======\nbwrap\n>>>>>>> b\n", None, 1),
    ],
)
def test_the_settings_say_what_is_enough(
    functions: FunctionProject,
    monkeypatch: pytest.MonkeyPatch,
    remembered: str,
    setting: str | None,
    code: int,
) -> None:
    """Less than was used before, or more; without a word of theirs the strongest so far counts."""
    (functions.pytester.path / ".regen" / "sandbox").write_text(remembered, "utf-8")
    if setting:
        with (functions.pytester.path / "pyproject.toml").open("a", encoding="utf-8") as file:
            file.write(f'sandbox = "{setting}"\n')
    monkeypatch.setenv("CI", "true")

    result = functions.pytester.runpytest()

    assert result.ret == code
    assert ("says bwrap" in str(result.stdout)) == bool(code)


def test_the_level_is_remembered_and_never_lowered(
    functions: FunctionProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what is recorded; the weakest level needs no word."""
    file = functions.pytester.path / ".regen" / "sandbox"
    before = file.exists()
    said = []
    levels: tuple[Level, ...] = ("namespace", "process")
    for level in levels:
        rmtree(file.parent / "hand", ignore_errors=True)
        use_level(level, monkeypatch)
        assert "adopted" in command("adopt", functions.module).err
        said.append(file.read_text("utf-8"))

    assert not before
    assert said == ["namespace\n", "namespace\n"]


def test_a_verdict_that_is_kept_is_one_of_its_level(
    functions: FunctionProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of a weaker level than works now does not count; one of a stronger level does."""
    levels: list[Level] = ["process", "namespace", "process"]
    told = []
    for wanted in levels:
        use_level(wanted, monkeypatch)
        result = functions.pytester.runpytest("--regen-report=report.json")
        report = json.loads((functions.pytester.path / "report.json").read_text("utf-8"))
        told.append((report["run"]["sandbox"], "sandbox: " in str(result.stdout)))

    assert told == [("process", False), ("namespace", True), ("namespace", False)]
