"""The pages of a type joined into one declaration, and taken apart again; for every language.

A page is read as a source that declares its type: as it stands, or with a frame around it, a
declaration that takes bare members. What members stand in is a slot. What is around the slot of a
later page is taken away, and the rest goes into the slot of page 1, line by line, so that each line
of the type is known by its page. The syntax tree only finds: a page that is illegal alone is a
fault, and stands where it would, unchanged.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import ClassVar, Final

from pytest_regen.errors import SourceError
from pytest_regen.languages.base import PageFault, SourceFacts, StitchedType
from pytest_regen.prompts.values import OutputMode

Units = Sequence[Sequence[str | int]]
"""For each page, the JSON names or enum values it asks for."""
Span = tuple[int, int]
"""Bytes of a text: from the first to the one after the last."""

_WRAPPER: Final = "PageWrapper"
_DELIMITER: Final = re.compile(r"[ \t]*(?://|#)[ \t]*(BEGIN|END)_FIELDS[ \t]*")
# No legal code has these characters: they stand for what is cut out, and for where pages go in.
_CUT: Final = "\0"
_MARKS: Final = "\1\2"
_RESERVED: Final = re.compile(rb"[\0-\2]")
_EDGES: Final = re.compile(r"^\s*\0\s*|\s*\0\s*$|\0")
_REST: Final = re.compile(rb"[^\n]*(?:\s*\n[ \t]+(?://|#)[^\n]*)*")
_CODE_SIGNS: Final = frozenset("{}[]()=<>;")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a page, and where it comes from."""

    text: str
    page: int
    number: int
    """Of the line in the page's own output, counted from 1."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A declaration that takes members of one kind."""

    head: str
    """Declares ``PageWrapper`` as far as the line before its members."""
    tail: str
    holds: str
    """What its members are, in words that follow "it must hold"."""
    mark: bytes = b""
    """A comma that stands between members, or a semicolon that stands after all."""
    sign: bytes = b""
    """What each member begins with, but for the first of a declaration."""
    indent: str = ""
    """What lines of members must begin with to be legal."""
    is_enum: bool = False
    is_apart: bool = False
    """Whether a blank line stands between pages."""
    is_strict: bool = False
    """Whether no comma may stand after the last member."""


@dataclass(frozen=True, slots=True)
class Slot:
    """What the members of a declaration stand in; positions are those of the source."""

    kind: str
    """A name in ``Pages.frames``."""
    start: int
    end: int
    """Members of other pages go before it."""
    members: tuple[Span, ...] = ()
    """With the comments above them."""
    is_plain: bool = True
    """Whether a page of generated code may hold such members, without a type around them."""
    is_absent: bool = False
    """Whether a semicolon stands where a body might."""


@dataclass(frozen=True, slots=True)
class Shell:
    """A declaration of a source."""

    name: str
    start: int
    slots: tuple[Slot, ...]
    """One at least: where members of other pages may go."""


@dataclass(frozen=True, slots=True)
class Source:
    """What a legal source declares."""

    shells: tuple[Shell, ...]
    outside: tuple[Span, ...] = ()
    """Imports and namespaces: the header of the whole file has them."""
    has_strays: bool = False
    """Whether statements or loose members stand outside of every declaration."""


@dataclass(slots=True)
class _Part:
    """A page, and what of it goes into the type."""

    lines: list[Line]
    slot: Slot | None = None
    """``None`` where it has no members."""
    is_legal: bool = True
    cuts: list[Span] = field(default_factory=list)
    inserts: list[tuple[int, bytes]] = field(default_factory=list)
    """Texts and their positions; of two at one position the later stands first."""

    @property
    def code(self) -> bytes:
        """Its lines as UTF-8."""
        return text_of(self.lines).encode("utf-8", "surrogatepass")

    def line_at(self, position: int) -> Line:
        """Return the line of a byte of the code."""
        return self.lines[self.code.count(b"\n", 0, position)]

    def kept(self) -> list[Line]:
        """Return the lines with cuts and inserts made, but those of which nothing is left."""
        code = self.code
        edits = [(start, end, b"") for start, end in self.cuts]
        edits += [(at, at, new) for at, new in self.inserts]
        # From the back, because positions are those of the whole code.
        for start, end, new in sorted(edits, key=lambda edit: edit[:2], reverse=True):
            *rows, last = code[start:end].split(b"\n")
            gap = b"\0\n" * len(rows) + b"\0" * bool(last)
            code = code[:start] + gap + new + code[end:]
        lines = []
        for line, text in zip(self.lines, _decoded(code).split("\n"), strict=False):
            left = _EDGES.sub("", text) if _CUT in text else text
            if left or _CUT not in text:
                lines.append(replace(line, text=left))
        return lines


class Pages(ABC):
    """Joins the pages of types of one language."""

    frames: ClassVar[Mapping[str, Frame]]
    """By what members stand in; the first that takes a page is right."""
    indent: ClassVar[str] = "    "
    comment: ClassVar[str] = "//"
    """What a comment to the end of its line begins with."""
    comments: ClassVar[re.Pattern[bytes]] = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)
    around: ClassVar[re.Pattern[str]]
    """Found in a page that may have something outside of its declaration."""
    open_text: ClassVar[re.Pattern[str]] = re.compile(r"(?!)")
    """Found in code with a string that goes over a line end, so that no line may be moved."""

    @abstractmethod
    def source(self, code: bytes) -> Source | None:
        """Return what a source declares; ``None`` where it is illegal."""

    @abstractmethod
    def read(self, code: str) -> SourceFacts:
        """Return the facts of a source; see ``Language.read``."""

    @abstractmethod
    def leaves(self, code: str) -> tuple[str, ...]:
        """Return the tokens of code; see ``Language.leaves``."""

    def names(self, name: str) -> Sequence[str]:
        """Return what a type may be called in its pages, the likeliest first."""
        return (name,)

    def imported(self, lines: list[Line]) -> tuple[list[Line], list[Line]]:
        """Return the imports of a page that no header has, and the page without any import."""
        return [], lines

    def moved(self, lines: Sequence[Line], indent: str) -> list[Line]:
        """Return the lines with the indentation that they share replaced by ``indent``."""
        texts = [line.text for line in lines if line.text.strip()]
        if self.open_text.search("\n".join(texts)):
            return [*lines]
        # Comments do not count, because one may stand further left than the code around it.
        code = [text for text in texts if not text.lstrip().startswith(self.comment)] or texts
        own = min(map(_indent, code), key=len, default="")
        return [replace(line, text=_moved(line.text, own, indent)) for line in lines]

    # --- joining ----------------------------------------------------------------------------------

    def stitch(self, outputs: Sequence[str], *, name: str, is_enum: bool) -> StitchedType:
        """Return the pages of one type as one declaration; see ``Language.stitch``.

        Args:
            outputs: code of the pages, page 1 first; any line ends.
            name: of the type.
            is_enum: whether the pages must hold enum values; what they hold, page 1 shows.
        """
        read = [self.imported(lines_of(text, page)) for page, text in enumerate(outputs or [""], 1)]
        imports = {line.text: line for above, _ in reversed(read) for line in above}
        pages = [lines for _, lines in read]
        if len(pages) == 1:
            return _as_type([*imports.values(), *_trim(self._only_page(pages[0]))])
        first = _Part(self.moved(pages[0], ""))
        source = self._source(first)
        shell = self._shell(source, name)
        faults = [] if shell else [self._first_fault(first, source, name)]
        kinds = [slot.kind for slot in shell.slots] if shell else [*self.frames]
        parts = []
        for page in pages[1:]:
            part = self._part(page, kinds, name)
            if part is None:
                part = _Part(page, is_legal=False)
                faults.append(self._page_fault(page, kinds, name, is_enum=is_enum))
            parts.append(part)
        if source is not None and shell is not None:
            first.cuts += source.outside
            lines = _trim(self._filled(first, shell, parts))
        else:
            lines = _join(pages[0], [part.kept() for part in parts], is_apart=True)
        return _as_type([*imports.values(), *lines], faults)

    def unwrap_page(self, code: str, mode: OutputMode) -> str:
        """Return what a page contributes: its members, or its declaration without imports.

        Args:
            code: the page's text.
            mode: what the page was asked for.
        """
        lines = lines_of(code, 1)
        if mode not in {"fields_only", "enum_values_only"}:
            return text_of(_trim(self._only_page(lines)))
        is_enum = mode == "enum_values_only"
        kinds = sorted(self.frames, key=lambda kind: self.frames[kind].is_enum != is_enum)
        part = self._part(lines, kinds, None)
        return text_of(_trim(self.moved(part.kept(), "") if part else lines))

    def _only_page(self, lines: list[Line]) -> list[Line]:
        """Return a page that is a whole declaration, without what stands outside of it."""
        if not self.around.search(text_of(lines)):
            return lines  # Not parsed, because types of one page are joined most often.
        part = _Part(lines)
        source = self._source(part)
        part.cuts += source.outside if source else ()
        return _without_delimiters(part.kept())

    def _filled(self, first: _Part, shell: Shell, parts: Sequence[_Part]) -> list[Line]:
        """Return page 1 with the members of the other pages in its declaration."""
        code, groups = first.code, []
        for mark, slot in zip(_MARKS, shell.slots, strict=False):
            own = [part for part in parts if (part.slot or shell.slots[0]).kind == slot.kind]
            if own:
                groups.append((mark, slot, own))
                first.inserts.append((_cut_at(code, slot.end), mark.encode()))
                self._separate([replace(first, slot=slot), *own])
                first.cuts += [(slot.end, slot.end + 1)] if slot.is_absent else []
        lines = _without_delimiters(first.kept())
        outer = _indent_at(code, shell.start)
        for mark, slot, own in groups:
            starts = (start for start, _ in slot.members if _cut_at(code, start) < start)
            start = next(starts, None)
            indent = outer + self.indent if start is None else _indent_at(code, start)
            pieces = [
                self.moved(part.kept(), indent) if part.is_legal else part.lines for part in own
            ]
            row = next(row for row, line in enumerate(lines) if mark in line.text)
            place = lines[row]
            before, _, after = place.text.partition(mark)
            after = outer + after.lstrip() if before.strip() else after
            head = [*lines[:row], replace(place, text=before)]
            tail = [replace(place, text=after)] if after.strip() else []
            if slot.is_absent:
                head.append(replace(place, text=f"{outer}{{"))
                tail = [replace(place, text=f"{outer}}}")]
            is_apart = self.frames[slot.kind].is_apart
            lines = [*_join(head, pieces, is_apart=is_apart), *tail, *lines[row + 1 :]]
        return lines

    def _separate(self, parts: Sequence[_Part]) -> None:
        """Put a comma between members of two parts, a semicolon only after all of them."""
        filled = [(part, part.slot) for part in parts if part.slot and part.slot.members]
        closing = b""
        for number, (part, slot) in enumerate(filled, 1):
            frame, code = self.frames[slot.kind], part.code
            start, end = slot.members[0][0], slot.members[-1][1]
            after = self.comments.sub(lambda match: b" " * len(match[0]), code[end : slot.end])
            at = after.find(frame.mark) if frame.mark else -1
            if frame.mark == b"," and at < 0 and number < len(filled):
                part.inserts.append((end, b","))
            if frame.mark == b";" and at >= 0:
                closing = b";"
                part.cuts.append((end + at, end + at + 1))
            if number > 1 and not code.startswith(frame.sign.strip(), start):
                part.inserts.append((start, frame.sign))
            if number == len(filled) and closing:
                part.inserts.append((end, closing))

    # --- one page ---------------------------------------------------------------------------------

    def _source(self, part: _Part) -> Source | None:
        return None if _RESERVED.search(part.code) else self.source(part.code)

    def _shell(self, source: Source | None, name: str) -> Shell | None:
        """Return the declaration of a type, or the only one whatever it is called."""
        shells = {shell.name: shell for shell in reversed(source.shells if source else ())}
        named = [shells[called] for called in self.names(name) if called in shells]
        return next(iter(named or (shells.values() if len(shells) == 1 else ())), None)

    def _part(self, lines: list[Line], kinds: Sequence[str], name: str | None) -> _Part | None:
        """Return the members of a later page, whatever is around them; ``None`` if illegal.

        Args:
            lines: the page.
            kinds: what its members may stand in.
            name: of the type they belong to; ``None`` accepts any.
        """
        marks = [mark[1] if (mark := _DELIMITER.fullmatch(line.text)) else "" for line in lines]
        first = marks.index("BEGIN") if "BEGIN" in marks else 0
        last = len(marks) - marks[::-1].index("END") if "END" in marks else len(marks)
        for reading in (lines, lines[first:last]):
            plain = _trim(_without_delimiters(reading))
            if not self._has_code(plain):
                return _Part(plain)  # An empty page is no illegal one.
            part = self._bare(plain, kinds) or self._inside(plain, kinds, name)
            if part is not None:
                return part
        return None

    def _has_code(self, lines: list[Line]) -> bool:
        return bool(self.comments.sub(b"", _Part(lines).code).strip())

    def _bare(self, lines: list[Line], kinds: Sequence[str]) -> _Part | None:
        """Return a page that is members alone."""
        for kind in kinds:
            part = self._inside(self._wrapped(lines, kind), [kind], _WRAPPER)
            if part and part.slot and part.slot.is_plain and part.slot.members:
                return part
        return None

    def _wrapped(self, lines: Sequence[Line], kind: str) -> list[Line]:
        """Return a page that is not blank with a declaration around it."""
        frame = self.frames[kind]
        moved = self.moved(lines, frame.indent)
        first, last = moved[0], moved[-1]
        if frame.is_strict:
            moved[-1] = replace(last, text=last.text.rstrip().removesuffix(","))
        head = [replace(first, text=text) for text in frame.head.split("\n")]
        return [*head, *moved, replace(last, text=frame.tail)]

    def _inside(self, lines: list[Line], kinds: Sequence[str], name: str | None) -> _Part | None:
        """Return a page that declares its type and nothing else, without what is around members."""
        part = _Part(lines)
        source = self._source(part)
        if source is None or source.has_strays or len(source.shells) != 1:
            return None
        (shell,) = source.shells
        slots = [slot for slot in shell.slots if slot.members] or [shell.slots[0]]
        if len(slots) > 1 or slots[0].kind not in kinds:
            return None
        if name is not None and shell.name not in self.names(name):
            return None
        part.slot = slots[0]
        part.cuts = [(0, _cut_at(part.code, slots[0].start)), (slots[0].end, len(part.code))]
        return part

    # --- faults -----------------------------------------------------------------------------------

    def _first_fault(self, first: _Part, source: Source | None, name: str) -> PageFault:
        """Return why page 1 takes no members."""
        if source is None or source.has_strays:
            for fault in self._faults(_without_delimiters(first.lines), name):
                return fault
        message = f"the page declares no type called {name!r} with members on lines of their own"
        return PageFault(1, 1, "MISSING_CLASS", message, in_member=False)

    def _page_fault(
        self, lines: list[Line], kinds: Sequence[str], name: str, *, is_enum: bool
    ) -> PageFault:
        """Return why a later page cannot stand in its type."""
        enums = [kind for kind, frame in self.frames.items() if frame.is_enum]
        if is_enum and not {*enums} & {*kinds} and self._part(lines, enums, name):
            message = f"{name!r} is declared as what takes no values of an enum"
            return PageFault(1, 1, "MISSING_CLASS", message, in_member=False)
        page = _Part(_trim(_without_delimiters(lines)))
        message = f"the page must hold {self.frames[kinds[0]].holds}"
        place = page.lines[0]
        source = self._source(page)
        for shell in source.shells if source else ():
            if shell.name not in self.names(name):
                message = f"the page declares {shell.name!r} instead of members alone"
                line = page.line_at(shell.start)
                return PageFault(line.page, line.number, "FOREIGN_TYPE", message, in_member=False)
        wrapped = _Part(self._wrapped(page.lines, kinds[0]))
        source = self._source(wrapped)
        if source is None:
            for fault in self._faults(wrapped.lines, name):
                return fault
        elif len(source.shells) > 1:
            # It closes the frame, and what follows is another declaration.
            place = wrapped.line_at(source.shells[0].slots[0].end)
        return PageFault(place.page, place.number, "SYNTAX", message, in_member=False)

    def _faults(self, lines: Sequence[Line], name: str) -> Iterator[PageFault]:
        """Yield what the reader finds in a page."""
        for fault in self.read(text_of(lines)).faults:
            line = lines[min(fault.line, len(lines)) - 1]
            message = fault.message.replace(_WRAPPER, name)
            yield PageFault(line.page, line.number, fault.code, message, fault.in_member)

    # --- how legal --------------------------------------------------------------------------------

    def illegality(self, code: str) -> int:
        """Return 0 for declarations or members and nothing else; more for more lines of no code."""
        lines = _trim(lines_of(code, 1))
        plain = _without_delimiters(lines)
        if not self._has_code(plain):
            return len(code) + 1
        source = self._source(_Part(self.moved(plain, "")))
        is_source = source is not None and source.shells and not source.has_strays
        if is_source or self._bare(plain, [*self.frames]):
            return 0
        return 1 + sum(len(line.text) for line in lines if not _CODE_SIGNS & {*line.text})

    # --- taking apart -----------------------------------------------------------------------------

    def split(self, code: str, *, name: str, units: Units) -> tuple[str, ...]:
        """Return the pages of a declaration; joined again, they are the same but for white space.

        A member goes to the page that asks for its JSON name or value. Members stay in their order:
        one that stands before another page's members stays on the page of those.

        Args:
            code: the whole declaration.
            name: of the type.
            units: for each page, the JSON names or enum values it asks for.

        Raises:
            SourceError: the declaration is illegal, or its members are so mixed that a page would
                be left without any.
        """
        if len(units) <= 1:
            return (code,)
        whole = _Part(lines_of(code, 1))
        data = whole.code
        shell = self._shell(self._source(whole), name)
        if shell is None:
            raise _cannot_split(name, "it is no legal declaration of that name")
        slot = next((slot for slot in shell.slots if slot.members), shell.slots[0])
        frame = self.frames[slot.kind]
        page_of = {str(unit): page for page, own in enumerate(units) for unit in own}
        pages_of = [page_of.get(unit, -1) for unit in self._units(whole, shell.name, slot)]
        starts = [slot.members[at][0] for at in _first_members(name, pages_of, len(units))]
        cuts = [_cut_at(data, at) for at in (*starts, slot.end)]
        first, *later = (data[start:end] for start, end in pairwise((0, *cuts)))
        first = first.rstrip().removesuffix(b"," if frame.is_strict else b"")
        if frame.mark == b";" and later[-1].rstrip().endswith(b";"):
            first, later[-1] = first + b";", later[-1].rstrip().removesuffix(b";")
        first += b"\n" + data[cuts[-1] :].lstrip(b"\n")
        texts = [text_of(_trim(lines_of(_decoded(page), 1))) for page in (first, *later)]
        joined = self.stitch(texts, name=name, is_enum=frame.is_enum)
        if joined.faults or self.leaves(joined.text) != self.leaves(code):
            raise _cannot_split(name, "its pages would not be the same when joined again")
        return tuple(texts)

    def _units(self, whole: _Part, name: str, slot: Slot) -> Iterator[str]:
        """Yield the JSON name or value of each member; "" where the reader sees none."""
        named = [
            (member.line, member.name if member.wire_name is None else member.wire_name)
            for entry in self.read(text_of(whole.lines)).declarations
            for member in entry.members
            if entry.name == name and entry.outer is None
        ]
        for start, end in slot.members:
            first, last = whole.line_at(start).number, whole.line_at(end).number
            row = next((at for at, (line, _) in enumerate(named) if first <= line <= last), None)
            yield "" if row is None else str(named.pop(row)[1])


def _first_members(name: str, page_of: Sequence[int], total: int) -> list[int]:
    """Return the first member of page 2 and of those after it.

    Args:
        name: of the type.
        page_of: for each member in source order, the page that asks for it, counted from 0; -1 for
            one that no page asks for.
        total: how many pages there are.

    Raises:
        SourceError: a page would be left without any.
    """
    starts: list[int] = []
    for page in range(1, total):
        earlier = max((at for at, own in enumerate(page_of) if 0 <= own < page), default=-1)
        later = (at for at, own in enumerate(page_of) if own >= page and at > earlier)
        starts += [next(later, -1)]
    if starts != sorted({*starts} - {-1}):
        raise _cannot_split(name, "its members are mixed so that one of its pages would have none")
    return starts


def _cannot_split(name: str, why: str) -> SourceError:
    return SourceError(
        f"{name} cannot be taken apart into its pages",
        why=why,
        hint="put its members into the order of the stored pages, or drop the edit: "
        f"pytest-regen regenerate DIR --type {name} --discard-edits",
    )


# --- lines ----------------------------------------------------------------------------------------


def lines_of(output: str, page: int) -> list[Line]:
    """Return the lines of a page, without a byte order mark."""
    text = output.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return [Line(line, page, number) for number, line in enumerate(text.split("\n"), 1)]


def _decoded(code: bytes) -> str:
    return code.decode("utf-8", "surrogatepass")


def text_of(lines: Sequence[Line]) -> str:
    """Return the lines as one text."""
    return "\n".join([line.text for line in lines])


def _trim(lines: Sequence[Line]) -> list[Line]:
    """Return the lines without blank ones at either end."""
    rows = [row for row, line in enumerate(lines) if line.text.strip()]
    return [*lines[rows[0] : rows[-1] + 1]] if rows else []


def _without_delimiters(lines: Sequence[Line]) -> list[Line]:
    return [line for line in lines if not _DELIMITER.fullmatch(line.text)]


def _join(head: list[Line], pieces: Sequence[list[Line]], *, is_apart: bool) -> list[Line]:
    """Return ``head`` and the pieces below one another, with a blank line between them or none."""
    lines = _trim(head)
    if lines:
        lines[-1] = replace(lines[-1], text=lines[-1].text.rstrip())
    for piece in filter(None, map(_trim, pieces)):
        if is_apart and lines and not lines[-1].text.endswith("{"):
            lines.append(replace(piece[0], text=""))
        lines += piece
    return lines


def _as_type(lines: Sequence[Line], faults: Sequence[PageFault] = ()) -> StitchedType:
    """Return the lines as the declaration that they make."""
    shown = _trim(lines)
    return StitchedType(
        text=text_of(shown),
        line_pages=tuple([line.page for line in shown]),
        # One fault of page 1 may be found on each page that does not suit it.
        faults=tuple(dict.fromkeys(faults)),
        page_lines=tuple([line.number for line in shown]),
    )


def _indent(text: str) -> str:
    return text[: len(text) - len(text.lstrip())]


def _moved(text: str, own: str, indent: str) -> str:
    """Return a line with the indentation ``own`` replaced by ``indent``."""
    if not text.strip():
        return ""
    return indent + (text[len(own) :] if text.startswith(own) else text.lstrip())


def end_of_lines(code: bytes, at: int) -> int:
    """Return the end of the line of a position, or of the comments below that are indented."""
    rest = _REST.match(code, at)
    return rest.end() if rest else at


def _cut_at(code: bytes, at: int) -> int:
    """Return where the line of a position begins if only white space is before it."""
    start = code.rfind(b"\n", 0, at) + 1
    return at if code[start:at].strip() else start


def _indent_at(code: bytes, at: int) -> str:
    """Return the indentation of the line of a position."""
    start = code.rfind(b"\n", 0, at) + 1
    return _indent(_decoded(code[start:].partition(b"\n")[0]))
