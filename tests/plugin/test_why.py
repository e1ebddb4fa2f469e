"""Where an answer was not kept, the run says what was wrong with the answer."""

import pytest
from command_line import process
from function_project import FAILING, GOOD, FunctionProject
from plugin_project import emulated

SILENCED = f"{GOOD}  # type: ignore"
UNIT = "src/acme/times.py"
HEAL = ("--regen", "--regen-record=once")


def test_a_right_looking_answer_is_refused_with_its_reason(
    functions: FunctionProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """WEAKENED is named in pytest, in the command, and in the history; with the answer's line."""
    functions.write("", module=FAILING)
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
    healed.stdout.no_fnmatch_line("*errors remain after*")
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


def test_each_answer_has_its_own_line(
    functions: FunctionProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of how many that were allowed, and what is wrong with that one."""
    functions.write("", module=FAILING)
    answers = iter([SILENCED, "return 1", "return 1"])
    with emulated(monkeypatch, lambda _: next(answers)):
        healed = functions.pytester.runpytest_inprocess(UNIT, *HEAL, "--regen-attempts=5")

    healed.stdout.fnmatch_lines(
        [
            "still failing: *::minutes [[]no_progress], 3 calls*",
            "  answer 1 of 4 was not kept: WEAKENED: *(line 2: return *  # type: ignore)",
            "  answer 2 of 4 was not kept: DOCTEST: *; got: 1 (line 1: return 1)",
            "  answer 3 of 4 was not kept: it has the same errors",
        ]
    )


STUCK = """
@pytest.mark.regen(unit=UNIT)
@pytest.mark.parametrize("number", [1, 2])
def test_double(number):
    assert minutes(f"{number}m") == 2 * number
"""


@pytest.mark.parametrize("chosen", ["test_times.py", "test_times.py::test_double[[]1]"])
def test_what_a_person_says_is_tried_by_the_test(
    functions: FunctionProject, monkeypatch: pytest.MonkeyPatch, chosen: str
) -> None:
    """After a model that answers the same again; its recording is among what changed."""
    functions.write(STUCK)
    node = chosen.replace("[[]", "[")
    with emulated(monkeypatch, lambda _: "return int(text[:-1])"):
        result = functions.pytester.runpytest_inprocess(node, "--regen", "--regen-record=once")

    quoted = chosen if node == chosen else f"'{chosen}'"
    result.stdout.fnmatch_lines(
        [
            "still failing: src/acme/times.py::minutes [[]no_progress], *",
            "changed: cassettes/test_times/test_double[[]1].yaml*",
            f"next: pytest-regen regenerate * --correction 'what is wrong' && pytest {quoted}",
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
    """At the end, for all of them, and in the job summary, with what was typed.

    What recording alone does is told; a bare mark asks for no store where there is none.
    """
    functions.write(MARKED + "\n\n@pytest.mark.regen\ndef test_bare():\n    assert 0\n")
    job = functions.pytester.path / "job.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(job))
    typed = ("test_times.py", "--regen-model", "claude-opus-5")

    result = functions.pytester.runpytest_inprocess(*typed)
    recording = functions.pytester.runpytest_inprocess("--regen-record=once", "-k", "hours")
    with emulated(monkeypatch, lambda _: "return 30"):
        healing = functions.run("-k", "2h or bare")

    options = "--regen --regen-record once --regen-model claude-opus-5"
    result.stdout.fnmatch_lines(
        [
            f"next: pytest test_times.py {options}",
        ]
    )
    assert f"`pytest 'test_times.py::test_hours[2h]' {options}`" in job.read_text("utf-8")
    note = "--regen-record once alone records what tests send; --regen heals what fails"
    assert recording.outlines.count(note) == 1
    healing.stdout.fnmatch_lines(
        [
            '*test_bare: its mark names no unit*.regen(unit="src/a.py::f")',
            "  answer 1 of 1 was not kept: [[]TEST] test_hours[[]2h] fails: assert 30 == *",
        ]
    )
    healing.stdout.no_fnmatch_line("*store*")
