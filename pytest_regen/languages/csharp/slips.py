"""Slips that spoil code as text: a reply cut short, HTML escapes, string literals that end early.

The grammar tells each of them as something else: unescaped quotes as a comma that is missing, a cut
reply as a declaration that is wrong. They are looked for by what a writer does, and believed only
where undoing them makes the code more legal. Lines never move.
"""

import json
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from pytest_regen.languages.base import SyntaxFault
from pytest_regen.languages.csharp.tree import Node, parse, text_of
from pytest_regen.languages.diagnosis import SlipRepair
from pytest_regen.text import in_quotes

__all__ = [
    "Cut",
    "comment_faults",
    "cut_end",
    "is_elision",
    "is_fence",
    "is_prose",
    "leftover",
    "slip_repairs",
]


_SUSPECT: Final = tuple(
    word.encode()
    for word in (
        *("...", "…", "%{", "_fields", "description}", "elided", "existing", "for brevity", "here"),
        *("name}", "omitted", "other ", "previous", "remain", "rest of", "review", "same as"),
        *("truncated", "type}", "unchanged", "more ", "additional "),
    )
)
"""Words without one of which no comment can be at fault; searching them is cheap."""
_SUSPECTS = re.compile(b"|".join(map(re.escape, _SUSPECT)))
_THINGS = r"(?:class|code|enum|fields?|members?|properties|property|types?|values?)"
_ELISION: Final = re.compile(
    r"(?:\.\.\.|…)"
    rf"|(?:and |plus )?(?:the )?(?:rest|remainder)(?: of (?:the |this |its )?(?:\w+ )?{_THINGS})\b"
    rf"|(?:the )?(?:all )?(?:other|remaining|additional|more|existing|previous) (?:\w+ )?{_THINGS}"
    r"\b.*\b(?:omitted|here|unchanged|elided|truncated|as before|the same|follow|not shown)\b"
    rf"|(?:existing|previous) {_THINGS}(?: here)?\W*$"
    r"|.*\b(?:omitted|elided|truncated) for brevity"
    rf"|{_THINGS} (?:omitted|elided|truncated|unchanged)\b"
    r"|same as (?:above|before)\W*$",
    re.IGNORECASE,
)
_DELIMITER = re.compile(r"(?:BEGIN|END)_FIELDS\W*$")
_TEMPLATE = re.compile(
    r"%\{[^}\n]*\}$|\{(?:Class|Enum|Property|Field|Member|Type)?(?:Name|Description|Type)\}$"
)
_REVIEW = re.compile(r"\[REVIEW\b[^\]]*\]|REVIEW:")
_CODE_START = re.compile(
    r"[\[{}/*#)(;,<@\"]|(?:public|internal|private|protected|sealed|partial|abstract|static|class"
    r"|record|struct|enum|interface|namespace|using|required|readonly)\b"
)
_WORDS = re.compile(r"[A-Za-z\u2019'`*_-]+[,.:;!?]?(?:\s|$)")
_CODE_END = (";", "{", "}", ",", "]", "(", "=>")
_PHRASE: Final = 3
_THINKING = re.compile(r"</?think(?:ing)?>", re.IGNORECASE)
_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})[\w#+. -]*\s*$")
_PLACEHOLDER = re.compile(r"(?<![${])\{[A-Z]\w*\}|%\{")
_MARKDOWN = re.compile(r"(?:#{1,6} \w|[-*+] \S|\*\*|> |\d+\. |\|.*\|$|-{3,}$)")


def comment_faults(code: bytes, root: Node) -> Iterator[SyntaxFault]:
    """Yield a fault per comment that stands for code, and one per comment that asks for review.

    Only real comments count: the same words inside a string are data.
    """
    lowered = code.lower()
    if not any(word in lowered for word in _SUSPECT):
        return
    seen: set[int] = set()
    for match in _SUSPECTS.finditer(lowered):
        node = root.descendant_for_byte_range(match.start(), match.end())
        if node is None or node.type != "comment" or node.start_byte in seen:
            continue
        seen.add(node.start_byte)
        fault = _comment_fault(text_of(node), node.start_point.row + 1)
        if fault:
            yield fault


def _comment_fault(comment: str, line: int) -> SyntaxFault | None:
    is_documentation = comment.startswith(("///", "/**"))
    body = comment.strip("/*").strip()
    shown = " ".join(comment.split())[:100]
    if _REVIEW.search(body) and not is_documentation:
        return SyntaxFault(line, f"a comment asks for review: {shown}", "REVIEW")
    if _DELIMITER.match(body):
        return SyntaxFault(
            line, f"the page delimiter {in_quotes(shown)} was left in the code", "ARTIFACT"
        )
    if _TEMPLATE.match(body):
        return SyntaxFault(
            line, f"the placeholder {in_quotes(shown)} was left in a comment", "ARTIFACT"
        )
    if not is_documentation and is_elision(body):
        message = f"the comment {in_quotes(shown)} stands where code was left out; write that code"
        return SyntaxFault(line, message, "ARTIFACT")
    return None


def is_elision(body: str) -> bool:
    """Return whether the text of a comment stands for code that was left out."""
    return bool(_ELISION.match(body.strip(" -\u2013\u2014([<{")))


def is_fence(line: str) -> bool:
    """Return whether a line is the fence of a Markdown code block."""
    return bool(_FENCE.match(line))


def is_prose(line: str) -> bool:
    """Return whether a line that is no legal code reads as words to a person."""
    text = line.strip()
    if _MARKDOWN.match(text):
        return True
    if not text or _CODE_START.match(text) or text.endswith(_CODE_END):
        return False
    words = _WORDS.findall(text + " ")
    return len(words) >= _PHRASE or (bool(words) and text.endswith((":", "!", ".")))


def leftover(line: str) -> str | None:
    """Return what is wrong with a line of illegal code that no compiler would ever take."""
    text = line.strip()
    if _THINKING.search(text):
        return "thinking was left in the answer; write the code alone"
    if is_fence(line) or "```" in text:
        return (
            "a second code fence was opened inside the first; "
            "write one fenced block with the code alone"
        )
    if text and is_elision(text):
        return f"{in_quotes(text[:80])} stands where code was left out; write that code"
    if is_prose(line):
        return f"this is prose, not code: {in_quotes(text[:80])}"
    if _PLACEHOLDER.search(text):
        return f"a template placeholder was left in the code: {in_quotes(text[:80])}"
    return None


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
_ENTITY: Final = re.compile(r"&(?:lt|gt|amp|quot|apos|#39|#34);")
_ENTITIES: Final = {
    "&lt;": "<",
    "&gt;": ">",
    "&amp;": "&",
    "&quot;": '"',
    "&#34;": '"',
    "&apos;": "'",
    "&#39;": "'",
}
_JSON: Final = re.compile(r'\s*(?:\{\s*"[^"\n]{1,60}"\s*:|\[\s*(?:"|\{\s*"))')
_LITERAL: Final = re.compile(r'(?<![$@"\\])"(?:\\.|[^"\\\n])*"(?!")')
_ESCAPE: Final = re.compile(
    r"(\\(?:[\"'\\0abefnrtv]|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]))|(\\.)"
)
_ATTRIBUTE: Final = re.compile(r'(?P<name>\w+)[ \t]*\((?:[\w]+[ \t]*=[ \t]*)?(?P<quote>")')
_QUOTE: Final = re.compile(r'(?<!\\)"')
_LITERAL_END: Final = re.compile(r'"[ \t]*\)')


class Cut(NamedTuple):
    """Where and how a reply ends too early."""

    line: int
    message: str
    code: bytes
    """The reply without its unfinished end, every declaration closed."""


def slip_repairs(code: bytes) -> Iterator[Callable[[bytes], SlipRepair | None]]:
    """Yield what undoes each kind of slip, to be tried one after the other.

    Args:
        code: the illegal code, which tells what need not be tried.
    """
    if _JSON.match(code[:200].decode("utf-8", "replace")):
        yield _out_of_json
    if b"&" in code:
        yield _without_entities
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
    return SlipRepair(found.code, (SyntaxFault(found.line, found.message, in_member=False),))


def _out_of_json(code: bytes) -> SlipRepair | None:
    """Return blanks for a JSON value: whatever it holds is text, not code."""
    text = code.decode("utf-8", "replace")
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        if not re.search(r'\\n|\\"', text):
            return None
    message = (
        "the answer is a JSON value that holds the code as a string; answer with the code itself, "
        "not wrapped in JSON"
    )
    return SlipRepair(
        re.sub(rb"[^\r\n]", b" ", code), (SyntaxFault(1, message, "ARTIFACT", in_member=False),)
    )


def _without_entities(code: bytes) -> SlipRepair | None:
    lines = code.decode("utf-8", "surrogateescape").split("\n")
    at: list[int] = []
    for row, line in enumerate(lines):
        if _ENTITY.search(line) and not line.lstrip().startswith("//"):
            at.append(row)
            lines[row] = _ENTITY.sub(lambda match: _ENTITIES[match[0]], line)
    if not at:
        return None
    found = " and ".join(dict.fromkeys(_ENTITY.findall(code.decode("utf-8", "replace"))))
    meant = " and ".join(dict.fromkeys(_ENTITIES[entity] for entity in found.split(" and ")))
    message = f"the code is HTML-escaped: write {meant} where the answer has {found}"
    faults = (SyntaxFault(at[0] + 1, message, in_member=False),)
    return SlipRepair("\n".join(lines).encode("utf-8", "surrogateescape"), faults)


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
