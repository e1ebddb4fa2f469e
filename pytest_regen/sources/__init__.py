"""Generated source: out of a reply, from pages to a type, from types to a file, and back."""

from pytest_regen.sources.assemble import assemble, assemble_cs, stitch, stitch_and_assemble
from pytest_regen.sources.boundaries import (
    DEFAULT_TAG,
    MARKER_BEGIN,
    MARKER_END,
    Block,
    blocks,
    extract_type_block,
    list_type_names,
    replace_type_block,
    wrap_type_block,
)
from pytest_regen.sources.edits import insert_type_block, remove_type_block

__all__ = [
    "DEFAULT_TAG",
    "MARKER_BEGIN",
    "MARKER_END",
    "Block",
    "assemble",
    "assemble_cs",
    "blocks",
    "extract_type_block",
    "insert_type_block",
    "list_type_names",
    "remove_type_block",
    "replace_type_block",
    "stitch",
    "stitch_and_assemble",
    "wrap_type_block",
]
