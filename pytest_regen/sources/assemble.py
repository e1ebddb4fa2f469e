"""Pages to a type, types to a source file, and which page each line came from."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_regen.errors import SourceError, UsageError
from pytest_regen.languages import DEFAULT_LANGUAGE, find_language
from pytest_regen.languages.base import Language, StitchedType
from pytest_regen.regions.markers import DEFAULT_TAG
from pytest_regen.sources.boundaries import Block, blocks, is_boundary_free, wrap_type_block


@dataclass(frozen=True, slots=True)
class Origin:
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
    stitched: Mapping[str, StitchedType]

    @classmethod
    def of(
        cls, source: str, stitched: Mapping[str, StitchedType], *, tag: str | None = None
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

    def at(self, line: int) -> Origin | None:
        """Return where line ``line`` (counted from 1) comes from; ``None`` outside of blocks."""
        index = bisect_right(self.blocks, line, key=lambda block: block.first_line) - 1
        if index < 0 or line > self.blocks[index].last_line:
            return None
        block = self.blocks[index]
        inside = line - block.first_line + 1
        pages = self.stitched.get(block.name)
        if pages is None:
            return Origin(block.name, inside)
        return Origin(
            block.name, inside, pages.line_pages[inside - 1], pages.page_lines[inside - 1]
        )


def same_leaves(a: str, b: str, *, language: str | Language = DEFAULT_LANGUAGE) -> bool:
    """Return whether two sources differ in white space and line ends alone.

    Comments count: changing one is an edit by hand. White space inside a string counts too.

    Args:
        a: one source.
        b: the other.
        language: the target language or its name.
    """
    if a == b:
        return True
    speaks = find_language(language)
    return speaks.leaves(a) == speaks.leaves(b)


def assemble(
    types: Sequence[tuple[str, str]],
    language: str | Language = DEFAULT_LANGUAGE,
    *,
    namespace: str | None = None,
    profile: str = "default",
    header: str | None = None,
    tag: str = DEFAULT_TAG,
) -> str:
    """Return one source file of all ``types``, in their order.

    Exact: ``extract_type_block`` returns each text byte for byte, whatever it holds.

    Args:
        types: pairs of the name a type is declared as, and its code.
        language: a target language or its name.
        namespace: for the header; ``None`` or "" for none.
        profile: for the header.
        header: the text before the first block, instead of the language's own; "" for none.
        tag: the word in the boundaries.

    Returns:
        The file's text, ending in one line end.

    Raises:
        UsageError: two types have one name, or a name, the namespace or the profile is no good.
        SourceError: the header holds a boundary line.
    """
    speaks = find_language(language)
    if header is None:
        header = speaks.header(namespace=namespace or "", profile=profile)
    _check(types, header)
    parts = [header.rstrip("\n")] if header.strip("\n") else []
    parts += [wrap_type_block(name, code, tag=tag, comment=speaks.comment) for name, code in types]
    return "\n\n".join(parts) + "\n"


assemble_cs = assemble
"""Another name for ``assemble``."""


def stitch(
    outputs: Sequence[str], *, name: str, is_enum: bool, language: str | Language = DEFAULT_LANGUAGE
) -> StitchedType:
    """Return the pages of one type as one declaration.

    Args:
        outputs: code of the pages, page 1 first.
        name: the name the type is declared as.
        is_enum: whether pages hold enum values, not members.
        language: a target language or its name.
    """
    return find_language(language).stitch(outputs, name=name, is_enum=is_enum)


def stitch_and_assemble(
    all_type_pages: Sequence[tuple[str, bool, Sequence[str]]],
    language: str | Language = DEFAULT_LANGUAGE,
    *,
    namespace: str | None = None,
    profile: str = "default",
    header: str | None = None,
    tag: str = DEFAULT_TAG,
) -> str:
    """Return one source file of all types, each given by its pages.

    Args:
        all_type_pages: for each type its name, whether it is the root, and its pages' code. What
            kind of type it is, page 1 tells.
        language: a target language or its name.
        namespace: see ``assemble``.
        profile: see ``assemble``.
        header: see ``assemble``.
        tag: see ``assemble``.

    Raises:
        UsageError: see ``assemble``.
        SourceError: see ``assemble``.
    """
    speaks = find_language(language)
    # Whether the members are enum values, page 1 tells by itself.
    types = [
        (name, speaks.stitch(outputs, name=name, is_enum=False).text)
        for name, _, outputs in all_type_pages
    ]
    return assemble(types, language, namespace=namespace, profile=profile, header=header, tag=tag)


def _check(types: Sequence[tuple[str, str]], header: str) -> None:
    seen: set[str] = set()
    for name, _ in types:
        if name in seen:
            raise UsageError(
                f"two types are called {name!r}",
                why="type names are unique in a source; blocks are found by them",
                hint="rename one of the types",
            )
        seen.add(name)
    if not is_boundary_free(header):
        raise SourceError(
            "the header holds a line that reads as a boundary",
            why="a boundary outside a block would be taken for the start or end of one",
            hint="remove that line from the header",
        )
