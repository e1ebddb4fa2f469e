"""API descriptions: OpenAPI 3.0 and 3.1 and Swagger 2.0, from the file to the IR."""

from typing import TYPE_CHECKING

from pytest_regen.facade import lazy

if TYPE_CHECKING:
    from pytest_regen.documents.building import IRBuild, build_ir, rebuild_ir
    from pytest_regen.documents.document import Document, Operation, read_document
    from pytest_regen.documents.ir import IR, FieldIR, TypeIR, ir_hash, type_hash
    from pytest_regen.documents.naming import NamingRules
    from pytest_regen.documents.parts import Components, Part, Request
    from pytest_regen.documents.places import Defect
else:
    __getattr__, __dir__ = lazy(__name__)

__all__ = [
    "IR",
    "Components",
    "Defect",
    "Document",
    "FieldIR",
    "IRBuild",
    "NamingRules",
    "Operation",
    "Part",
    "Request",
    "TypeIR",
    "build_ir",
    "ir_hash",
    "read_document",
    "rebuild_ir",
    "type_hash",
]
