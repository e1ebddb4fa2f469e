"""The plugin of a process that calls one test: it reports over a pipe how the test ended.

It lets the code on trial change no file of the project: Python tells a hook of every file that is
opened for writing, moved or removed. What the test itself changes is its own affair.
"""

import json
import os
import sys
import tempfile
from collections.abc import Generator
from traceback import walk_stack
from typing import Any, Final

import pytest

from pytest_regen.pytest_plugin.healing.feedback import feedback_of_test
from pytest_regen.pytest_plugin.stash import TRIAL_VARIABLE
from pytest_regen.validation.issues import Issue

# Taken away, because the candidate must not see over which pipe a pass is reported.
_ABOUT: dict[str, Any] = json.loads(os.environ.pop(TRIAL_VARIABLE, "{}"))
_PIPE: int = _ABOUT.get("pipe", -1)
_TEMPORARY: Final = os.path.realpath(tempfile.gettempdir())
_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_CHANGES: Final = (
    "os.chmod",
    "os.chown",
    "os.link",
    "os.mkdir",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.symlink",
    "os.truncate",
    "os.utime",
    "sqlite3.connect",
)
"""Events of the hook that begin with one path, or with two."""


def _watch(event: str, args: tuple[Any, ...]) -> None:
    """Refuse a change of the project by the code on trial, and report it."""
    paths = args[:2] if event in _CHANGES else ()
    if event == "open":
        path, mode, flags = args
        is_change = bool({*"wax+"} & {*mode}) if mode else bool(flags & _WRITES)
        paths = (path,) if is_change else ()
    for path in paths:
        if isinstance(path, str | bytes | os.PathLike):
            place = os.path.realpath(os.fsdecode(path))
            if _is_of_the_project(place) and _is_by_the_code():
                _say({"changed": place})
                # The first call is one of the stored code, which shows what the test is made for.
                if _ABOUT["writable"] is not None:
                    raise PermissionError(f"a candidate on trial may not change {place}")


def _is_of_the_project(place: str) -> bool:
    root = _ABOUT["root"]
    # A root that holds the folder for temporary files, / for one, does not own what is there.
    if _is_below(place, _TEMPORARY) and _is_below(_TEMPORARY, root):
        return False
    is_near = _is_below(place, root) or _is_below(root, place)
    return is_near and place not in (_ABOUT["writable"] or ())


def _is_below(place: str, folder: str) -> bool:
    return f"{place}{os.sep}".startswith(f"{folder}{os.sep}")


def _is_by_the_code() -> bool:
    """Return whether the unit's file takes part, or nothing does that a test would be called by."""
    # Without this file, which the interpreter asks and no candidate calls.
    files = {os.path.realpath(frame.f_code.co_filename) for frame, _ in walk_stack(None)}
    files -= {os.path.realpath(__file__)}
    # In a thread of the code, or while the interpreter ends, neither pytest nor a test is there.
    is_by_pytest = any("pluggy" in file or _is_below(file, _ABOUT["root"]) for file in files)
    return _ABOUT["path"] in files or not is_by_pytest


def _say(report: dict[str, Any]) -> None:
    if _PIPE >= 0:
        os.write(_PIPE, json.dumps(report).encode() + b"\n")


if _PIPE >= 0:
    os.set_inheritable(_PIPE, False)  # noqa: FBT003 - takes no keyword
    sys.addaudithook(_watch)


# First, so that its report is the last word: what other plugins make of a failure is in it.
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report each phase of the test, and what it failed with."""
    report = yield
    feedback: list[dict[str, Any]] = []
    if report.failed and call.excinfo is not None:
        for note in feedback_of_test(item, call.excinfo.value):
            if isinstance(note, Issue):
                feedback.append(note.to_json())
            else:
                feedback.append({"text": str(note), "source": getattr(note, "source", "")})
    outcome = {"id": report.nodeid, "when": report.when, "outcome": report.outcome}
    _say({**outcome, "feedback": feedback})
    return report


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Report what cannot be collected, in the last line that says why."""
    if report.failed:
        lines = [line.removeprefix("E").strip() for line in report.longreprtext.splitlines()]
        _say({"collected": next((line for line in reversed(lines) if line), "")[:600]})


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(exitstatus: int) -> None:
    """Report how the run ended."""
    _say({"exit": int(exitstatus)})
