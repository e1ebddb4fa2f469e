"""Code that is right in any accepted style has no issue."""

from collections.abc import Callable

import pytest
from ships import FLAG, SHIP, SHIPS, issues_of
from tables import each

from pytest_regen.validation import validate_generated_code


def with_body(*members: str, head: str = "public class ShipDataObject") -> str:
    """Return a type of these members."""
    return f"{head}\n{{\n" + "\n".join(members) + "\n}\n"


ID = '[JsonPropertyName("id")] public required long Id { get; init; }'
NAME = '[JsonPropertyName("name")] public string? Name { get; init; }'
FLAGGED = '[JsonPropertyName("flag")] public required Flag Flag { get; init; }'

STYLES = {
    "as asked": SHIP,
    "internal": SHIP.replace("public class", "internal partial class"),
    "set": SHIP.replace("init;", "set;"),
    "framework names": SHIP.replace("long", "Int64").replace("string?", "String?"),
    "qualified type": SHIP.replace("required Flag", "required Models.Flag"),
    "positional": (
        'public record ShipDataObject([property: JsonPropertyName("id")] long Id,\n'
        '  [property: JsonPropertyName("name")] string? Name = null,\n'
        '  [property: JsonPropertyName("flag")] Flag Flag = default);\n'
    ),
    "positional, one repeated": (
        'public record ShipDataObject(long Id, [property: JsonPropertyName("name")] string? Name,\n'
        ' [property: JsonPropertyName("flag")] Flag Flag)\n'
        '{ [JsonPropertyName("id")] public long Id { get; init; } = Id; }\n'
    ),
    "parts": "\n".join(
        with_body(member, head="public partial class ShipDataObject")
        for member in (ID, NAME, FLAGGED)
    ),
    "comments": (
        '// { [JsonPropertyName("ghost")] }\n/* public class Ghost { */\n'
        + SHIP.replace("{ get;", "{ /* } */ get;")
    ),
    "braces in strings": SHIP.replace(
        "{\n", '{\n    [Description("} {first} ``` // END_FIELDS")]\n', 1
    ),
    "helpers": with_body(
        ID,
        NAME,
        FLAGGED,
        "private int cache; public static ShipDataObject Empty => new() { Id = 0 };",
        'public override string ToString() => $"{Id}";',
        "[JsonIgnore] public bool IsNew { get; set; }",
        "[JsonExtensionData] public Dictionary<string, JsonElement>? Extra { get; set; }",
    ),
}


@each("ship", STYLES.values(), ids=STYLES)
def test_every_style_of_a_class_is_clean(ship: str) -> None:
    """However a right class is written, nothing is said about it."""
    assert issues_of(ship) == []


ENUMS = {
    "own name": FLAG.replace('[JsonStringEnumMemberName("red")]\n    Red', "red"),
    "generic converter": FLAG.replace("Converter))", "Converter<Flag>))"),
    "combined": FLAG.replace(
        '[JsonStringEnumMemberName("red")]', '[Obsolete, JsonStringEnumMemberName("red")]'
    ),
}


@pytest.mark.parametrize("flag", ENUMS.values(), ids=ENUMS)
def test_every_style_of_an_enum_is_clean(flag: str) -> None:
    """However a right enum is written, nothing is said about it."""
    assert issues_of(flag=flag) == []


@pytest.mark.parametrize(
    "arrange",
    [
        lambda: FLAG + SHIP,
        lambda: "namespace N { " + SHIP + FLAG + " }",
    ],
    ids=["reversed", "block namespace"],
)
def test_without_boundaries_it_is_split_by_declaration(arrange: Callable[[], str]) -> None:
    """A source without boundaries is read as well."""
    assert validate_generated_code(arrange(), SHIPS).is_clean
