"""Leaving out issues that a project does not want to be told of."""

from collections.abc import Callable, Collection, Iterable, Mapping
from fnmatch import fnmatchcase

from pytest_regen.errors import UsageError
from pytest_regen.validation.issues import CODES, ValidationResult

__all__ = ["Ignore", "ignoring"]

Ignore = Iterable[str] | Mapping[str, Iterable[str]] | Callable[[str], Collection[str]]
"""Codes; or codes by type name, in which ``*`` and ``?`` stand for anything; or a function from a
type's name to codes, which may be codes of others than us."""

_ALIASES = {"STRUCTURAL": "SYNTAX"}


def ignoring(
    results: Mapping[str, ValidationResult], ignore: Ignore
) -> dict[str, ValidationResult]:
    """Return the results without the issues of ignored codes.

    Raises:
        UsageError: a code is unknown; the hint lists those there are.
    """
    codes_of = ignore if callable(ignore) else _lookup(ignore)
    return {name: _without(result, codes_of(name)) for name, result in results.items()}


def _lookup(
    ignore: Iterable[str] | Mapping[str, Iterable[str]],
) -> Callable[[str], Collection[str]]:
    by_type = ignore if isinstance(ignore, Mapping) else {"*": tuple(ignore)}
    codes = {pattern: frozenset(map(_code, found)) for pattern, found in by_type.items()}
    return lambda name: frozenset(
        code for pattern, found in codes.items() if fnmatchcase(name, pattern) for code in found
    )


def _code(text: str) -> str:
    code = _ALIASES.get(text, text)
    if code not in CODES:
        raise UsageError(
            f"there is no issue code {text!r} to ignore", hint=f"use one of: {', '.join(CODES)}"
        )
    return code


def _without(result: ValidationResult, codes: Collection[str]) -> ValidationResult:
    if not codes:
        return result
    return ValidationResult.of(issue for issue in result.issues if issue.code not in codes)
