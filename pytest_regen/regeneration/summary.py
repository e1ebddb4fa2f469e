"""The validation summary that ``ir.json`` holds, and results of many types as one."""

from collections.abc import Mapping
from typing import Any

from pytest_regen.stores import RegenStore
from pytest_regen.validation.issues import ValidationResult

__all__ = ["merged", "summary_of", "write_summary"]


def merged(results: Mapping[str, ValidationResult]) -> ValidationResult:
    """Return the issues of all types as one result, by line."""
    issues = [issue for result in results.values() for issue in result.issues]
    return ValidationResult.of(sorted(issues, key=lambda issue: issue.line or 0))


def summary_of(results: Mapping[str, ValidationResult]) -> dict[str, Any]:
    """Return the ``validation`` of ``ir.json``; no time in it, so that it can be compared."""
    whole = merged(results)
    return {
        "is_clean": whole.is_clean,
        "errors": [issue.to_json() for issue in whole.errors],
        "warnings": [issue.to_json() for issue in whole.warnings],
    }


def write_summary(store: RegenStore, results: Mapping[str, ValidationResult]) -> bool:
    """Update the summary in ``ir.json`` if it changed; return whether it did.

    Raises:
        StoreWriteError: the folder cannot be written.
    """
    summary = summary_of(results)
    if store.ir.validation == summary:
        return False
    with RegenStore.update(store.path) as tx:
        tx.write(ir=tx.store.ir.model_copy(update={"validation": summary}))
    return True
