"""Code that tries to pass without being right, and what it costs the others."""

import doctest
import subprocess
import sys
import time

import pytest
from hostile_modules import HOSTILE, SLOW

from pytest_regen.sandbox import Job, Limits, Module, ask, run_examples
from pytest_regen.sandbox import questions as questions_module
from pytest_regen.sandbox.processes import count_threads
from pytest_regen.sandbox.questions import Result

HONEST = "def f(x):\n    return x * 2\n"
DOCTEST = doctest.DocTestParser().get_doctest(">>> f(2)\n4\n>>> f(\"a\")\n'aa'\n", {}, "f", None, 0)
HANDLER = "def answer(module, question):\n    return module.f(question)\n"
"""As types are asked: the answer is a value."""
RIGHT = {2: 4, "a": "aa"}


def passes(result: Result) -> bool:
    """Return whether all answers are right."""
    return (result.raised, result.stopped) == (None, None) and all(
        answer
        and answer.raised is None
        and type(answer.value) is type(right)
        and answer.value == right
        for answer, right in zip(result.answers, RIGHT.values(), strict=True)
    )


def passing(modules: dict[str, str], limits: Limits) -> tuple[list[str], list[str]]:
    """Return which modules pass, as doctests and as values, with an honest one after each."""
    sources = [text for source in modules.values() for text in (source, HONEST)]
    given = [Module("candidate", source, "/acme/candidate.py") for source in sources]
    examples = run_examples([(module, [DOCTEST]) for module in given], limits=limits)
    values = ask([Job(module, tuple(RIGHT)) for module in given], handler=HANDLER, limits=limits)
    by_examples = [
        (result.failures, result.raised, result.stopped) == ((), None, None) for result in examples
    ]
    by_values = [passes(result) for result in values]
    assert all(by_examples[1::2]), "an honest module was spoiled"
    assert all(by_values[1::2]), "an honest module was spoiled"
    names = [*modules]
    return (
        [name for name, passed in zip(names, by_examples[::2], strict=True) if passed],
        [name for name, passed in zip(names, by_values[::2], strict=True) if passed],
    )


QUICK = Limits(seconds=2, memory=1 << 29)


def test_no_hostile_module_passes() -> None:
    """Whatever it does, a module that is wrong does not pass, and honest ones beside it do."""
    assert len(HOSTILE) >= 50
    assert passing(HOSTILE, QUICK) == ([], [])


def test_a_module_that_never_ends_costs_its_time_only() -> None:
    """It is ended after its seconds; honest modules beside it pass."""
    slow = {name: SLOW[name] for name in ("ignores every signal", "kills its group")}
    begin = time.monotonic()

    assert passing(slow, Limits(seconds=0.2)) == ([], [])
    assert time.monotonic() - begin < 10


@pytest.mark.sweep
@pytest.mark.usefixtures("level")
def test_no_hostile_module_passes_at_any_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """With less protection too; sleepers, fork bombs and those that turn on the runner end."""
    assert passing(HOSTILE, QUICK) == ([], [])

    monkeypatch.setattr(questions_module, "_MARGIN", 1.0)
    assert passing(SLOW, Limits(seconds=0.5)) == ([], [])


@pytest.mark.parametrize(
    ("name", "stopped"),
    [
        ("exits with 0 when asked", "exit"),
        ("kills itself", "signal"),
        ("writes frames by guess", "forged"),
        # Which of the two that it kills ends first is chance, where they share a group.
        ("kills its group", "runner signal"),
    ],
)
def test_it_is_told_why_there_is_no_answer(name: str, stopped: str) -> None:
    """A result says how the module got out of answering."""
    [result] = ask(
        [Job(Module("candidate", (HOSTILE | SLOW)[name]), (2,))],
        handler=HANDLER,
        limits=Limits(seconds=1),
    )

    assert result.stopped in stopped.split()
    assert result.why
    assert result.answers == (None,)


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes of Linux")
def test_a_process_may_end_while_it_is_counted() -> None:
    """In 500 tries, with children that come and go: what is gone counts as nothing."""
    for _ in range(500):
        with subprocess.Popen(["sh", "-c", "true & true & true & wait"]) as process:
            while process.poll() is None:
                count_threads(process.pid)
            assert count_threads(process.pid) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="counts what Linux tells")
@pytest.mark.usefixtures("level")
def test_threads_count_for_everybody() -> None:
    """Two hundred of them are refused by the kernel, or end who started them: root as well."""
    source = (
        "import threading, time\n"
        "def f(x):\n"
        "    for _ in range(200):\n"
        "        threading.Thread(target=time.sleep, args=[9], daemon=True).start()\n"
        "    time.sleep(2)\n"
        "    return x\n"
    )

    [result] = ask([Job(Module("candidate", source), (1,))], handler=HANDLER, limits=Limits())

    [answer] = result.answers
    if answer is None:
        assert (result.stopped, result.why) == ("processes", "it started too many processes")
    else:
        assert answer.raised
        assert "can't start new thread" in answer.raised.message
