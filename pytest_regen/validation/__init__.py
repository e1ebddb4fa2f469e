"""What is wrong with generated code: issues, rules, attribution to type and page."""

from typing import TYPE_CHECKING

from pytest_regen.facade import lazy

if TYPE_CHECKING:
    from pytest_regen.validation.issues import CODES as CODES
    from pytest_regen.validation.issues import Issue as Issue
    from pytest_regen.validation.issues import ValidationResult as ValidationResult
    from pytest_regen.validation.pieces import PageText as PageText
    from pytest_regen.validation.rules import validate_by_type as validate_by_type
    from pytest_regen.validation.rules import validate_generated_code as validate_generated_code
    from pytest_regen.validation.stores import stale_types as stale_types
    from pytest_regen.validation.stores import validate_store as validate_store
else:
    __getattr__, __dir__ = lazy(__name__)
