"""Wire names become C# identifiers that are legal, readable and different from each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each

from pytest_regen.documents.ir import FieldIR, Scalar, TypeIR
from pytest_regen.languages import find_language
from pytest_regen.languages.csharp.names import (
    KEYWORDS,
    RESERVED_TYPE_NAMES,
    is_identifier,
    is_type_identifier,
    member_name,
    member_names,
    type_name,
)


@each(
    ("wire", "expected"),
    [
        ("isPublished", "IsPublished"),
        ("ID", "Id"),
        ("userID", "UserId"),
        ("HTTPServer", "HttpServer"),
        ("ANNOTATIONV2", "AnnotationV2"),
        ("IPv4", "IPv4"),
        ("first_name", "FirstName"),
        ("$type", "Type"),
        ("2fa", "Value2Fa"),
        ("1.5", "Value1_5"),
        ("", "Empty"),
        ("<=", "LessEqual"),
        ("+1", "Plus1"),
        ("-name", "MinusName"),
        (7, "Value7"),
        (-3, "ValueMinus3"),
        ("名前", "名前"),
        ("👍", "U1F44D"),
        ("ToString", "ToStringValue"),
        ("ship", "ShipValue"),
    ],
)
def test_member_names(wire: str | int, expected: str) -> None:
    """Words keep their order, separators go, acronyms are words."""
    assert member_name(wire, owner="Ship") == expected


@given(st.one_of(st.text(), st.integers()), st.sampled_from(["Ship", "Id", "Value1"]))
def test_every_member_name_is_legal(wire: str | int, owner: str) -> None:
    """Any text or number has a legal name that is neither a keyword nor the type's own."""
    name = member_name(wire, owner=owner)

    assert is_identifier(name)
    assert name not in KEYWORDS
    assert name != owner
    assert len(name) <= 200


@given(st.lists(st.text(max_size=8), unique=True, max_size=30))
def test_names_of_one_type_differ(wires: list[str]) -> None:
    """Each field of a type has a name of its own, the same in every run."""
    type_ = of_fields(*wires)

    names = member_names(type_)

    assert list(names) == wires
    assert len(set(names.values())) == len(wires)
    assert names == member_names(type_)


def test_the_first_of_two_keeps_the_name() -> None:
    """Names that collide are numbered in the order of the document."""
    names = member_names(of_fields("first-name", "first_name", "firstName", "FirstName2"))

    assert list(names.values()) == ["FirstName", "FirstName3", "FirstName4", "FirstName2"]


def test_labels_name_the_values_of_an_enum() -> None:
    """Where the document gives labels, members are called by them."""
    type_ = TypeIR(
        name="Level",
        schema_id="#",
        kind="enum",
        enum_values=(1, 2),
        enum_names=("low", "very high"),
    )

    assert member_names(type_) == {1: "Low", 2: "VeryHigh"}


@pytest.mark.parametrize(
    ("schema", "is_root", "expected"),
    [
        ("Project", False, "Project"),
        ("Project", True, "ProjectDataObject"),
        ("ProjectDataObject", True, "ProjectDataObject"),
        ("project_item", False, "ProjectItem"),
        ("2FASettings", False, "Type2FaSettings"),
        ("Task", False, "TaskModel"),
        ("../../pwned", False, "Pwned"),
    ],
)
def test_type_names(schema: str, is_root: bool, expected: str) -> None:  # noqa: FBT001 - a table
    """A PascalCase name stays as it is; the root's ends in DataObject, once."""
    assert type_name(schema, is_root=is_root) == expected


@given(st.text(), st.booleans())
def test_every_type_name_is_legal(schema: str, is_root: bool) -> None:  # noqa: FBT001 - a strategy
    """Any schema has a legal name that shadows nothing of the base class library."""
    name = type_name(schema, is_root=is_root)

    assert is_type_identifier(name)
    assert name not in RESERVED_TYPE_NAMES
    assert not is_root or name.endswith("DataObject")


@pytest.mark.parametrize("text", ["class", "2a", "a-b", "", "\U0001d4b3"])
def test_illegal_identifiers(text: str) -> None:
    """Keywords and foreign characters are refused."""
    assert not is_identifier(text)


@pytest.mark.parametrize("text", ["@class", "_a", "é", "record"])
def test_legal_identifiers(text: str) -> None:
    """A keyword after @ is a name, and so are contextual words."""
    assert is_identifier(text)


def of_fields(*wires: str) -> TypeIR:
    """Return a type with text fields of these names."""
    fields = tuple(FieldIR(json_name=wire, type=Scalar(kind="string")) for wire in wires)
    return TypeIR(name="Ship", schema_id="#", kind="object", fields=fields)


def test_values_that_no_enum_member_can_stand_for() -> None:
    """System.Text.Json refuses an enum with a member of such a name, whatever is read."""
    language = find_language("csharp")
    for value in ("", " ", " a", "a ", "a\n", "\u00a0a"):
        assert not language.has_enum_member(value), repr(value)
    for value in ("a", "a b", "0", "-", "é", "a,b", "\u200b"):
        assert language.has_enum_member(value), repr(value)
