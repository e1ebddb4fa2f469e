"""Repairs of types that pass by testing less are found, and honest ones are not.

``cheats.json`` was written from reports of what models do, before the guard was.
"""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

from tables import each

from pytest_regen.documents.ir import IR, TypeIR
from pytest_regen.languages import find_language, find_weaknesses
from pytest_regen.prompts import output_mode
from pytest_regen.sources import assemble
from pytest_regen.validation import ValidationResult, validate_by_type

CHEATS: Final = json.loads(Path(__file__).with_name("cheats.json").read_text("utf-8"))
NO_CHEATS: Final = {"eq false", "default!"}
"""Two of these are let pass: equality by identity passes nothing, and ``default!`` is as accepted
as the keyword."""


def field(name: str, type_: dict[str, Any], *flags: str, **constraints: object) -> dict[str, Any]:
    """Return a field."""
    marks = dict.fromkeys(flags, True)
    return {"json_name": name, "type": type_, "constraints": constraints, **marks}


def ship_ir(language: str) -> IR:
    """Return a type with limits of every sort, and two that it uses."""
    text = {"kind": "string"}
    fields = [
        field("id", {"kind": "integer", "format": "int64"}, "required", minimum=1),
        field("name", text, "required", minLength=1, maxLength=40),
        field("imo", text, "required", pattern="^[0-9]{7}$"),
        field("length", {"kind": "number"}, minimum=0, maximum=500),
        field("flag", {"kind": "ref", "name": "Flag"}, "required"),
        field("berth", {"kind": "ref", "name": "Berth"}, "nullable"),
        field("tags", {"kind": "array", "items": text}, "required", maxItems=5),
        field("built", {"kind": "string", "format": "date-time"}, "required"),
        field("meta", {"kind": "map", "values": text}),
    ]
    number = field("number", {"kind": "integer"}, "required")
    types: list[dict[str, Any]] = [
        {"name": "Ship", "is_root": True, "kind": "object", "fields": fields},
        {"name": "Flag", "kind": "enum", "enum_values": ["red", "light-green"]},
        {"name": "Berth", "kind": "object", "fields": [number]},
    ]
    types = [{"schema_id": f"#/{type_['name']}", **type_} for type_ in types]
    endpoint = {"method": "GET", "path": "/ships"}
    return IR.of({"endpoint": endpoint, "language": language, "types": types})


def ship_texts(language: str, profile: str) -> dict[str, str]:
    """Return the right code of each type."""
    target, codes = find_language(language), {}
    for type_ in ship_ir(language).types:
        mode = output_mode(type_.kind, is_root=type_.is_root, page=1)
        codes[type_.name] = target.write_page(type_, type_.units, mode, profile=profile)
    return codes


def mark(text: str, number: int) -> str:
    """Return code or an IR in which the types have names of their own."""
    return re.sub(r"\b(Ship|Flag|Berth)\b", rf"\g<1>{number}", text)


def cheated(cheat: dict[str, str]) -> tuple[str, str]:
    """Return the right code of the type, and what stands in its place."""
    right = ship_texts(cheat["language"], cheat["profile"])[cheat["type"]]
    assert cheat["right"] in right
    return right, right.replace(cheat["right"], cheat["cheat"], 1)


@cache
def validated(language: str, profile: str) -> dict[str, ValidationResult]:
    """Return what is said of all cheats in one source, because each source starts an interpreter.

    The types of a cheat bear its number.
    """
    ir, codes, types = ship_ir(language), dict[str, str](), list[TypeIR]()
    for number, cheat in enumerate(CHEATS):
        if (cheat["language"], cheat["profile"]) == (language, profile):
            texts = {**ship_texts(language, profile), cheat["type"]: cheated(cheat)[1]}
            codes |= {f"{name}{number}": mark(text, number) for name, text in texts.items()}
            types += IR.model_validate_json(mark(ir.model_dump_json(), number)).types
    source = assemble([*codes.items()], language, namespace="Api", profile=profile)
    return validate_by_type(source, ir.model_copy(update={"types": tuple(types)}), profile=profile)


@each(
    ("number", "cheat"),
    [row for row in enumerate(CHEATS) if row[1]["what"] not in NO_CHEATS],
    ids=lambda value: str(value if isinstance(value, int) else value["what"]),
)
def test_a_cheat_is_found(number: int, cheat: dict[str, str]) -> None:
    """By the validator alone, or beside the right code; and beside itself it is no cheat."""
    (right, code), target = cheated(cheat), find_language(cheat["language"])
    type_ = next(type_ for type_ in ship_ir(target.name).types if type_.name == cheat["type"])
    results = validated(target.name, cheat["profile"])

    weaknesses = find_weaknesses(target, type_, right, code)

    assert weaknesses or any(
        results[f"{name}{number}"].has_errors for name in ("Ship", "Flag", "Berth")
    )
    assert all(found.message and found.detail for found in weaknesses)
    assert not find_weaknesses(target, type_, code, code)
    assert not results[f"Berth{number}"].has_errors


@each(
    ("language", "right", "wrong", "other"),
    [
        (
            "typescript",
            "meta?: Record<string, string>;",
            "meta?: string;",
            "meta?: { [key: string]: string };",
        ),
        (
            "csharp",
            "[Required]\n    public required string Name",
            "public required string Name",
            "[JsonRequired]\n    public string Name",
        ),
        (
            "python",
            "id: int = Field(ge=1)",
            "id: str = Field(ge=1)",
            "id: Annotated[int, Field(ge=1)]",
        ),
    ],
)
def test_an_honest_repair_may_be_written_in_another_way(
    language: str, right: str, wrong: str, other: str
) -> None:
    """A map, a demand and a limit, each in a form that the validator accepts."""
    texts, ir = ship_texts(language, "default"), ship_ir(language)
    assert right in texts["Ship"]
    old, new = (texts["Ship"].replace(right, each, 1) for each in (wrong, other))
    source = assemble([*{**texts, "Ship": new}.items()], language, namespace="Api")

    assert not any(found.has_errors for found in validate_by_type(source, ir).values())
    assert not find_weaknesses(find_language(language), ir.types[0], old, new)


@each("mode", ["before", "wrap", "after"])
def test_a_validator_of_pydantic_may_check_and_not_change(mode: str) -> None:
    right, type_ = ship_texts("python", "default")["Ship"], ship_ir("python").types[0]
    validator = f"@pydantic.field_validator('name', mode='{mode}')\n    def own(cls, *args): ..."
    code = right.replace("    meta:", f"    {validator}\n\n    meta:")

    weaknesses = find_weaknesses(find_language("python"), type_, right, code)

    assert len(weaknesses) == (mode != "after")
    assert all("changes values by" in weakness.message for weakness in weaknesses)


@each("language", ["csharp", "python", "typescript"])
@each("code", ["", "class (", "\ud800"])
def test_no_code_is_too_odd(language: str, code: str) -> None:
    """What cannot be read is compared as far as it can be."""
    right = ship_texts(language, "default")["Ship"]
    type_ = ship_ir(language).types[0]
    target = find_language(language)

    assert not find_weaknesses(target, type_, right, code)
    assert not find_weaknesses(target, type_, code, right)
