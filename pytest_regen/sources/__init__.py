"""Generated source: out of a reply, from pages to a type, from types to a file, and back."""

from pytest_regen.sources.assemble import (
    assemble,
    assemble_cs,
    same_leaves,
    stitch,
    stitch_and_assemble,
)
from pytest_regen.sources.boundaries import (
    MARKER_BEGIN,
    MARKER_END,
    blocks,
    extract_type_block,
    list_type_names,
    replace_type_block,
    wrap_type_block,
)
from pytest_regen.sources.extract import extract_code

__all__ = [
    "MARKER_BEGIN",
    "MARKER_END",
    "assemble",
    "assemble_cs",
    "blocks",
    "extract_code",
    "extract_type_block",
    "list_type_names",
    "replace_type_block",
    "same_leaves",
    "stitch",
    "stitch_and_assemble",
    "wrap_type_block",
]
