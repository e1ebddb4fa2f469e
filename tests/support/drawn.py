"""Instances of small documents, without a store around them."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from small_documents import document_of

from pytest_regen.documents import IR, build_ir, read_document
from pytest_regen.documents.ir import DocumentRef
from pytest_regen.languages import find_language
from pytest_regen.strategies import Instances
from pytest_regen.strategies.instances import Source
from pytest_regen.strategies.plans import Plan, Plans
from pytest_regen.strategies.translation import Translation


@dataclass
class StoreLike:
    """What instances need of a store."""

    ir: IR
    path: Path


def ir_of(document: Path) -> IR:
    """Return the IR of its operation, as a store in the document's folder would hold it."""
    read = read_document(document)
    made = build_ir(read, read.find("GET /things"), language=find_language("python"))
    reference = DocumentRef(path=document.name)
    return made.ir.model_copy(update={"document": reference})


def instances_in(
    folder: Path,
    schema: Any,
    components: dict[str, Any] | None = None,
    *,
    version: str = "3.1.0",
) -> dict[str, Instances]:
    """Return the instances of all types of a document whose only operation answers ``schema``."""
    path = folder / "api.json"
    path.write_text(json.dumps(document_of(schema, components, version=version)), "utf-8")
    ir = ir_of(path)
    source = Source(StoreLike(ir, folder))  # type: ignore[arg-type]
    return {type_.name: source.instances(type_.name, 100) for type_ in ir.types}


def plan_of(
    folder: Path,
    schema: Any,
    components: dict[str, Any] | None = None,
    *,
    version: str = "3.1.0",
    direction: Any = "response",
) -> Plan:
    """Return the plan of a schema, which may be of any sort."""
    path = folder / "api.json"
    home = "definitions" if version.startswith("2") else "components/schemas"
    document = document_of({"type": "object"}, {"X": schema, **(components or {})}, version=version)
    path.write_text(json.dumps(document), "utf-8")
    read = read_document(path)
    node = read.references.root
    for step in (*home.split("/"), "X"):
        node = node.child(step)
    translation = Translation(read, direction=direction)
    translation.add_tags()
    return Plans().plan(translation.schema(node))
