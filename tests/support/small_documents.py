"""API descriptions of a few lines, and the IR built from them."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_regen.documents import FieldIR, IRBuild, build_ir, read_document


class PlainNames:
    """The simplest naming rules, because tests of documents know no language.

    Names in ASCII words; the root of ``Project`` is ``ProjectDataObject``.
    """

    name = "csharp"

    def __init__(self, *, has_unions: bool = False) -> None:
        self.has_unions = has_unions

    reserved_type_names = frozenset({"String", "Object", "List"})

    def type_name(self, schema_name: str, *, is_root: bool) -> str:
        """Return the letters and digits of a name, each word with a capital."""
        parts = re.findall(r"[A-Za-z0-9]+", schema_name)
        name = "".join(part[0].upper() + part[1:] for part in parts) or "Unnamed"
        if name[0].isdigit():
            name = "_" + name
        return name + "DataObject" if is_root else name

    def has_enum_member(self, value: str) -> bool:
        """Return whether there is a letter or a digit in ``value``."""
        return bool(value.strip())


def document_of(
    schema: Any, components: Mapping[str, Any] | None = None, *, version: str = "3.1.0"
) -> dict[str, Any]:
    """Return a document whose only operation, GET /things, answers with ``schema``."""
    if version.startswith("2"):
        return {
            "swagger": version,
            "info": {"title": "t", "version": "1"},
            "paths": {"/things": {"get": {"responses": {"200": {"schema": schema}}}}},
            "definitions": dict(components or {}),
        }
    body = {"content": {"application/json": {"schema": schema}}}
    return {
        "openapi": version,
        "info": {"title": "t", "version": "1"},
        "paths": {"/things": {"get": {"responses": {"200": body}}}},
        "components": {"schemas": dict(components or {})},
    }


def build_file(
    path: Path, operation: str = "GET /things", *, has_unions: bool = False, **options: Any
) -> IRBuild:
    """Return the build of one operation of the file at ``path``."""
    document = read_document(path)
    language = PlainNames(has_unions=has_unions)
    return build_ir(document, document.find(operation), language=language, **options)


def build(
    folder: Path,
    schema: Any,
    components: Mapping[str, Any] | None = None,
    *,
    version: str = "3.1.0",
    has_unions: bool = False,
) -> IRBuild:
    """Return the build of a document whose only operation answers with ``schema``."""
    path = folder / "api.json"
    path.write_text(json.dumps(document_of(schema, components, version=version)), "utf-8")
    return build_file(path, has_unions=has_unions)


def build_field(
    folder: Path,
    schema: Any,
    components: Mapping[str, Any] | None = None,
    *,
    version: str = "3.1.0",
    has_unions: bool = False,
) -> tuple[FieldIR, IRBuild]:
    """Return what ``schema`` becomes as the property ``x`` of the root, and the whole build."""
    root = {"type": "object", "properties": {"x": schema}}
    made = build(folder, root, components, version=version, has_unions=has_unions)
    assert made.ir.root is not None
    return made.ir.root.fields[0], made


def messages(made: IRBuild) -> str:
    """Return the defects of a build as lines of text."""
    return "\n".join(map(str, made.defects))
