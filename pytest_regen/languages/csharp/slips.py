"""Slips that spoil code as text: a reply cut short, HTML escapes, string literals that end early.

The grammar tells each of them as something else: unescaped quotes as a comma that is missing, a cut
reply as a declaration that is wrong. They are looked for by what a writer does, and believed only
where undoing them makes the code more legal. Lines never move.
"""

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from pytest_regen.languages.base import SyntaxFault
from pytest_regen.languages.csharp.tree import parse
from pytest_regen.languages.diagnosis import Cut, SlipRepair
from pytest_regen.languages.leftovers import Leftovers, out_of_json, without_entities
from pytest_regen.text import in_quotes

_LEFTOVERS: Final = Leftovers(
    code_start=re.compile(
        r"[\[{}/*#)(;,<@\"]|(?:public|internal|private|protected|sealed|partial|abstract|static|class"
        r"|record|struct|enum|interface|namespace|using|required|readonly)\b"
    ),
    code_end=(";", "{", "}", ",", "]", "(", "=>"),
    documentation=("///", "/**"),
)
comment_faults = _LEFTOVERS.comment_faults
leftover = _LEFTOVERS.leftover

_SHOWN: Final = 60
_DEEP: Final = 40
"""Brackets open at the end of a reply; with more, it is not a cut class."""
_LONG: Final = 20
"""Lines that a literal with line ends in it may have."""
_MANY: Final = 2_000
"""Lines looked at."""
_WIDE: Final = 4_000
"""Characters of a line that is looked at."""
_ATTRIBUTES: Final = 6
"""Attributes of a line that are looked at."""
_TRIED: Final = 6_000
"""Characters of all lines whose quotes are tried out; each is parsed up to a hundred times."""

_TOKEN: Final = re.compile(
    r'//[^\n]*|/\*.*?\*/|[$@]{0,4}"""+.*?"""+|[$@]{0,4}"(?:\\.|""|[^"\\\n])*"|'
    r"'(?:\\.|[^'\\\n])+'|[{}()\[\];,]|(?P<open>/\*|\")",
    re.DOTALL,
)
_CLOSERS: Final = {"{": "}", "(": ")", "[": "]"}
_LITERAL: Final = re.compile(r'(?<![$@"\\])"(?:\\.|[^"\\\n])*"(?!")')
_ESCAPE: Final = re.compile(
    r"(\\(?:[\"'\\0abefnrtv]|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]))|(\\.)"
)
_ATTRIBUTE: Final = re.compile(r'(?P<name>\w+)[ \t]*\((?:[\w]+[ \t]*=[ \t]*)?(?P<quote>")')
_QUOTE: Final = re.compile(r'(?<!\\)"')
_LITERAL_END: Final = re.compile(r'"[ \t]*\)')


def slip_repairs(code: bytes) -> Iterator[Callable[[bytes], SlipRepair | None]]:
    """Yield what undoes each kind of slip, to be tried one after the other.

    Args:
        code: the illegal code, which tells what need not be tried.
    """
    yield out_of_json
    yield without_entities
    if b'"' in code:
        yield _literals_on_one_line
        yield _with_legal_escapes
        yield _with_escaped_quotes
    yield _close_cut_reply


def cut_end(code: bytes, head: bytes = b"", tail: bytes = b"") -> Cut | None:
    """Return where ``code`` was cut off, or ``None`` if that is not what is wrong with it.

    Args:
        code: a page.
        head: what makes a legal source of a page, put before it.
        tail: the same, put after it.
    """
    text = code.decode("utf-8", "surrogateescape")
    opened, whole, unfinished = _ends(text)
    depth = opened.count("{")
    if not (opened or (head and unfinished)) or len(opened) > _DEEP:
        return None
    kept = text[:whole] + re.sub(r"[^\n]", " ", text[whole:])
    closed = (kept + "}" * depth).encode("utf-8", "surrogateescape")
    if parse(head + closed + tail).root_node.has_error:
        return None
    last = text.rstrip()
    line = last.count("\n") + 1
    ending = last.rpartition("\n")[2].strip()
    if leftover(ending):
        return None
    is_inside_member = last.endswith(";") and depth > (0 if head else 1)
    if text[whole:].strip() or is_inside_member:
        where = f"the code ends in the middle of {in_quotes(ending[-_SHOWN:])}"
        message = f"{where}: the answer was cut off there"
    else:
        missing = "a '}' is" if depth == 1 else f"{depth} '}}' are"
        message = f"the code ends before its declaration is closed: {missing} missing at the end"
    return Cut(line, message, closed)


def _ends(text: str) -> tuple[list[str], int, bool]:
    """Return the brackets open at the end, where the last whole member ends, and if more follows.

    A member ends with a semicolon, a brace, or a comma directly inside of braces.
    """
    opened: list[str] = []
    whole = 0
    for match in _TOKEN.finditer(text):
        mark = match[0]
        if match["open"] == '"' and "\n" in text[match.start() :].rstrip():
            return [], 0, False  # so is a quotation mark too few
        if match["open"]:
            return [*opened, match["open"]], whole, True
        if mark in _CLOSERS:
            opened.append(mark)
        elif mark in "})]":
            if not opened or _CLOSERS[opened[-1]] != mark:
                return [], 0, False  # a bracket too many is another fault
            opened.pop()
        elif mark[0] not in ";,":
            continue
        if mark in "{};," and (not opened or opened[-1] == "{"):
            whole = match.end()
    return opened, whole, bool(text[whole:].strip())


def _close_cut_reply(code: bytes) -> SlipRepair | None:
    found = cut_end(code)
    if found is None or b"{" not in code:
        return None
    return found.repair()


def _lines_of(code: bytes) -> list[str]:
    return code.decode("utf-8", "surrogateescape").split("\n")


def _literals_on_one_line(code: bytes) -> SlipRepair | None:
    """Return the code with literals closed at the end of their line, what follows blanked."""
    lines = _lines_of(code)
    faults: list[SyntaxFault] = []
    row = 0
    while row < min(len(lines), _MANY):
        opening = _open_literal(lines[row])
        last = _closing_row(lines, row) if opening else None
        if opening and last is not None:
            end = _LITERAL_END.search(lines[last])
            assert end is not None  # that is what made it the last row
            faults.append(SyntaxFault(row + 1, _line_end_message(opening)))
            lines[row] = lines[row].rstrip("\r") + '"'
            for between in range(row + 1, last):
                lines[between] = ""
            lines[last] = " " * (end.start() + 1) + lines[last][end.start() + 1 :]
            row = last
        row += 1
    return _as_repair(lines, faults)


def _open_literal(line: str) -> str | None:
    """Return the attribute whose literal is not closed on its line."""
    rest = _LITERAL.sub("", line)
    if line.lstrip().startswith("//") or '"""' in line or len(_QUOTE.findall(rest)) != 1:
        return None
    found = list(_ATTRIBUTE.finditer(rest))
    return found[-1]["name"] if found else None


def _closing_row(lines: list[str], row: int) -> int | None:
    for number in range(row + 1, min(row + _LONG, len(lines))):
        quotes = _QUOTE.findall(_LITERAL.sub("", lines[number]))
        if quotes:
            return number if _LITERAL_END.search(lines[number]) and len(quotes) == 1 else None
    return None


def _line_end_message(attribute: str) -> str:
    return (
        f"the string in [{attribute}] runs on over the end of the line: write \\n for a line end "
        "inside a string, and keep the string on one line"
    )


def _with_legal_escapes(code: bytes) -> SlipRepair | None:
    lines = _lines_of(code)
    faults: list[SyntaxFault] = []
    for row, line in enumerate(lines[:_MANY]):
        found = [
            escape[2]
            for literal in _LITERAL.finditer(line)
            for escape in _ESCAPE.finditer(literal[0])
            if escape[2]
        ]
        if found:
            lines[row] = _LITERAL.sub(_with_doubled_backslashes, line)
            first = found[0]
            message = (
                f"{in_quotes(first)} is no escape of a C# string: write "
                f"{in_quotes(chr(92) + first)}, or leave the backslash out"
            )
            faults.append(SyntaxFault(row + 1, message))
    return _as_repair(lines, faults)


def _with_doubled_backslashes(literal: re.Match[str]) -> str:
    return _ESCAPE.sub(lambda escape: escape[1] or "\\" + escape[2], literal[0])


def _with_escaped_quotes(code: bytes) -> SlipRepair | None:
    """Return the code with the quotes inside of attributes' strings escaped."""
    lines = _lines_of(code)
    faults: list[SyntaxFault] = []
    tried = 0
    for row, line in enumerate(lines):
        if line.count('"') <= 2 or len(line) > _WIDE or tried > _TRIED:  # its own two
            continue
        tried += len(line)
        fixed = _escape_quotes(line) if _is_illegal(line) else None
        if fixed:
            lines[row], attribute = fixed
            where = f"quotes inside the string of [{attribute}] are not escaped"
            faults.append(SyntaxFault(row + 1, f'{where}: write \\" for each'))
    return _as_repair(lines, faults)


def _escape_quotes(line: str) -> tuple[str, str] | None:
    """Return the line with one string's inner quotes escaped so that it is legal, and whose."""
    ends = [match.start() for match in _LITERAL_END.finditer(line)]
    for opening in islice(_ATTRIBUTE.finditer(line), _ATTRIBUTES):
        start = opening.start("quote")
        for end in reversed([at for at in ends if at > start][-3:]):
            inner = line[start + 1 : end]
            escaped = _QUOTE.sub(r"\\" + '"', inner)
            if escaped == inner:
                continue
            candidate = line[: start + 1] + escaped + line[end:]
            if not _is_illegal(candidate):
                return candidate, opening["name"]
    return None


def _is_illegal(line: str) -> bool:
    """Return whether a line of attributes, a member after them or not, is illegal by itself."""
    data = line.encode("utf-8", "surrogateescape")
    return all(
        parse(head + data + tail).root_node.has_error
        for head, tail in (
            (b"class W\n{\n", b"\nint P;\n}"),
            (b"class W\n{\n", b"\n}"),
            (b"enum W\n{\n", b"\nP }"),
            (b"record W(\n", b"\nint P);"),
            (b"record W(\n", b"\nint P, int Q);"),
        )
    )


def _as_repair(lines: list[str], faults: list[SyntaxFault]) -> SlipRepair | None:
    if not faults:
        return None
    return SlipRepair("\n".join(lines).encode("utf-8", "surrogateescape"), tuple(faults))
