"""The plugin of a process that calls one test: it reports over a pipe how the test ended."""

import json
import os
from collections.abc import Generator
from typing import Any

import pytest

from pytest_regen.pytest_plugin.healing.feedback import feedback_of_test
from pytest_regen.pytest_plugin.healing.trials import PIPE
from pytest_regen.validation.issues import Issue

_PIPE = int(os.environ.pop(PIPE, "-1"))
if _PIPE >= 0:
    os.set_inheritable(_PIPE, False)  # noqa: FBT003 - takes no keyword


def _say(report: dict[str, Any]) -> None:
    if _PIPE >= 0:
        os.write(_PIPE, json.dumps(report).encode() + b"\n")


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
    said = {"id": report.nodeid, "when": report.when, "outcome": report.outcome}
    _say({**said, "feedback": feedback})
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
