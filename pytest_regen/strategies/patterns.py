"""Regular expressions as JSON Schema means them, ECMA 262, for Python's ``re``."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from pytest_regen.strategies.repeats import takes_endlessly

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


@cache
def to_python(pattern: str) -> re.Pattern[str]:
    """Return a pattern of a schema as Python's own, to be searched for.

    Raises:
        UnreadablePatternError: it is no regular expression, uses what Python does not have,
            or would not come to an end with some texts.
    """
    try:
        translated = "".join(_translated(pattern))
        found = re.compile(translated)
        is_endless = takes_endlessly(translated)
    except (re.error, OverflowError, RecursionError) as error:
        raise UnreadablePatternError(f"the pattern {pattern!r:.80}: {error}") from None
    if is_endless:
        raise UnreadablePatternError(
            f"the pattern {pattern!r:.80} repeats what repeats: a text that nearly matches takes "
            "it without end"
        )
    return found


def search(pattern: str, text: str) -> bool:
    """Return whether a pattern of a schema is found in ``text``.

    Raises:
        UnreadablePatternError: as ``to_python`` does.
    """
    return to_python(pattern).search(text) is not None


def agree(pattern: str, text: str) -> bool:
    """Return whether ``text`` matches, in ECMA 262 and as Python would read the pattern itself.

    The languages that types are written in have regular expressions of their own: what they could
    disagree about is no instance to try a type by.
    """
    try:
        other = re.compile(pattern).search(text) is not None
    except (re.error, OverflowError, RecursionError):
        other = True
    return other and search(pattern, text)


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
