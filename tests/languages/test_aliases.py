"""Unions with names, and roots that are lists and maps: written, read, run and refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from pages import ROOT

from pytest_regen.documents import Components, read_document
from pytest_regen.documents.building import build_ir
from pytest_regen.documents.ir import IR
from pytest_regen.languages import find_language
from pytest_regen.prompts import build_prompts, output_mode
from pytest_regen.sources import assemble
from pytest_regen.validation import validate_generated_code


def ref(name: str) -> dict[str, str]:
    """Return a reference to a schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def tagged(kind: str, **more: Any) -> dict[str, Any]:
    """Return an object that says what it is."""
    properties = {"kind": {"const": kind}, **more}
    return {"type": "object", "required": ["kind"], "properties": properties}


SCHEMAS = {
    "Person": tagged("person"),
    "Company": tagged("company", owner=ref("Customer")),
    "Customer": {"oneOf": [ref("Person"), ref("Company")]},
    "Customers": {"type": "array", "items": ref("Customer")},
    "ByName": {"type": "object", "additionalProperties": ref("Person")},
    "Json": {"oneOf": [{"type": "string"}, {"type": "array", "items": ref("Json")}]},
}


def ir_of(folder: Path, language: str) -> IR:
    """Return the IR of the schemas."""
    document = {"openapi": "3.1.0", "info": {}, "paths": {}, "components": {"schemas": SCHEMAS}}
    file = folder / "api.json"
    file.write_text(json.dumps(document), "utf-8")
    return build_ir(read_document(file), Components(()), language=find_language(language)).ir


def written(ir: IR, profile: str = "default") -> dict[str, str]:
    """Return the code of each type as the language writes it."""
    language = find_language(ir.language)
    codes = {}
    for type_ in ir.types:
        mode = output_mode(type_.kind, is_root=False, page=1)
        codes[type_.name] = language.write_page(type_, type_.units, mode, profile=profile)
    return codes


PYTHON = ["ByName = dict[str, Person]", "Customer = Person | Company", "Customers = list[Customer]"]
LINES = {
    ("python", "default"): [
        PYTHON[0],
        'Customer = Annotated[Person | Company, Field(discriminator="kind")]',
        PYTHON[2],
    ],
    ("python", "dataclass"): PYTHON,
    ("python", "typeddict"): PYTHON,
    ("typescript", "default"): [
        "export type ByName = Record<string, Person>;",
        "export type Customer = Person | Company;",
        "export type Customers = Customer[];",
    ],
    ("typescript", "zod"): [
        "export const ByName = z.record(z.string(), Person);",
        'export const Customer = z.discriminatedUnion("kind", [Person, Company]);',
        "export const Customers = z.array(Customer);",
    ],
}


@pytest.mark.parametrize(("language", "profile"), LINES)
def test_an_alias_is_written_below_what_it_is_made_of(
    tmp_path: Path, language: str, profile: str
) -> None:
    """One line, clean under the rules of the language; recursion without an object has none."""
    ir = ir_of(tmp_path, language)
    code = written(ir, profile)

    assert list(code) == ["Company", "Person", "ByName", "Customer", "Customers"]
    assert [text.split("\n")[0] for text in code.values()][2:] == LINES[language, profile]
    source = assemble(list(code.items()), language, profile=profile)
    assert validate_generated_code(source, ir, profile=profile).errors == ()


@pytest.mark.parametrize(
    ("language", "code", "finding"),
    [
        ("python", "Customer: TypeAlias = Union[Company, Person]", ""),
        ("python", "Customer = Person", "'Customer' is 'Person'; it must be"),
        ("python", "Customer = Person | Company | None", "'Customer' is "),
        ("python", "class Customer(ApiModel):\n    kind: str", "it must be an alias"),
        ("typescript", "export type Customer = Company | Person;", ""),
        ("typescript", "export type Customer = Person;", "'Customer' is 'Person'; it must be"),
        ("typescript", "export type Customer = Person | Company | null;", "'Customer' is "),
        ("typescript", "type Customer = Person | Company;", "is not exported"),
        ("typescript", "export interface Customer { kind: string }", "it must be an alias"),
    ],
)
def test_an_alias_is_what_the_document_says(
    tmp_path: Path, language: str, code: str, finding: str
) -> None:
    """Its options in any order, by any spelling; nothing more and nothing less."""
    ir = ir_of(tmp_path, language)
    types = written(ir) | {"Customer": code}
    source = assemble(list(types.items()), language)
    source = source.replace("from typing import ", "from typing import TypeAlias, Union, ", 1)
    issues = validate_generated_code(source, ir).errors

    assert [issue.type_name for issue in issues] == ["Customer"] * bool(finding)
    assert not finding or finding in issues[0].message


def test_a_prompt_asks_for_an_alias_by_its_value(tmp_path: Path) -> None:
    """Without fields; those of other types say nothing of aliases."""
    made = build_prompts(ir_of(tmp_path, "typescript"), language=find_language("typescript"))
    prompts = {prompt.type_name: prompt for prompt in made}

    alias = prompts["Customer"]
    assert "OUTPUT MODE: alias_only" in alias.user
    assert 'TYPE IS: "Person | Company"' in alias.user
    assert (alias.fields, alias.total_pages) == ((), 1)
    assert "alias_only" in alias.system
    assert "alias_only" not in prompts["Person"].system


def test_articles_show_aliases_as_they_are_written() -> None:
    """The lines are those of the first test."""
    article = (ROOT / "docs" / "languages.md").read_text("utf-8")

    assert f"`{PYTHON[1]}`" in article
    assert LINES["typescript", "default"][1] in article
