"""Blocks put into an assembled source and taken out of it; every other byte stays as it is."""

from collections.abc import Sequence

from pytest_regen.errors import MissingBlockError
from pytest_regen.sources.boundaries import DEFAULT_TAG, Block, blocks, wrap_type_block

__all__ = ["insert_type_block", "remove_type_block"]


def insert_type_block(
    source: str, type_name: str, code: str, *, order: Sequence[str] = (), comment: str = "//"
) -> str:
    """Return ``source`` with a new block: after the nearest one that precedes it in ``order``.

    Without such a block it becomes the first; in a source without blocks it stands at the end.

    Args:
        source: an assembled source.
        type_name: the name the source declares; it must not have a block yet.
        code: the text of the block.
        order: all type names in the order of the source.
        comment: what starts a line comment in the language.

    Raises:
        BoundaryError: the boundaries of ``source`` do not hold together.
    """
    found = {block.name: block for block in blocks(source)}
    tag = next((block.tag for block in found.values()), DEFAULT_TAG)
    line_end = "\r\n" if "\r\n" in source else "\n"
    text = wrap_type_block(type_name, code, tag=tag, comment=comment)
    text = text.replace("\r\n", "\n").replace("\n", line_end)
    before = _predecessor(found, type_name, order)
    if before is not None:
        return f"{source[: before.end]}{line_end * 2}{text}{source[before.end :]}"
    if found:
        start = min(block.start for block in found.values())
        return f"{source[:start]}{text}{line_end * 2}{source[start:]}"
    head = source.rstrip()
    return f"{head}{line_end * 2 if head else ''}{text}{line_end}"


def _predecessor(found: dict[str, Block], type_name: str, order: Sequence[str]) -> Block | None:
    names = list(order)
    earlier = names[: names.index(type_name)] if type_name in names else list(found)
    return next((found[name] for name in reversed(earlier) if name in found), None)


def remove_type_block(source: str, type_name: str) -> str:
    """Return ``source`` without a block and the blank line before it.

    Raises:
        MissingBlockError: there is no such block.
        BoundaryError: the boundaries of ``source`` do not hold together.
    """
    block = next((block for block in blocks(source) if block.name == type_name), None)
    if block is None:
        raise MissingBlockError(
            f"the source has no block for {type_name!r}", hint="list them with list_type_names"
        )
    line_end = "\r\n" if source.startswith("\r\n", block.end) else "\n"
    before, after = source[: block.start], source[block.end :].removeprefix(line_end)
    if before.endswith(line_end * 2) and (not after or after.startswith(line_end)):
        before = before.removesuffix(line_end)
    return before + after
