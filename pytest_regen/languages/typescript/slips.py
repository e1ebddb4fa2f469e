"""Slips that spoil TypeScript as text: a reply cut short, comments that end early, HTML escapes.

They are looked for by what a writer does, and believed only where undoing them makes the code more
legal. Lines never move.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

from pytest_regen.languages.base import SyntaxFault
from pytest_regen.languages.diagnosis import (
    Change,
    Cut,
    Diagnosis,
    Place,
    SlipRepair,
    insertions,
    line_removals,
    quotes,
    removals,
    rows_of,
)
from pytest_regen.languages.leftovers import Leftovers, out_of_json, without_entities
from pytest_regen.languages.typescript.tree import parse
from pytest_regen.text import in_quotes, quoted

LEFTOVERS: Final = Leftovers(
    code_start=re.compile(
        r"[\[{}/*)(;,<@\"'`|&]"
        r"|(?:abstract|class|const|declare|enum|export|get|import|interface|let|namespace|readonly"
        r"|return|type|var)\b|z\.|[\w$]+\??[ \t]*[:(]"
    ),
    code_end=(";", "{", "}", ",", "]", "(", "=>", "|", "="),
    documentation=("/**",),
    has_descriptions=True,
)

_TOKENS: Final = (b";", b",", b"}", b")", b"]", b":", b"{", b"(", b"[", b">", b"|", b"=", b"})")
_REMOVED: Final = (b"}", b")", b"]", b";", b",", b"{", b"(", b"|", b":", b">", b"?")
_SHOWN: Final = 60
_DEEP: Final = 40
"""Brackets open at the end of a reply; with more, it is not a cut declaration."""
_NAME_LINE: Final = re.compile(
    r"^[ \t]*(?:readonly[ \t]+)?(?:(?P<get>get)[ \t]+)?"
    r"(?P<name>[^\s\"'`/|{}()\[\];,*][^\"'`:?(){};,\n]*?)"
    r"[ \t]*(?(get)\(|\??[ \t]*:)",
    re.MULTILINE,
)
_VALUE_LINE: Final = re.compile(
    r"^[ \t]*\|[ \t]*(?P<name>[^\s\"'`|;,][^\"'`|;,\n]*?)[ \t]*;?[ \t]*$", re.MULTILINE
)
_QUOTE_PLACES: Final = re.compile(rb"(?=[;,:?)\]\n])|$|(?<=[|(\[ ])(?=\S)")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][\w$]*|\[.*\]?|-?\d+(?:\.\d+)?")
_TOKEN: Final = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`"
    r"|(?<=\()/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/\w*|[{}()\[\];,]|(?P<open>/\*|[\"'`])",
    re.DOTALL,
)
_CLOSERS: Final = {"{": "}", "(": ")", "[": "]"}
_COMMENT: Final = re.compile(r"^([ \t]*/\*\*)(.*\*/.*)(\*/[ \t]*)$")


def changes(found: Diagnosis, place: Place) -> Iterator[Change]:
    """Yield changes to try near a fault, the most telling first."""
    yield from line_removals(found, place, LEFTOVERS.leftover)
    yield from _quoted_names(found, place)
    yield from quotes(found, place, _QUOTE_PLACES)
    yield from insertions(place, _TOKENS)
    yield from removals(place, _REMOVED)


def _quoted_names(found: Diagnosis, place: Place) -> Iterator[Change]:
    """Yield names and values in the lines of the errors that need quotes."""
    first, last = rows_of(place)
    lines = found.code.split(b"\n")
    offset = sum(len(line) + 1 for line in lines[:first])
    text = b"\n".join(lines[first : last + 1]).decode("utf-8", "replace")
    for pattern, noun in ((_NAME_LINE, "property name"), (_VALUE_LINE, "literal")):
        for match in pattern.finditer(text):
            name = match["name"]
            if _IDENTIFIER.fullmatch(name):
                continue
            start = offset + len(text[: match.start("name")].encode())
            row = first + text.count("\n", 0, match.start("name"))
            message = f"{in_quotes(name)} is no {noun} without quotes; write {quoted(name)}"
            fault = SyntaxFault(row + 1, message, "INVALID_IDENTIFIER")
            yield Change(start, start + len(name.encode()), quoted(name).encode(), fault)


def slip_repairs(code: bytes) -> Iterator[Callable[[bytes], SlipRepair | None]]:
    """Yield what undoes each kind of slip, to be tried one after the other."""
    yield out_of_json
    yield without_entities
    if b"/**" in code:
        yield _whole_comments
    yield _close_cut_reply


def _whole_comments(code: bytes) -> SlipRepair | None:
    """Return the code with ``*/`` escaped inside of comments on one line."""
    lines = code.decode("utf-8", "surrogateescape").split("\n")
    faults: list[SyntaxFault] = []
    for row, line in enumerate(lines):
        match = _COMMENT.match(line)
        if match:
            lines[row] = match[1] + match[2].replace("*/", "* ") + match[3]
            message = "the comment ends at the first '*/': write '*\\/' for those inside it"
            faults.append(SyntaxFault(row + 1, message))
    if not faults:
        return None
    return SlipRepair("\n".join(lines).encode("utf-8", "surrogateescape"), tuple(faults))


def _close_cut_reply(code: bytes) -> SlipRepair | None:
    found = cut_end(code)
    if found is None:
        return None
    return found.repair()


def cut_end(code: bytes, head: bytes = b"", tail: bytes = b"") -> Cut | None:
    """Return where ``code`` was cut off, or ``None`` if that is not what is wrong with it.

    Args:
        code: a page.
        head: what makes a legal source of a page, put before it.
        tail: the same, put after it.
    """
    text = code.decode("utf-8", "surrogateescape")
    opened, whole, around = _ends(text)
    if not (opened or (head and text[whole:].strip())) or len(opened) > _DEEP:
        return None
    closers = "".join(_CLOSERS[each] for each in reversed(around))
    kept = text[:whole] + re.sub(r"[^\n]", " ", text[whole:])
    closed = (kept + closers).encode("utf-8", "surrogateescape")
    if parse(head + closed + tail).root_node.has_error:
        return None
    last = text.rstrip()
    line, ending = last.count("\n") + 1, last.rpartition("\n")[2].strip()
    if LEFTOVERS.leftover(ending):
        return None
    if text[whole:].strip():
        where = f"the code ends in the middle of {in_quotes(ending[-_SHOWN:])}"
        message = f"{where}: the answer was cut off there"
    else:
        shown = in_quotes(closers)
        message = f"the code ends before its declaration is closed: {shown} is missing at the end"
    return Cut(line, message, closed)


def _ends(text: str) -> tuple[list[str], int, list[str]]:
    """Return the brackets open at the end, where the last whole member ends, and those open there.

    A member ends with a semicolon, a comma or a brace directly inside of braces or brackets.
    """
    opened: list[str] = []
    around: list[str] = []
    whole = 0
    for match in _TOKEN.finditer(text):
        mark = match[0]
        if match["open"]:
            if match["open"] != "/*" and "\n" in text[match.start() :].rstrip():
                return [], 0, []  # so is a quotation mark too few
            return [*opened, mark], whole, around
        if mark in _CLOSERS:
            opened.append(mark)
        elif mark in "})]":
            if not opened or _CLOSERS[opened[-1]] != mark:
                return [], 0, []  # a bracket too many is another fault
            opened.pop()
        elif mark[0] not in ";,":
            continue
        if mark in "{}[;," and (not opened or opened[-1] in "{["):
            whole, around = match.end(), list(opened)
    return opened, whole, around
