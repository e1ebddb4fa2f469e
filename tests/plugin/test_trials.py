"""A user's own test as the oracle of a function: called in processes of its own."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from function_project import GOOD, HOURS, MODULE, FunctionProject
from plugin_project import emulated

from pytest_regen.pytest_plugin.healing import trials
from pytest_regen.pytest_plugin.healing.trials import kept_options


def asked(body: Mapping[str, Any]) -> str:
    """Return what a request asks."""
    return str(body["messages"][-1]["content"])


def test_a_failing_test_heals_its_function(
    functions: FunctionProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once asked, with the test's source; other tests of the function ran on the old module."""
    functions.write(HOURS + "\n\ndef test_plain():\n    assert minutes('5m') == 5\n")
    requests: list[str] = []

    def answer(body: Mapping[str, Any]) -> str:
        requests.append(asked(body))
        return f"```python\n{GOOD}\n```"

    with emulated(monkeypatch, answer):
        result = functions.run("-v")

    assert result.parseoutcomes() == {"regenerated": 1, "passed": 2}
    assert GOOD.split("\n", maxsplit=1)[0] in functions.module.read_text("utf-8")
    (request,) = requests
    assert "[TEST] test_hours[1h30m] fails: ValueError: invalid literal for int()" in request
    assert 'raised by: return int(text.removesuffix("m"))' in request
    assert 'The test that fails, as JSON: "@pytest.mark.regen(unit=UNIT)' in request
    result.stdout.fnmatch_lines(
        [
            "test_times.py::test_hours?1h30m? REGENERATED*",
            "test_times.py::test_hours?2h? PASSED*",
            "ran on src/acme/times.py as it was before, run again: test_times.py::test_plain",
            "passed in a process of its own, with the new *: test_times.py::test_hours?2h?",
        ]
    )


def test_a_failure_of_the_process_at_hand_asks_nobody(
    functions: FunctionProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What passes in a process of its own is no fault of the function."""
    functions.write(
        "def test_first():\n    minutes.spoilt = True\n\n\n"
        "@pytest.mark.regen(unit=UNIT)\n"
        "def test_second():\n    assert not hasattr(minutes, 'spoilt')\n"
    )

    with emulated(monkeypatch, lambda _: pytest.fail("nobody is to be asked")):
        result = functions.run()

    assert result.parseoutcomes() == {"passed": 1, "failed": 1}
    result.stdout.fnmatch_lines(["*it passes in a process of its own: the unit is not at fault"])
    result.stdout.no_fnmatch_line("next: *")


def test_a_candidate_breaks_no_other_test_of_the_function(
    functions: FunctionProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before or after the test in question; what failed already is no matter of the candidate's."""
    test = "@pytest.mark.regen(unit=UNIT, attempts={})\ndef test_{}():\n    assert {}\n\n\n"
    facts = ("minutes('5m') == 5", "minutes('1h') == 60", "minutes('7m') == 7", "minutes('1') == 2")
    attempts = (1, 3, 1, 1)
    functions.write("".join(map(test.format, attempts, ("early", "hours", "late", "wrong"), facts)))
    requests: list[str] = []

    def answer(body: Mapping[str, Any]) -> str:
        requests.append(asked(body))
        spoilt = ("return 60 if 'h' in text else 5", GOOD)
        return spoilt[len(requests) - 1]

    with emulated(monkeypatch, answer):
        result = functions.run()

    assert result.parseoutcomes() == {"passed": 2, "regenerated": 1, "failed": 1}
    assert "[TEST] test_late fails: " in requests[1]
    assert GOOD.split("\n", maxsplit=1)[0] in functions.module.read_text("utf-8")


KEEPS = """
import atexit
import threading
import time
from pathlib import Path


def keep(place: str) -> None:
    Path(place).write_text("kept")
"""


def test_a_candidate_changes_nothing_of_the_project(
    functions: FunctionProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever way its code takes, now or later: nothing is written, and the answer not kept."""
    functions.write(HOURS, module=KEEPS + MODULE, addopts="-k 2h")
    before = {path: path.read_bytes() for path in functions.pytester.path.glob("*.py")}

    harms = ["keep('test_times.py')", "atexit.register(Path('test_times.py').unlink)", "return 7"]
    requests: list[str] = []

    def answer(body: Mapping[str, Any]) -> str:
        harm = harms[len(requests)]
        requests.append(asked(body))
        return f"if 'PYTEST_VERSION' in os.environ:\n    {harm}\n{GOOD}"

    with emulated(monkeypatch, answer):
        result = functions.run("--regen-attempts=4")

    assert result.parseoutcomes()["failed"] == 1
    assert before == {path: path.read_bytes() for path in functions.pytester.path.glob("*.py")}
    assert GOOD not in functions.module.read_text("utf-8")
    told = ["and no candidate may change the project" in request for request in requests]
    assert told == [False, True, True]


def test_what_is_written_on_purpose_is_no_harm(
    functions: FunctionProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the test itself, and by the function as it was found."""
    test = "    Path('test.txt').write_text('by the test')\n"
    saving = "keep('out.txt') if 'h' in text else None\n"
    module = KEEPS + MODULE.replace("return int", f"{saving}    return int")
    functions.write("from pathlib import Path\n" + HOURS + test, module=module, addopts="-k 2h")

    with emulated(monkeypatch, lambda _: saving + GOOD):
        result = functions.run()

    assert result.parseoutcomes()["regenerated"] == 1
    assert (functions.pytester.path / "out.txt").exists()


def reports(*phases: str, code: int = 0, nodeid: str = "t.py::t") -> list[dict[str, Any]]:
    """Return the reports of a test."""
    names = ("setup", "call", "teardown")
    said = [
        {"id": nodeid, "when": when, "outcome": outcome, "feedback": []}
        for when, outcome in zip(names, phases, strict=False)
    ]
    return [*said, {"exit": code}]


PASSED = ("passed", "passed", "passed")


@pytest.mark.parametrize(
    ("said", "code", "passed"),
    [
        (reports(*PASSED), 0, True),
        (reports(*PASSED), 1, False),
        (reports(*PASSED)[:-1], 0, False),
        (reports(*PASSED, code=1), 0, False),
        (reports(*PASSED, nodeid="t.py::other"), 0, False),
        (reports("passed", "passed", "failed"), 1, False),
        (reports("passed", "skipped", "passed"), 0, False),
        ([*reports(*PASSED)[:3], *reports(*PASSED)], 0, False),
    ],
)
def test_a_pass_is_whole(
    said: list[dict[str, Any]],
    code: int | None,
    passed: bool,  # noqa: FBT001 - a parameter
) -> None:
    """Each phase of that very test once, the end of the run, and a normal exit."""
    place = SimpleNamespace(path=Path("t.py"), home=SimpleNamespace(trial_seconds=1))
    target: Any = SimpleNamespace(name="t", look=place)
    item: Any = SimpleNamespace(nodeid="t.py::t", name="t")
    trial = trials.FreshCalls(item, target, None)._read(said, code, "")

    assert trial.passed == passed
    assert passed == (not trial.feedback)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["-xvs", "-n2", "--lf", "-k", "some", "-m=slow"], []),
        (["-vp", "no:syrupy", "-xn2"], ["-pno:syrupy"]),
        (["-o", "xfail_strict=true", "--tb", "short"], ["-oxfail_strict=true"]),
        (["--driver", "firefox", "--headed"], ["--driver", "firefox", "--headed"]),
        (["test_a.py", "test_b.py::test_x[a]", "-q"], []),
    ],
)
def test_options_that_matter_are_kept(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, given: list[str], kept: list[str]
) -> None:
    """Plugins, ini values and warnings; nothing that chooses, counts, spreads or writes."""
    pytester.makepyfile(test_a="", test_b="def test_x(): pass")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-ra --ff")
    typed = pytest.Config.InvocationParams(args=given, plugins=(), dir=pytester.path)
    places = [arg for arg in given if arg.startswith("test_")]
    addopts = ["--cov", "src", "--durations", "3", "--strict-config", "-x"]
    config: Any = SimpleNamespace(
        invocation_params=typed,
        option=SimpleNamespace(file_or_dir=places),
        getini=lambda _name: addopts,
    )

    assert sorted(kept_options(config)) == sorted(["--strict-config", *kept])


def test_a_function_that_nothing_runs_is_told_once(functions: FunctionProject) -> None:
    """In one line for the run, until a test of the run is marked for it."""
    module = MODULE.replace('\n\n    >>> minutes("30m")\n    30\n    """', '"""')
    other = module.replace("import os", "").replace("minutes", "seconds")
    functions.write(HOURS, module=module + other)

    alone = functions.pytester.runpytest_inprocess("src")
    both = functions.pytester.runpytest_inprocess("src", "test_times.py")

    told = (
        "only read, not run: src/acme/times.py::minutes, src/acme/times.py::seconds; to run one, "
        "add an example (>>>) to its docstring, or mark a test with "
        '@pytest.mark.regen(unit="src/acme/times.py::minutes")'
    )
    assert told in alone.outlines
    assert both.stdout.str().count("only read, not run") == 1
    both.stdout.fnmatch_lines(["only read, not run: src/acme/times.py::seconds; to run one*"])
