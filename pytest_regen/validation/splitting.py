"""A source as the pieces that are validated apart: one per type, each read alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from pytest_regen.errors import BoundaryError
from pytest_regen.languages import language_named
from pytest_regen.languages.facts import Declaration, SourceFacts, SyntaxFault
from pytest_regen.sources import blocks

__all__ = ["Piece", "Split", "read_text", "split"]


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
    """Declared outside of every boundary: the user's own, used but not judged. Lines count in the
    source."""
    around: str = ""
    """The source with every block blank: what stands outside of them, on its lines."""
    has_boundaries: bool = True
    unread: frozenset[str] = frozenset()
    """Words of a source that could neither be split by boundaries nor be read in full."""
    homeless: tuple[SyntaxFault, ...] = ()
    """Faults of a source that declares nothing that could be read."""
    broken: str | None = None
    """Why the boundary lines could not be read; then the source was split by declaration."""
    aliases: frozenset[str] = frozenset()
    """Other names for types that the text outside of every boundary gives."""


@lru_cache(maxsize=4096)
def read_text(language: str, text: str) -> SourceFacts:
    """Return the facts of ``text``. One text is read once, however often a store is validated."""
    return language_named(language).read(text)


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
    facts = read_text(language, around) if _may_declare(around) else SourceFacts()
    return Split(pieces, facts.declarations, aliases=facts.aliases, around=around)


def _around(source: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return what stands outside of every block; a block is as many empty lines."""
    parts, position = [], 0
    for start, end in spans:
        parts += [source[position:start], "\n" * source.count("\n", start, end)]
        position = end
    parts.append(source[position:])
    return "".join(parts)


def _may_declare(text: str) -> bool:
    return "{" in text or "record" in text or "=" in text


def _by_declaration(source: str, language: str) -> Split:
    """Return a piece per top-level declaration; a fault goes to the one it stands in or before."""
    facts = read_text(language, source)
    lines = source.split("\n")
    outer = [entry for entry in facts.declarations if entry.outer is None]
    pieces = []
    for name in dict.fromkeys(entry.name for entry in outer):
        own = [entry for entry in outer if entry.name == name]
        inside = tuple(_nested_in(facts.declarations, own))
        faults = tuple(fault for fault in facts.faults if _home(fault.line, outer) == name)
        first = min(entry.line for entry in own)
        text = "\n".join(lines[first - 1 : max(entry.end_line for entry in own)])
        own_facts = SourceFacts(inside, faults, (), facts.unread)
        pieces.append(Piece(name, text, 1, own_facts))
    homeless = () if pieces else facts.faults
    return Split(
        tuple(pieces),
        has_boundaries=False,
        unread=facts.unread,
        homeless=homeless,
        aliases=facts.aliases,
    )


def _nested_in(
    declarations: Sequence[Declaration], own: Sequence[Declaration]
) -> Iterator[Declaration]:
    for entry in declarations:
        if any(entry is one or one.line <= entry.line <= one.end_line for one in own):
            yield entry


def _home(line: int, outer: Sequence[Declaration]) -> str:
    """Return the declaration that a line belongs to: around it, after it, or the last one."""
    for entry in outer:
        if line <= entry.end_line:
            return entry.name
    return outer[-1].name if outer else ""
