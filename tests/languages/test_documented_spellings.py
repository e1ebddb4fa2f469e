"""The table of docs/csharp.md is true: every cell is accepted, every refusal is refused."""

import re
from pathlib import Path
from typing import Any

import pytest

from pytest_regen.documents.ir import FieldIR, Scalar
from pytest_regen.languages import language_named
from pytest_regen.validation import validate_generated_code

DOCUMENT = Path(__file__).parents[2] / "docs" / "csharp.md"
CASES = {
    "required, never null": {"required": True},
    "required, may be null": {"required": True, "nullable": True},
    "optional": {},
}


def rows() -> list[dict[str, str]]:
    """Return the rows of the first table, by its headings."""
    lines = [line for line in DOCUMENT.read_text("utf-8").splitlines() if line.startswith("|")]
    head = [cell.strip() for cell in lines[0].strip("|").split("|")]
    first = []
    for line in lines[2:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != len(head):
            break
        first.append(dict(zip(head, cells, strict=True)))
    return first


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
    pytest.param(
        row["type in `ir.json`"], case, spelled, id=f"{row['type in `ir.json`']}-{spelled}"
    )
    for row in ROWS
    for case in CASES
    for spelled in spellings(row[case])
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
    assert all(spellings(row[case]) for row in ROWS for case in CASES)


@pytest.mark.parametrize(("words", "case", "spelled"), ACCEPTED)
def test_an_accepted_spelling_is_clean(words: str, case: str, spelled: str) -> None:
    """What the table accepts gives no issue."""
    field = {"json_name": "x", "type": expression(words), **CASES[case]}

    assert codes(field, spelled) == set()


@pytest.mark.parametrize("words", [row["type in `ir.json`"] for row in ROWS])
@pytest.mark.parametrize("case", CASES)
def test_the_first_spelling_is_what_prompts_ask_for(words: str, case: str) -> None:
    """Prompts and table agree."""
    row = next(row for row in ROWS if row["type in `ir.json`"] == words)
    field = FieldIR.model_validate({"json_name": "x", "type": expression(words), **CASES[case]})

    assert language_named("csharp").spell(field) == spellings(row[case])[0]


@pytest.mark.parametrize(("words", "spelled"), REFUSED)
def test_a_refused_spelling_is_a_wrong_type(words: str, spelled: str) -> None:
    """What the table refuses is WRONG_TYPE, whatever the nullability."""
    field = {"json_name": "x", "type": expression(words), "required": True}

    assert codes(field, spelled) == {"WRONG_TYPE"}


@pytest.mark.parametrize("words", [row["type in `ir.json`"] for row in ROWS])
@pytest.mark.parametrize("case", CASES)
def test_the_question_mark_decides(words: str, case: str) -> None:
    """The first spelling with the other nullability is NULLABILITY, but for required any."""
    row = next(row for row in ROWS if row["type in `ir.json`"] == words)
    asked = spellings(row[case])[0]
    other = asked.removesuffix("?") if asked.endswith("?") else f"{asked}?"
    field = {"json_name": "x", "type": expression(words), **CASES[case]}

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

    assert language_named("csharp").spell(field) == expected
    assert codes(bounded, "int?") == codes(bounded, "long?") == set()


def test_bounds_change_no_integer_with_a_format() -> None:
    """The format decides."""
    field = FieldIR(
        json_name="x",
        type=Scalar(kind="integer", format="int64"),
        required=True,
        constraints={"minimum": 0, "maximum": 1},
    )

    assert language_named("csharp").spell(field) == "long"
