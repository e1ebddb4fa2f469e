"""What is wrong with generated code: issues, rules, attribution to type and page."""

from typing import TYPE_CHECKING

from pytest_regen.facade import lazy

if TYPE_CHECKING:
    from pytest_regen.validation.by_type import validate_by_type, validate_generated_code
    from pytest_regen.validation.issues import CODES, Issue, Severity, ValidationResult, severity_of
    from pytest_regen.validation.pieces import PageText
    from pytest_regen.validation.stores import stale_types, validate_store
else:
    __getattr__, __dir__ = lazy(__name__)

__all__ = [
    "CODES",
    "Issue",
    "PageText",
    "Severity",
    "ValidationResult",
    "severity_of",
    "stale_types",
    "validate_by_type",
    "validate_generated_code",
    "validate_store",
]
