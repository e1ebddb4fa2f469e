"""What docs/languages.md says of C# is true: what is right is accepted, the rest refused."""

from collections.abc import Callable
from typing import Any

import pytest
from spelling_tables import TYPE, expression, spellings, tables
from tables import each

from pytest_regen.documents.ir import FieldIR, Scalar
from pytest_regen.languages import find_language
from pytest_regen.validation import validate_generated_code

CASES: dict[str, tuple[dict[str, bool], str]] = {
    "required, never null": ({"required": True}, ""),
    "required, may be null": ({"required": True, "nullable": True}, "?"),
    "optional": ({}, "?"),
}
"""What a field says of null and absence, and the mark that its type then has."""


_ARRAYS = "`IList<string>`, `IEnumerable<string>`, `ICollection<string>`, `List<string?>`"
MORE = {
    "string": ("`global::System.String`", "`int`, `string[]`"),
    "string, date-time": ("", "`long`"),
    "string, byte": ("`byte[]`, `string`", "`List<byte>`"),
    "string, date": ("`DateOnly`, `DateTime`, `string`", "`DateTimeOffset`"),
    "integer": ("`Int32`", "`string`"),
    "integer, int32": ("`int`, `long`", "`short`"),
    "integer, int64": ("`long`", "`int`, `ulong`"),
    "integer, uint8": ("`byte`, `short`, `int`, `long`", "`sbyte`"),
    "number": ("", "`string`"),
    "number, double": ("`double`", "`decimal`"),
    "boolean": ("`Boolean`", "`int`"),
    "a type of the store": ("", "`string`"),
    "array of string": (
        f"`ImmutableArray<string>`, `ImmutableList<string>`, {_ARRAYS}",
        "`string`, `string[,]`",
    ),
    "array of integer, uint8": ("`IReadOnlyList<byte>`, `int[]`", "`byte[]`"),
    "array of array of number": (
        "`IReadOnlyList<IReadOnlyList<double>>`, `double[][]`",
        "`double[]`",
    ),
    "map of integer": ("`IDictionary<string, long>`", "`List<int>`"),
    "any": ("`dynamic`", ""),
    "string, hostname": ("`string`", ""),
}
"""What the table of types has no room for: right, and WRONG_TYPE."""


def _rows() -> list[dict[str, str]]:
    [table] = tables("C#")
    shown = {row[TYPE]: row for row in table}
    return [
        {TYPE: words, "right": row["right"] + right, "WRONG_TYPE": row["WRONG_TYPE"] + wrong}
        for words in {**shown, **MORE}
        for row in [shown.get(words, {"right": "", "WRONG_TYPE": ""})]
        for right, wrong in [MORE.get(words, ("", ""))]
    ]


ROWS = _rows()
ACCEPTED = [
    pytest.param(row[TYPE], case, spelled + CASES[case][1])
    for row in ROWS
    for case in CASES
    for spelled in spellings(row["right"])
]
REFUSED = [
    pytest.param(row[TYPE], spelled, id=f"{row[TYPE]}-{spelled}")
    for row in ROWS
    for spelled in spellings(row["WRONG_TYPE"])
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
    kinds = {row[TYPE].partition(",")[0] for row in ROWS}

    assert {"string", "integer", "number", "boolean", "any", "array of string"} <= kinds
    assert all(spellings(row["right"]) for row in ROWS)


@each(("words", "case", "spelled"), ACCEPTED)
def test_an_accepted_spelling_is_clean(words: str, case: str, spelled: str) -> None:
    """What the table accepts gives no issue."""
    field = {"json_name": "x", "type": expression(words), **CASES[case][0]}

    assert codes(field, spelled) == set()


@each("words", [row[TYPE] for row in ROWS])
@each("case", CASES)
def test_the_first_spelling_is_what_prompts_ask_for(words: str, case: str) -> None:
    """Prompts and table agree."""
    row = next(row for row in ROWS if row[TYPE] == words)
    flags, mark = CASES[case]
    field = FieldIR.model_validate({"json_name": "x", "type": expression(words), **flags})

    assert find_language("csharp").spell(field) == spellings(row["right"])[0] + mark


@each(("words", "spelled"), REFUSED)
def test_a_refused_spelling_is_a_wrong_type(words: str, spelled: str) -> None:
    """What the table refuses is WRONG_TYPE, whatever the nullability."""
    field = {"json_name": "x", "type": expression(words), "required": True}

    assert codes(field, spelled) == {"WRONG_TYPE"}


@each("words", [row[TYPE] for row in ROWS])
@each("case", CASES)
def test_the_question_mark_decides(words: str, case: str) -> None:
    """The first spelling with the other nullability is NULLABILITY, but for required any."""
    row = next(row for row in ROWS if row[TYPE] == words)
    flags, mark = CASES[case]
    other = spellings(row["right"])[0] + ("" if mark else "?")
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


def check_table(
    heading: str, write: Callable[[str], str], more: dict[str, str], **options: Any
) -> None:
    """Assert that each row of a table, and what it has no room for, is told as it says."""
    [rows] = tables("C#", heading)
    told_of = {spellings(first)[0]: says for first, says in map(dict.values, rows)} | more
    found = {}
    for code, says in told_of.items():
        said = told(write(code), **options)
        if said != ({says.partition(",")[0]} - {"right"}):
            found[code] = said
    assert not found


def test_the_table_of_members() -> None:
    """What the serializer reads is right, all else has the code that the table names."""
    wire = '[JsonPropertyName("x")] '
    unread = (
        "public string? X => null;",
        "public string? X { private get; set; }",
        "string? X { get; set; }",
        "public static string? X { get; set; }",
        "public string? X;",
    )
    converter = "[JsonConverter(typeof({}))] public string? X {{ get; set; }}"
    check_table(
        "member, for an optional string",
        lambda code: f"public class T {{ {wire}{code} }}",
        {
            **dict.fromkeys(unread, "MISSING_FIELD"),
            converter.format("JsonStringEnumConverter"): "WRONG_TYPE",
            converter.format("Ghost"): "UNDECLARED_TYPE",
        },
    )
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
    disallow = "[JsonUnmappedMemberHandling(JsonUnmappedMemberHandling.Disallow)]"
    check_table(
        "declaration of `T`",
        lambda code: f"{code}\n{{\n{member}\n}}",
        {"public interface T": "MISSING_CLASS", f"{disallow} public class T": "WRONG_TYPE"},
    )


def test_the_tables_of_enums() -> None:
    """The converters and members by which the values are read."""
    converter = "[JsonConverter(typeof(JsonStringEnumConverter))]"
    for before, says in {
        converter: set(),
        "[Flags]": {"ENUM_MEMBER"},
        "[JsonConverter(typeof(StringEnumConverter))]": {"ENUM_MEMBER"},
        "[JsonConverter(typeof(Ghost))]": {"UNDECLARED_TYPE"},
    }.items():
        named = '[JsonStringEnumMemberName("a-b")] AB'
        assert told(f"{before} public enum E {{ {named} }}", values=("a-b",)) == says, before
    assert told("[Flags] public enum E { A = 1 }", values=(1,)) == set()
    assert told(f"{converter} public enum E {{ A = 1 }}", values=(1,)) == {"ENUM_MEMBER"}
    check_table(
        "member of the value",
        lambda code: f"{converter} public enum E {{ {code} }}",
        {},
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
