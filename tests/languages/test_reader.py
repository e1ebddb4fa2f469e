"""C# is read by its syntax tree: every way to write it, and every fault at its line."""

from hypothesis import given
from hypothesis import strategies as st
from ships import FLAG, SHIP
from tables import each

from pytest_regen.languages import find_language
from pytest_regen.languages.base import Declaration
from pytest_regen.languages.csharp.types import show_type

read = find_language("csharp").read


def only(code: str) -> Declaration:
    """Return the only declaration of legal code."""
    facts = read(code)
    assert not facts.faults
    (declaration,) = facts.declarations
    return declaration


@each(
    ("literal", "expected"),
    [
        ('"id"', "id"),
        ('"a\\"b\\\\c"', 'a"b\\c'),
        ('"\\uD83D\\uDE00"', "\U0001f600"),
        ('@"a""b\\c"', 'a"b\\c'),
        ('"""a"b"""', 'a"b'),
        ('"""\n    id\n    """', "id"),
        ("nameof(Ship.id)", "id"),
    ],
)
def test_string_literals_of_every_form(literal: str, expected: str) -> None:
    """A wire name is what the literal stands for, not how it is written."""
    code = f"class A {{ [JsonPropertyName({literal})] public int X {{ get; set; }} }}"

    assert [member.wire_name for member in only(code).members] == [expected]


def test_constants_name_fields() -> None:
    """A constant of the class may be the name on the wire."""
    code = (
        'class A { private const string P = "id"; private const string Q = P;'
        " [JsonPropertyName(Q)] public int X { get; set; } }"
    )

    assert [member.wire_name for member in only(code).members if member.name == "X"] == ["id"]


@each(
    "attributes",
    [
        '[Required, JsonPropertyName("id")]',
        '[property: JsonPropertyName("id")]',
        '[global::System.Text.Json.Serialization.JsonPropertyNameAttribute("id")]',
        '/* [JsonPropertyName("other")] */ [JsonPropertyName(/* the key */ "id")]',
        '[Description("[JsonPropertyName(\\"other\\")]"), JsonPropertyName("id")]',
    ],
)
def test_attributes_in_every_form(attributes: str) -> None:
    """Combined, qualified, suffixed, targeted and commented attributes say the same."""
    (member,) = only(f"class A {{ {attributes}\n public int X {{ get; set; }} }}").members

    assert member.wire_name == "id"


@each(
    "around",
    [
        "namespace N;\n%s",
        "namespace N\n{\n%s\n}",
        "#nullable enable\n#region R\n%s\n#endregion",
        "\ufeff%s",
        "// [REGEN:BEGIN Other]\n/* class Other { } */\n%s",
    ],
)
def test_surroundings_do_not_matter(around: str) -> None:
    """Namespaces, usings, directives, comments and a byte order mark change nothing."""
    facts = read(around % SHIP)

    assert not facts.faults
    assert [member.wire_name for member in facts.declarations[0].members] == ["id", "name", "flag"]


@each("code", [SHIP, FLAG])
def test_line_ends_and_tabs_do_not_matter(code: str) -> None:
    """CRLF and tabs give the same facts, line by line."""
    assert read(code.replace("\n", "\r\n").replace("    ", "\t")) == read(code)


def test_positional_records() -> None:
    """Parameters are members; one without a default demands a value."""
    record = only('public record A([property: JsonPropertyName("x")] int? X, string Y = "");')

    assert [member.kind for member in record.members] == ["parameter", "parameter"]
    assert [member.is_required for member in record.members] == [True, False]
    types = [member.type for member in record.members if member.type]
    assert list(map(show_type, types)) == ["int?", "string"]
    assert record.members[0].wire_name == "x"


def test_enum_values_are_constants() -> None:
    """Numbers are told as written: negative, hexadecimal, separated, named; no sums of others."""
    code = "enum E { A = -1, B = 0x10, C = 1_000, D = B, F = A | B, G, H = (int)2 }"

    values = [member.wire_name for member in only(code).members]
    assert values == [-1, 16, 1000, 16, None, None, 2]


@each(
    ("old", "new", "line"),
    [
        ("Id { get; init; }", "Id { get; init }", 4),
        ('[JsonPropertyName("name', 'JsonPropertyName("name', 6),
        ("init; }\n}", "init; }\n", 10),
    ],
)
def test_illegal_code_is_one_fault_at_its_line(old: str, new: str, line: int) -> None:
    """The first place where it is illegal is told, and nothing of it is read."""
    assert old in SHIP
    facts = read(SHIP.replace(old, new, 1))

    assert [(fault.code, fault.line) for fault in facts.faults] == [("SYNTAX", line)]
    assert not facts.declarations


def test_keywords_as_names() -> None:
    """The grammar takes one; a contextual keyword cannot name a type, but may name a member."""
    (fault,) = read(SHIP.replace("Name {", "class {", 1)).faults
    assert (fault.code, fault.line) == ("INVALID_IDENTIFIER", 7)
    assert read("class record { }").faults[0].code == "INVALID_IDENTIFIER"
    assert not read("class A { public int record { get; set; } }").faults


@each(
    "code",
    [
        "Here is the class you asked for:\n\n" + SHIP,
        "```csharp\n" + SHIP + "```\n",
        SHIP.replace("    [JsonPropertyName(", "    ...\n    [JsonPropertyName(", 1),
        SHIP.replace("ShipDataObject", "{ClassName}"),
        SHIP.replace("{\n", "{\n    // rest of the fields\n", 1),
        SHIP.replace("{\n", "{\n    // BEGIN_FIELDS\n", 1),
    ],
)
def test_leftovers_are_artifacts(code: str) -> None:
    """Prose, fences, placeholders, delimiters and elisions are one ARTIFACT each."""
    assert [fault.code for fault in read(code).faults] == ["ARTIFACT"]


def test_a_request_for_review_is_told_at_its_line() -> None:
    """With or without a colon, in the words of the comment."""
    for words in ("[REVIEW] may it change?", "REVIEW: may it change?"):
        (fault,) = read(SHIP.replace("{\n", f"{{\n    // {words}\n", 1)).faults

        assert (fault.code, fault.line) == ("REVIEW", 3)
        assert words in fault.message


@each(
    "code",
    [
        SHIP.replace("{\n", '{\n    [Description("// BEGIN_FIELDS ... %{x} {ClassName}")]\n', 1),
        SHIP.replace("{\n", "{\n    /// The rest of the fields are omitted here...\n", 1),
        SHIP.replace("{\n", "{\n    // see the other fields for details...\n", 1),
        SHIP.replace("{\n", "{\n    /* ``` */\n    // class Other {\n", 1),
    ],
)
def test_the_same_words_as_data_are_none(code: str) -> None:
    """Strings, documentation and ordinary comments may say anything."""
    facts = read(code)

    assert not facts.faults
    assert len(facts.declarations[0].members) == 3


def test_statements_outside_of_types_are_stray() -> None:
    """Top-level code is no part of a type."""
    (fault,) = read("var x = 1;\n" + SHIP).faults

    assert (fault.code, "outside of every type" in fault.message) == ("SYNTAX", True)


@given(st.data())
def test_losing_any_part_never_fails(data: st.DataObject) -> None:
    """A source cut in any place is read; what is illegal is said."""
    start = data.draw(st.integers(0, len(SHIP)))
    end = data.draw(st.integers(start, min(start + 30, len(SHIP))))

    facts = read(SHIP[:start] + SHIP[end:])

    assert all(fault.message for fault in facts.faults)
