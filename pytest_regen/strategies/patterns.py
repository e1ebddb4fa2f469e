"""Regular expressions as JSON Schema means them, ECMA 262, for Python's ``re``."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Final

from pytest_regen.extras import needs

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

_DIGIT: Final = "0-9"
_WORD: Final = "A-Za-z0-9_"
_SPACE: Final = r" \t\n\r\f\v\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_CLASSES: Final = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
"""In ECMA 262 digits and words are ASCII, and more is white space than to Python."""
_PROPERTIES: Final = {
    **dict.fromkeys(("L", "Letter", "Alphabetic"), r"[^\W\d_]"),
    **dict.fromkeys(("N", "Nd", "Number"), r"\d"),
    **dict.fromkeys(("Lu", "Uppercase_Letter"), "[A-ZÀ-ÖØ-ÞА-ЯΑ-Ω]"),
    **dict.fromkeys(("Ll", "Lowercase_Letter"), "[a-zß-öø-ÿа-яα-ω]"),
}
"""Classes of characters that Python has no word for: part of each, which is enough to draw from."""
_TOKEN: Final = re.compile(
    r"\\u\{(?P<code>[0-9A-Fa-f]{1,6})\}"
    r"|\\(?P<property>[pP])\{(?P<name>[^}]*)\}"
    r"|\\c(?P<control>[A-Za-z])"
    r"|\\k<(?P<backreference>\w+)>"
    r"|\\(?P<escaped>.)"
    r"|\(\?<(?P<group>[A-Za-z_]\w*)>"
    r"|(?P<plain>.)",
    re.DOTALL,
)


class UnreadablePatternError(ValueError):
    """A pattern that Python cannot read; the message says why."""


_REPEATS_A_GROUP: Final = re.compile(r"\)[*+{]")
_SHORT: Final = 24
"""Characters that a pattern with repeated groups is held against: ``re`` may try every way to share
a text out between them, twice as many with each character, and nothing could stop it."""


@cache
def to_python(pattern: str) -> re.Pattern[str]:
    """Return a pattern of a schema as Python's own, to be searched for.

    Raises:
        UnreadablePatternError: it is no regular expression, or uses what Python does not have.
    """
    try:
        return re.compile("".join(_translated(pattern)))
    except (re.error, OverflowError, RecursionError) as error:
        raise UnreadablePatternError(f"the pattern {pattern!r:.80}: {error}") from None


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
    found = [st.from_regex(to_python(pattern), alphabet=letters) for pattern in patterns]
    # One after the other: most patterns that hold together say how a text begins and ends.
    return found[0] if len(found) == 1 else st.one_of(*found, st.tuples(*found).map("".join))


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


def _translated(pattern: str) -> Iterator[str]:
    """Yield the parts of a pattern as Python spells them."""
    is_class = False
    previous = ""
    for token in _TOKEN.finditer(pattern):
        text = token[0]
        if token["plain"]:
            yield _plain(text, previous, is_class=is_class)
            if text == "[" and not is_class:
                is_class = True
            elif text == "]":
                is_class = False
        elif token["code"]:
            yield re.escape(chr(min(int(token["code"], 16), 0x10FFFF)))
        elif token["property"]:
            yield _property(token["property"], token["name"], is_class=is_class)
        elif token["control"]:
            yield rf"\x{ord(token['control']) % 32:02x}"
        elif token["backreference"]:
            yield f"(?P={token['backreference']})"
        elif token["group"]:
            yield f"(?P<{token['group']}>"
        else:
            yield _escaped(token["escaped"], is_class=is_class)
        previous = text


def _plain(text: str, previous: str, *, is_class: bool) -> str:
    if is_class:
        # Doubled, these mean sets to come in Python.
        return "\\" + text if text in "[&|~" or (text == "-" and previous == "-") else text
    if text == "$":
        return r"\Z"  # Python's own also matches before a line end.
    return r"[^\n\r\u2028\u2029]" if text == "." else text


def _escaped(letter: str, *, is_class: bool) -> str:
    if letter.lower() in _CLASSES:
        members = _CLASSES[letter.lower()]
        if letter.isupper():
            if is_class:
                return "\\" + letter
            return f"[^{members}]"
        return members if is_class else f"[{members}]"
    if letter == "b":
        return r"\x08" if is_class else r"(?a:\b)"
    if letter == "B":
        return r"(?a:\B)"
    if letter == "0":
        return r"\x00"
    is_known = letter in "nrtfvxu" or (letter.isdigit() and not is_class)
    return "\\" + letter if is_known else re.escape(letter)


def _property(sign: str, name: str, *, is_class: bool) -> str:
    known = _PROPERTIES.get(name.rpartition("=")[2])
    if known is None or sign == "P" or (is_class and known.startswith("[^")):
        raise UnreadablePatternError(f"\\{sign}{{{name}}} has no like in Python")
    return known.strip("[]") if is_class else known
