"""Wire names become C# identifiers that are legal, readable and different from each other."""

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
        ("userID", "UserId"),
        ("HTTPServer", "HttpServer"),
        ("ANNOTATIONV2", "AnnotationV2"),
        ("IPv4", "IPv4"),
        ("first_name", "FirstName"),
        ("2fa", "Value2Fa"),
        ("1.5", "Value1_5"),
        ("", "Empty"),
        ("<=", "LessEqual"),
        ("-name", "MinusName"),
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


@given(st.lists(st.text(max_size=8), unique=True, max_size=30))
def test_names_of_one_type_are_legal_and_differ(wires: list[str]) -> None:
    """Each field of a type has a name of its own, no keyword, and not the type's own."""
    fields = tuple(FieldIR(json_name=wire, type=Scalar(kind="string")) for wire in wires)
    type_ = TypeIR(name="Ship", schema_id="#", kind="object", fields=fields)

    names = member_names(type_)

    assert list(names) == wires
    assert len(set(names.values())) == len(wires)
    assert all(map(is_identifier, names.values()))
    assert not {*names.values()} & {*KEYWORDS, "Ship"}


def test_labels_name_the_values_of_an_enum() -> None:
    """Where the document gives labels, members are called by them; the first keeps the name."""
    labels = ("low", "very high", "Low")
    type_ = TypeIR(
        name="Level", schema_id="#", kind="enum", enum_values=(1, 2, 3), enum_names=labels
    )

    assert member_names(type_) == {1: "Low", 2: "VeryHigh", 3: "Low2"}


@each(
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
def test_type_names(schema: str, expected: str, *, is_root: bool) -> None:
    """A PascalCase name stays as it is; the root's ends in DataObject, once."""
    assert type_name(schema, is_root=is_root) == expected


@given(st.text(), st.booleans())
def test_every_type_name_is_legal(schema: str, is_root: bool) -> None:  # noqa: FBT001 - a strategy
    """Any schema has a legal name that shadows nothing of the base class library."""
    name = type_name(schema, is_root=is_root)

    assert is_type_identifier(name)
    assert name not in RESERVED_TYPE_NAMES
    assert not is_root or name.endswith("DataObject")


def test_values_that_no_enum_member_can_stand_for() -> None:
    """System.Text.Json refuses an enum with a member of such a name, whatever is read."""
    language = find_language("csharp")

    assert not any(map(language.has_enum_member, ("", " a", "a\n", "\u00a0a")))
    assert all(map(language.has_enum_member, ("a b", "0", "é", "\u200b")))
