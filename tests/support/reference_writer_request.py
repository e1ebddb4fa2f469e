"""What the reference writer understands of a request: the page asked for and the corrections.

Imports nothing of the package under test: it reads the text that arrives over HTTP, as a model
would, and knows no more than that text says.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

OBJECT_MODES = frozenset({"full_class", "class_only", "fields_only"})
ENUM_MODES = frozenset({"enum_only", "enum_values_only"})
FIRST_PAGE_MODES = frozenset({"full_class", "class_only", "enum_only"})

_BLOCK = re.compile(
    r"CORRECTION REQUIRED:\n"
    r"The previous attempt for this type produced the following errors\. "
    r"Fix them in your output\.\n\n"
    r"(?P<entries>(?:  [^\n]+\n)+)\n"
    r"Do not introduce any types not listed in (?:NESTED TYPES / )?TYPE REFERENCE\.\n"
    r"Do not omit any (?:fields|values) listed in this page's (?P<units>FIELDS|ENUM VALUES) "
    r"section\.\n\n(?=OUTPUT MODE: )"
)
_ENTRY = re.compile(r"^  \[(?P<code>[A-Z0-9_]+)\] (?P<text>[^\n]*(?:\n    [^\n]*)*)", re.MULTILINE)
_NAMED = re.compile(r'^    (?:Field|Value)s?: (?P<names>".*")$', re.MULTILINE)
_GROUPED = re.compile(r'^[^"]*: (?P<names>"[^\n]*")')
"""One entry for several fields: the message, a colon, their names."""
_HEADING = re.compile(r"^(?P<name>[A-Z][A-Z ]*):(?: (?P<rest>.*))?$")
_PAGE = re.compile(r"page (?P<page>\d+) of (?P<total>\d+)")
_SEPARATOR = re.compile(r"(?: \((?P<kind>\w+)\))?(?:, )?")


class UnreadableRequestError(ValueError):
    """The request is none that the writer was taught to read."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One field or enum value that the page must contain."""

    wire: str | int
    identifier: str
    type: str = ""
    flags: frozenset[str] = frozenset()
    description: str = ""

    @property
    def is_nullable(self) -> bool:
        """Whether its type ends in a question mark."""
        return self.type.endswith("?")

    @property
    def bare_type(self) -> str:
        """Its type without the question mark."""
        return self.type.removesuffix("?")


@dataclass(frozen=True, slots=True)
class Correction:
    """One entry of the correction block."""

    code: str
    text: str
    """The message and its detail lines."""

    def names(self, field: str) -> bool:
        """Return whether the entry is about ``field``."""
        named = _NAMED.search(self.text) or _GROUPED.match(self.text)
        if named is None:
            return field in self.text
        return any(name == field for name, _ in _quoted(named["names"]))


@dataclass(frozen=True, slots=True)
class PageRequest:
    """All that the writer knows."""

    mode: str
    type_name: str
    units: tuple[Unit, ...]
    page: int = 1
    total_pages: int = 1
    references: tuple[tuple[str, str], ...] = ()
    """Name and kind of the types in the file, as far as listed."""
    value_kind: str = ""
    description: str = ""
    """Of the type itself."""
    primary_key: tuple[str, str] | None = None
    """JSON name and identifier."""
    is_xchange: bool = False
    corrections: tuple[Correction, ...] = ()

    @property
    def is_enum(self) -> bool:
        """Whether the type is an enum."""
        return self.mode in ENUM_MODES

    @property
    def is_first(self) -> bool:
        """Whether the page declares the type itself."""
        return self.mode in FIRST_PAGE_MODES

    @property
    def key(self) -> tuple[str, int]:
        """Type and page."""
        return self.type_name, self.page


def parse_request(body: Mapping[str, Any]) -> PageRequest:
    """Return the page that a Messages API request asks for.

    Raises:
        UnreadableRequestError: the request asks for no page, or for one in a form never agreed.
    """
    system = text_of(body.get("system", ""))
    user = text_of(body["messages"][0]["content"])
    if "OUTPUT MODES" not in system:
        raise UnreadableRequestError("the system prompt does not say what an output mode is")
    block = _BLOCK.match(user)
    asked = user[block.end() :] if block else user
    start = re.search(r"^OUTPUT MODE: ", asked, re.MULTILINE)
    if start is None:
        raise UnreadableRequestError(f"no output mode in {user[:200]!r}")
    corrections = tuple(
        Correction(entry["code"], entry["text"])
        for entry in _ENTRY.finditer(block["entries"] if block else "")
    )
    return _page(dict(_sections(asked[start.start() :])), system, corrections)


def text_of(content: str | Sequence[Mapping[str, Any]]) -> str:
    """Return the text of a message or system prompt, given as text or as blocks."""
    if isinstance(content, str):
        return content
    return "".join(str(block.get("text", "")) for block in content)


def _sections(text: str) -> Iterator[tuple[str, list[str]]]:
    r"""Yield each heading with what follows it: the rest of its line, then its indented lines.

    Only ``\n`` ends a line; whatever else looks like a line end is part of the text.
    """
    name, lines = "", list[str]()
    for line in text.split("\n"):
        if heading := _HEADING.match(line):
            if name:
                yield name, lines
            name, lines = heading["name"], [heading["rest"] or ""]
        elif line.startswith("  ") and name:
            lines.append(line[2:])
        elif line:
            break
    if name:
        yield name, lines


def _page(
    sections: Mapping[str, list[str]], system: str, corrections: tuple[Correction, ...]
) -> PageRequest:
    paging = " ".join(sections.get("PAGING", ()))
    numbers = _PAGE.search(paging)
    listed = [line.partition(": ")[2] for line in sections.get("TYPE REFERENCE", ())[1:]]
    key = sections.get("PRIMARY KEY", [""])[0]
    units = sections.get("FIELDS") or sections.get("ENUM VALUES")
    if units is None:
        raise UnreadableRequestError("neither FIELDS nor ENUM VALUES")
    return PageRequest(
        mode=sections["OUTPUT MODE"][0],
        type_name=json.loads(sections["TYPE"][0]),
        units=tuple(map(_unit, units[1:])),
        page=int(numbers["page"]) if numbers else 1,
        total_pages=int(numbers["total"]) if numbers else 1,
        references=tuple(pair for line in listed for pair in _quoted(line)),
        value_kind=sections.get("VALUES ARE", [""])[0],
        description=_described(sections.get("DESCRIPTION", [""])[0]),
        primary_key=_key(key) if key else None,
        is_xchange="[PrimaryKey(" in system,
        corrections=corrections,
    )


def _described(text: str) -> str:
    """Return the description, without the note that it was cut."""
    return json.JSONDecoder().raw_decode(text)[0] if text else ""


def _key(text: str) -> tuple[str, str]:
    decoder = json.JSONDecoder()
    name, end = decoder.raw_decode(text)
    identifier, _ = decoder.raw_decode(text[end:].removeprefix(" identifier "))
    return name, identifier


def _quoted(text: str) -> Iterator[tuple[str, str]]:
    """Yield the quoted strings at the start of ``text`` and the word in brackets after each."""
    decoder, at = json.JSONDecoder(), 0
    while text.startswith('"', at):
        value, at = decoder.raw_decode(text, at)
        separator = _SEPARATOR.match(text, at)
        if separator is None:  # pragma: no cover - the pattern matches the empty text
            return
        yield value, separator["kind"] or ""
        at = separator.end()


def _unit(line: str) -> Unit:
    data = json.loads(line)
    if "value" in data:
        return Unit(data["value"], data["identifier"], description=data.get("label", ""))
    return Unit(
        data["json_name"],
        data["identifier"],
        data["type"],
        frozenset(data.get("flags", ())),
        data.get("description", ""),
    )
