"""The table of docs/csharp.md is true: every cell is accepted, every refusal is refused."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tables import each

from pytest_regen.documents.ir import FieldIR, Scalar
from pytest_regen.languages import find_language
from pytest_regen.validation import validate_generated_code

DOCUMENT = Path(__file__).parents[2] / "docs" / "csharp.md"
CASES: dict[str, tuple[dict[str, bool], str]] = {
    "required, never null": ({"required": True}, ""),
    "required, may be null": ({"required": True, "nullable": True}, "?"),
    "optional": ({}, "?"),
}
"""What a field says of null and absence, and the mark that its type then has."""


def rows(heading: str = "type in `ir.json`") -> list[dict[str, str]]:
    """Return the rows of the table whose first heading begins so, by its headings."""
    text = DOCUMENT.read_text("utf-8")
    table = text[text.index(f"| {heading}") :].split("\n\n", 1)[0]
    head, _, *lines = (
        [cell.strip() for cell in line[1:-1].split("|")] for line in table.splitlines()
    )
    return [dict(zip(head, cells, strict=True)) for cells in lines]


def expression(words: str) -> dict[str, Any]:
    """Return the type expression that the first cell of a row describes."""
    if words.startswith(("array of ", "map of ")):
        kind, inner = words.split(" of ", 1)
        return {"kind": kind, "items" if kind == "array" else "values": expression(inner)}
    if words == "a type of the store":
        return {"kind": "ref", "name": "Shape"}
    kind, _, form = words.partition(", ")
    return {"kind": kind, "format": form.replace("anything else", "hostname") or None}


def spellings(cell: str) -> list[str]:
    """Return the code words of a cell."""
    return re.findall(r"`([^`]+)`", cell)


ROWS = rows()
ACCEPTED = [
    pytest.param(row["type in `ir.json`"], case, spelled + CASES[case][1])
    for row in ROWS
    for case in CASES
    for spelled in spellings(row["accepted"])
]
REFUSED = [
    pytest.param(row["type in `ir.json`"], spelled, id=f"{row['type in `ir.json`']}-{spelled}")
    for row in ROWS
    for spelled in spellings(row["refused"])
]


def codes(field: dict[str, Any], spelled: str) -> set[str]:
    """Return what is said about a property of a type that is spelled so."""
    named: list[dict[str, Any]] = [
        {"name": name, "schema_id": name, "kind": "object", "fields": []}
        for name in ("Shape", "Colour")
    ]
    root = {"name": "T", "schema_id": "T", "kind": "object", "fields": [field]}
    ir = {
        "endpoint": {"method": "GET", "path": "/"},
        "language": "csharp",
        "types": [root, *named],
    }
    source = (
        f'class T {{ [JsonPropertyName("x")] public {spelled} X {{ get; set; }} }}\n'
        "class Shape { }\nclass Colour { }\n"
    )
    return {issue.code for issue in validate_generated_code(source, ir).issues}


def test_the_table_is_there() -> None:
    """The documentation holds a row for each kind of type, with all cases."""
    kinds = {row["type in `ir.json`"].partition(",")[0] for row in ROWS}

    assert {"string", "integer", "number", "boolean", "any", "array of string"} <= kinds
    assert all(spellings(row["accepted"]) for row in ROWS)


@each(("words", "case", "spelled"), ACCEPTED)
def test_an_accepted_spelling_is_clean(words: str, case: str, spelled: str) -> None:
    """What the table accepts gives no issue."""
    field = {"json_name": "x", "type": expression(words), **CASES[case][0]}

    assert codes(field, spelled) == set()


@each("words", [row["type in `ir.json`"] for row in ROWS])
@each("case", CASES)
def test_the_first_spelling_is_what_prompts_ask_for(words: str, case: str) -> None:
    """Prompts and table agree."""
    row = next(row for row in ROWS if row["type in `ir.json`"] == words)
    flags, mark = CASES[case]
    field = FieldIR.model_validate({"json_name": "x", "type": expression(words), **flags})

    assert find_language("csharp").spell(field) == spellings(row["accepted"])[0] + mark


@each(("words", "spelled"), REFUSED)
def test_a_refused_spelling_is_a_wrong_type(words: str, spelled: str) -> None:
    """What the table refuses is WRONG_TYPE, whatever the nullability."""
    field = {"json_name": "x", "type": expression(words), "required": True}

    assert codes(field, spelled) == {"WRONG_TYPE"}


@each("words", [row["type in `ir.json`"] for row in ROWS])
@each("case", CASES)
def test_the_question_mark_decides(words: str, case: str) -> None:
    """The first spelling with the other nullability is NULLABILITY, but for required any."""
    row = next(row for row in ROWS if row["type in `ir.json`"] == words)
    flags, mark = CASES[case]
    other = spellings(row["accepted"])[0] + ("" if mark else "?")
    field = {"json_name": "x", "type": expression(words), **flags}

    is_free = words == "any" and case != "optional"
    assert codes(field, other) == (set() if is_free else {"NULLABILITY"})


@pytest.mark.parametrize(
    ("constraints", "expected"),
    [
        ({}, "long?"),
        ({"minimum": 0}, "long?"),
        ({"minimum": 0, "maximum": 100}, "int?"),
        ({"minimum": -(2**31), "maximum": 2**31 - 1}, "int?"),
        ({"minimum": 0, "maximum": 2**31}, "long?"),
        ({"minimum": 1, "exclusiveMaximum": 10}, "int?"),
        ({"minimum": 1, "maximum": 10, "exclusiveMaximum": True}, "int?"),
        ({"minimum": 1, "exclusiveMaximum": True}, "long?"),
        ({"minimum": "0", "maximum": float("inf")}, "long?"),
    ],
)
def test_an_integer_without_a_format_is_long(constraints: dict[str, Any], expected: str) -> None:
    """Only bounds that fit 32 bits make it ``int``; both are accepted all the same."""
    field = FieldIR(json_name="x", type=Scalar(kind="integer"), constraints=constraints)
    bounded = {"json_name": "x", "type": {"kind": "integer"}, "constraints": constraints}

    assert find_language("csharp").spell(field) == expected
    assert codes(bounded, "int?") == codes(bounded, "long?") == set()


def test_bounds_change_no_integer_with_a_format() -> None:
    """The format decides."""
    field = FieldIR(
        json_name="x",
        type=Scalar(kind="integer", format="int64"),
        required=True,
        constraints={"minimum": 0, "maximum": 1},
    )

    assert find_language("csharp").spell(field) == "long"


# -- the tables of what the serializer reads -----------------------------------------------------


def told(code: str, *, values: tuple[str | int, ...] = ()) -> set[str]:
    """Return what is said about a type ``T`` of one optional string, or an enum ``E``."""
    field = {"json_name": "x", "type": {"kind": "string"}}
    type_: dict[str, Any] = {"name": "T", "schema_id": "T", "kind": "object", "fields": [field]}
    if values:
        type_ = {"name": "E", "schema_id": "E", "kind": "enum", "enum_values": values}
    ir = {"endpoint": {"method": "GET", "path": "/"}, "language": "csharp", "types": [type_]}
    return {issue.code for issue in validate_generated_code(code, ir).issues}


def check_table(heading: str, write: Callable[[str], str], **options: Any) -> None:
    """Assert that each row of a table is told as its second column says."""
    found = {}
    for row in rows(heading):
        first, says = row.values()
        (code,) = spellings(first)
        said = told(write(code), **options)
        if said != ({says.partition(",")[0]} - {"right"}):
            found[code] = said
    assert not found


def test_the_table_of_members() -> None:
    """What the serializer reads is right, all else has the code that the table names."""
    wire = '[JsonPropertyName("x")] '
    check_table("member, for an optional string", lambda code: f"public class T {{ {wire}{code} }}")
    assert told("public class T { public string? x { get; set; } }") == set()
    for word in ("[Required] public", "[JsonRequired] public", "public required"):
        assert told(f"public class T {{ {word} string? x {{ get; set; }} }}") == {"NULLABILITY"}


POPULATED = "[JsonObjectCreationHandling(JsonObjectCreationHandling.Populate)]"


@each(
    ("spelled", "expected"),
    [
        (f"{POPULATED} public List<string> X {{ get; }} = new();", set()),
        (f"{POPULATED} public IList<string> X {{ get; }} = [];", set()),
        (f"{POPULATED} public List<string> X {{ get; }}", {"MISSING_FIELD"}),
        (f"{POPULATED} public string[] X {{ get; }} = [];", {"MISSING_FIELD"}),
        ("public List<string> X { get; } = new();", {"MISSING_FIELD"}),
        ("public List<string> X { get; set; } object ICloneable.X => X;", set()),
        ('public List<string> X { get; set; } [JsonIgnore] public string Y => $"{{id}}";', set()),
        ('public List<string> X { get; set; } public string Y => $"{{id}}";', {"PHANTOM_FIELD"}),
    ],
)
def test_members_that_the_table_has_no_room_for(spelled: str, expected: set[str]) -> None:
    """A collection may be filled where it stands; an interface's own property is no member."""
    items = {"kind": "array", "items": {"kind": "string"}}
    field = {"json_name": "x", "type": items, "required": True}
    type_ = {"name": "T", "schema_id": "T", "kind": "object", "fields": [field]}
    ir = {"endpoint": {"method": "GET", "path": "/"}, "language": "csharp", "types": [type_]}
    code = f'public class T : ICloneable {{ [JsonPropertyName("x")] {spelled} }}'

    assert {issue.code for issue in validate_generated_code(code, ir).issues} == expected


@each(
    ("attribute", "expected"),
    [
        ('[JsonDerivedType(typeof(Tug), "tug")]', set()),
        ("[JsonDerivedType(typeof(Tug), typeDiscriminator: 1)]", set()),
        ("[JsonDerivedType(typeof(Tug))]", {"MISSING_CLASS"}),
        ("", {"MISSING_CLASS"}),
    ],
)
def test_an_abstract_class_is_created_as_what_json_names(
    attribute: str, expected: set[str]
) -> None:
    """Where it says what each name stands for."""
    code = f"{attribute} public abstract class Ship {{ protected Ship() {{ }} }}"
    (ship,) = find_language("csharp").read(code).declarations

    assert {fault.code for fault in ship.faults} == expected


def test_the_table_of_declarations() -> None:
    """A declaration that the serializer can create is right."""
    member = '[JsonPropertyName("x")] public string? X { get; init; }'
    check_table("declaration of `T`", lambda code: f"{code}\n{{\n{member}\n}}")


def test_the_tables_of_enums() -> None:
    """Converters and members by which the values are read."""
    named = '[JsonStringEnumMemberName("a-b")] AB'
    check_table(
        "before `public enum E`, of the strings",
        lambda code: f"{code} public enum E {{ {named} }}",
        values=("a-b",),
    )
    converter = "[JsonConverter(typeof(JsonStringEnumConverter))]"
    assert told("[Flags] public enum E { A = 1 }", values=(1,)) == set()
    assert told(f"{converter} public enum E {{ A = 1 }}", values=(1,)) == {"ENUM_MEMBER"}
    check_table(
        "member of the value",
        lambda code: f"{converter} public enum E {{ {code} }}",
        values=("a-b",),
    )


WIRE = "using Wire = JsonPropertyNameAttribute;"


@each(
    ("code", "values", "expected"),
    [
        ("using Text = System.String; class T { public Text? x { get; set; } }", (), "WRONG_TYPE"),
        (f'{WIRE} class T {{ [Wire("x")] public string? X {{ get; set; }} }}', (), "MISSING_FIELD"),
        ("[JsonConverter(typeof(Snake))] enum E { BigShip }", ("big_ship",), "ENUM_MEMBER"),
    ],
)
def test_what_is_legal_and_refused(code: str, values: tuple[str, ...], expected: str) -> None:
    """Aliases are not followed, and nobody asks a converter what it reads."""
    assert expected in told(code, values=values)


def test_a_type_that_exists_nowhere_is_told_at_its_field() -> None:
    """Even where the property has no name for JSON but its own."""
    field = {"json_name": "x", "type": {"kind": "string"}}
    type_ = {"name": "T", "schema_id": "T", "kind": "object", "fields": [field]}
    ir = {"endpoint": {"method": "GET", "path": "/"}, "language": "csharp", "types": [type_]}
    code = "public class T { public Ghost? x { get; set; } }"

    issues = validate_generated_code(code, ir).issues

    assert ("UNDECLARED_TYPE", "x") in {(issue.code, issue.field) for issue in issues}
