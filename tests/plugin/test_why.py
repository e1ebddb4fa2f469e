"""Where an answer was not kept, the run says what was wrong with the answer."""

import json
import sys
from collections.abc import Callable, Iterator

import pytest
from command_line import process
from function_project import GOOD, FunctionProject
from plugin_project import emulated
from unit_project import UnitProject
from unit_work import GERMAN

MODULE = '''
import os


def minutes(text: str) -> int:
    """Return the minutes of ``1h30m``.

    >>> minutes("1h30m")
    90
    """
    # [REGEN:BEGIN minutes]
    return int(text.removesuffix("m"))
    # [REGEN:END minutes]
'''
SILENCED = f"{GOOD}  # type: ignore"
UNIT = "src/acme/times.py"
HEAL = ("--regen", "--regen-record=once")


@pytest.fixture
def functions(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> FunctionProject:
    """A project of functions; what it imports is forgotten with it."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    for name in ("acme", "acme.times"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return FunctionProject(pytester)


@pytest.fixture
def units(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> UnitProject:
    """Translations of which one lacks its placeholder."""
    monkeypatch.delitem(sys.modules, "regen_kinds", raising=False)
    project = UnitProject(pytester)
    project.write(german={**GERMAN, "berth": "Liegeplatz"})
    return project.recorded()


def answers(*texts: str) -> Callable[[object], str]:
    """Answer with one text after the other."""
    waiting: Iterator[str] = iter(texts)
    return lambda _: next(waiting)


def test_a_right_looking_answer_is_refused_with_its_reason(
    functions: FunctionProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """WEAKENED is named in pytest, in the command, and in the history; with the answer's line."""
    functions.write("", module=MODULE)
    with emulated(monkeypatch, lambda _: SILENCED):
        healed = functions.pytester.runpytest_inprocess(UNIT, *HEAL)
        asked = process("regenerate", UNIT, "--from-errors").err.splitlines()
    past = process("history", UNIT).err

    wrong = "WEAKENED: adds 'type: ignore'*(line 2: return *  # type: ignore)"
    healed.stdout.fnmatch_lines(
        [
            f"Not regenerated: answer 1 of 1 was not kept: {wrong}",
            "still failing: *::minutes [[]attempts], 1 call*",
            f"  answer 1 of 1 was not kept: {wrong}",
        ]
    )
    pytest.LineMatcher(asked).fnmatch_lines(
        [
            f"    answer 1 of 2 was not kept: {wrong}",
            "    answer 2 of 2 was not kept: it has the same errors",
            "    the same errors came back; asking again as before would not help",
        ]
    )
    pytest.LineMatcher(past.splitlines()).fnmatch_lines(
        [
            "*rejected  minutes  attempt *1 error",
            "    WEAKENED: adds 'type: ignore'*",
            "  next: pytest-regen regenerate * --unit minutes --correction 'what is wrong'",
        ]
    )
    assert "restore" not in past


def test_each_answer_has_its_own_line(units: UnitProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made of allowed; the sentence shows the answer's value, not that of the text in the file."""
    job = units.path / "job.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(job))
    with emulated(monkeypatch, answers("Platz {a}", "{nummer}")):
        result = units.run("-k", "berth", *HEAL, "--regen-attempts=3", "--regen-report=run.json")

    result.stdout.fnmatch_lines(
        [
            "still failing: locales/de.json::berth [[]attempts], 2 calls*",
            "  answer 1 of 2 was not kept: PLACEHOLDER: has [[]'{a}'], * (line 1: Platz {a})",
            "  answer 2 of 2 was not kept: PLACEHOLDER: has [[]'{nummer}']* (line 1: {nummer})",
        ]
    )
    assert "answer 1 of 2 was not kept: PLACEHOLDER" in job.read_text("utf-8")
    report = json.loads((units.path / "run.json").read_text("utf-8"))
    assert "has ['{nummer}']" in report["items"][0]["heals"][0]["why"]


def test_of_a_failing_test_it_is_what_the_test_said_of_the_answer(
    functions: FunctionProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failure above is that of the old text."""
    functions.write(
        "@pytest.mark.regen(unit=UNIT)\ndef test_hours():\n    assert minutes('2h') == 120\n"
    )
    with emulated(monkeypatch, lambda _: "return 30"):
        result = functions.run()

    result.stdout.fnmatch_lines(
        [
            "  answer 1 of 1 was not kept: [[]TEST] test_hours fails: assert 30 == 120*",
        ]
    )


MARKED = """
@pytest.mark.regen(unit=UNIT)
@pytest.mark.parametrize("text", ["2h", "3h"])
def test_hours(text):
    assert minutes(text) == 60 * int(text[0])
"""


def test_a_plain_gate_says_what_heals_a_marked_test(
    functions: FunctionProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the end, for all of them, and in the job summary, with what was typed."""
    functions.write(MARKED)
    job = functions.pytester.path / "job.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(job))
    typed = ("test_times.py", "--regen-model", "claude-opus-5")

    result = functions.pytester.runpytest_inprocess(*typed)

    options = "--regen --regen-record once --regen-model claude-opus-5"
    result.stdout.fnmatch_lines(
        [
            f"next: pytest test_times.py {options}",
        ]
    )
    assert f"`pytest 'test_times.py::test_hours[2h]' {options}`" in job.read_text("utf-8")


def test_recording_without_healing_is_told(functions: FunctionProject) -> None:
    functions.write(MARKED)

    failed = functions.pytester.runpytest_inprocess("--regen-record=once")
    passed = functions.pytester.runpytest_inprocess("--regen-record=once", "src")

    note = "--regen-record once alone records what tests send; --regen heals what fails"
    assert failed.outlines.count(note) == 1
    passed.stdout.no_fnmatch_line("*alone records*")


def test_a_bare_mark_in_a_project_of_functions_is_told(
    functions: FunctionProject,
) -> None:
    """No store is asked for where there is none."""
    functions.write("@pytest.mark.regen\ndef test_hours():\n    assert minutes('2h') == 120\n")

    result = functions.pytester.runpytest_inprocess("--regen")

    result.stdout.fnmatch_lines(['*test_hours: its mark names no unit*.regen(unit="src/a.py::f")'])
    result.stdout.no_fnmatch_line("*store*")
