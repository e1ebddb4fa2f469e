r"""Patterns of a schema as regular expressions of JavaScript, where they mean the same there.

JSON Schema means ECMA 262 anyway, but documents hold what other engines read: ``\A``, ``(?i)``,
``\-`` outside of a class, which JavaScript refuses under the flag ``u``.
"""

import re
from typing import Final

_LONGEST: Final = 500
"""Characters of a pattern; a longer one is no check that anybody reads."""
_SYNTAX: Final = frozenset(r"^$\.*+?()[]{}|/")
_CLASSES: Final = frozenset("dDwWsS")
_CONTROLS: Final = frozenset("nrtfv")
_TOKEN: Final = re.compile(
    r"""
      (?P<quantifier>(?:[*+?]|\{\d{1,4}(?:,\d{0,4})?\})\??)
    | \\(?P<hex>x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4})
    | \\(?P<escaped>[^\W_]|[^\n\r\u2028\u2029])
    | (?P<opener>\((?:\?[:=!])?)
    | (?P<closer>\))
    | (?P<sign>[\^$.|])
    | (?P<text>[^\\()\[\]{}*+?|^$.\n\r\u2028\u2029])
    | (?P<brace>[{}\]])
    """,
    re.VERBOSE,
)
_CLASS: Final = re.compile(r"\[(\^?)((?:[^\\\]\n\r\u2028\u2029]|\\[^\n\r\u2028\u2029])+)\]")
_IN_CLASS: Final = re.compile(
    r"\\(?P<hex>x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4})|\\(?P<escaped>.)|(?P<text>[^\\])", re.DOTALL
)


def regex_literal(pattern: object) -> str | None:
    r"""Return a literal like ``/^a\/b$/u`` for a pattern; ``None`` where JavaScript has no such."""
    if not isinstance(pattern, str) or not 0 < len(pattern) <= _LONGEST:
        return None
    found: list[str] = []
    at, depth, may_repeat = 0, 0, False
    while at < len(pattern):
        match = _CLASS.match(pattern, at) if pattern[at] == "[" else _TOKEN.match(pattern, at)
        if match is None:
            return None
        part = _class(match) if pattern[at] == "[" else _part(match)
        kind = "class" if pattern[at] == "[" else match.lastgroup
        if part is None or (kind == "quantifier" and not may_repeat):
            return None
        depth += (kind == "opener") - (kind == "closer")
        if depth < 0:
            return None
        may_repeat = kind in {"class", "closer", "text", "hex", "brace"} or match[0] == "."
        may_repeat = may_repeat or (kind == "escaped" and match["escaped"] not in "bB")
        if kind == "closer" and _closes_assertion(found):
            may_repeat = False
        found.append(part)
        at = match.end()
    return None if depth else f"/{''.join(found)}/u"


def _closes_assertion(found: list[str]) -> bool:
    """Return whether the group that ends here is a lookahead, which nothing may repeat."""
    depth = 0
    for part in reversed(found):
        depth += part == ")"
        if part.startswith("("):
            if depth == 0:
                return part in {"(?=", "(?!"}
            depth -= 1
    return False


def _part(match: re.Match[str]) -> str | None:
    """Return a token outside of a class as JavaScript spells it."""
    if match["hex"]:
        return match[0]
    if match["brace"]:
        return f"\\{match['brace']}"
    if match["escaped"]:
        return _escape(match["escaped"], allowed="bB")
    return "\\/" if match[0] == "/" else match[0]


def _class(match: re.Match[str]) -> str | None:
    """Return a class as JavaScript spells it; ``None`` where a range has no plain ends."""
    parts: list[str] = []
    for each in _IN_CLASS.finditer(match[2]):
        if each["hex"]:
            parts.append(each[0])
        elif each["escaped"]:
            part = "\\-" if each["escaped"] == "-" else _escape(each["escaped"], allowed="")
            if part is None:
                return None
            parts.append(part)
        else:
            parts.append(f"\\{each['text']}" if each["text"] in "[/" else each["text"])
    for index, part in enumerate(parts):
        is_range = part == "-" and 0 < index < len(parts) - 1
        ends = parts[max(index - 1, 0)], parts[min(index + 1, len(parts) - 1)]
        if is_range and any(end[0] == "\\" and end[1] in _CLASSES for end in ends):
            parts[index] = "\\-"  # No range has such an end: the hyphen is one.
        elif is_range and all(len(end) == 1 for end in ends) and ends[0] > ends[1]:
            return None
    return f"[{match[1]}{''.join(parts)}]"


def _escape(character: str, *, allowed: str) -> str | None:
    if character in _SYNTAX or character in _CLASSES or character in _CONTROLS:
        return f"\\{character}"
    if character in allowed and character:
        return f"\\{character}"
    # Other letters mean something else in other engines; a number refers to a group.
    return None if character.isalnum() else character
