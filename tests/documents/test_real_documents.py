"""Real API descriptions: each operation is built whole, or its defect is named."""

import json
from pathlib import Path
from typing import Any

import pytest
from small_documents import PlainNames

from pytest_regen.documents import IR, Operation, build_ir, read_document
from pytest_regen.documents.ir import referenced_names
from pytest_regen.errors import DocumentDefectError

REAL = ("uber.swagger-2.0.json", "box-2025.openapi-3.0.json", "discord.openapi-3.1.json")


def check_whole(ir: IR) -> None:
    """Every reference has its type, names are unique, and JSON keeps everything."""
    names = [type_.name for type_ in ir.types]
    assert len({name.casefold() for name in names}) == len(names)
    used = {n for t in ir.types for f in t.fields for n in referenced_names(f.type)}
    assert used | {type_.name for type_ in ir.types if type_.is_root} == set(names)
    assert all(type_.units or type_.kind == "alias" for type_ in ir.types)
    assert IR.model_validate(ir.to_json()) == ir
    for union in (f.type for t in ir.types for f in t.fields if f.type.kind == "union"):
        assert 2 <= len({str(option) for option in union.options}) == len(union.options) <= 64


def reachable_names(root: Any, operation: Operation, status: str) -> set[str]:
    """Return every property name that a response can reach, found by following the raw JSON."""
    names: set[str] = set()
    seen: set[str] = set()
    waiting = [root["paths"][operation.path][operation.method.lower()]["responses"][status]]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            reference = node.get("$ref")
            if isinstance(reference, str) and reference not in seen:
                seen.add(reference)
                target = root
                for step in reference.removeprefix("#/").split("/"):
                    target = target[step.replace("~1", "/").replace("~0", "~")]
                waiting.append(target)
            if isinstance(node.get("properties"), dict):
                names |= node["properties"].keys()
        children = node.values() if isinstance(node, dict) else node
        waiting += [child for child in children if isinstance(child, dict | list)]
    return names


@pytest.mark.parametrize("has_unions", [False, True], ids=["merged", "unions"])
@pytest.mark.parametrize("step", [13, pytest.param(1, marks=pytest.mark.sweep)])
@pytest.mark.parametrize("name", REAL)
def test_operations_are_built_or_name_the_defect(
    shared_specs: Path, name: str, step: int, *, has_unions: bool
) -> None:
    """Each operation with a JSON response yields a whole IR or says what is wrong.

    Without a defect, every property that the response reaches is a field.
    """
    document = read_document(shared_specs / name)
    root = json.loads((shared_specs / name).read_bytes())
    refused, complete = {}, 0
    for operation in document.operations[::step]:
        try:
            made = build_ir(document, operation, language=PlainNames(has_unions=has_unions))
        except DocumentDefectError as error:
            refused[str(operation)] = error.what
            continue
        check_whole(made.ir)
        if not made.defects:
            fields = {field.json_name for type_ in made.ir.types for field in type_.fields} - {""}
            expected = reachable_names(root, operation, made.ir.endpoint.status)
            assert fields == expected, str(operation)
            complete += 1
    assert complete
    assert all(operation in what for operation, what in refused.items())
    unusual = [what for what in refused.values() if "no successful response" not in what]
    assert len(unusual) <= len(document.operations) // 50
    assert document.lost_operations == ()
