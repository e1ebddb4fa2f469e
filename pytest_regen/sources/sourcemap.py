"""From a line of the assembled file back to the type, the page, and the page's own line."""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

from pytest_regen.languages import language_named
from pytest_regen.languages.base import Language, Stitched
from pytest_regen.sources.boundaries import Block, blocks

__all__ = ["Place", "SourceMap", "same_leaves"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a line of the file comes from."""

    type_name: str
    block_line: int
    """Line inside the type's block, counted from 1."""
    page: int | None = None
    """``None`` where the block is not what its pages give, e.g. after an edit by hand."""
    line: int | None = None
    """Line of that page's output, counted from 1."""


@dataclass(frozen=True, slots=True)
class SourceMap:
    """What each line of an assembled source comes from."""

    blocks: tuple[Block, ...]
    stitched: Mapping[str, Stitched]

    @classmethod
    def of(
        cls, source: str, stitched: Mapping[str, Stitched], *, tag: str | None = None
    ) -> "SourceMap":
        """Return the map of an assembled source.

        Args:
            source: the file's text.
            stitched: each type's pages, joined; types may be left out.
            tag: see ``blocks``.

        Raises:
            BoundaryError: see ``blocks``.
        """
        found = blocks(source, tag=tag)
        same = {
            block.name: stitched[block.name]
            for block in found
            if block.name in stitched and stitched[block.name].text == block.text
        }
        return cls(found, same)

    def at(self, line: int) -> Place | None:
        """Return where line ``line`` (counted from 1) comes from; ``None`` outside of blocks."""
        index = bisect_right(self.blocks, line, key=lambda block: block.first_line) - 1
        if index < 0 or line > self.blocks[index].last_line:
            return None
        block = self.blocks[index]
        inside = line - block.first_line + 1
        pages = self.stitched.get(block.name)
        if pages is None:
            return Place(block.name, inside)
        return Place(block.name, inside, pages.line_pages[inside - 1], pages.page_lines[inside - 1])


def same_leaves(a: str, b: str, *, language: str | Language = "csharp") -> bool:
    """Return whether two sources differ in white space and line ends alone.

    Comments count: changing one is an edit by hand. White space inside a string counts too.

    Args:
        a: one source.
        b: the other.
        language: the target language or its name.
    """
    if a == b:
        return True
    speaks = language_named(language) if isinstance(language, str) else language
    return speaks.leaves(a) == speaks.leaves(b)
