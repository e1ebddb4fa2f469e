"""Leaving out issues that a project does not want to be told of."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from pytest_regen.errors import UsageError
from pytest_regen.validation.issues import CODES, Issue, ValidationResult

__all__ = ["Ignore", "ignoring"]

Ignore = Iterable[str] | Mapping[str, Iterable[str]]
"""Codes; or codes by type name, in which ``*`` and ``?`` stand for anything."""

_ALIASES = {"STRUCTURAL": "SYNTAX"}


def ignoring(
    results: Mapping[str, ValidationResult], ignore: Ignore
) -> dict[str, ValidationResult]:
    """Return the results without the issues of ignored codes.

    Raises:
        UsageError: a code is unknown; the hint lists those there are.
    """
    by_type = ignore if isinstance(ignore, Mapping) else {"*": tuple(ignore)}
    codes = {pattern: frozenset(map(_code, found)) for pattern, found in by_type.items()}
    return {
        name: ValidationResult.of(_kept(result.issues, name, codes))
        for name, result in results.items()
    }


def _code(text: str) -> str:
    code = _ALIASES.get(text, text)
    if code not in CODES:
        raise UsageError(
            f"there is no issue code {text!r} to ignore", hint=f"use one of: {', '.join(CODES)}"
        )
    return code


def _kept(
    issues: Iterable[Issue], name: str, codes: Mapping[str, frozenset[str]]
) -> Iterable[Issue]:
    ignored = {
        code for pattern, found in codes.items() if fnmatchcase(name, pattern) for code in found
    }
    return (issue for issue in issues if issue.code not in ignored)
