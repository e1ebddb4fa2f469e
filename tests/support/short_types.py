"""Small schemas that tests share, and types written in short."""

from pathlib import Path
from typing import Any

from small_documents import build, build_field

from pytest_regen.documents import TypeIR

PET = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}
NULL_OBJECT = {"type": "object", "nullable": True, "additionalProperties": False}
COLOUR = {"type": "string", "enum": ["red", "green"]}


def ref(name: str, **siblings: Any) -> dict[str, Any]:
    """Return a reference to a component, with what stands beside it."""
    return {"$ref": f"#/components/schemas/{name}", **siblings}


def spelled(expression: Any) -> str:
    """Return a type expression in short.

    ``[]`` is an array, ``{}`` a map, ``|`` a union, ``<x>`` its discriminator, ``:`` a format.
    """
    data = expression.model_dump()
    match data["kind"]:
        case "ref":
            return str(data["name"])
        case "array":
            return f"[{spelled(expression.items)}]"
        case "map":
            return f"{{{spelled(expression.values)}}}"
        case "union":
            tag = f"<{expression.discriminator}>" if expression.discriminator else ""
            return tag + " | ".join(map(spelled, expression.options))
        case kind:
            return str(kind) + (f":{data['format']}" if data["format"] else "")


def type_of(folder: Path, schema: Any, components: dict[str, Any] | None = None, **kw: Any) -> str:
    """Return the type of a field in short."""
    return spelled(build_field(folder, schema, components, **kw)[0].type)


def root_of(folder: Path, schema: Any, components: dict[str, Any] | None = None) -> TypeIR:
    """Return the root type of a response."""
    root = build(folder, schema, components).ir.root
    assert root is not None
    return root


def fields_of(type_: TypeIR | None) -> dict[str, str]:
    """Return the fields of a type: ``!`` required, ``?`` nullable."""
    assert type_ is not None
    return {
        field.json_name: spelled(field.type) + "!" * field.required + "?" * field.nullable
        for field in type_.fields
    }
