"""What is wrong with generated code: issues, rules, attribution to type and page.

Names are resolved on first use: stores speak in issues, and validation reads stores.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_regen.validation.by_type import validate_by_type, validate_generated_code
    from pytest_regen.validation.issues import (
        CODES,
        Issue,
        Severity,
        ValidationResult,
        severity_of,
    )
    from pytest_regen.validation.pieces import PageText
    from pytest_regen.validation.stores import stale_types, validate_store

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

_HOMES = {
    "CODES": "issues",
    "Issue": "issues",
    "PageText": "pieces",
    "Severity": "issues",
    "ValidationResult": "issues",
    "severity_of": "issues",
    "stale_types": "stores",
    "validate_by_type": "by_type",
    "validate_generated_code": "by_type",
    "validate_store": "stores",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import the module that holds ``name``."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
