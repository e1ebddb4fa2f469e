"""The tables of docs/python.md are true: what they accept is accepted, refusals are refused."""

import re
from pathlib import Path
from typing import Any

import pytest

from pytest_regen.documents.ir import FieldIR, TypeIR
from pytest_regen.languages import find_language
from pytest_regen.languages.python.spelling import is_portable
from pytest_regen.validation import validate_generated_code

DOCUMENT = Path(__file__).parents[2] / "docs" / "python.md"
PYTHON = find_language("python")
CASES: dict[str, dict[str, Any]] = {
    "required, never null": {"required": True},
    "required, may be null": {"required": True, "nullable": True},
    "optional": {},
}
HEADINGS = {"Types of models": "default", "Dataclasses": "dataclass", "Typed dicts": "typeddict"}
_BASES = {
    "default": "class T(ApiModel):",
    "dataclass": "@dataclasses.dataclass(slots=True, kw_only=True)\nclass T:",
    "typeddict": "class T(TypedDict):",
}


def rows(heading: str, first: str) -> list[dict[str, str]]:
    """Return the rows of the table below ``heading`` whose first column is headed ``first``."""
    text = DOCUMENT.read_text("utf-8").partition(f"\n## {heading}\n")[2]
    table = text[text.index(f"| {first}") :].split("\n\n", 1)[0]
    head, _, *lines = (
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line[1:-1])] for line in table.splitlines()
    )
    return [dict(zip(head, cells, strict=True)) for cells in lines]


def spellings(cell: str) -> list[str]:
    """Return the code words of a cell."""
    return [code.replace("\\|", "|") for code in re.findall(r"`([^`]+)`", cell)]


def expression(words: str) -> dict[str, Any]:
    """Return the type expression that the first cell of a row describes."""
    if words.startswith(("array of ", "map of ")):
        kind, inner = words.split(" of ", 1)
        return {"kind": kind, "items" if kind == "array" else "values": expression(inner)}
    if words == "a type of the store":
        return {"kind": "ref", "name": "Shape"}
    kind, _, form = words.partition(", ")
    return {"kind": kind, "format": form or None}


def codes(field: dict[str, Any], member: str, profile: str) -> set[str]:
    """Return what is said about a class with one member."""
    others: list[dict[str, Any]] = [
        {"name": name, "schema_id": name, "kind": "object", "fields": []}
        for name in ("Shape", "Colour")
    ]
    root = {"name": "T", "schema_id": "T", "kind": "object", "fields": [field]}
    ir = {
        "endpoint": {"method": "GET", "path": "/"},
        "language": "python",
        "types": [root, *others],
    }
    rest = "\n".join(
        PYTHON.write_page(TypeIR.model_validate(each), [], "class_only", profile=profile)
        for each in others
    )
    source = f"{_BASES[profile]}\n    {member}\n{rest}\n"
    return {issue.code for issue in validate_generated_code(source, ir, profile=profile).issues}


ROWS = [(profile, row) for heading, profile in HEADINGS.items() for row in rows(heading, "type in")]


@pytest.mark.parametrize("profile", _BASES)
@pytest.mark.parametrize("case", CASES)
def test_an_accepted_spelling_is_clean(profile: str, case: str) -> None:
    """What the table accepts gives no issue, and the first is what prompts ask for."""
    found = {}
    for own, row in ROWS:
        field = {"json_name": "x", "type": expression(row["type in `ir.json`"]), **CASES[case]}
        for number, spelled in enumerate(spellings(row[case])) if own == profile else ():
            said = codes(field, f"x: {spelled}", profile)
            asked = PYTHON.spell(FieldIR.model_validate(field), profile=profile)
            if said or (number == 0 and spelled.partition(" = ")[0] != asked):
                found[row["type in `ir.json`"], spelled] = said or asked
    assert not found


@pytest.mark.parametrize("profile", _BASES)
def test_a_refused_spelling_is_a_wrong_type(profile: str) -> None:
    """What the table refuses is WRONG_TYPE."""
    found = {}
    for own, row in ROWS:
        field = {"json_name": "x", "type": expression(row["type in `ir.json`"]), "required": True}
        for spelled in spellings(row["refused"]) if own == profile else ():
            said = codes(field, f"x: {spelled}", profile)
            if said != {"WRONG_TYPE"}:
                found[row["type in `ir.json`"], spelled] = said
    assert not found


def test_the_tables_are_there() -> None:
    """Each profile has a table, and each row has every case."""
    assert {profile for profile, _ in ROWS} == set(_BASES)
    assert all(spellings(row[case]) for _, row in ROWS for case in (*CASES, "refused"))


def test_the_table_of_members() -> None:
    """A member has the code that the table names."""
    field = {"json_name": "x-y", "type": {"kind": "string"}}
    found = {}
    for row in rows("Names", "member"):
        first, says, _ = row.values()
        (member,) = spellings(first)
        said = codes(field, member, "default")
        if says not in said if says != "right" else said:
            found[member] = said
    assert not found


def test_the_table_of_patterns() -> None:
    """Patterns that mean something else elsewhere are left out."""
    found = {
        pattern: is_portable(pattern)
        for row in rows("Constraints", "pattern")
        for pattern in spellings(row["pattern"])
        if is_portable(pattern) != (row["asked for"] == "yes")
    }
    assert not found


def test_the_table_of_enums() -> None:
    """Declarations of an enum of strings."""
    type_ = {"name": "E", "schema_id": "E", "kind": "enum", "enum_values": ["a-b", "c"]}
    ir = {"endpoint": {"method": "GET", "path": "/"}, "language": "python", "types": [type_]}
    found = {}
    for row in rows("Enums", "declaration"):
        first, says = row.values()
        (code,) = spellings(first)
        said = {issue.code for issue in validate_generated_code(code + "\n", ir).issues}
        if said != (set() if says == "right" else {says}):
            found[code] = said
    assert not found
