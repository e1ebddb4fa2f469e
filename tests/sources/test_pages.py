"""Pages of a C# type: what is accepted around members, where they go, and what is a fault."""

import pytest

from pytest_regen.languages import find_language
from pytest_regen.languages.base import StitchedType
from pytest_regen.languages.csharp.pages import unwrap_page
from pytest_regen.sources import stitch

FIRST = "public class Sample\n{\n    public int A { get; set; }\n}"
SECOND = "public int B { get; set; }"


def joined(*outputs: str, is_enum: bool = False, name: str = "Sample") -> StitchedType:
    """Return the pages as one type."""
    return stitch(outputs, name=name, is_enum=is_enum)


def names(text: str, of: str = "Sample") -> list[str]:
    """Return the names of the members of the type ``of``, from legal source."""
    facts = find_language("csharp").read(text)
    assert facts.faults == ()
    (found,) = [each for each in facts.declarations if each.name == of]
    return [member.name for member in found.members]


def test_members_stand_before_the_closing_brace() -> None:
    """The usual case, to the letter: members indented as those of page 1, a blank line between."""
    stitched = joined(FIRST, "/// <summary>B</summary>\n" + SECOND)
    assert stitched.text == (
        "public class Sample\n{\n    public int A { get; set; }\n\n"
        "    /// <summary>B</summary>\n    public int B { get; set; }\n}"
    )
    assert stitched.line_pages == (1, 1, 1, 2, 2, 2, 1)
    assert stitched.page_lines == (1, 2, 3, 1, 1, 2, 4)


@pytest.mark.parametrize("pages", [(FIRST,), (FIRST, SECOND)])
def test_usings_and_namespaces_belong_to_the_header(pages: tuple[str, ...]) -> None:
    """A page that is a whole file is reduced to its types."""
    expected = joined(*pages).text
    for around in (
        "using System;\nnamespace N;\n\n{}",
        "namespace N\n{{\n{}\n}}",
        "{}\n// END_FIELDS",
    ):
        first, *rest = pages
        assert joined(around.format(first), *rest).text == expected


@pytest.mark.parametrize(
    "first",
    [
        "public class Sample { public int A { get; set; } }",
        "public class Sample { public int A { get; set; } // }\n}",
        "public class Sample\n{\n    enum L { X }\n    public int A { get; set; }\n}\nenum K { Z }",
        'class Sample\n{\n    [D("use { here")]\n    public int A { get; set; }\n    // rest: }\n}',
        "class Sample\n{\n    #region r\n    public int A { get; set; }\n    #endregion\n}",
        "public record Sample(int A);",
        "public class Sample(int A) : Base(A);",
        "namespace N { sealed partial class Sample { public int A { get; set; } } }",
    ],
)
def test_page_one_may_be_of_any_shape(first: str) -> None:
    """Members go into the declaration of that name, whatever else the page holds."""
    stitched = joined(first, SECOND, "public int C { get; set; }")
    assert stitched.faults == ()
    assert names(stitched.text)[-3:] in (["A", "B", "C"], ["B", "C"])


@pytest.mark.parametrize(
    ("declared", "name"),
    [
        ("Project", "ProjectDataObject"),
        ("ProjectDataObject", "Project"),
        ("Wrong", "ProjectDataObject"),
    ],
)
def test_page_one_may_spell_the_name_otherwise(declared: str, name: str) -> None:
    """The root's suffix may lack, and an only declaration is the one that is meant."""
    first = FIRST.replace("Sample", declared)
    assert names(joined(first, SECOND, name=name).text, declared) == ["A", "B"]


def test_a_positional_record_gets_a_body() -> None:
    """Properties of later pages stand in braces behind its parameters."""
    first = "public record Sample(\n    int A,\n    int B\n);"
    stitched = joined(first, SECOND, "record Sample\n{\n    int C;\n}")
    assert stitched.text == (
        "public record Sample(\n    int A,\n    int B\n)\n{\n    public int B { get; set; }\n\n"
        "    int C;\n}"
    )
    assert stitched.line_pages == (1, 1, 1, 1, 1, 2, 3, 3, 1)


@pytest.mark.parametrize(
    ("first", "rest"),
    [
        ("enum Sample { A }", ["B", "C"]),
        ("enum Sample\n{\n    A // a\n}", ["B /* b */,", "// c\nC // ,"]),
        ("enum Sample\n{\n    A, // a,\n}", ["enum Sample { B }", '[X(",")]\nC = 5']),
        ("[J] public enum Sample : int\n{\n    A = 1\n    // more to come\n}", ["B", "", "C"]),
        ("enum Sample\n{\n}", ["A, B", "C"]),
        (
            "enum Sample { A }",
            ["// BEGIN_FIELDS\nB,\n// END_FIELDS", "namespace N;\nenum Sample { C }"],
        ),
    ],
)
def test_enum_pages_are_joined_with_the_commas_they_need(first: str, rest: list[str]) -> None:
    """No comma lacks between pages and none is doubled, wherever comments stand."""
    stitched = joined(first, *rest, is_enum=True)
    assert stitched.faults == ()
    assert names(stitched.text) == ["A", "B", "C"]
    assert ",," not in stitched.text


def test_strings_over_several_lines_keep_their_margin() -> None:
    """A page with such a string is not moved by a single blank."""
    page = 'string S { get; } = """\n  text\n  """;\n[D(@"a\n  b\n}")]\nint B { get; set; }'
    assert page in joined(FIRST, page).text


def test_deeper_indentation_is_levelled() -> None:
    """Members that stand too far left or right are moved as one, tabs included."""
    for indent in ("", "\t\t", "            "):
        page = f"{indent}public int B\n{indent}{{\n{indent}  get; set;\n{indent}}}"
        assert "\n    public int B\n    {\n      get; set;\n    }\n}" in joined(FIRST, page).text


@pytest.mark.parametrize(
    ("page", "line", "code"),
    [
        ("public int B { get; set; }\npublic int C { get; set;", 2, "SYNTAX"),
        ("public int B { get; set; }\n}\n\nclass Other\n{\n    int c;", 1, "SYNTAX"),
        ("Here are the remaining members for you.", 1, "ARTIFACT"),
        ("record Sample(int B);", 1, "SYNTAX"),
    ],
)
def test_a_page_illegal_alone_is_a_fault_of_that_page(page: str, line: int, code: str) -> None:
    """The fault names page and line; the text of every page is kept, in order."""
    stitched = joined(FIRST, page, "public int Z { get; set; }")
    (fault,) = stitched.faults
    assert (fault.page, fault.line, fault.code) == (2, line, code)
    assert page in stitched.text
    assert stitched.text.index(page) < stitched.text.index("int Z")


@pytest.mark.parametrize(
    "first", ["public class Sample\n{\n    public int A { get; set; }\n", "int x"]
)
def test_an_illegal_page_one_keeps_everything(first: str) -> None:
    """Without an end to insert before, the members follow; the fault is page 1's."""
    stitched = joined(first, SECOND)
    assert [fault.page for fault in stitched.faults] == [1]
    assert first.strip() in stitched.text
    assert SECOND in stitched.text


def test_a_page_one_without_the_type_is_a_fault() -> None:
    """Two other types and none of that name: nothing is guessed."""
    (fault,) = joined("class B { }\nclass C { }", SECOND).faults
    assert (fault.page, fault.code) == (1, "MISSING_CLASS")


def test_a_page_is_unwrapped_alone() -> None:
    """Members come out of the type, delimiters and namespace around them."""
    inside = "public int B { get; set; }"
    assert unwrap_page(f"// BEGIN_FIELDS\n{inside}\n// END_FIELDS", "fields_only") == inside
    assert unwrap_page(f"namespace N;\nclass P {{\n{inside}\n}}", "fields_only") == inside
    assert unwrap_page("enum P\n{\nA,\nB\n}", "enum_values_only") == "A,\nB"
    assert unwrap_page(f"using System;\n{FIRST}", "full_class") == FIRST
    assert unwrap_page("no code { at all", "fields_only") == "no code { at all"
