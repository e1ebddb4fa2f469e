"""The assembled file: header, order, and what counts as the same source."""

import pytest

from pytest_regen.errors import UsageError
from pytest_regen.languages import find_language
from pytest_regen.sources import (
    assemble,
    assemble_cs,
    list_type_names,
    same_leaves,
    stitch_and_assemble,
)

A = "public class A\n{\n}"
B = "public enum B { X }"


def test_the_header_stands_outside_of_boundaries() -> None:
    """Nullable context, usings and namespace come first; the file ends in one line end."""
    source = assemble([("A", A), ("B", B)], namespace="Acme.Projects")
    head, _, blocks = source.partition("\n\n// [REGEN:BEGIN A]\n")
    assert head.startswith("#nullable enable\n")
    assert head.endswith("\n\nnamespace Acme.Projects;")
    for using in ("System", "System.Collections.Generic", "System.Text.Json.Serialization"):
        assert f"\nusing {using};\n" in head
    assert blocks == f"{A}\n// [REGEN:END A]\n\n// [REGEN:BEGIN B]\n{B}\n// [REGEN:END B]\n"


@pytest.mark.parametrize(
    ("namespace", "profile"), [("a b", "default"), ("", "nope"), ("1.x", "default")]
)
def test_what_cannot_stand_in_a_header_is_refused(namespace: str, profile: str) -> None:
    """A namespace that is no name, or an unknown profile, is the caller's mistake."""
    with pytest.raises(UsageError):
        assemble([("A", A)], namespace=namespace, profile=profile)


def test_a_header_of_ones_own_and_none_at_all() -> None:
    """The header may be given, and "" leaves it out."""
    assert assemble([("A", A)], header="// mine\n").startswith("// mine\n\n// [REGEN:BEGIN A]\n")
    assert assemble_cs([("A", A)], header="").startswith("// [REGEN:BEGIN A]\n")
    assert assemble([], header="") == "\n"


def test_pages_are_stitched_and_assembled_in_order() -> None:
    """Types keep their order; whether they are enums, page 1 tells."""
    pages = [
        ("A", True, [A, "int x;"]),
        ("B", False, ["enum B { X }", "Y"]),
        ("C", False, ["class C;"]),
    ]
    source = stitch_and_assemble(pages)
    assert list_type_names(source) == ["A", "B", "C"]
    facts = find_language("csharp").read(source)
    assert facts.faults == ()
    assert [[each.name for each in type_.members] for type_ in facts.declarations] == [
        ["x"],
        ["X", "Y"],
        [],
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("class A{int x;}", "class A\r\n{\r\n\tint  x ;\r\n}\r\n"),
        ("/* a\n   b */ class A { }", "/* a\n b */\nclass A { }"),
        ("class A { // x\n}", "class A\n{\n    //  x  \n}"),
        ("class A { int x", "class A\n{\nint x\n"),
    ],
)
def test_white_space_and_line_ends_do_not_count(one: str, other: str) -> None:
    """A formatter's work is no edit, in illegal code neither."""
    assert same_leaves(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('string a = " x";', 'string a = "x";'),
        ('string a = @"x\n y";', 'string a = @"x\ny";'),
        ('string a = """\n  x\n  """;', 'string a = """\n   x\n  """;'),
        ("int x; // a", "int x; // b"),
        ("int x;", "int xx;"),
        ("class A { int x ?? ; }", "class A { int x ? ; }"),
        ("#if X\nint a;\n#endif", "#if Y\nint a;\n#endif"),
    ],
)
def test_every_other_difference_counts(one: str, other: str) -> None:
    """Tokens, comments and the inside of strings are what a source is."""
    inside = "class W\n{{\n{}\n}}"
    assert not same_leaves(inside.format(one), inside.format(other))
