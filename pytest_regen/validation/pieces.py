"""A source as pieces that are validated apart, and pages joined into a type, line by line."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Final

from pytest_regen.documents.ir import IR, EnumValue
from pytest_regen.errors import BoundaryError
from pytest_regen.languages import find_language
from pytest_regen.languages.base import Declaration, SourceFacts, StitchedType, SyntaxFault
from pytest_regen.regions.markers import Comment
from pytest_regen.sources import blocks, stitch
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


# As many as a large store has types, because each of them is read again with every answer.
@lru_cache(maxsize=4096)
def read_text(language: str, text: str) -> SourceFacts:
    """Return the facts of ``text``. One text is read once, however often a store is validated."""
    return find_language(language).read(text)


def split(source: str, language: str) -> Split:
    """Return the pieces of ``source``: by boundaries, or by declaration where there are none."""
    try:
        marked = blocks(source)
    except BoundaryError as error:
        return replace(_by_declaration(source, language), broken=error.what)
    if not marked:
        return _by_declaration(source, language)
    pieces = tuple(
        Piece(block.name, block.text, block.first_line, read_text(language, block.text))
        for block in marked
    )
    around, position = "", 0
    for block in marked:
        # As many empty lines as the block has, because lines of faults count in the source.
        start, end = block.edges[0].start, block.edges[1].end
        around += source[position:start] + "\n" * source.count("\n", start, end)
        position = end
    around += source[position:]
    # Not read in vain, because most files have nothing but imports there.
    may_declare = find_language(language).syntax.declares.search(around)
    facts = read_text(language, around) if may_declare else SourceFacts()
    return Split(pieces, facts.declarations, aliases=facts.aliases, around=around)


def _by_declaration(source: str, language: str) -> Split:
    """Return a piece per top-level declaration; a fault goes to the one it stands in or before."""
    facts = read_text(language, source)
    lines = source.split("\n")
    outer = [entry for entry in facts.declarations if entry.outer is None]
    # Where no declaration holds it, the next one, because prose and fences stand above code.
    homes = {
        fault: next((entry.name for entry in outer if fault.line <= entry.end_line), "")
        or outer[-1].name
        for fault in (facts.faults if outer else ())
    }
    # Several parts of one name are one piece, because C# has partial classes.
    pieces = []
    for name in dict.fromkeys(entry.name for entry in outer):
        parts = [entry for entry in outer if entry.name == name]
        inside = tuple(
            entry
            for entry in facts.declarations
            if any(part.line <= entry.line <= part.end_line for part in parts)
        )
        faults = tuple(fault for fault in facts.faults if homes[fault] == name)
        first = min(part.line for part in parts)
        text = "\n".join(lines[first - 1 : max(part.end_line for part in parts)])
        pieces.append(Piece(name, text, 1, SourceFacts(inside, faults, facts.aliases & {name})))
    homeless = () if pieces else facts.faults
    return Split(tuple(pieces), has_boundaries=False, homeless=homeless, aliases=facts.aliases)


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
        # Without the mark of an encoding, because editors leave one in files that people copy.
        lines = (line.strip() for line in self.output.removeprefix("\ufeff").splitlines())
        return all(not line or line.startswith(comment.open) for line in lines)


Pages = Mapping[str, Sequence[PageText]]
"""By name of a type: all of its pages, in order."""


@dataclass(frozen=True)
class PageMap:
    """The pages of one type, and the way back from its block to them."""

    pages: tuple[PageText, ...]
    """None where they are not known."""
    language: str
    name: str
    is_enum: bool
    text: str
    """The type's block in the source, which may have been edited by hand."""

    @cached_property
    def page_of_unit(self) -> Mapping[EnumValue, int]:
        """Field or value to the page that was asked for it."""
        return {unit: page.page for page in self.pages for unit in page.fields}

    def page_of_line(self, line: int) -> int | None:
        """Return the page that wrote a line of the block, counted from 1; ``None`` by hand."""
        # Without joining anything, because most types have one page.
        if len(self.pages) < 2:
            return self.pages[0].page if self.pages else None
        return self._line_pages[line - 1] if 0 < line <= len(self._line_pages) else None

    def excerpt(self, line: int) -> Excerpt | None:
        """Return a line of the block as the reply has it; ``None`` where it has been edited.

        What the attributes on a line belong to is shown after them.
        """
        numbers = self.stitched.page_lines if self.pages else ()
        # Of an edited block no line is shown, because the model never wrote it.
        if not 0 < line <= len(numbers) or not self._is_as_written:
            return None
        texts = [self._lines[line - 1].strip()]
        is_attribute = find_language(self.language).syntax.attribute_line.fullmatch
        for following in self._lines[line:]:
            if not is_attribute(texts[-1]):
                break
            texts.append(following.strip())
        return Excerpt(numbers[line - 1], " ".join(texts))

    def line_of(self, page: int, line: int) -> int | None:
        """Return the line of the block that holds a line of a page; ``None`` if it was left out."""
        places = zip(self.stitched.line_pages, self.stitched.page_lines, strict=False)
        for number, (wrote, start) in enumerate(places, 1):
            if wrote == page and start >= line:
                return number
        return None

    @cached_property
    def silent(self) -> frozenset[int]:
        """Pages that hold no code, or whose end was cut off: what they lack is reported at once."""
        comment = find_language(self.language).comment
        return frozenset(
            page.page for page in self.pages if page.is_truncated or page.is_empty(comment)
        )

    @cached_property
    def illegal(self) -> frozenset[int]:
        """Which of several pages are illegal alone; their text is in the block all the same."""
        is_told = len(self.pages) > 1 and self.stitched.faults and self._is_as_written
        return frozenset(fault.page for fault in self.stitched.faults if is_told)

    @cached_property
    def stitched(self) -> StitchedType:
        """The pages joined, and which of them are illegal alone."""
        outputs = [page.output for page in self.pages]
        return stitch(outputs, name=self.name, is_enum=self.is_enum, language=self.language)

    @cached_property
    def _lines(self) -> list[str]:
        return self.text.split("\n")

    @cached_property
    def _is_as_written(self) -> bool:
        """Whether the block is what its pages make, but for white space at the ends of lines."""
        joined = self.stitched.text.split("\n")
        return [line.rstrip() for line in self._lines] == [line.rstrip() for line in joined]

    @cached_property
    def _line_pages(self) -> Sequence[int]:
        """The page of each line of the block; an edited line belongs to the page around it."""
        pages = self.stitched.line_pages
        if self._is_as_written or not pages:
            return pages
        # By likeness, because a formatter moves lines without changing whose they are.
        joined = [line.strip() for line in self.stitched.text.split("\n")]
        lines = [line.strip() for line in self._lines]
        matcher = difflib.SequenceMatcher(None, joined, lines, autojunk=False)
        return [
            pages[min(start + offset, len(pages) - 1)]
            for _, start, _, first, last in matcher.get_opcodes()
            for offset in range(last - first)
        ]


def read_source(source: str, ir: IR, pages: Pages) -> tuple[str, Split, dict[str, PageMap]]:
    """Return a source without the pages that are illegal alone, its pieces, and the pages of types.

    A fault of one page says nothing of the others. Its lines are blank in the source and in what is
    read of its block, but not in the text of the block; no line moves.

    Args:
        source: the whole source.
        ir: says which types there are.
        pages: those of each type, as far as they are known.
    """
    whole = split(source, ir.language)
    texts = {piece.name: piece.text for piece in reversed(whole.pieces)}
    maps = {
        type_.name: PageMap(
            tuple(pages.get(type_.name, ())),
            ir.language,
            type_.name,
            type_.kind == "enum",
            texts.get(type_.name, ""),
        )
        for type_ in ir.types
    }
    lines, pieces = source.split("\n"), list(whole.pieces)
    for at, piece in enumerate(pieces):
        mapped = maps.get(piece.name)
        # Without page 1 nothing declares the type, so that the others cannot be read either.
        if mapped is None or not mapped.illegal or 1 in mapped.illegal:
            continue
        places = zip(piece.text.split("\n"), mapped.stitched.line_pages, strict=False)
        legal = ["" if page in mapped.illegal else line for line, page in places]
        first = piece.first_line - 1
        lines[first : first + len(legal)] = legal
        pieces[at] = replace(piece, facts=read_text(ir.language, "\n".join(legal)))
    return "\n".join(lines), replace(whole, pieces=tuple(pieces)), maps
