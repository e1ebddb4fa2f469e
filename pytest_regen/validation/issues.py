"""What a validator dislikes, as values. Codes are documented in docs/codes."""

import dataclasses
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final, Literal, Self

from pytest_regen.errors import UsageError
from pytest_regen.strict_json import Node
from pytest_regen.text import in_quotes

Severity = Literal["error", "warning"]

CODES: Final[Mapping[str, Severity]] = {
    "SYNTAX": "error",
    "ARTIFACT": "error",
    "MISSING_CLASS": "error",
    "DUPLICATE_TYPE": "error",
    "UNDECLARED_TYPE": "error",
    "MISSING_FIELD": "error",
    "PHANTOM_FIELD": "error",
    "DUPLICATE_FIELD": "error",
    "DUPLICATE_PROPERTY": "error",
    "ENUM_MEMBER": "error",
    "WRONG_TYPE": "error",
    "NULLABILITY": "error",
    "PRIMARY_KEY": "error",
    "INVALID_IDENTIFIER": "error",
    "FOREIGN_TYPE": "error",
    "EMPTY_OUTPUT": "error",
    "TRUNCATED": "error",
    "UNFIXABLE": "error",
    "DRIFT": "error",
    "EDITED_PROMPT": "error",
    "CONFLICT": "error",
    "REDECLARED": "error",
    "ROUND_TRIP": "error",
    "ACCEPTS_INVALID": "error",
    "MISSING_USING": "error",
    "MISSING_UNIT": "error",
    "KIND_ERROR": "error",
    "LEDGER": "error",
    "CHECK": "error",
    "UNDEFINED_NAME": "error",
    "NOT_ALLOWED": "error",
    "DOCTEST": "error",
    "WEAKENED": "error",
    "IMPORT_FAILED": "error",
    "UNRECORDED": "warning",
    "ORPHAN": "warning",
    "STALE": "warning",
    "REVIEW": "warning",
}
"""Every code and its severity. ``STRUCTURAL`` is accepted for ``SYNTAX`` in configuration only."""


IMPORT_FAILED: Final = "IMPORT_FAILED"
"""The code of files that cannot be run because of lines that no model wrote."""


WEAKENED: Final = "WEAKENED"
"""The code of a text that passes by testing less than what it replaces."""


def severity_of(code: str) -> Severity:
    """Return the severity of ``code``; a code of a user's own validator is an error."""
    return CODES.get(code, "error")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A line of the reply itself: a model knows its own lines, not those of the source."""

    line: int
    """Counts from 1 in the page's code."""
    text: str


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing a validator dislikes, with its place."""

    code: str
    """One of ``CODES``, or one of a user's own."""
    message: str
    """What is wrong, in one sentence that shows the value."""
    type_name: str | None = None
    """The type, or the unit."""
    detail: str | None = None
    """More lines, where the message alone does not say it all."""
    page: int | None = None
    """Counts from 1; ``None`` where the fault cannot be put on one page."""
    line: int | None = None
    """Counts from 1, in the assembled source."""
    field: str | None = None
    """JSON name of the field, or the wire value of the enum member, as text."""
    severity: Severity = "error"
    """An error fails the item, a warning is listed."""
    file: str | None = None
    """Name of the artifact that is at fault, where that is not the source."""
    excerpt: Excerpt | None = dataclasses.field(default=None, compare=False)
    """The line at fault, for the model that wrote it; no part of ``to_json``."""
    finding: str | None = dataclasses.field(default=None, compare=False)
    """The message in the plural, without the field: ``these values are missing``. Issues of one
    code and finding are reported as one to a model; no part of ``to_json``."""
    is_by_hand: bool = False
    """Whether it is STALE about a person's text: that fails nowhere, and no model is asked."""

    @classmethod
    def of(
        cls,
        code: str,
        message: str,
        *,
        type_name: str | None = None,
        detail: str | None = None,
        page: int | None = None,
        line: int | None = None,
        field: str | None = None,
        file: str | None = None,
        excerpt: Excerpt | None = None,
        finding: str | None = None,
    ) -> Self:
        """Return an issue whose severity follows from its code."""
        severity = severity_of(code)
        return cls(
            code, message, type_name, detail, page, line, field, severity, file, excerpt, finding
        )

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the issue that ``to_json`` wrote."""
        return cls(**{name: data[name] for name in (*_KEYS, *_RARE) if name in data})

    def to_json(self) -> dict[str, Any]:
        """Return the issue as ``--json`` and ``ir.json`` hold it; the rest only where it is set."""
        # No excerpt and no finding, because they are words for the model that wrote the page.
        names = (*_KEYS, *(name for name in _RARE if getattr(self, name)))
        return {name: getattr(self, name) for name in names}


_KEYS: Final = ("code", "severity", "message", "detail", "type_name", "page", "line", "field")
_RARE: Final = ("file", "is_by_hand")


@dataclass(frozen=True, slots=True)
class Weakness:
    """Something in a text by which less is tested: a directive, a lost limit, a special case.

    Two texts are compared by what they are weak in, so that moving code changes nothing.
    """

    key: tuple[str, ...]
    """What it is, whatever its line and its words."""
    message: str
    """What a candidate does that has it, as a sentence without a subject: ``adds `# noqa```."""
    line: int | None = None
    """Counts from 1, in the text; ``None`` for what is missing."""
    detail: str | None = None
    """What to do in its place."""
    field: str | None = None
    """JSON name of the field, where it is about one."""
    scope: frozenset[str] = frozenset()
    """What it is limited to, such as the rules of a directive; empty where it is not limited."""

    @classmethod
    def of_directive(cls, directive: str, line: int, noun: str = "code") -> Self:
        """Return the weakness of a comment that tells a checker to look away.

        Args:
            directive: what it says.
            line: counts from 1, in the text.
            noun: what the comment stands in.
        """
        # Here, because its patterns take long to compile, and most runs need none of them.
        from pytest_regen.suppressions import split_directive

        name, rules = split_directive(directive)
        advice = f"correct the {noun}: silence no check of it"
        return cls(("directive", name), f"adds {in_quotes(directive)}", line, advice, scope=rules)

    def covers(self, other: "Weakness") -> bool:
        """Return whether a text that has this one is no weaker with another in its place."""
        if self.key != other.key:
            return False
        # A directive without rules silences all of them: it covers any, and only it covers itself.
        return not self.scope or (bool(other.scope) and other.scope <= self.scope)


def added_weaknesses(old: Iterable[Weakness], new: Iterable[Weakness]) -> tuple[Weakness, ...]:
    """Return what a text is weak in beyond the one that it replaces, as often as it is."""
    left: dict[tuple[str, ...], list[Weakness]] = {}
    # The narrowest comes first: it is the one that is used up by what it covers.
    for weakness in sorted(old, key=lambda weak: len(weak.scope) or sys.maxsize):
        left.setdefault(weakness.key, []).append(weakness)
    added = []
    for weakness in new:
        same = left.get(weakness.key, [])
        place = next((at for at, weak in enumerate(same) if weak.covers(weakness)), None)
        if place is not None:
            del same[place]
        elif weakness.scope and weakness.scope <= {rule for weak in same for rule in weak.scope}:
            # One for what several were limited to, because joining two comments weakens nothing.
            same[:] = [weak for weak in same if not weak.scope <= weakness.scope]
        else:
            added.append(weakness)
    return tuple(added)


class FailedTest(str):
    """What a test failed with, in words; ``source`` is the test itself, which a correction shows.

    Args:
        words: what it failed with.
        source: its code; empty where that is not known.
    """

    __slots__ = ("source",)

    source: str

    def __new__(cls, words: str, source: str = "") -> Self:
        """Return the words, with the source."""
        test = super().__new__(cls, words)
        test.source = source
        return test


Feedback = Issue | str
"""What goes into a correction: an issue, or words, such as those of a failing test."""


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """The issues of one type or of a whole source, in the order of their lines."""

    issues: tuple[Issue, ...] = ()

    @classmethod
    def of(cls, issues: Iterable[Issue]) -> Self:
        """Return a result of ``issues``, in the order given."""
        return cls(tuple(issues))

    @property
    def errors(self) -> tuple[Issue, ...]:
        """The issues that fail a gate."""
        return tuple(issue for issue in self.issues if issue.severity == "error")

    @property
    def warnings(self) -> tuple[Issue, ...]:
        """The issues that fail nothing."""
        return tuple(issue for issue in self.issues if issue.severity == "warning")

    @property
    def has_errors(self) -> bool:
        """Whether a gate must fail."""
        return any(issue.severity == "error" for issue in self.issues)

    @property
    def is_clean(self) -> bool:
        """Whether there is no issue at all, warnings included."""
        return not self.issues


Ignore = Iterable[str] | Mapping[str, Iterable[str]] | Callable[[str], Collection[str]]
"""Codes; or codes by type name, in which ``*`` and ``?`` stand for anything; or a function from a
type's name to codes, which may be codes of others than us."""

# Because the requirement speaks of structural checks, and settings of projects do.
_ALIASES: Final = {"STRUCTURAL": "SYNTAX"}


def without_ignored(
    results: Mapping[str, ValidationResult], ignore: Ignore
) -> dict[str, ValidationResult]:
    """Return the results without the issues of ignored codes.

    Raises:
        UsageError: a code is unknown; the hint lists those there are.
    """
    codes_of = codes_by_type(ignore)
    clean = {}
    for name, result in results.items():
        codes = codes_of(name)
        issues = [issue for issue in result.issues if issue.code not in codes] if codes else ()
        clean[name] = ValidationResult.of(issues) if codes else result
    return clean


def codes_by_type(ignore: Ignore) -> Callable[[str], Collection[str]]:
    """Return a function from a type's name to the codes that are ignored in it.

    Raises:
        UsageError: a code is unknown; the hint lists those there are.
    """
    if callable(ignore):
        return ignore
    by_type = ignore if isinstance(ignore, Mapping) else {"*": tuple(ignore)}
    codes = [
        (pattern, _ALIASES.get(text, text)) for pattern, texts in by_type.items() for text in texts
    ]
    # Refused, because a misspelt code would leave on what somebody meant to turn off.
    for _, code in codes:
        if code not in CODES:
            hint = f"use one of: {', '.join(CODES)}"
            raise UsageError(f"there is no issue code {code!r} to ignore", hint=hint)
    return lambda name: frozenset(code for pattern, code in codes if fnmatchcase(name, pattern))


def read_reason(node: Node, words: Collection[str]) -> tuple[Any, tuple[Issue, ...]]:
    """Return why an output is in a history, and what was found in it.

    Raises:
        StoreCorruptError: it is for none of these words, or the issues are none.
    """
    reason = node.text("reason")
    if reason not in words:
        raise node.error("reason", f"unknown reason {reason!r}")
    try:
        return reason, tuple(Issue.from_json(issue) for issue in node.list("issues", ()))
    except (AttributeError, KeyError, TypeError):
        raise node.error("issues", "not a list of issues") from None
