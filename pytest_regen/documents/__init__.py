"""API descriptions: OpenAPI 3.0 and 3.1 and Swagger 2.0, from the file to the IR."""

from pytest_regen.documents.building import IRBuild, build_ir
from pytest_regen.documents.defects import Defect
from pytest_regen.documents.document import Document, Operation, read_document
from pytest_regen.documents.ir import IR, FieldIR, TypeIR, ir_hash, type_hash
from pytest_regen.documents.naming import NamingRules

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
