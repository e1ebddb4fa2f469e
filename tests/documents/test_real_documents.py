"""Real API descriptions, and the one that ships as an example."""

from pathlib import Path

import pytest
from plain_names import PlainNames

from pytest_regen.documents import IR, build_ir, read_document
from pytest_regen.documents.ir import referenced_names
from pytest_regen.errors import DocumentDefectError

EXAMPLE = Path(__file__).parents[2] / "examples" / "csharp_dto" / "api.yaml"
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


@pytest.mark.parametrize("has_unions", [False, True], ids=["merged", "unions"])
@pytest.mark.parametrize("step", [13, pytest.param(1, marks=pytest.mark.sweep)])
@pytest.mark.parametrize("name", REAL)
def test_operations_are_built_or_name_the_defect(
    shared_specs: Path, name: str, step: int, *, has_unions: bool
) -> None:
    """Each operation with a JSON response yields a whole IR or says what is wrong."""
    document = read_document(shared_specs / name)
    refused = {}
    for operation in document.operations[::step]:
        try:
            check_whole(
                build_ir(document, operation, language=PlainNames(has_unions=has_unions)).ir
            )
        except DocumentDefectError as error:
            refused[str(operation)] = error.what
    assert all(operation in what for operation, what in refused.items())
    unusual = [what for what in refused.values() if "no successful response" not in what]
    assert len(unusual) <= len(document.operations) // 50
    assert document.lost_operations == ()


def test_the_example_is_of_realistic_size() -> None:
    """The shipped description has every shape that its readers were promised."""
    document = read_document(EXAMPLE)
    made = build_ir(document, document.find("GET /v1/port-calls/{callId}"), language=PlainNames())
    check_whole(made.ir)
    root = made.ir.types[0]
    assert (root.name, root.primary_key) == ("PortCallDataObject", "callId")
    assert len(root.fields) >= 36
    assert len(made.ir.types) >= 25
    assert sum(len(type_.fields) for type_ in made.ir.types) >= 200
    large = [t.enum_values for t in made.ir.types if len(t.enum_values) >= 60]
    assert {type(values[0]) for values in large} == {str, int}
    assert any(t.name in referenced_names(f.type) for t in made.ir.types for f in t.fields)
    names = {field.json_name for type_ in made.ir.types for field in type_.fields}
    assert {"class", "$type", "a/b", "custom-id", "gross/net"} <= names
    assert document.lost_operations == ()
    assert [review.type_name for review in made.ir.reviews] == ["Clearance"]
    assert len(made.defects) == 1
