"""Slips in one member: what was probably meant, and what a correction says about it."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from pytest_regen.languages.leftovers import Leftovers
from pytest_regen.languages.python.names import is_identifier, member_name
from pytest_regen.text import in_quotes

LEFTOVERS: Final = Leftovers(
    code_start=re.compile(
        r"[\[{}#)(,@\"']|(?:class|def|import|from|return|pass|if|for|async|type)\b(?=.*[:(=\"']|$)"
        r"|[\w.-]+[ \t]*[:=]|\w+ [\w.]+\[|.*[\w\])] = [\w\"'\[]"
    ),
    code_end=("{", "}", ",", "]", "(", ")", "[", "="),
    documentation=("#:",),
)
"""How Python looks; ``#:`` begins a comment that is a description."""

_NAME: Final = re.compile(
    r"(?P<quote>[\"'`]?)(?P<name>[^\s:=#\"'`([{]+(?:[ \t]+[^\s:=#\"'`([{]+)?)(?P=quote)"
    r"[ \t]*(?P<sign>\?[ \t]*:|:|=(?!=))"
)
_CLOSERS: Final = {"(": ")", "[": "]", "{": "}"}
_TOKEN: Final = re.compile(
    r"\"\"\".*?\"\"\"|'''.*?'''|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|#[^\n]*|[()\[\]{}]",
    re.DOTALL,
)
_ARGUMENT: Final = re.compile(
    r"(?<=[\w)\]\"'])[ \t]+(?=(?P<name>\w+)=)|(?<=[\w)\]\"'])\n[ \t]*(?=\w+=)"
)
_STRING_ARGUMENT: Final = re.compile(r"(?P<name>\w+)[ \t]*=[ \t]*r?(?P<quote>[\"'])")
_FANCY: Final = str.maketrans({"\u201c": '"', "\u201d": '"', "\u2018": "'", "\u2019": "'"})
_LONGEST: Final = 4_000
"""Characters of a member that is tried out."""
_TRIES: Final = 40

_Code = Literal["SYNTAX", "INVALID_IDENTIFIER"]


class Slip(NamedTuple):
    """A change to try."""

    text: str
    """The member as it may have been meant; it has as many lines as before."""
    message: str
    row: int = 0
    """The line at fault, counted from the first line of the member, 0."""
    code: _Code = "SYNTAX"
    renamed: tuple[str, str] | None = None
    """A stand-in, and the name that the source has."""


def slips(text: str, number: int) -> Iterator[Slip]:
    """Yield what a member may have been meant as, the most telling first.

    Args:
        text: of a member that is illegal, without indentation.
        number: tells stand-ins for illegal names apart.
    """
    if len(text) > _LONGEST:
        return
    yield from _renamed(text, number)
    yield from _signs(text)
    yield from _brackets(text)
    yield from _quotes(text)
    yield from _separators(text)


def _renamed(text: str, number: int) -> Iterator[Slip]:
    """Yield the member with a legal name."""
    found = _NAME.match(text)
    if found is None or (is_identifier(found["name"]) and not found["quote"]):
        return
    name, stand_in = found["name"], f"illegal_{number}"
    first, _, second = name.partition(" ")
    if second and found["sign"] == "=" and is_identifier(first):
        return  # a colon is missing between the name and its type
    sign = found["sign"].lstrip("?")
    message = f"{in_quotes(name)} is no legal Python identifier; write {member_name(name)!r}"
    code: _Code = "INVALID_IDENTIFIER"
    if is_identifier(name):
        message, code = f"the name {in_quotes(name)} must not stand in quotes", "SYNTAX"
        stand_in = name
    renamed = (stand_in, name) if stand_in != name else None
    yield Slip(f"{stand_in}{sign}{text[found.end() :]}", message, 0, code, renamed)


def _signs(text: str) -> Iterator[Slip]:
    """Yield the member without signs of other languages."""
    if text != (plain := text.translate(_FANCY)):
        yield Slip(
            plain,
            "typographic quotation marks stand where straight ones must",
            _row_of(text, plain),
        )
    if "?" in text:
        plain = re.sub(r"\?(?=[ \t]*(?:[:=\n]|$))", "", text)
        yield Slip(
            plain, "'?' has no meaning in Python: write '| None' in the type", _row_of(text, plain)
        )
    if "//" in text:
        plain = re.sub(r"//(?=[^\n]*$)", "# ", text, flags=re.MULTILINE)
        yield Slip(
            plain, "a comment begins with '#' in Python, not with '//'", _row_of(text, plain)
        )
    stripped = re.sub(r"[,;][ \t]*(?=(?:#[^\n]*)?$)", "", text)
    if stripped != text:
        yield Slip(stripped, "the sign at the end of the line is one too many", text.count("\n"))
    for word, meant in (("const ", ""), ("let ", ""), ("public ", ""), ("var ", "")):
        if text.startswith(word):
            yield Slip(meant + text[len(word) :], f"{word.strip()!r} is no word of Python")


def _row_of(before: str, after: str) -> int:
    """Return the first row in which two texts of as many lines differ."""
    rows = zip(before.split("\n"), after.split("\n"), strict=False)
    return next((row for row, (old, new) in enumerate(rows) if old != new), 0)


def open_brackets(text: str) -> tuple[list[str], bool]:
    """Return the brackets that are open at the end of ``text``, and whether one is too many."""
    opened: list[str] = []
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in _CLOSERS:
            opened.append(mark)
        elif mark in ")]}":
            if not opened or _CLOSERS[opened[-1]] != mark:
                return opened, True
            opened.pop()
    return opened, False


def without_comment(line: str) -> str:
    """Return a line without its comment and the blanks before it."""
    end = next((t.start() for t in _TOKEN.finditer(line) if t[0][0] == "#"), len(line))
    return line[:end].rstrip()


def _brackets(text: str) -> Iterator[Slip]:
    """Yield the member with its brackets in pairs."""
    opened, _ = open_brackets(text)
    rows = text.split("\n")
    last = next((at for at in reversed(range(len(rows))) if without_comment(rows[at]).strip()), 0)
    if opened:
        closing = "".join(_CLOSERS[mark] for mark in reversed(opened))
        end = without_comment(rows[last])
        fixed = [*rows[:last], end + closing + rows[last][len(end) :], *rows[last + 1 :]]
        noun = f"a {in_quotes(closing)} is" if len(closing) == 1 else f"{in_quotes(closing)} are"
        yield Slip("\n".join(fixed), f"{noun} missing after {in_quotes(end.strip()[-40:])}", last)
        # It may be missing in the type instead.
        for at in list(re.finditer(r"[ \t]*(?:\||=)", text))[:_TRIES]:
            for mark in dict.fromkeys(opened):
                fix = f"{text[: at.start()]}{_CLOSERS[mark]}{text[at.start() :]}"
                row = text.count("\n", 0, at.start())
                near = text[: at.start()].rpartition("\n")[2].strip()[-40:]
                yield Slip(
                    fix, f"a {in_quotes(_CLOSERS[mark])} is missing after {in_quotes(near)}", row
                )
    for extra in list(re.finditer(r"[)\]}]", text))[-_TRIES:]:
        fix = f"{text[: extra.start()]} {text[extra.end() :]}"
        row = text.count("\n", 0, extra.start())
        yield Slip(fix, f"this {in_quotes(extra[0])} is one too many", row)
    for name in list(re.finditer(r"\b(?:list|dict|Literal|NotRequired|Annotated)\b(?!\[)", text))[
        :_TRIES
    ]:
        fix = f"{text[: name.end()]}[{text[name.end() :].lstrip()}"
        yield Slip(fix, f"a '[' is missing after {name[0]!r}", text.count("\n", 0, name.start()))
    for name in list(re.finditer(r"\b(?:Field|field)\b(?!\()", text))[:_TRIES]:
        fix = f"{text[: name.end()]}({text[name.end() :].lstrip()}"
        yield Slip(fix, f"a '(' is missing after {name[0]!r}", text.count("\n", 0, name.start()))


def _quotes(text: str) -> Iterator[Slip]:
    """Yield the member with its quotation marks in pairs."""
    rows = text.split("\n")
    for row, line in enumerate(rows[:_TRIES]):
        if line.count('"') % 2:
            for at in [
                len(without_comment(line)),
                *(m.start() for m in re.finditer(r"[),\]]|$", line)),
            ]:
                fixed = [*rows[:row], f'{line[:at]}"{line[at:]}', *rows[row + 1 :]]
                yield Slip("\n".join(fixed), "a quotation mark is missing in this line", row)
            closed = f'{line.rstrip()}"'
            closing = "".join(_CLOSERS[mark] for mark in reversed(open_brackets(closed)[0]))
            fixed = [*rows[:row], closed + closing, *rows[row + 1 :]]
            yield Slip("\n".join(fixed), "a quotation mark is missing in this line", row)
            for at in [m.end() for m in re.finditer(r"[=(\[][ \t]*|^", line)][:_TRIES]:
                fixed = [*rows[:row], f'{line[:at]}"{line[at:]}', *rows[row + 1 :]]
                yield Slip("\n".join(fixed), "a quotation mark is missing in this line", row)
    yield from _over_lines(rows)
    for opening in list(_STRING_ARGUMENT.finditer(text))[:_TRIES]:
        yield from _escaped(text, opening)


def _over_lines(rows: list[str]) -> Iterator[Slip]:
    """Yield the member with a string that runs over the ends of lines on one line."""
    odd = [row for row, line in enumerate(rows) if line.replace('\\"', "").count('"') % 2]
    for first, last in pairwise(odd):
        joined = "\\n".join(rows[first : last + 1])
        blank = [""] * (last - first)
        fixed = [*rows[:first], joined, *blank, *rows[last + 1 :]]
        message = (
            "a string runs on over the end of the line: write \\n for a line end inside a string, "
            "and keep the string on one line"
        )
        yield Slip("\n".join(fixed), message, first)


def _escaped(text: str, opening: re.Match[str]) -> Iterator[Slip]:
    """Yield the member with the quotation marks inside of one string escaped."""
    mark, start = opening["quote"], opening.end()
    ends = [
        m.start() for m in re.finditer(rf"{mark}(?=[ \t]*(?:[,)\]]|$))", text[start:], re.MULTILINE)
    ]
    for end in ends[:6]:
        inner = text[start : start + end]
        escaped = re.sub(rf"(?<!\\){mark}", f"\\\\{mark}", inner)
        if escaped != inner and "\n" not in inner:
            fix = f"{text[:start]}{escaped}{text[start + end :]}"
            where = f"quotation marks inside the string of {opening['name']}= are not escaped"
            yield Slip(fix, f"{where}: write \\{mark} for each", text.count("\n", 0, start))


def _separators(text: str) -> Iterator[Slip]:
    """Yield the member with a sign that is missing between its parts."""
    for at in list(_ARGUMENT.finditer(text))[:_TRIES]:
        following = text[at.end() : at.end() + 30].partition("=")[0]
        fix = f"{text[: at.start()]},{text[at.start() :]}"
        row = text.count("\n", 0, at.start())
        yield Slip(fix, f"a ',' is missing before {following.strip()!r}", row)
    for at in list(
        re.finditer(r"[ \t]+(?=(?:Field|dataclasses\.field|field)\(|None\b|UNSET\b)", text)
    )[:_TRIES]:
        fix = f"{text[: at.start()]} = {text[at.end() :]}"
        near = text[at.end() : at.end() + 20].partition("(")[0]
        yield Slip(fix, f"a '=' is missing before {near!r}", text.count("\n", 0, at.start()))
    for at in list(re.finditer(r"[ \t]+(?=None\b)", text))[:_TRIES]:
        fix = f"{text[: at.start()]} | {text[at.end() :]}"
        yield Slip(fix, "a '|' is missing before 'None'", text.count("\n", 0, at.start()))
    name = re.match(r"(\w+)[ \t]+(?=[\w\"'])", text)
    if name is not None:
        yield Slip(f"{name[1]}: {text[name.end() :]}", f"a ':' is missing after {name[1]!r}")
    equal = re.match(r"([^=]*)==([^=].*)", text, re.DOTALL)
    if equal is not None:
        yield Slip(f"{equal[1]}={equal[2]}", "'==' compares; write '='")
