"""Regular expressions as JSON Schema means them, ECMA 262, for Python's ``re``; texts of them."""

import re
import warnings
from functools import cache
from typing import Final

from pytest_regen.extras import needs

_PART: Final = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|(?P<end>\$)", re.DOTALL)
_REPEATS_A_GROUP: Final = re.compile(r"\)[*+{]")
_SHORT: Final = 24
"""Characters that a pattern with repeated groups is held against, because ``re`` may try every way
to share a text out between them, twice as many with each character, and nothing could stop it."""


class UnreadablePatternError(ValueError):
    """A pattern that Python cannot read; the message says why."""


def to_python(pattern: str) -> re.Pattern[str]:
    """Return a pattern of a schema as Python's own, to be searched for.

    Raises:
        UnreadablePatternError: it is no regular expression, or uses what Python does not have.
    """
    return _compiled(pattern)[0]


@cache
def _compiled(pattern: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return a pattern as ECMA 262 means it, and as Python reads it."""
    # Another word for the end, because Python's own dollar also matches before a line end.
    spelled = _PART.sub(lambda part: r"\Z" if part["end"] else part[0], pattern)
    try:
        # Not to be warned of brackets in brackets, because in ECMA 262 they mean themselves.
        with warnings.catch_warnings(action="ignore"):
            # In ECMA 262 digits and words are ASCII.
            return re.compile(spelled, re.ASCII), re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise UnreadablePatternError(f"the pattern {pattern!r:.80}: {error}") from None


def _may_take_long(pattern: str, text: str) -> bool:
    return len(text) > _SHORT and _REPEATS_A_GROUP.search(pattern) is not None


def search(pattern: str, text: str) -> bool:
    """Return whether a pattern of a schema is found in ``text``, as far as that may be tried.

    Raises:
        UnreadablePatternError: as ``to_python`` does.
    """
    return not _may_take_long(pattern, text) and to_python(pattern).search(text) is not None


def is_match(pattern: str, text: str) -> bool | None:
    """Return whether every reader finds a pattern in a text; ``None`` where that is not certain.

    The languages that types are written in have regular expressions of their own: what they could
    disagree about is no instance to try a type by.
    """
    if _may_take_long(pattern, text):
        return None
    first, second = (reading.search(text) is not None for reading in _compiled(pattern))
    return first if first == second else None


@cache
def matching(patterns: tuple[str, ...], count: int) -> tuple[str, ...]:
    """Return strings that hold a match of one of the patterns, the same every time."""
    with needs("strategies", "instances"):
        from hypothesis import HealthCheck, Phase, given, settings
        from hypothesis import strategies as st
    letters = st.characters(exclude_categories=["Cs"])
    drawn: list[str] = []

    @settings(
        max_examples=count,
        # Not by chance, because instances are kept by what they were made from.
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.one_of([st.from_regex(to_python(pattern), alphabet=letters) for pattern in patterns]))
    def collect(text: str) -> None:
        drawn.append(text)

    collect()
    return tuple(dict.fromkeys(drawn))
