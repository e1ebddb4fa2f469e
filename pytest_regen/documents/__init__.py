"""API descriptions: OpenAPI 3.0 and 3.1 and Swagger 2.0, from the file to the IR."""

from typing import TYPE_CHECKING

from pytest_regen.facade import lazy

if TYPE_CHECKING:
    from pytest_regen.documents.building import IRBuild as IRBuild
    from pytest_regen.documents.building import build_ir as build_ir
    from pytest_regen.documents.building import rebuild_ir as rebuild_ir
    from pytest_regen.documents.document import Document as Document
    from pytest_regen.documents.document import Operation as Operation
    from pytest_regen.documents.document import read_document as read_document
    from pytest_regen.documents.ir import IR as IR
    from pytest_regen.documents.ir import FieldIR as FieldIR
    from pytest_regen.documents.ir import TypeIR as TypeIR
    from pytest_regen.documents.ir import ir_hash as ir_hash
    from pytest_regen.documents.parts import Components as Components
    from pytest_regen.documents.parts import Part as Part
    from pytest_regen.documents.parts import Request as Request
    from pytest_regen.documents.places import Defect as Defect
else:
    __getattr__, __dir__ = lazy(__name__)
