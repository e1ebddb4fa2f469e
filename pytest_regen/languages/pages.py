"""The pages of a type joined into one declaration, and taken apart again; for every language.

Page 1 declares the type. Of a later page counts what stands between its marker lines: members,
which are legal with a frame around them. They go where the members of page 1 end, line by line, so
that each line of the type is known by its page. A page that is illegal alone is a fault, and stands
where it would, unchanged.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, Final

from pytest_regen.errors import SourceError
from pytest_regen.languages.base import PageFault, SourceFacts, StitchedType
from pytest_regen.prompts.values import OutputMode

Units = Sequence[Sequence[str | int]]
"""For each page, the JSON names or enum values it asks for."""
Point = tuple[int, int]
"""A row of a text, and a byte of it; both count from 0."""
Span = tuple[Point, Point]

END_OF_LINE: Final = 1 << 30
"""A byte behind those of any line."""

_FRAME: Final = "PageWrapper"
_DELIMITER: Final = re.compile(r"[ \t]*(?://|#)[ \t]*(BEGIN|END)_FIELDS[ \t]*")
_CODE_SIGNS: Final = frozenset("{}[]()=<>;")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a page, and where it comes from."""

    text: str
    page: int
    number: int
    """Of the line in the page's own output, counted from 1."""

    def halves(self, at: int) -> tuple[str, str]:
        """Return what stands before a byte of the line, and the rest."""
        # In bytes, because grammars and Python's parser count those.
        data = self.text.encode("utf-8", "surrogatepass")
        before, after = data[:at], data[at:]
        return before.decode("utf-8", "surrogatepass"), after.decode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True)
class Frame:
    """A declaration that takes members of one kind."""

    head: str
    """Declares ``PageWrapper`` as far as the line before its members."""
    tail: str
    holds: str
    """What its members are, in words that follow "it must hold"."""
    mark: str = ""
    """A comma that stands between members, or a semicolon that stands after all."""
    sign: str = ""
    """What each member begins with, but for the first of a declaration."""
    indent: str = ""
    """What lines of members must begin with to be legal."""
    is_enum: bool = False
    is_apart: bool = False
    """Whether a blank line stands between pages."""


@dataclass(frozen=True, slots=True)
class Slot:
    """What the members of a declaration stand in."""

    name: str
    """Of the declaration."""
    row: int
    """On which the declaration begins."""
    kind: str
    """A name in ``Pages.frames``."""
    start: Point
    end: Point
    """Members of other pages go before it."""
    members: tuple[Span, ...] = ()
    is_plain: bool = True
    """Whether a page of generated code may hold such members, without a type around them."""
    is_absent: bool = False
    """Whether a semicolon stands where a body might."""


@dataclass(frozen=True, slots=True)
class Source:
    """What a legal source declares."""

    slots: tuple[Slot, ...]
    """Of its declarations that take members."""
    outside: tuple[Span, ...] = ()
    """Imports and namespaces: the header of the whole file has them."""
    has_strays: bool = False
    """Whether statements or loose members stand outside of every declaration."""


@dataclass(slots=True)
class _Part:
    """What of a page goes into the type."""

    lines: list[Line]
    kind: str = ""
    """What its members stand in; empty where it has none."""
    first: Point = (0, 0)
    """Where its first member begins."""
    last: Point = (0, 0)
    """Where its last member ends."""
    is_legal: bool = True


class Pages(ABC):
    """Joins the pages of types of one language."""

    frames: ClassVar[Mapping[str, Frame]]
    """By what members stand in; the first that takes a page is right."""
    indent: ClassVar[str] = "    "
    comment: ClassVar[str] = "//"
    """What a comment to the end of its line begins with."""
    comments: ClassVar[re.Pattern[str]] = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
    around: ClassVar[re.Pattern[str]] = re.compile(r"(?!)")
    """Found in a page that may have something outside of its declaration."""
    open_text: ClassVar[re.Pattern[str]] = re.compile(r"(?!)")
    """Found in code with a string that goes over a line end, so that no line may be moved."""

    @abstractmethod
    def source(self, code: str) -> Source | None:
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
        # As they are, because white space inside of such a text counts.
        if self.open_text.search("\n".join(texts)):
            return [*lines]
        # Comments do not count, because one may stand further left than the code around it.
        code = [text for text in texts if not text.lstrip().startswith(self.comment)] or texts
        shared = min(map(_indent, code), key=len, default="")
        moved = []
        for line in lines:
            text = line.text
            inner = text[len(shared) :] if text.startswith(shared) else text.lstrip()
            moved.append(replace(line, text=indent + inner if text.strip() else ""))
        return moved

    # --- joining ----------------------------------------------------------------------------------

    def stitch(self, outputs: Sequence[str], *, name: str, is_enum: bool) -> StitchedType:
        """Return the pages of one type as one declaration; see ``Language.stitch``.

        Args:
            outputs: code of the pages, page 1 first; any line ends.
            name: of the type.
            is_enum: whether the pages must hold enum values; what they hold, page 1 shows.
        """
        read = [self.imported(lines_of(text, page)) for page, text in enumerate(outputs or [""], 1)]
        # Backwards, because the first page with an import is the one that it comes from.
        imports = [*{line.text: line for above, _ in reversed(read) for line in above}.values()]
        first, *later = [lines for _, lines in read]
        lines = self._declaration(first)
        if not later:
            return _as_type([*imports, *_trim(lines)])
        lines = self.moved(lines, "")
        source = self.source(text_of(lines))
        slot = self._slot(source, name)
        faults = []
        if slot is None:
            message = f"the page declares no type called {name!r} with members on their own lines"
            fault = PageFault(1, 1, "MISSING_CLASS", message, in_member=False)
            is_illegal = source is None or source.has_strays
            faults.append(next(self._faults(lines, name), fault) if is_illegal else fault)
        kinds = [slot.kind] if slot else [*self.frames]
        parts = []
        for page in later:
            part = self._part(page, kinds, name)
            if part is None:
                part = _Part(page, is_legal=False)
                faults.append(self._page_fault(page, kinds, name, is_enum=is_enum))
            parts.append(part)
        if slot:
            lines = self._filled(lines, slot, parts)
        else:
            lines = _join(first, [part.lines for part in parts], is_apart=True)
        return _as_type([*imports, *lines], faults)

    def unwrap_page(self, code: str, mode: OutputMode) -> str:
        """Return what a page contributes: its members, or its declaration without imports.

        Args:
            code: the page's text.
            mode: what the page was asked for.
        """
        lines = lines_of(code, 1)
        if mode not in {"fields_only", "enum_values_only"}:
            return text_of(_trim(self._declaration(lines)))
        part = self._part(lines, [*self.frames], None)
        return text_of(self.moved(part.lines, "") if part else _trim(lines))

    def _declaration(self, page: Sequence[Line]) -> list[Line]:
        """Return a page without delimiters and without what stands outside of its declaration."""
        lines = _without_delimiters(page)
        text = text_of(lines)
        # Most pages are not parsed here, because that is done once they are joined.
        source = self.source(text) if self.around.search(text) else None
        outside: set[int] = set()
        for (first, start), (last, end) in source.outside if source else ():
            beside = lines[first].halves(start)[0] + lines[last].halves(end)[1]
            if not self.comments.sub("", beside).strip():
                outside.update(range(first, last + 1))
        return [line for row, line in enumerate(lines) if row not in outside]

    def _filled(self, lines: list[Line], slot: Slot, parts: Sequence[_Part]) -> list[Line]:
        """Return page 1 with the members of the other pages in its declaration."""
        outer = _indent(lines[slot.row].text)
        row, at = slot.end
        before, after = lines[row].halves(at)
        head = _Part([*lines[:row], replace(lines[row], text=before.rstrip())])
        # What closes a declaration on the line of its last member gets a line of its own.
        after = outer + after.lstrip() if before.strip() else before + after
        tail = [replace(lines[row], text=after)] if after.strip() else []
        # Because a record without a body ends in a semicolon, in whose place members stand.
        if slot.is_absent:
            head.lines.append(replace(lines[row], text=f"{outer}{{"))
            tail = [replace(lines[row], text=f"{outer}}}")]
        indent = outer + self.indent
        if slot.members:
            head.kind, head.first, head.last = slot.kind, slot.members[0][0], slot.members[-1][1]
            before = lines[head.first[0]].halves(head.first[1])[0]
            indent = indent if before.strip() else before
        self._separate([head, *parts])
        pieces = [self.moved(part.lines, indent) if part.is_legal else part.lines for part in parts]
        joined = _join(head.lines, pieces, is_apart=self.frames[slot.kind].is_apart)
        return [*joined, *tail, *lines[row + 1 :]]

    def _separate(self, parts: Sequence[_Part]) -> None:
        """Put a comma between members of two parts, a semicolon only after all of them."""
        filled = [part for part in parts if part.kind]
        closing = ""
        for number, part in enumerate(filled, 1):
            frame, lines = self.frames[part.kind], part.lines
            (first, start), (last, end) = part.first, part.last
            before, after = lines[last].halves(end)
            code = self.comments.sub(lambda match: " " * len(match[0]), after)
            mark = code.find(frame.mark) if frame.mark else -1
            if frame.mark == ";" and mark >= 0:
                closing, after = ";", after[:mark] + after[mark + 1 :]
            is_last = number == len(filled)
            between = "," if frame.mark == "," and mark < 0 and not is_last else ""
            lines[last] = replace(lines[last], text=before + between + closing * is_last + after)
            before, after = lines[first].halves(start)
            if number > 1 and not after.startswith(frame.sign.strip()):
                lines[first] = replace(lines[first], text=before + frame.sign + after)

    # --- one page ---------------------------------------------------------------------------------

    def _slot(self, source: Source | None, name: str) -> Slot | None:
        """Return what the members of a type stand in, or of the only one whatever it is called."""
        # Backwards, because of several that are called alike the first is meant.
        slots = {slot.name: slot for slot in reversed(source.slots if source else ())}
        called = [slots[name] for name in self.names(name) if name in slots]
        return next(iter(called or (slots.values() if len(slots) == 1 else ())), None)

    def _part(self, page: Sequence[Line], kinds: Sequence[str], name: str | None) -> _Part | None:
        """Return the members of a later page; ``None`` if it is illegal.

        Args:
            page: its lines.
            kinds: what its members may stand in.
            name: of the type they belong to; ``None`` accepts any.
        """
        lines = _delimited(page)
        if not self._has_code(lines):
            return _Part(lines)  # An empty page is no illegal one.
        part = self._bare(lines, kinds)
        source = None if part else self.source(text_of(lines))
        if source and not source.has_strays and len(source.slots) == 1:
            # Without markers a model may write the whole declaration again.
            (slot,) = source.slots
            if name is None or slot.name in self.names(name):
                part = self._bare(_between(lines, slot.start, slot.end), kinds)
        return part

    def _has_code(self, lines: Sequence[Line]) -> bool:
        return bool(self.comments.sub("", text_of(lines)).strip())

    def _bare(self, lines: Sequence[Line], kinds: Sequence[str]) -> _Part | None:
        """Return a page that is members alone."""
        # In the order of the frames, because text may be legal in several.
        for kind in kinds if lines else ():
            wrapped = self._wrapped(lines, kind)
            source = self.source(text_of(wrapped))
            slots = source.slots if source and not source.has_strays else ()
            if len(slots) == 1 and slots[0].is_plain and slots[0].members:
                rows = self.frames[kind].head.count("\n") + 1
                (first, start), (last, end) = slots[0].members[0][0], slots[0].members[-1][1]
                return _Part(wrapped[rows:-1], kind, (first - rows, start), (last - rows, end))
        return None

    def _wrapped(self, lines: Sequence[Line], kind: str) -> list[Line]:
        """Return a page that is not blank with a declaration around it."""
        frame = self.frames[kind]
        head = [replace(lines[0], text=text) for text in frame.head.split("\n")]
        return [*head, *self.moved(lines, frame.indent), replace(lines[-1], text=frame.tail)]

    # --- faults -----------------------------------------------------------------------------------

    def _page_fault(
        self, page: Sequence[Line], kinds: Sequence[str], name: str, *, is_enum: bool
    ) -> PageFault:
        """Return why a later page cannot stand in its type."""
        enums = [kind for kind, frame in self.frames.items() if frame.is_enum]
        if is_enum and not {*enums} & {*kinds} and self._part(page, enums, name):
            # A fault of page 1, because the values themselves are right.
            message = f"{name!r} is declared as what takes no values of an enum"
            return PageFault(1, 1, "MISSING_CLASS", message, in_member=False)
        lines = _delimited(page)
        source = self.source(text_of(lines))
        for slot in source.slots if source else ():
            if slot.name not in self.names(name):
                message = f"the page declares {slot.name!r} instead of members alone"
                line = lines[slot.row]
                return PageFault(line.page, line.number, "FOREIGN_TYPE", message, in_member=False)
        message = f"the page must hold {self.frames[kinds[0]].holds}"
        fault = PageFault(lines[0].page, lines[0].number, "SYNTAX", message, in_member=False)
        return next(self._faults(self._wrapped(lines, kinds[0]), name), fault)

    def _faults(self, lines: Sequence[Line], name: str) -> Iterator[PageFault]:
        """Yield what the reader finds in a page."""
        for fault in self.read(text_of(lines)).faults:
            line = lines[min(fault.line, len(lines)) - 1]
            message = fault.message.replace(_FRAME, name)
            yield PageFault(line.page, line.number, fault.code, message, fault.in_member)

    # --- how legal --------------------------------------------------------------------------------

    def illegality(self, code: str) -> int:
        """Return 0 for declarations or members and nothing else; more for more lines of no code."""
        lines = _trim(_without_delimiters(lines_of(code, 1)))
        if not self._has_code(lines):
            return len(code) + 1  # because nothing is further from code than none
        text = text_of(self.moved(lines, ""))
        source = self.source(text)
        is_legal = source is not None and not source.has_strays
        has_shell = source is not None and bool(source.slots)
        if is_legal and (has_shell or self.read(text).declarations):
            return 0
        if self._bare(lines, [*self.frames]):
            return 0
        # At least 1, because code may be illegal though each of its lines looks like code.
        return 1 + sum(len(line.text) for line in lines if not _CODE_SIGNS & {*line.text})

    # --- taking apart -----------------------------------------------------------------------------

    def split(self, code: str, *, name: str, units: Units) -> tuple[str, ...]:
        """Return the pages of a declaration; joined again, they are the same but for white space.

        A member goes to the page that asks for its JSON name or value, with the comments above it.
        Members stay in their order: one that stands before another page's members stays on the page
        of those.

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
        lines = lines_of(code, 1)
        slot = self._slot(self.source(text_of(lines)), name)
        if slot is None:
            raise _cannot_split(name, "it is not a legal declaration of that name")
        frame = self.frames[slot.kind]
        page_of = {str(unit): page for page, group in enumerate(units) for unit in group}
        starts: dict[int, int] = {}
        lowest = len(units) - 1
        # From the end, because a member stays with those of later pages that it stands behind.
        for at, wire in reversed([*enumerate(self._units(code, slot))]):
            # What no page asks for, like a text below a field, stays with what stands above it.
            if wire in page_of:
                lowest = min(lowest, page_of[wire])
                starts[lowest] = at
        if {*range(1, len(units))} - {*starts}:
            why = "its members are mixed so that one of its pages would have none"
            raise _cannot_split(name, why)
        cuts: list[Point] = [(0, 0)]
        for at in (starts[page] for page in range(1, len(units))):
            start, before = slot.members[at][0], slot.members[at - 1][1] if at else slot.start
            # Below the member before, because comments go with what stands below them.
            cuts.append((before[0] + 1, 0) if before[0] < start[0] else start)
        first, *later = (_between(lines, *cut) for cut in pairwise((*cuts, slot.end)))
        last = later[-1][-1:]
        # The semicolon goes back to page 1, because a page of literals alone does not end in one.
        if frame.mark == ";" and last and last[0].text.endswith(";"):
            later[-1][-1] = replace(last[0], text=last[0].text.removesuffix(";"))
            first[-1] = replace(first[-1], text=f"{first[-1].text};")
        first += _between(lines, slot.end, (len(lines) - 1, END_OF_LINE))
        texts = [text_of(page) for page in (first, *later)]
        # Tried at once, because a comment or a mark between two members may have changed sides.
        joined = self.stitch(texts, name=name, is_enum=frame.is_enum)
        if joined.faults or self.leaves(joined.text) != self.leaves(code):
            raise _cannot_split(name, "its pages would not be the same when joined again")
        return tuple(texts)

    def _units(self, code: str, slot: Slot) -> Iterator[str]:
        """Yield the JSON name or value of each member; "" where the reader sees none."""
        read = [
            member
            for entry in self.read(code).declarations
            for member in entry.members
            if entry.name == slot.name and entry.outer is None
        ]
        for (first, _), (last, _) in slot.members:
            member = next((member for member in read if first < member.line <= last + 1), None)
            if member is None:
                yield ""
                continue
            read.remove(member)  # because several may stand on one line
            yield str(member.name if member.wire_name is None else member.wire_name)


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


def text_of(lines: Sequence[Line]) -> str:
    """Return the lines as one text."""
    return "\n".join([line.text for line in lines])


def _trim(lines: Sequence[Line]) -> list[Line]:
    """Return the lines without blank ones at either end."""
    rows = [row for row, line in enumerate(lines) if line.text.strip()]
    return [*lines[rows[0] : rows[-1] + 1]] if rows else []


def _without_delimiters(lines: Sequence[Line]) -> list[Line]:
    return [line for line in lines if not _DELIMITER.fullmatch(line.text)]


def _delimited(page: Sequence[Line]) -> list[Line]:
    """Return what stands between the marker lines of a page, or all where it has none."""
    marks = [mark[1] if (mark := _DELIMITER.fullmatch(line.text)) else "" for line in page]
    if "BEGIN" in marks:
        # The outermost, because a comment in the code may hold the same words.
        last = len(marks) - 1 - marks[::-1].index("END") if "END" in marks else len(marks)
        page = page[marks.index("BEGIN") : last]
    return _trim(_without_delimiters(page))


def _between(lines: Sequence[Line], start: Point, end: Point) -> list[Line]:
    """Return what stands between two points, the parts of their lines included."""
    cut = [*lines[: end[0]], replace(lines[end[0]], text=lines[end[0]].halves(end[1])[0])]
    first = cut[start[0]]
    return _trim([replace(first, text=first.halves(start[1])[1]), *cut[start[0] + 1 :]])


def _join(head: Sequence[Line], pieces: Sequence[list[Line]], *, is_apart: bool) -> list[Line]:
    """Return ``head`` and the pieces below one another, with a blank line between them or none."""
    lines = _trim(head)
    for piece in filter(None, map(_trim, pieces)):
        if is_apart and lines and not lines[-1].text.endswith("{"):
            # A line of the page below, because each line of the type must be known by its page.
            lines.append(replace(piece[0], text=""))
        lines += piece
    return lines


def _as_type(lines: Sequence[Line], faults: Sequence[PageFault] = ()) -> StitchedType:
    """Return the lines as the declaration that they make."""
    trimmed = _trim(lines)
    return StitchedType(
        text=text_of(trimmed),
        line_pages=tuple([line.page for line in trimmed]),
        # Once, because a fault of page 1 may be found with each page that does not suit it.
        faults=tuple(dict.fromkeys(faults)),
        page_lines=tuple([line.number for line in trimmed]),
    )


def _indent(text: str) -> str:
    return text[: len(text) - len(text.lstrip())]
