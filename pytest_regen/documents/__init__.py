"""API descriptions: OpenAPI 3.0 and 3.1 and Swagger 2.0, from the file to the IR.

Names are resolved on first use: whoever only looks at an IR reads no document.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_regen.documents.building import IRBuild, build_ir
    from pytest_regen.documents.document import Document, Operation, read_document
    from pytest_regen.documents.ir import IR, FieldIR, TypeIR, ir_hash, type_hash
    from pytest_regen.documents.naming import NamingRules
    from pytest_regen.documents.places import Defect

__all__ = [  # noqa: RUF022 - plain alphabetical order, as in every folder
    "Defect",
    "Document",
    "FieldIR",
    "IR",
    "IRBuild",
    "NamingRules",
    "Operation",
    "TypeIR",
    "build_ir",
    "ir_hash",
    "read_document",
    "type_hash",
]

_HOMES = {
    "Defect": "places",
    "Document": "document",
    "FieldIR": "ir",
    "IR": "ir",
    "IRBuild": "building",
    "NamingRules": "naming",
    "Operation": "document",
    "TypeIR": "ir",
    "build_ir": "building",
    "ir_hash": "ir",
    "read_document": "document",
    "type_hash": "ir",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import the module that holds ``name``."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
