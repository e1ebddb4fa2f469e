"""Each fault has one issue with the right code, type, line and field."""

import pytest
from ships import FLAG, SHIP, SHIPS, TYPES, issues_of, ships
from tables import each

from pytest_regen.sources import assemble
from pytest_regen.validation import validate_by_type

Case = tuple[str, str, str, int | None, str | None]

BODY = "{\n"
SHIP_CASES: dict[str, Case] = {
    "no wire name": ('    [JsonPropertyName("name")]\n', "", "MISSING_FIELD", 6, "name"),
    "named as its class": ("Name {", "ShipDataObject {", "DUPLICATE_PROPERTY", 6, "name"),
    "default is no mark": (
        "string? Name { get; init; }",
        'string Name { get; init; } = "";',
        "NULLABILITY",
        7,
        "name",
    ),
    "undeclared and qualified": ("string?", "Models.Title?", "UNDECLARED_TYPE", 7, "name"),
    "undeclared base": ("DataObject\n", "DataObject : Vessel\n", "UNDECLARED_TYPE", 1, None),
    "undeclared private field": (BODY, "{\n    private Title cache;\n", "UNDECLARED_TYPE", 3, None),
    "foreign": (BODY, "{\n    public class Helper { }\n", "FOREIGN_TYPE", 3, None),
    "class in a comment": (
        SHIP,
        "// public class ShipDataObject { }\n",
        "MISSING_CLASS",
        None,
        None,
    ),
    "interface for class": ("public class", "public interface", "MISSING_CLASS", 1, None),
    "illegal name": ("Name {", "2Name {", "SYNTAX", 7, None),
    "fence": (SHIP, f"```csharp\n{SHIP}```\n", "ARTIFACT", 1, None),
    "review": (BODY, "{\n    // [REVIEW: is this right?]\n", "REVIEW", 3, None),
}


FLAG_CASES: dict[str, Case] = {
    "invented": (
        "Red,",
        'Red,\n    [JsonStringEnumMemberName("mauve")] Mauve,',
        "ENUM_MEMBER",
        6,
        "mauve",
    ),
    "without its value": (
        '[JsonStringEnumMemberName("light-green")]',
        "",
        "ENUM_MEMBER",
        8,
        "light-green",
    ),
    "one name for two": ("LightGreen", "Red", "DUPLICATE_PROPERTY", 7, "light-green"),
}


CASES = [
    *(("ShipDataObject", case) for case in SHIP_CASES.values()),
    *(("Flag", case) for case in FLAG_CASES.values()),
]


@each(("name", "case"), CASES, ids=[*SHIP_CASES, *FLAG_CASES])
def test_a_fault_is_one_issue(name: str, case: Case) -> None:
    """Of its code, at its line, naming its field or value."""
    old, new, code, line, field = case
    assert old in TYPES[name]
    blocks = {**TYPES, name: TYPES[name].replace(old, new, 1)}
    above = assemble(list(blocks.items())).partition(f"[REGEN:BEGIN {name}]\n")[0].count("\n") + 1

    (issue,) = issues_of(blocks["ShipDataObject"], blocks["Flag"])

    assert (issue.code, issue.type_name, issue.field) == (code, name, field)
    assert issue.line == (line and line + above)


NUMBERS = "public enum Flag\n{\n    Red = 1,\n    Green,\n    Old = -1,\n}\n"


def test_integer_values_are_constants() -> None:
    """A member's value is its number, counted on where none is written."""
    ir = with_values([1, 2, -1])

    assert issues_of(flag=NUMBERS, ir=ir) == []
    found = issues_of(flag=NUMBERS.replace("Red = 1", "Red"), ir=with_values([0, 2, -1]))
    assert [(issue.code, issue.field) for issue in found] == [
        ("ENUM_MEMBER", "2"),
        ("ENUM_MEMBER", "1"),
    ]


def with_values(values: list[int | str]) -> dict[str, object]:
    """Return the IR with other values of the enum."""
    ir = ships()
    ir["types"][1]["enum_values"] = values
    return ir


def test_a_misspelt_field_is_missing_and_invented() -> None:
    """The invented one names the field that was meant."""
    missing, invented = issues_of(SHIP.replace('"name"', '"nmae"'))

    assert (missing.code, missing.field) == ("MISSING_FIELD", "name")
    assert (invented.code, invented.field) == ("PHANTOM_FIELD", "nmae")
    assert "'name'" in (invented.detail or "")


def test_a_borrowed_field_is_invented() -> None:
    """A field that only another type has is no field of this one; the detail says whose it is."""
    ir = ships()
    port = {"json_name": "pier", "type": {"kind": "string"}}
    ir["types"].append({"name": "Port", "schema_id": "#", "kind": "object", "fields": [port]})
    pier = '    [JsonPropertyName("pier")] public string? Pier { get; init; }\n}\n'

    found = issues_of(SHIP.rstrip()[:-1] + pier, ir=ir)

    (phantom,) = [issue for issue in found if issue.type_name == "ShipDataObject"]
    assert phantom.code == "PHANTOM_FIELD"
    assert phantom.detail == "it belongs to Port"


@pytest.mark.parametrize(
    ("attribute", "profile", "expected"),
    [
        ('[PrimaryKey("id", nameof(Id))]', "xchange", []),
        ("", "default", []),
        ("", "xchange", ["PRIMARY_KEY"]),
        ('[PrimaryKey("name", nameof(Name))]', "xchange", ["PRIMARY_KEY"]),
        ('[PrimaryKey("id", nameof(Name))]', "xchange", ["PRIMARY_KEY"]),
        ('[PrimaryKey("name", nameof(Name))]', "default", ["PRIMARY_KEY"]),
    ],
)
def test_the_primary_key(attribute: str, profile: str, expected: list[str]) -> None:
    """The profile that has the attribute demands it; a contradiction is reported in any."""
    found = issues_of(f"{attribute}\n{SHIP}", ir=ships(primary_key="id"), profile=profile)

    assert [issue.code for issue in found] == expected


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "class"}, None),
        ({"fields": [{"json_name": "p", "type": {"kind": "ref", "name": "Port"}}]}, "p"),
    ],
)
def test_what_no_reply_can_fix(change: dict[str, object], field: str | None) -> None:
    """A fault of the IR itself is UNFIXABLE, and tells nothing beside it."""
    type_name = change.get("name", "ShipDataObject")
    typed = "Port?" if field else "string?"
    code = f'class {type_name} {{ [JsonPropertyName("p")] public {typed} P {{ get; set; }} }}'
    if "Port" not in str(change):
        code = code.replace("Port", "string")

    found = issues_of(code if field else SHIP, ir=ships(**change))

    unfixable = [issue for issue in found if issue.code == "UNFIXABLE"]
    assert [issue.field for issue in unfixable] == [field]
    assert field is None or found == unfixable


def test_a_block_of_nobody_is_foreign() -> None:
    """A block that the IR has no type for has a result of its own."""
    source = assemble([("ShipDataObject", SHIP), ("Flag", FLAG), ("Old", "class Old { }")])
    results = validate_by_type(source, SHIPS)

    assert [issue.code for issue in results["Old"].issues] == ["FOREIGN_TYPE"]
    assert results["ShipDataObject"].is_clean


def test_a_missing_type_is_not_undeclared_as_well() -> None:
    """A type of the store that is missing is reported once, not at each use."""
    (issue,) = issues_of(flag="")

    assert (issue.code, issue.type_name) == ("MISSING_CLASS", "Flag")


def test_what_declares_nothing_is_the_roots_fault() -> None:
    """Faults of a text in which no type can be found are reported once, on the first type."""
    found = validate_by_type("}}}} (((", SHIPS)

    codes = {name: [issue.code for issue in result.issues] for name, result in found.items()}
    assert codes == {"ShipDataObject": ["SYNTAX"], "Flag": ["MISSING_CLASS"]}
