"""What docs/languages.md says of TypeScript is true: what is accepted, what is refused, and how."""

import json
import re
from pathlib import Path
from typing import Any

from run_stores import needs_node
from small_documents import document_of
from spelling_tables import TYPE, expression, spellings, tables, verdicts
from tables import each

from pytest_regen.documents.ir import FieldIR
from pytest_regen.languages import find_language
from pytest_regen.regeneration import generate_store
from pytest_regen.sources import assemble
from pytest_regen.stores import RegenStore
from pytest_regen.turns.providers import TemplateProvider
from pytest_regen.validation import validate_generated_code
from pytest_regen.validation.stores import behaviour_of_store

TYPESCRIPT = find_language("typescript")
TYPES = {
    "string": {"type": "string"},
    "string, date-time": {"type": "string", "format": "date-time"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "array of string": {"type": "array", "items": {"type": "string"}},
}
"""Schemas of the rows with spellings that only running refuses."""


SPELLED: dict[tuple[str, str], tuple[str, str]] = {
    ("default", "string"): ("", "`number`"),
    ("default", "array of string"): ("`ReadonlyArray<string>`", ""),
    ("default", "map of integer"): ("`{ [K in string]: number }`", "`object`"),
    ("zod", "string"): ("", '`z.coerce.string()`, `z.string().default("")`'),
    ("zod", "array of string"): ("`z.string().array()`", "`z.array(z.string().optional())`"),
    ("zod", "map of integer"): ("`z.object({}).catchall(z.int())`", ""),
    ("zod", "string or integer"): ("`z.string().or(z.int())`", ""),
}
"""What the tables of types have no room for: right, and WRONG_TYPE."""


RUN = "ROUND_TRIP or ACCEPTS_INVALID, when run"
ROWS = [
    (profile, row | {"right": row["right"] + right, "WRONG_TYPE": row["WRONG_TYPE"] + wrong})
    for profile, table in zip(("default", "zod"), tables("TypeScript"), strict=True)
    for row in table
    for right, wrong in [SPELLED.get((profile, row[TYPE]), ("", ""))]
]


def codes(field: dict[str, Any], spelled: str, profile: str) -> set[str]:
    """Return what is said about a property whose type is spelled so."""
    types = [
        {"name": name, "schema_id": name, "kind": "object", "fields": fields}
        for name, fields in (("T", [field]), ("Shape", []), ("Colour", []))
    ]
    ir = {"endpoint": {"method": "GET", "path": "/"}, "language": "typescript", "types": types}
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


NULLS = ("{}.nullable()", "z.nullable({})", "{}.or(z.null())", "z.union([{}, z.null()])")


@each(("profile", "row"), ROWS, ids=lambda value: str(value)[:40])
def test_the_tables_of_types(profile: str, row: dict[str, str]) -> None:
    """The first spelling is what prompts ask for; what only running refuses, reading lets pass."""
    field = {"json_name": "x", "type": expression(row[TYPE]), "required": True}
    right = spellings(row["right"])

    assert TYPESCRIPT.spell(FieldIR.model_validate(field), profile=profile) == right[0]
    for spelled in (*right, *spellings(row.get(RUN, ""))):
        assert codes(field, spelled, profile) == set(), spelled
    for spelled in spellings(row["WRONG_TYPE"]):
        assert codes(field, spelled, profile) == {"WRONG_TYPE"}, spelled


@each(("profile", "row"), ROWS, ids=lambda value: str(value)[:40])
def test_null_and_absence_decide(profile: str, row: dict[str, str]) -> None:
    """Null where the document has none, or none where it has it, is NULLABILITY."""
    plain = spellings(row["right"])[0]
    forms = ("{} | null", "null | ({})") if profile == "default" else NULLS
    field = {"json_name": "x", "type": expression(row[TYPE]), "required": True}
    nullable = {**field, "nullable": True}
    expected = set() if row[TYPE] == "any" else {"NULLABILITY"}

    assert codes(nullable, plain, profile) == expected
    for form in forms if expected else ():
        assert codes(field, form.format(plain), profile) == expected
        assert codes(nullable, form.format(plain), profile) == set()
    if profile == "zod":
        assert codes({**field, "required": False}, plain, profile) == {"NULLABILITY"}
        assert codes({**field, "required": False}, f"{plain}.optional()", profile) == set()
        assert codes({**field, "required": False}, f"z.optional({plain})", profile) == set()


@needs_node
def test_running_refuses_the_rest(tmp_path: Path) -> None:
    """All spellings that the tables call refused when run, each in a type of its own."""
    types: dict[str, Any] = {}
    spelled: dict[str, str] = {}
    for profile, row in ROWS:
        wrong = spellings(row.get(RUN, ""))
        right = spellings(row["right"]) if profile == "zod" and row[TYPE] in TYPES else []
        for text in (*wrong, *right):
            name = f"{'Wrong' if text in wrong else 'Right'}{len(types)}"
            schema = {"type": "object", "required": ["x"], "properties": {"x": TYPES[row[TYPE]]}}
            types[name], spelled[name] = schema, text
    root = {name: {"$ref": f"#/components/schemas/{name}"} for name in types}
    document = document_of({"type": "object", "properties": root}, types)
    (tmp_path / "api.json").write_text(json.dumps(document), "utf-8")
    made = generate_store(
        tmp_path / "api.json",
        "GET /things",
        tmp_path / "api",
        provider=TemplateProvider(),
        language="typescript",
        profile="zod",
    )
    store = RegenStore.open(made.plan.path)
    source = store.source
    for name, text in spelled.items():
        head, declared, after = source.partition(f"export const {name} = z.object({{\n")
        assert declared
        source = f"{head}{declared}  x: {text},\n{after.partition(chr(10))[2]}"
    store.source_path.write_text(source, "utf-8")
    found = behaviour_of_store(RegenStore.open(store.path))

    assert not found.why_not
    assert set(found.issues) == {name for name in types if name.startswith("Wrong")}


def test_any_is_reviewed() -> None:
    """Where the document allows anything, it is right and weak."""
    field = {"json_name": "x", "type": {"kind": "any"}, "required": True}

    assert codes(field, "any", "default") == codes(field, "z.any()", "zod") == {"REVIEW"}


def told(code: str, profile: str, type_: dict[str, Any]) -> set[str]:
    """Return what is said about the only type of a source, in its block."""
    source = assemble([(type_["name"], code)], TYPESCRIPT, profile=profile)
    ir = {"endpoint": {"method": "GET", "path": "/"}, "language": "typescript", "types": [type_]}
    return {issue.code for issue in validate_generated_code(source, ir, profile=profile).issues}


MORE = {
    "default": {
        "export interface T { x: string; }": "right",
        'export interface T { ["x"]: string, }': "right",
        "export type T = { y?: never } & { x: string };": "PHANTOM_FIELD",
        "function f() { return 1; } export interface T { x: string; }": "FOREIGN_TYPE",
        "interface T { x: string; }": "MISSING_CLASS",
        "export class T { x: string; }": "MISSING_CLASS",
        "export interface T extends Ghost { x: string; }": "UNDECLARED_TYPE",
        'export const enum E { AB = "a-b", C = "c", }': "right",
        'export const E = { AB: "a-b", C: "c" } as const; '
        "export type E = (typeof E)[keyof typeof E];": "right",
        'export type E = "a-b" | "C";': "ENUM_MEMBER",
        'export enum E { AB, C = "c" }': "ENUM_MEMBER",
        "export type E = string;": "MISSING_CLASS",
    },
    "zod": {
        "export const T = z.object({ x: z.string() }); "
        "export interface T extends z.infer<typeof T> {}": "right",
        'import { z } from "zod"; export const T = z.object({ x: z.string() });': "SYNTAX",
        "export const T = z.object({ get x() { return z.string(); } }).loose();": "right",
        "export const T = z.lazy(() => z.object({ x: z.string() }));": "right",
        "const shape = { x: z.string() }; export const T = z.object(shape);": "right",
        "export const TSchema = z.object({ x: z.string() });": "MISSING_CLASS",
        "export const T: z.ZodObject<{ x: z.ZodString }> = z.object({ x: z.string() });": "right",
        'export const E = z.enum({ AB: "a-b", C: "c" });': "right",
        'const VALUES = ["a-b", "c"] as const; export const E = z.enum(VALUES);': "right",
        'export const E = z.literal("a-b").or(z.literal("c"));': "right",
        "export const E = z.string();": "MISSING_CLASS",
    },
}
"""What the tables have no room for."""


@each("profile", ["default", "zod"])
def test_the_tables_of_declarations(profile: str) -> None:
    """Each row is told as its second column says."""
    field = {"json_name": "x", "type": {"kind": "string"}, "required": True}
    object_ = {"name": "T", "schema_id": "T", "kind": "object", "fields": [field]}
    enum = {"name": "E", "schema_id": "E", "kind": "enum", "enum_values": ["a-b", "c"]}
    for code, expected in verdicts("TypeScript", f"profile `{profile}`", MORE[profile]).items():
        type_ = enum if re.search(r"\bE\b", code) else object_
        inferred = re.search(r"const (?!VALUES)([TE]\w*)\b", code)
        needs_type = profile == "zod" and inferred and "infer" not in code
        name = inferred[1] if inferred else ""
        more = f" export type {type_['name']} = z.infer<typeof {name}>;" if needs_type else ""

        assert told(code + more, profile, type_) == expected, code


@each(
    ("words", "constraints", "spelled"),
    [
        ("integer", {"minimum": 0}, "z.int().min(0)"),
        ("number", {"exclusiveMaximum": 9}, "z.number().lt(9)"),
        ("integer", {"multipleOf": 5}, "z.int().multipleOf(5)"),
        ("string", {"minLength": 2, "maxLength": 5}, "z.string().regex(/^.{2,5}$/su)"),
        ("string", {"pattern": "^[a-z]+$"}, "z.string().regex(/^[a-z]+$/u)"),
        ("array of string", {"minItems": 1, "maxItems": 9}, "z.array(z.string()).min(1).max(9)"),
        ("string", {"const": "a"}, 'z.literal("a")'),
    ],
)
def test_the_checks_that_prompts_ask_for(
    words: str, constraints: dict[str, Any], spelled: str
) -> None:
    """They are right, and of lengths those that count other units are right too."""
    type_ = expression(words)
    field = {"json_name": "x", "type": type_, "required": True, "constraints": constraints}
    others = ["z.string().min(2).max(5)"] if "minLength" in constraints else []

    assert TYPESCRIPT.spell(FieldIR.model_validate(field), profile="zod") == spelled
    assert [codes(field, each, "zod") for each in (spelled, *others)] == [set()] * (1 + len(others))


BASE = "z.object({ a: z.string(), b: z.number().optional() })"


@each(
    ("profile", "base", "code"),
    [
        (
            "default",
            "export interface Base { a: string; b?: number }",
            "export interface T extends Base { x: string }",
        ),
        (
            "zod",
            f"export const Base = {BASE}; export type Base = z.infer<typeof Base>;",
            "export const T = Base.extend({ x: z.string() }); export type T = z.infer<typeof T>;",
        ),
    ],
)
def test_a_type_of_another_block_hands_its_fields_down(profile: str, base: str, code: str) -> None:
    """They are neither missing, nor let pass where the type must not have them."""
    a, b, x = (
        {"json_name": name, "type": {"kind": kind}, "required": kind == "string"}
        for name, kind in (("a", "string"), ("b", "number"), ("x", "string"))
    )
    for fields, expected in (([a, b, x], set()), ([a, x], {("T", "PHANTOM_FIELD")})):
        types = [
            {"name": name, "schema_id": name, "kind": "object", "fields": own}
            for name, own in (("T", fields), ("Base", [a, b]))
        ]
        ir = {"endpoint": {"method": "GET", "path": "/"}, "language": "typescript", "types": types}
        source = assemble([("Base", base), ("T", code)], TYPESCRIPT, profile=profile)
        issues = validate_generated_code(source, ir, profile=profile).issues

        assert {(issue.type_name, issue.code) for issue in issues} == expected
