"""What docs/languages.md says of C# is true: what is right is accepted, the rest refused."""

from typing import Any

from spelling_tables import TYPE, expression, spellings, tables, verdicts
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
MORE = {
    "string, byte": ("`byte[]`, `string`", "`List<byte>`"),
    "string, date": ("`DateOnly`, `DateTime`, `string`", "`DateTimeOffset`"),
    "integer, int64": ("`long`", "`int`, `ulong`"),
    "integer, uint8": ("`byte`, `short`, `int`, `long`", "`sbyte`"),
    "number, double": ("`double`", "`decimal`"),
    "array of integer, uint8": ("`IReadOnlyList<byte>`, `int[]`", "`byte[]`"),
    "array of array of number": ("`IReadOnlyList<IReadOnlyList<double>>`", "`double[]`"),
}
"""What the table of types has no room for: right, and WRONG_TYPE."""
ROWS = {row[TYPE]: (row["right"], row["WRONG_TYPE"]) for row in tables("C#")[0]} | MORE


def codes(field: dict[str, Any], spelled: str) -> set[str]:
    """Return what is said about a property of a type that is spelled so."""
    types: list[dict[str, Any]] = [
        {"name": name, "schema_id": name, "kind": "object", "fields": fields}
        for name, fields in (("T", [field]), ("Shape", []), ("Colour", []))
    ]
    ir = {"endpoint": {"method": "GET", "path": "/"}, "language": "csharp", "types": types}
    source = (
        f'class T {{ [JsonPropertyName("x")] public {spelled} X {{ get; set; }} }}\n'
        "class Shape { }\nclass Colour { }\n"
    )
    return {issue.code for issue in validate_generated_code(source, ir).issues}


@each("words", ROWS)
@each("case", CASES)
def test_the_table_of_types(words: str, case: str) -> None:
    """The first spelling is what prompts ask for, others are as right; the mark says null."""
    flags, mark = CASES[case]
    data = {"json_name": "x", "type": expression(words), **flags}
    right, wrong = map(spellings, ROWS[words])
    is_free = words == "any" and case != "optional"

    assert find_language("csharp").spell(FieldIR.model_validate(data)) == right[0] + mark
    for spelled in right:
        assert codes(data, spelled + mark) == set(), spelled
    for spelled in wrong:
        assert codes(data, spelled + mark) == {"WRONG_TYPE"}, spelled
    other = codes(data, right[0] + ("" if mark else "?"))
    assert other == (set() if is_free else {"NULLABILITY"})


@each(
    ("constraints", "expected"),
    [
        ({}, "long?"),
        ({"minimum": 0, "maximum": 100}, "int?"),
        ({"minimum": -(2**31), "maximum": 2**31 - 1}, "int?"),
        ({"minimum": 0, "maximum": 2**31}, "long?"),
        ({"minimum": 1, "exclusiveMaximum": 10}, "int?"),
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


# -- the tables of what the serializer reads -----------------------------------------------------


def told(code: str, *, values: tuple[str | int, ...] = ()) -> set[str]:
    """Return what is said about a type ``T`` of one optional string, or an enum ``E``."""
    field = {"json_name": "x", "type": {"kind": "string"}}
    type_: dict[str, Any] = {"name": "T", "schema_id": "T", "kind": "object", "fields": [field]}
    if values:
        type_ = {"name": "E", "schema_id": "E", "kind": "enum", "enum_values": values}
    ir = {"endpoint": {"method": "GET", "path": "/"}, "language": "csharp", "types": [type_]}
    return {issue.code for issue in validate_generated_code(code, ir).issues}


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
    more = {
        **dict.fromkeys(unread, "MISSING_FIELD"),
        converter.format("JsonStringEnumConverter"): "WRONG_TYPE",
        converter.format("Ghost"): "UNDECLARED_TYPE",
        "public string? X { get; set; } [JsonIgnore] public string? Y => X;": "right",
        "public string? X { get; set; } public string? Y => X;": "PHANTOM_FIELD",
    }
    for code, expected in verdicts("C#", "member, for an optional string", more).items():
        assert told(f"public class T {{ {wire}{code} }}") == expected, code
    assert told("public class T { public string? x { get; set; } }") == set()
    for word in ("[Required] public", "[JsonRequired] public", "public required"):
        assert told(f"public class T {{ {word} string? x {{ get; set; }} }}") == {"NULLABILITY"}


def test_the_table_of_declarations() -> None:
    """A declaration that the serializer can create is right."""
    member = '[JsonPropertyName("x")] public string? X { get; init; }'
    disallow = "[JsonUnmappedMemberHandling(JsonUnmappedMemberHandling.Disallow)]"
    more = {
        "public interface T": "MISSING_CLASS",
        f"{disallow} public class T": "WRONG_TYPE",
        '[JsonDerivedType(typeof(T), "t")] public abstract class T': "right",
        "[JsonDerivedType(typeof(T))] public abstract class T": "MISSING_CLASS",
    }
    for code, expected in verdicts("C#", "declaration of `T`", more).items():
        assert told(f"{code}\n{{\n{member}\n}}") == expected, code


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
    for code, expected in verdicts("C#", "member of the value", {}).items():
        assert told(f"{converter} public enum E {{ {code} }}", values=("a-b",)) == expected, code


def test_what_is_legal_and_refused() -> None:
    """Aliases are not followed, and nobody asks a converter what it reads."""
    text = "using Text = System.String; class T { public Text? x { get; set; } }"
    snake = "[JsonConverter(typeof(Snake))] enum E { BigShip }"

    assert "WRONG_TYPE" in told(text)
    assert "ENUM_MEMBER" in told(snake, values=("big_ship",))
