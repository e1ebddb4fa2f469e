"""The tables of docs/typescript.md are true: what is accepted, what is refused, and how."""

import re
from pathlib import Path
from typing import Any

import pytest
from tables import each

from pytest_regen.documents.ir import FieldIR
from pytest_regen.languages import find_language
from pytest_regen.sources import assemble
from pytest_regen.validation import validate_generated_code

DOCUMENT = Path(__file__).parents[2] / "docs" / "typescript.md"
TYPESCRIPT = find_language("typescript")
TYPE = "type in `ir.json`"
CASES: dict[str, dict[str, Any]] = {"never null": {}, "may be null": {"nullable": True}}


def tables(heading: str) -> list[list[list[str]]]:
    """Return the rows of each table whose first heading begins so; a row is its cells."""
    text = DOCUMENT.read_text("utf-8")
    found = []
    for match in re.finditer(rf"^\| {re.escape(heading)}", text, re.MULTILINE):
        lines = text[match.start() :].split("\n\n", 1)[0].splitlines()
        cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]
        found.append([[cell.strip().replace("\\|", "|") for cell in row] for row in cells])
    return [[table[0], *table[2:]] for table in found]


def spellings(cell: str) -> list[str]:
    """Return the code words of a cell."""
    return re.findall(r"`([^`]+)`", cell)


def expression(words: str) -> dict[str, Any]:
    """Return the type expression that the first cell of a row describes."""
    if words.startswith(("array of ", "map of ")):
        kind, inner = words.split(" of ", 1)
        return {"kind": kind, "items" if kind == "array" else "values": expression(inner)}
    if words == "a type of the store":
        return {"kind": "ref", "name": "Shape"}
    if " or " in words:
        return {"kind": "union", "options": [expression(each) for each in words.split(" or ")]}
    kind, _, form = words.partition(", ")
    return {"kind": kind, "format": form or None}


ROWS = [
    (profile, dict(zip(head, row, strict=True)))
    for profile, (head, *rows) in zip(("default", "zod"), tables(TYPE), strict=True)
    for row in rows
]


def codes(field: dict[str, Any], spelled: str, profile: str) -> set[str]:
    """Return what is said about a property whose type is spelled so."""
    names = ("Shape", "Colour")
    types = [{"name": name, "schema_id": name, "kind": "object", "fields": []} for name in names]
    root = {"name": "T", "schema_id": "T", "kind": "object", "fields": [field]}
    ir = {
        "endpoint": {"method": "GET", "path": "/"},
        "language": "typescript",
        "types": [root, *types],
    }
    if profile == "zod":
        parts = [
            f"export const {name} = z.object({{ {member} }});\n"
            f"export type {name} = z.infer<typeof {name}>;\n"
            for name, member in (("Shape", ""), ("Colour", ""), ("T", f"x: {spelled}"))
        ]
    else:
        mark = "" if field.get("required") else "?"
        parts = [
            f"export interface {name} {{ {member} }}\n"
            for name, member in (("T", f"x{mark}: {spelled};"), ("Shape", ""), ("Colour", ""))
        ]
    source = "".join(parts)
    return {issue.code for issue in validate_generated_code(source, ir, profile=profile).issues}


@each(("profile", "row"), ROWS, ids=lambda value: str(value)[:40])
def test_accepted_spellings_are_clean(profile: str, row: dict[str, str]) -> None:
    """What the table accepts gives no issue; the first spelling is what prompts ask for."""
    for case, marks in CASES.items():
        field = {"json_name": "x", "type": expression(row[TYPE]), "required": True, **marks}
        accepted = spellings(row[case])
        asked = TYPESCRIPT.spell(FieldIR.model_validate(field), profile=profile)

        assert asked == accepted[0]
        told = {spelled: codes(field, spelled, profile) for spelled in accepted}
        assert {spelled: said for spelled, said in told.items() if said} == {}


@each(("profile", "row"), ROWS, ids=lambda value: str(value)[:40])
def test_refused_spellings_are_wrong_types(profile: str, row: dict[str, str]) -> None:
    """What the table refuses is WRONG_TYPE."""
    field = {"json_name": "x", "type": expression(row[TYPE]), "required": True}
    told = {spelled: codes(field, spelled, profile) for spelled in spellings(row["refused"])}

    assert {spelled: said for spelled, said in told.items() if said != {"WRONG_TYPE"}} == {}


@each(("profile", "row"), ROWS, ids=lambda value: str(value)[:40])
def test_null_and_absence_decide(profile: str, row: dict[str, str]) -> None:
    """The first spelling is NULLABILITY where the other is asked for, but for unknown."""
    plain, other = (spellings(row[case])[0] for case in CASES)
    field = {"json_name": "x", "type": expression(row[TYPE]), "required": True}
    expected = set() if row[TYPE] == "any" else {"NULLABILITY"}

    assert codes(field, other, profile) == expected
    assert codes({**field, "nullable": True}, plain, profile) == expected
    if profile == "zod":
        assert codes({**field, "required": False}, plain, profile) == {"NULLABILITY"}
        assert codes({**field, "required": False}, f"{plain}.optional()", profile) == set()


@pytest.mark.parametrize("spelled", ["any", "z.any()"])
def test_any_is_reviewed(spelled: str) -> None:
    """Where the document allows anything, it is right and weak."""
    profile = "zod" if spelled.startswith("z.") else "default"
    field = {"json_name": "x", "type": {"kind": "any"}, "required": True}

    assert codes(field, spelled, profile) == {"REVIEW"}


def told(code: str, profile: str, type_: dict[str, Any]) -> set[str]:
    """Return what is said about the only type of a source, in its block."""
    source = assemble([(type_["name"], code)], TYPESCRIPT, profile=profile)
    ir = {"endpoint": {"method": "GET", "path": "/"}, "language": "typescript", "types": [type_]}
    return {issue.code for issue in validate_generated_code(source, ir, profile=profile).issues}


@pytest.mark.parametrize(
    ("heading", "profile"),
    [
        ("profile `default`, a type `T`", "default"),
        ("profile `zod`, the same type", "zod"),
        ("profile `default`, an enum `E`", "default"),
        ("profile `zod`, the same enum", "zod"),
    ],
)
def test_the_tables_of_declarations(heading: str, profile: str) -> None:
    """Each row is told as its second column says."""
    field = {"json_name": "x", "type": {"kind": "string"}, "required": True}
    object_ = {"name": "T", "schema_id": "T", "kind": "object", "fields": [field]}
    enum = {"name": "E", "schema_id": "E", "kind": "enum", "enum_values": ["a-b", "c"]}
    type_ = enum if "enum" in heading else object_
    ((_, *rows),) = tables(heading)
    found = {}
    for first, says, _ in rows:
        (code,) = spellings(first)
        said = told(code, profile, type_)
        if said != (set() if says == "right" else {says}):
            found[code] = said

    assert rows
    assert found == {}
