"""What an item tells the report, put on pytest's own report where the item ran."""

from typing import Any

import pytest

from pytest_regen.errors import RegenError
from pytest_regen.pytest_plugin.checks import check_of
from pytest_regen.pytest_plugin.commands import mending_command
from pytest_regen.pytest_plugin.failures import UnitError, findings_json
from pytest_regen.pytest_plugin.locate import store_path
from pytest_regen.pytest_plugin.nodes import DAMAGED, TypeItem
from pytest_regen.testing import FeedbackError
from pytest_regen.validation.issues import Issue

__all__ = ["describe", "description_on"]

_KEY = "regen_item"


def describe(item: pytest.Item, report: pytest.TestReport, error: BaseException | None) -> None:
    """Put on a report of an item of ours what kind it is, and what is wrong with it."""
    kind, issues, command = "test", None, ""
    if isinstance(item, TypeItem):
        kind = "store" if item.name == DAMAGED else "type"
        if report.when == "call" and kind == "type":
            issues = _issues_of(item)
            if isinstance(error, UnitError):
                command = mending_command(error.check, item.name, error.issues)
    elif isinstance(error, FeedbackError):
        issues = _told_by(item, error)
    # pytest-xdist carries what stands here as it is.
    report.__dict__[_KEY] = {"kind": kind, "issues": issues, "next": command}


def description_on(report: pytest.TestReport) -> dict[str, Any] | None:
    """Return what ``describe`` put on a report."""
    return report.__dict__.get(_KEY)


def _issues_of(item: TypeItem) -> list[dict[str, Any]]:
    try:
        return findings_json(item.check.result(item.name).issues, item.check)
    except RegenError:
        # The store broke while it was tested; the failure itself says how.
        return []


def _told_by(item: pytest.Item, error: FeedbackError) -> list[dict[str, Any]]:
    """Return the issues that a test failed with; their file, where its store can be told."""
    issues = [one for one in error.feedback if isinstance(one, Issue)]
    try:
        return findings_json(issues, check_of(item.config, store_path(item)))
    except (RegenError, pytest.UsageError):
        return findings_json(issues)
