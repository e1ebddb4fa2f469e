"""What System.Text.Json passes over, or a compiler refuses, is an error with words of its own."""

from collections.abc import Mapping
from typing import Any

from ships import FLAG, SHIP, issues_of, ships

from pytest_regen.documents.ir import IR
from pytest_regen.sources import assemble
from pytest_regen.validation import validate_by_type

Row = tuple[str, str, str, str | None, str]
"""Old and new text, code, field, and words of the message."""

NAME = "public string? Name { get; init; }"


def check(rows: list[Row], text: str = SHIP, **options: Any) -> None:
    """Assert that each change of ``text`` is one issue; tell every row that is not."""
    wrong = []
    is_enum = " enum " in text
    for old, new, code, field, words in rows:
        assert old in text, old
        changed = text.replace(old, new, 1)
        found = issues_of(flag=changed, **options) if is_enum else issues_of(changed, **options)
        reported = [(issue.code, issue.field) for issue in found]
        if reported != [(code, field)] or words not in found[0].message:
            wrong.append(f"{new!r}: {[(i.code, i.field, i.message) for i in found]}")
    assert not wrong, "\n".join(wrong)


def check_clean(sources: Mapping[str, str], **options: Any) -> None:
    """Assert that nothing is said about any of the sources of the ship."""
    said = {name: issues_of(ship, **options) for name, ship in sources.items()}
    assert {name: found for name, found in said.items() if found} == {}


# -- members that nothing is read into ------------------------------------------------------------


def test_a_property_that_the_serializer_does_not_set_is_missing() -> None:
    """Without an accessor that it calls, the value on the wire is lost: the words say which."""
    check(
        [
            (NAME, f"public string? Name {accessors}", "MISSING_FIELD", "name", words)
            for accessors, words in (
                ("{ get; }", "'Name' has no set or init"),
                ("{ get; private set; }", "has 'private set'"),
                ("{ private get; init; }", "has 'private get', so nothing is written"),
                ("{ set { } }", "has accessors { set { } }"),
            )
        ]
    )


def test_a_property_that_is_not_public_is_missing() -> None:
    """Without a modifier it is private: the serializer does not see it."""
    check(
        [
            (NAME, f"{modifier}string? Name {{ get; init; }}", "MISSING_FIELD", "name", words)
            for modifier, words in (
                ("", "has no access modifier"),
                ("private ", "is private"),
                ("public static ", "is static"),
            )
        ]
    )


def test_a_property_that_is_always_ignored_is_missing() -> None:
    """Whatever the spelling of the condition; conditions of writing ignore nothing that is read."""
    attribute = '[JsonPropertyName("name")]'
    ignored = [
        "JsonIgnore",
        "JsonIgnore(Condition = JsonIgnoreCondition.Always)",
    ]
    check(
        [
            (attribute, f"{attribute} [{one}]", "MISSING_FIELD", "name", "[JsonIgnore")
            for one in ignored
        ]
    )
    kept = [
        "JsonIgnore(Condition = JsonIgnoreCondition.WhenWritingNull)",
        "Newtonsoft.Json.JsonIgnore",
    ]
    check_clean({one: SHIP.replace(attribute, f"{attribute} [{one}]") for one in kept})


def test_a_directive_that_may_leave_code_out_is_told() -> None:
    """What a project defines is not known."""
    member = f'    [JsonPropertyName("name")]\n    {NAME}\n'
    check(
        [
            (member, f"{head}\n{member}#endif\n", "SYNTAX", None, f"'{head}' may leave code out")
            for head in ("#if DEBUG", "#if !DEBUG && NET", "#if NET9_0", "#if false")
        ]
    )
    others = "#region Names\n#endregion\n#pragma warning disable\n"
    check_clean({"others": SHIP.replace(member, others + member)})
    (issue,) = issues_of(f"#if DEBUG\n{SHIP}#endif\n")
    assert (issue.code, issue.type_name) == ("SYNTAX", "ShipDataObject")


def test_what_the_serializer_sets_in_another_way_is_there() -> None:
    """A constructor's parameter and [JsonInclude] fill what has no public setter."""
    read_only = SHIP.replace(NAME, "public string? Name { get; }")
    rest = "public long Id { get; init; }"
    check_clean(
        {
            "included setter": SHIP.replace(
                NAME, f"[JsonInclude] {NAME}".replace("init", "private set")
            ),
            "included field": SHIP.replace(NAME, "[JsonInclude] public string? Name;"),
            "constructor": read_only.replace("required ", "").replace(
                "{\n", "{\n    public ShipDataObject(String? name) => Name = name;\n", 1
            ),
            "marked constructor": read_only.replace(
                "{\n",
                "{\n    public ShipDataObject() { }\n"
                "    [JsonConstructor] private ShipDataObject(string? NAME) => Name = NAME;\n",
                1,
            ),
            "primary constructor": read_only.replace(
                "Object\n", "Object(string? name)\n", 1
            ).replace("Name { get; }", "Name { get; } = name;"),
            "body of a record": (
                "public record ShipDataObject\n"
                '([property: JsonPropertyName("name")] string? Name)\n{\n'
                f'    [JsonPropertyName("id")] {rest}\n'
                '    [JsonPropertyName("flag")] public Flag Flag { get; set; }\n}\n'
            ),
        }
    )


def test_what_would_be_written_besides_is_told() -> None:
    """A computed property is a field more; an initial value stands for what was never sent."""
    computed = f"{NAME} public bool HasName => Name is not null;"
    started = f'{NAME} = "";'
    check(
        [
            (NAME, computed, "PHANTOM_FIELD", "HasName", "has no field 'HasName'"),
            (NAME, started, "NULLABILITY", "name", "must have no initial value"),
        ]
    )
    check_clean({value: SHIP.replace(NAME, f"{NAME} = {value};") for value in ("null", "default!")})


def test_other_json_than_the_description_allows_is_told() -> None:
    """By attributes of the serializer: texts for numbers, no keys that the document leaves free."""
    id_, head = '[JsonPropertyName("id")]', "public class Ship"
    number = "[JsonNumberHandling(JsonNumberHandling.AllowReadingFromString)]"
    closed = "[JsonUnmappedMemberHandling(JsonUnmappedMemberHandling.Disallow)]"
    check(
        [
            (id_, f"{id_} {number}", "WRONG_TYPE", "id", "[JsonNumberHandling("),
            (head, f"{closed} {head}", "WRONG_TYPE", None, "[JsonUnmappedMemberHandling("),
        ]
    )
    strict = number.replace("AllowReadingFromString", "Strict")
    check_clean({"Strict": SHIP.replace(id_, f"{id_} {strict}")})


# -- what the compiler refuses ---------------------------------------------------------------------


POSITIONAL = (
    'public record ShipDataObject([property: JsonPropertyName("id")] long Id,\n'
    '  [property: JsonPropertyName("name")] string? Name,\n'
    '  [property: JsonPropertyName("flag")] Flag Flag);\n'
)


def test_attributes_of_positional_records() -> None:
    """Without ``property:`` they stand on a parameter, where the serializer does not look."""
    name = '[property: JsonPropertyName("name")]'
    check(
        [
            (name, other, "MISSING_FIELD", "name", f"lacks {name}")
            for other in (
                '[JsonPropertyName("name")]',
                '[field: JsonPropertyName("name")]',
            )
        ],
        POSITIONAL,
    )
    check_clean({"Description": POSITIONAL.replace(name, f'{name} [Description("n")]')})


def test_wrappers_that_the_compiler_refuses() -> None:
    """``Nullable<T>`` takes value types; a text or a class is null by itself."""
    check(
        [
            ("string?", "Nullable<string>", "WRONG_TYPE", "name", "'Nullable<string>'"),
            ("long", "long*", "WRONG_TYPE", "id", "'long*'"),
        ]
    )
    ir = ships()
    ir["types"][0]["fields"][1]["type"] = {"kind": "ref", "name": "Flag"}
    check_clean({"enum": SHIP.replace("string?", "Nullable<Flag>")}, ir=ir)


# -- types that cannot be created ------------------------------------------------------------------


def test_a_class_that_the_serializer_cannot_create() -> None:
    """Abstract, static, generic, or without a constructor that it calls."""
    head = "public class ShipDataObject\n{\n"
    made = "    public ShipDataObject"
    check(
        [
            (head, new, "MISSING_CLASS", None, words)
            for new, words in (
                (head.replace("class", "abstract class"), "is abstract"),
                (head.replace("class", "static class"), "is static"),
                (head.replace("Object\n", "Object<T>\n"), "is generic"),
                (f"{head}    private ShipDataObject() {{ }}\n", "no public constructor"),
                (f"{head}{made}(int other) {{ }}\n", "'other' matches no property"),
                (
                    f"{head}{made}(long id) {{ }}\n{made}(string? name) {{ }}\n",
                    "several",
                ),
            )
        ]
    )
    check_clean(
        {
            "matching": SHIP.replace(head, f"{head}{made}(Int64 id, Flag flag) {{ }}\n"),
            "marked": SHIP.replace(
                head, f"{head}    [JsonConstructor] internal ShipDataObject() {{ }}\n"
            ),
            "marked primary": POSITIONAL.replace(
                "public", "[method: JsonConstructor] public"
            ).replace(";\n", " { public ShipDataObject(int n) : this(n, null, default) { } }\n"),
            "positional struct": POSITIONAL.replace("record", "record struct"),
        }
    )


def test_a_type_that_only_an_attribute_names() -> None:
    """``typeof`` of what nothing declares does not compile; what the user declares does."""
    check(
        [
            ("public class", f"[{one}]\npublic class", "UNDECLARED_TYPE", None, "'Ghost'")
            for one in (
                "JsonDerivedType(typeof(Ghost))",
                "JsonConverter(typeof(Ghost))",
            )
        ]
    )
    member = '[JsonPropertyName("name"), JsonConverter(typeof(Ghost))]'
    check([('[JsonPropertyName("name")]', member, "UNDECLARED_TYPE", "name", "'Ghost'")])
    source = assemble(
        [
            (
                "ShipDataObject",
                SHIP.replace("public class", "[JsonConverter(typeof(Own))]\npublic class"),
            ),
            ("Flag", FLAG),
        ]
    )
    own = source + "\npublic class Own : JsonConverter<ShipDataObject> { }\n"
    aliased = "using Own = Company.Converters.Ship;\n" + source
    for text in (own, aliased):
        assert all(result.is_clean for result in validate_by_type(text, IR.of(ships())).values())


# -- enums -----------------------------------------------------------------------------------------

CONVERTER = "[JsonConverter(typeof(JsonStringEnumConverter))]"


def test_an_enum_of_text_without_a_converter_that_reads_text() -> None:
    """Left out, of another library, of another enum, for numbers, or invented."""
    check(
        [
            (CONVERTER, "", "ENUM_MEMBER", None, "has no converter"),
            (CONVERTER, "[JsonConverter]", "ENUM_MEMBER", None, "has no converter"),
            *(
                (CONVERTER, f"[JsonConverter(typeof({name}))]", "ENUM_MEMBER", None, words)
                for name, words in (
                    ("StringEnumConverter", "System.Text.Json does not take"),
                    ("JsonStringEnumConverter<Colour>", "is for 'Colour'"),
                    ("JsonNumberEnumConverter<Flag>", "reads numbers"),
                )
            ),
            (
                CONVERTER,
                "[JsonConverter(typeof(FlagJsonConverter))]",
                "UNDECLARED_TYPE",
                None,
                "'FlagJsonConverter'",
            ),
        ],
        FLAG,
    )


def test_a_converter_on_a_property_that_it_cannot_read() -> None:
    """A list of enums is no enum, and text is none either."""
    flag, name = '[JsonPropertyName("flag")]', '[JsonPropertyName("name")]'
    check(
        [
            (name, name + CONVERTER, "WRONG_TYPE", "name", "reads enums, not 'string?'"),
            (
                flag,
                f"{flag} [JsonConverter(typeof(JsonNumberEnumConverter<Flag>))]",
                "WRONG_TYPE",
                "flag",
                "and its values are text",
            ),
        ]
    )


def test_an_attribute_that_does_not_name_an_enum_member() -> None:
    """That of properties compiles and has no effect; that of other libraries is not read."""
    green = '[JsonStringEnumMemberName("light-green")]'
    check(
        [
            (
                green,
                other,
                "ENUM_MEMBER",
                "light-green",
                f"[{other[1:].partition('(')[0]}] has no effect on an enum member",
            )
            for other in (
                '[JsonPropertyName("light-green")]',
                '[EnumMember(Value = "light-green")]',
            )
        ],
        FLAG,
    )
    own = FLAG.replace('[JsonStringEnumMemberName("red")]\n    Red', "[EnumMember]\n    red")
    assert issues_of(flag=own) == []


def enum_of(*values: int) -> dict[str, Any]:
    """Return the IR with these values of the enum."""
    ir = ships()
    ir["types"][1]["enum_values"] = list(values)
    return ir


def test_numbers_that_an_enum_cannot_hold() -> None:
    """Beyond 32 bits it is based on long."""
    flag = "public enum Flag : long { A = 1, B = 5000000000 }"
    ir = enum_of(1, 5_000_000_000)
    check(
        [
            (": long", "", "ENUM_MEMBER", None, "declare 'enum Flag : long'"),
            (": long", ": short", "ENUM_MEMBER", None, "an enum of short cannot hold"),
        ],
        flag,
        ir=ir,
    )
    for base in ("long", "ulong", "System.Int64"):
        assert issues_of(flag=flag.replace("long", base), ir=ir) == [], base


# -- pages -----------------------------------------------------------------------------------------
