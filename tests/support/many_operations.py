"""An API description of any number of operations, five pages each, that have no type in common."""

import json
from pathlib import Path
from typing import Any

PAGES = 5
"""Of each operation, with ``FIELDS_PER_PAGE``: two of its answer, one for each of three types."""
FIELDS_PER_PAGE = 10

_KINDS: tuple[dict[str, Any], ...] = (
    {"type": "string"},
    {"type": "integer", "format": "int64"},
    {"type": "boolean"},
    {"type": "array", "items": {"type": "string"}},
    {"type": "string", "format": "date-time"},
)


def write_many_operations(path: Path, count: int) -> Path:
    """Write a document with operations ``GET /v1/harbour0`` and so on; return its path."""
    schemas: dict[str, Any] = {}
    paths: dict[str, Any] = {}
    for number in range(count):
        types = [f"Harbour{number}{part}" for part in ("", "Berth", "Crane", "Pilot")]
        parts = {name.removeprefix(f"Harbour{number}").lower(): name for name in types[1:]}
        schemas |= {name: _schema(name, FIELDS_PER_PAGE - 2) for name in types[1:]}
        schemas[types[0]] = _schema(types[0], 2 * FIELDS_PER_PAGE - len(parts))
        references = {key: {"$ref": f"#/components/schemas/{name}"} for key, name in parts.items()}
        schemas[types[0]]["properties"] |= references
        schema = {"$ref": f"#/components/schemas/{types[0]}"}
        answer = {"description": "ok", "content": {"application/json": {"schema": schema}}}
        paths[f"/v1/harbour{number}"] = {"get": {"responses": {"200": answer}}}
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Many harbours", "version": "1"},
        "paths": paths,
        "components": {"schemas": schemas},
    }
    path.write_text(json.dumps(document), "utf-8")
    return path


def _schema(name: str, fields: int) -> dict[str, Any]:
    properties = {
        f"{name.lower()}_{i}": {**_KINDS[i % len(_KINDS)], "description": f"Field {i} of {name}."}
        for i in range(fields)
    }
    return {"type": "object", "properties": properties, "required": sorted(properties)[::2]}
