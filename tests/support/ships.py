"""A small IR of ships and its correct C#, to be broken by tests."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pytest_regen.documents.ir import IR
from pytest_regen.languages import find_language
from pytest_regen.sources import assemble, stitch
from pytest_regen.validation import Issue, PageText, ValidationResult, validate_by_type


def ships(**changes: Any) -> dict[str, Any]:
    """Return the value of ``ir.json``; keywords replace keys of the root type."""
    root = {
        "name": "ShipDataObject",
        "schema_id": "#/components/schemas/Ship",
        "is_root": True,
        "kind": "object",
        "fields": [
            {"json_name": "id", "type": {"kind": "integer", "format": "int64"}, "required": True},
            {"json_name": "name", "type": {"kind": "string"}},
            {"json_name": "flag", "type": {"kind": "ref", "name": "Flag"}, "required": True},
        ],
    }
    flag = {
        "name": "Flag",
        "schema_id": "#/components/schemas/Flag",
        "kind": "enum",
        "enum_values": ["red", "light-green"],
    }
    return {
        "version": 1,
        "endpoint": {"method": "GET", "path": "/ships"},
        "language": "csharp",
        "types": [{**root, **changes}, flag],
    }


SHIPS = IR.of(ships())

SHIP = """\
public class ShipDataObject
{
    [JsonPropertyName("id")]
    public required long Id { get; init; }

    [JsonPropertyName("name")]
    public string? Name { get; init; }

    [JsonPropertyName("flag")]
    public required Flag Flag { get; init; }
}
"""

FLAG = """\
[JsonConverter(typeof(JsonStringEnumConverter))]
public enum Flag
{
    [JsonStringEnumMemberName("red")]
    Red,

    [JsonStringEnumMemberName("light-green")]
    LightGreen,
}
"""

TYPES: Mapping[str, str] = {"ShipDataObject": SHIP, "Flag": FLAG}


def results_of(
    ship: str = SHIP, flag: str = FLAG, ir: IR | Mapping[str, Any] = SHIPS, **options: Any
) -> dict[str, ValidationResult]:
    """Return the results of a source that is assembled of two blocks."""
    source = assemble([("ShipDataObject", ship), ("Flag", flag)])
    return validate_by_type(source, ir, **options)


def issues_of(
    ship: str = SHIP, flag: str = FLAG, ir: IR | Mapping[str, Any] = SHIPS, **options: Any
) -> list[Issue]:
    """Return all issues of a source that is assembled of two blocks."""
    found = results_of(ship, flag, ir, **options).values()
    return [issue for result in found for issue in result.issues]


def in_pages(
    outputs: Sequence[str],
    fields: Iterable[Sequence[str]],
    *,
    name: str = "ShipDataObject",
    stop_reasons: Mapping[int, str] | None = None,
) -> list[Issue]:
    """Return the issues of a type written in several pages, with the pages given."""
    pages = [
        PageText(number, len(outputs), asked, output, (stop_reasons or {}).get(number, "end_turn"))
        for number, (output, asked) in enumerate(zip(outputs, fields, strict=True), 1)
    ]
    is_enum = name == "Flag"
    language = find_language("csharp")
    text = stitch(outputs, name=name, is_enum=is_enum, language=language).text
    blocks = {**TYPES, name: text}
    results = validate_by_type(assemble(list(blocks.items())), SHIPS, pages={name: pages})
    return [issue for result in results.values() for issue in result.issues]
