"""A source as pieces that are validated apart, and pages joined into a type, line by line."""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Final
from weakref import WeakValueDictionary

from pytest_regen.documents.ir import IR, EnumValue
from pytest_regen.errors import BoundaryError
from pytest_regen.languages import find_language
from pytest_regen.languages.base import Declaration, SourceFacts, StitchedType, SyntaxFault
from pytest_regen.regions.markers import Comment
from pytest_regen.sources import blocks
from pytest_regen.validation.issues import Excerpt


@dataclass(frozen=True, slots=True)
class Piece:
    """What one type's block holds."""

    name: str
    text: str
    first_line: int
    """Line of the source on which ``text`` begins, counted from 1."""
    facts: SourceFacts
    """Lines count from the first line of ``text``."""


@dataclass(frozen=True, slots=True)
class Split:
    """All pieces of a source, and what stands around them."""

    pieces: tuple[Piece, ...]
    outside: tuple[Declaration, ...] = ()
    """Declared outside of every boundary: the user's own, used but not checked. Lines count in the
    source."""
    around: str = ""
    """The source with every block blank: what stands outside of them, on its lines."""
    has_boundaries: bool = True
    homeless: tuple[SyntaxFault, ...] = ()
    """Faults of a source that declares nothing that could be read."""
    broken: str | None = None
    """Why the boundary lines could not be read; then the source was split by declaration."""
    aliases: frozenset[str] = frozenset()
    """Other names for types that the text outside of every boundary gives."""


_read: WeakValueDictionary[tuple[str, str], SourceFacts] = WeakValueDictionary()
"""Texts that were read, as long as a split source has them: those of a store go with it."""


@lru_cache(maxsize=256)
def read_text(language: str, text: str) -> SourceFacts:
    """Return the facts of ``text``. One text is read once, however often a store is validated."""
    facts = _read.get((language, text))
    if facts is None:
        facts = _read[language, text] = find_language(language).read(text)
    return facts


def split(source: str, language: str) -> Split:
    """Return the pieces of ``source``: by boundaries, or by declaration where there are none."""
    try:
        found = blocks(source)
    except BoundaryError as error:
        return replace(_by_declaration(source, language), broken=error.what)
    if not found:
        return _by_declaration(source, language)
    pieces = tuple(
        Piece(block.name, block.text, block.first_line, read_text(language, block.text))
        for block in found
    )
    around = _around(source, [(block.start, block.end) for block in found])
    may_declare = find_language(language).syntax.declares.search(around)
    facts = read_text(language, around) if may_declare else SourceFacts()
    return Split(pieces, facts.declarations, aliases=facts.aliases, around=around)


def without_illegal_pages(
    source: str, found: Split, pages: Mapping[str, "Sequence[PageText]"], ir: IR
) -> tuple[str, Split]:
    """Return a source without the pages that are illegal alone, and its blocks read like that.

    Their lines are blank in the source, but not in the text of its blocks; no line moves.
    """
    lines = source.split("\n")
    enums = {type_.name for type_ in ir.types if type_.kind == "enum"}
    pieces = []
    for piece in found.pieces:
        own, is_enum, facts = pages.get(piece.name, ()), piece.name in enums, piece.facts
        if len(own) > 1:
            mapped = PageMap(
                own, language=ir.language, name=piece.name, is_enum=is_enum, text=piece.text
            )
            text = mapped.readable()
            if text is not None:
                first = piece.first_line - 1
                lines[first : first + 1 + text.count("\n")] = text.split("\n")
                facts = read_text(ir.language, text)
        pieces.append(replace(piece, facts=facts) if facts is not piece.facts else piece)
    return "\n".join(lines), replace(found, pieces=tuple(pieces))


def _around(source: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return what stands outside of every block; a block is as many empty lines."""
    parts, position = [], 0
    for start, end in spans:
        parts += [source[position:start], "\n" * source.count("\n", start, end)]
        position = end
    parts.append(source[position:])
    return "".join(parts)


def _by_declaration(source: str, language: str) -> Split:
    """Return a piece per top-level declaration; a fault goes to the one it stands in or before."""
    facts = read_text(language, source)
    lines = source.split("\n")
    outer = [entry for entry in facts.declarations if entry.outer is None]
    pieces = []
    for name in dict.fromkeys(entry.name for entry in outer):
        own = [entry for entry in outer if entry.name == name]
        inside = tuple(_declarations_within(facts.declarations, own))
        faults = tuple(fault for fault in facts.faults if _home(fault.line, outer) == name)
        first = min(entry.line for entry in own)
        text = "\n".join(lines[first - 1 : max(entry.end_line for entry in own)])
        own_facts = SourceFacts(inside, faults)
        pieces.append(Piece(name, text, 1, own_facts))
    homeless = () if pieces else facts.faults
    return Split(
        tuple(pieces),
        has_boundaries=False,
        homeless=homeless,
        aliases=facts.aliases,
    )


def _declarations_within(
    declarations: Sequence[Declaration], own: Sequence[Declaration]
) -> Iterator[Declaration]:
    for entry in declarations:
        if any(entry is part or part.line <= entry.line <= part.end_line for part in own):
            yield entry


def _home(line: int, outer: Sequence[Declaration]) -> str:
    """Return the declaration that a line belongs to: around it, after it, or the last one."""
    for entry in outer:
        if line <= entry.end_line:
            return entry.name
    return outer[-1].name if outer else ""


_MOST_ATTRIBUTES: Final = 6
"""Lines of attributes after which an excerpt ends, though their member has not begun."""
_QUOTED: Final = re.compile(r'"(?:\\.|[^"\\\n])*"')
_NAME: Final = re.compile(r"\w+")
_CUT_SHORT: Final = frozenset({"max_tokens", "model_context_window_exceeded", "pause_turn"})


@dataclass(frozen=True, slots=True)
class PageText:
    """One page of a type, as a store holds it."""

    page: int
    """Counts from 1."""
    total_pages: int
    fields: Sequence[str | int]
    """JSON names or enum values that its prompt asks for."""
    output: str
    stop_reason: str | None = "end_turn"
    was_written: bool = True
    """Whether a model was ever asked; the output of a page that was not is empty."""

    @property
    def is_truncated(self) -> bool:
        """Whether the model ran out of room."""
        return self.stop_reason in _CUT_SHORT

    def is_empty(self, comment: Comment) -> bool:
        """Return whether the page is all blanks and lines that are comments."""
        lines = (line.strip() for line in self.output.removeprefix("\ufeff").splitlines())
        return all(not line or line.startswith(comment.open) for line in lines)


@lru_cache(maxsize=256)
def stitch_pages(language: str, outputs: tuple[str, ...], name: str, is_enum: bool) -> StitchedType:  # noqa: FBT001 - a cache key
    """Return the pages of a type joined; the same pages are joined once."""
    return find_language(language).stitch(outputs, name=name, is_enum=is_enum)


class PageMap:
    """The pages of one type, and the way back from its block to them.

    Args:
        pages: all of them, in order.
        language: name of the language they are written in.
        name: of the type.
        is_enum: whether pages hold enum values.
        text: the type's block in the source, which may have been edited by hand.
    """

    def __init__(
        self, pages: Sequence[PageText], *, language: str, name: str, is_enum: bool, text: str
    ) -> None:
        self.pages = tuple(pages)
        self._language, self._name, self._is_enum, self._text = language, name, is_enum, text
        self._asked = {unit: page.page for page in pages for unit in page.fields}

    def page_of_unit(self, unit: EnumValue) -> int | None:
        """Return the page that was asked for a field or value; ``None`` if none was."""
        return self._asked.get(unit)

    def page_of_line(self, line: int) -> int | None:
        """Return the page that wrote a line of the block, counted from 1; ``None`` by hand."""
        if len(self.pages) == 1:
            return self.pages[0].page
        return self._line_pages.get(line)

    def excerpt(self, line: int) -> Excerpt | None:
        """Return a line of the block as the reply has it; ``None`` where it has been edited.

        What the attributes on a line belong to is shown after them.
        """
        numbers = self.stitched.page_lines
        if not self._is_as_written or not 0 < line <= len(numbers):
            return None
        shown = [self._lines[line - 1].strip()]
        is_attribute = find_language(self._language).syntax.attribute_line.fullmatch
        for following in self._lines[line : line + _MOST_ATTRIBUTES]:
            if not is_attribute(shown[-1]):
                break
            shown.append(following.strip())
        return Excerpt(numbers[line - 1], " ".join(shown))

    def unit_at(self, line: int, names: Mapping[EnumValue, str]) -> EnumValue | None:
        """Return the field or value whose member stands on a line of the block.

        Args:
            line: counts from 1; its code may be illegal, so that only its text can be searched.
            names: the identifier that prompts propose for each field or value.
        """
        first = last = min(max(line, 1), len(self._lines)) - 1
        member_end = find_language(self._language).syntax.member_end.search
        while first > 0 and not member_end(self._lines[first - 1]):
            first -= 1
        while last + 1 < len(self._lines) and not member_end(self._lines[last]):
            last += 1
        text = "\n".join(self._lines[first : last + 1])
        quoted = {f'"{unit}"': unit for unit in names if isinstance(unit, str)}
        for found in _QUOTED.finditer(text):
            if found[0] in quoted:
                return quoted[found[0]]
        named = {name: unit for unit, name in names.items()}
        return next((named[word] for word in _NAME.findall(text) if word in named), None)

    @cached_property
    def _lines(self) -> list[str]:
        return self._text.split("\n")

    def line_of(self, page: int, line: int) -> int | None:
        """Return the line of the block that holds a line of a page; ``None`` if it was left out."""
        joined = self.stitched
        places = zip(joined.line_pages, joined.page_lines, strict=False)
        for number, (wrote, own) in enumerate(places, 1):
            if wrote == page and own >= line:
                return number
        return None

    @cached_property
    def silent(self) -> frozenset[int]:
        """Pages that hold no code, or whose end was cut off: what they lack is reported at once."""
        comment = find_language(self._language).comment
        return frozenset(
            page.page for page in self.pages if page.is_truncated or page.is_empty(comment)
        )

    @property
    def is_broken(self) -> bool:
        """Return whether one of several pages cannot stand where it must."""
        return len(self.pages) > 1 and bool(self.stitched.faults) and self._is_as_written

    @cached_property
    def _is_as_written(self) -> bool:
        """Whether the block is what its pages make, but for white space at the ends of lines."""
        joined = self.stitched.text.split("\n")
        return [line.rstrip() for line in self._text.split("\n")] == [
            line.rstrip() for line in joined
        ]

    def readable(self) -> str | None:
        """Return the block with the lines of pages that are illegal alone blank.

        A fault of one page says nothing of the others. ``None`` where all pages are legal, or where
        page 1 is not: without it nothing declares the type.
        """
        illegal = {fault.page for fault in self.stitched.faults} if self.is_broken else set()
        if not illegal or 1 in illegal:
            return None
        lines = zip(self._lines, self.stitched.line_pages, strict=False)
        return "\n".join("" if page in illegal else line for line, page in lines)

    @cached_property
    def stitched(self) -> StitchedType:
        """The pages joined, and which of them are illegal alone."""
        outputs = tuple(page.output for page in self.pages)
        return stitch_pages(self._language, outputs, self._name, self._is_enum)

    @cached_property
    def _line_pages(self) -> dict[int, int]:
        """Lines of the block to pages; an edited line belongs to the page around it."""
        joined, pages = self.stitched.text.split("\n"), self.stitched.line_pages
        lines = self._text.split("\n")
        if self._is_as_written:
            return dict(enumerate(pages, 1))
        matcher = difflib.SequenceMatcher(
            None,
            [line.strip() for line in joined],
            [line.strip() for line in lines],
            autojunk=False,
        )
        found: dict[int, int] = {}
        for _, start, _, first, last in matcher.get_opcodes():
            for offset, line in enumerate(range(first + 1, last + 1)):
                if pages:
                    found[line] = pages[min(start + offset, len(pages) - 1)]
        return found
