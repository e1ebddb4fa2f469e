"""Boundaries: exact inverses on every text, blocks apart, clear errors after hand edits."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_regen.errors import BoundaryError, MissingBlockError, UsageError
from pytest_regen.sources import (
    MARKER_BEGIN,
    MARKER_END,
    assemble,
    blocks,
    extract_type_block,
    list_type_names,
    replace_type_block,
    wrap_type_block,
)

LOOKALIKES = st.sampled_from(
    (
        "// [REGEN:END A]",
        "// [REGEN:BEGIN A]",
        "// [REGEN:END A #1]",
        "  // [REGEN:BEGIN B #2]\t",
        "# [SCHMITH:END B]",
        "-- [REGEN:END A]",
        "<!-- [REGEN:BEGIN A] -->",
        "/* [REGEN:END A #1] */",
        "// [OTHER:END A]",
        "//[REGEN:BEGIN :END #1]",
        "\ufeff// [REGEN:END B]",
        "// END_FIELDS",
        "```",
        "",
        "class A { }",
    )
)
LINES = st.lists(LOOKALIKES | st.text(max_size=8), max_size=8)
TEXTS = st.builds(lambda lines, end: end.join(lines), LINES, st.sampled_from(("\n", "\r\n", "\r")))
TYPES = st.dictionaries(st.sampled_from("ABCDE"), TEXTS, max_size=4).map(lambda d: list(d.items()))
TAGS = st.sampled_from(("REGEN", "SCHMITH"))


@given(TYPES, TAGS, st.sampled_from(("", "// mine\n", "using X;\r\n\r\n")))
def test_every_text_comes_back_as_it_was(
    types: list[tuple[str, str]], tag: str, header: str
) -> None:
    """Assembling and extracting are inverses for every text, lookalikes of boundaries included."""
    source = assemble(types, header=header, tag=tag)
    assert list_type_names(source) == [name for name, _ in types]
    assert [(name, extract_type_block(source, name)) for name, _ in types] == types
    assert source.endswith("\n")


@given(TYPES, TEXTS, st.data())
def test_replacing_equals_assembling_anew(
    types: list[tuple[str, str]], text: str, data: st.DataObject
) -> None:
    """A replaced block gives the file that the new text would have given; nothing else moves."""
    assume(types)
    name = data.draw(st.sampled_from([name for name, _ in types]))
    changed = [(other, text if other == name else code) for other, code in types]
    assert replace_type_block(assemble(types), name, text) == assemble(changed)


def test_plain_text_has_plain_boundaries() -> None:
    """Without a lookalike in the text, a block is what the documentation shows."""
    wrapped = wrap_type_block("Project", "public class Project\n{\n}")
    begin, end = MARKER_BEGIN.format(name="Project"), MARKER_END.format(name="Project")
    assert wrapped == f"{begin}\npublic class Project\n{{\n}}\n{end}"


def test_an_absent_type_is_none_or_an_error_that_lists_names() -> None:
    """Extracting tells absence by None; replacing raises, also as a ValueError."""
    source = assemble([("A", "class A { }"), ("B", "class B { }")])
    assert extract_type_block(source, "C") is None
    with pytest.raises(MissingBlockError, match="A, B") as caught:
        replace_type_block(source, "C", "")
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("source", "problem", "line"),
    [
        ("// [REGEN:BEGIN A]\nclass A { }\n", "unclosed", 1),
        ("class A { }\n// [REGEN:END A]\n", "unopened", 2),
        ("// [REGEN:BEGIN A]\n// [REGEN:END B]\n// [REGEN:END A]\n", "nested", 2),
        ("// [REGEN:BEGIN A]\n// [REGEN:END A]\n" * 2, "duplicate", 3),
        ("// [REGEN:BEGIN A]\n// [SCHMITH:END A]\n", "nested", 2),
    ],
)
def test_boundaries_broken_by_hand_are_named(source: str, problem: str, line: int) -> None:
    """Boundaries that do not pair up are an error with the line, never a guess."""
    for read in (blocks, list_type_names, lambda text: extract_type_block(text, "A")):
        with pytest.raises(BoundaryError, match=f"line {line}") as caught:
            read(source)
        assert (caught.value.problem, caught.value.line) == (problem, line)


def test_boundaries_may_be_indented_and_spaced() -> None:
    """A formatter may move boundary lines; they are still read, and kept as they stand."""
    source = "namespace N {\n\t//  [REGEN:BEGIN A]  \n\tclass A { }\n\t//[REGEN:END A]\n}\n"
    assert extract_type_block(source, "A") == "\tclass A { }"
    replaced = replace_type_block(source, "A", "class A;")
    assert replaced == source.replace("\tclass A { }", "class A;")


def test_a_tag_of_ones_own_is_read_where_it_is_named() -> None:
    """Another tag is written and read on demand; without it, its lines are ordinary comments."""
    source = assemble([("A", "x")], tag="ACME")
    assert list_type_names(source) == []
    assert extract_type_block(source, "A", tag="ACME") == "x"


@pytest.mark.parametrize("name", ["", "A B", "A]", "A\n"])
def test_a_name_that_cannot_stand_in_a_boundary_is_refused(name: str) -> None:
    """Wrapping under such a name would write a file that cannot be read back."""
    with pytest.raises(UsageError):
        wrap_type_block(name, "")
    with pytest.raises(UsageError):
        wrap_type_block("A", "", tag=f"{name}:")


def test_names_are_unique_in_an_assembly() -> None:
    """Two types of one name could not be told apart."""
    with pytest.raises(UsageError, match="'A'"):
        assemble([("A", "x"), ("A", "y")])
