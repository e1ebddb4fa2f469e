"""Regular expressions as JSON Schema means them, ECMA 262, for Python's ``re``; texts of them."""

import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Final

from pytest_regen.extras import needs

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

_PROPERTIES: Final = {
    **dict.fromkeys(("L", "Letter", "Alphabetic"), "A-Za-zÀ-ÖØ-öø-ÿА-яΑ-ω"),
    **dict.fromkeys(("N", "Nd", "Number"), "0-9"),
    **dict.fromkeys(("Lu", "Uppercase_Letter"), "A-ZÀ-ÖØ-ÞА-ЯΑ-Ω"),
    **dict.fromkeys(("Ll", "Lowercase_Letter"), "a-zß-öø-ÿа-яα-ω"),
}
"""Classes of characters that Python has no word for: part of each, which is enough to draw from."""
_TOKEN: Final = re.compile(
    r"\\u\{(?P<code>[0-9A-Fa-f]{1,6})\}"
    r"|\\[pP]\{(?P<property>[^}]*)\}"
    r"|\\k<(?P<reference>\w+)>"
    r"|\\."
    r"|(?P<set>\[(?:\\.|[^\]\\])*\])"
    r"|(?P<group>\(\?<(?=[A-Za-z_]))"
    r"|(?P<end>\$)|(?P<special>[\[&|~])",
    re.DOTALL,
)
_REPEATS_A_GROUP: Final = re.compile(r"\)[*+{]")
_SHORT: Final = 24
"""Characters that a pattern with repeated groups is held against: ``re`` may try every way to share
a text out between them, twice as many with each character, and nothing could stop it."""


class UnreadablePatternError(ValueError):
    """A pattern that Python cannot read; the message says why."""


@cache
def to_python(pattern: str) -> re.Pattern[str]:
    """Return a pattern of a schema as Python's own, to be searched for.

    Raises:
        UnreadablePatternError: it is no regular expression, or uses what Python does not have.
    """
    try:
        # In ECMA 262 digits and words are ASCII.
        return re.compile(_TOKEN.sub(_spelled, pattern), re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise UnreadablePatternError(f"the pattern {pattern!r:.80}: {error}") from None


def _spelled(token: re.Match[str]) -> str:
    """Return a part of a pattern as Python spells it."""
    text = token[0]
    if token["set"]:
        return f"[{_TOKEN.sub(_spelled_in_set, text[1:-1])}]"
    if token["property"]:
        return f"[{_spelled_in_set(token)}]"
    if token["reference"]:
        return f"(?P={token['reference']})"
    if token["group"]:
        return "(?P<"
    if token["end"]:
        return r"\Z"  # Python's own also matches before a line end.
    return text if token["special"] else _spelled_in_set(token)


def _spelled_in_set(token: re.Match[str]) -> str:
    """Return a part of a pattern that stands, or may stand, between square brackets."""
    text = token[0]
    if token["special"]:
        return "\\" + text  # Doubled, these mean sets to come in Python.
    if token["code"]:
        return re.escape(chr(min(int(token["code"], 16), 0x10FFFF)))
    if token["property"]:
        letters = _PROPERTIES.get(token["property"].rpartition("=")[2])
        if letters is None or text.startswith(r"\P"):
            raise re.error(f"{text} has no like in Python")
        return letters
    return text


def may_hold(pattern: str, text: str) -> bool:
    """Return whether a text can be held against a pattern without fear that it takes for ever."""
    return len(text) <= _SHORT or not _REPEATS_A_GROUP.search(pattern)


def search(pattern: str, text: str) -> bool:
    """Return whether a pattern of a schema is found in ``text``, as far as that may be tried.

    Raises:
        UnreadablePatternError: as ``to_python`` does.
    """
    return may_hold(pattern, text) and to_python(pattern).search(text) is not None


def readings(pattern: str, text: str) -> list[bool]:
    """Return whether ``text`` matches in ECMA 262, and as Python would read the pattern itself.

    The languages that types are written in have regular expressions of their own: what they could
    disagree about is no instance to try a type by.
    """
    found = [search(pattern, text)]
    with suppress(re.error, OverflowError, RecursionError):
        found += [re.compile(pattern).search(text) is not None] if may_hold(pattern, text) else []
    return found


def texts_matching(patterns: Sequence[str]) -> "SearchStrategy[str]":
    """Return a strategy of strings that may hold a match of each pattern; of one, they do."""
    with needs("strategies", "instances"):
        from hypothesis import strategies as st
    letters = st.characters(exclude_categories=["Cs"])
    single = [st.from_regex(to_python(pattern), alphabet=letters) for pattern in patterns]
    # One after the other: most patterns that hold together say how a text begins and ends.
    return single[0] if len(single) == 1 else st.one_of(*single, st.tuples(*single).map("".join))


@cache
def matching(patterns: tuple[str, ...], count: int) -> tuple[str, ...]:
    """Return strings that may hold a match of each pattern, the same every time."""
    with needs("strategies", "instances"):
        from hypothesis import HealthCheck, Phase, given, settings
    drawn: list[str] = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(texts_matching(patterns))
    def collect(text: str) -> None:
        drawn.append(text)

    collect()
    return tuple(dict.fromkeys(drawn))
