"""The parts of a document that stores are made from: responses, requests, schemas with names."""

import difflib
from dataclasses import dataclass
from typing import Final

from pytest_regen import errors
from pytest_regen.documents.document import Document, Operation
from pytest_regen.documents.ir import IR, REQUEST, SCHEMAS, Endpoint
from pytest_regen.documents.places import Defect, JsonNode
from pytest_regen.text import join_names

_MOST_NEAR: Final = 5


@dataclass(frozen=True, slots=True)
class Request:
    """The JSON body that an operation takes."""

    operation: Operation

    def __str__(self) -> str:
        return f"the request of {self.operation}"


@dataclass(frozen=True, slots=True)
class Components:
    """The schemas that have names in a document, or some of them, and what they use."""

    names: tuple[str, ...] = ()
    """As the document has them; all where there are none."""

    def __str__(self) -> str:
        return f"the schemas {join_names(self.names, 'and')}" if self.names else "the schemas"


Part = Operation | Request | Components
"""An operation stands for its response."""


def endpoint_of(part: Part, document: Document, status: str = "") -> Endpoint:
    """Return what ``ir.json`` calls a part; ``status`` is that of a response."""
    match part:
        case Operation():
            return Endpoint(method=part.method, path=part.path, status=status)
        case Request(operation=operation):
            return Endpoint(method=operation.method, path=operation.path, status=REQUEST)
        case Components():
            return Endpoint(method=SCHEMAS.upper(), path=document.home, status=SCHEMAS)


def part_of(ir: IR, document: Document) -> Part:
    """Return the part of ``document`` that ``ir`` was made from.

    Of schemas that were chosen by name, those that are still there.

    Raises:
        UnknownOperationError, UnknownSchemaError: the document no longer has it.
    """
    endpoint = ir.endpoint
    if endpoint.status == SCHEMAS:
        names = ir.schemas or ()
        left = tuple(name for name in names if name in document.named_schemas)
        if names and not left:
            raise _unknown(document, names[0])
        return Components(left)
    operation = document.find(f"{endpoint.method} {endpoint.path}")
    return Request(operation) if endpoint.status == REQUEST else operation


def find_schemas(
    part: Part, document: Document, status: str | None
) -> tuple[str, dict[str, JsonNode]]:
    """Return the schemas that a part begins with, by name, and the status of a response.

    Raises:
        UsageError: the operation has no response of that status, or the document no such schema.
        NothingToGenerateError: there is no JSON schema.
        DocumentDefectError: it cannot be read.
    """
    match part:
        case Operation():
            chosen, schema = _response(part, status)
            return chosen, {f"response {chosen} of {part}": schema}
        case Request(operation=operation):
            if operation.request is None:
                raise errors.NothingToGenerateError(
                    f"{operation} takes no request with a JSON schema",
                    hint="choose an operation with a JSON body, or leave --request out for its "
                    "response",
                )
            return REQUEST, {str(part): _readable(operation.request, str(part))}
        case Components(names=names):
            schemas = document.named_schemas
            if not schemas:
                raise errors.NothingToGenerateError(
                    f"{document.path.name} has no schemas with names",
                    why=f"they stand under {document.home}",
                    hint="name an operation in place of --schemas",
                )
            for name in names:
                if name not in schemas:
                    raise _unknown(document, name)
            return SCHEMAS, {name: schemas[name] for name in names or schemas}


def _unknown(document: Document, name: str) -> errors.UnknownSchemaError:
    near = difflib.get_close_matches(name, document.named_schemas, n=_MOST_NEAR, cutoff=0.5)
    near = near or list(document.named_schemas)[:_MOST_NEAR]
    return errors.UnknownSchemaError(
        f"{document.path.name} has no schema {name!r}",
        hint=f"near matches: {', '.join(near)}" if near else f"look under {document.home}",
    )


def _readable(answer: JsonNode | Defect, what: str) -> JsonNode:
    if isinstance(answer, Defect):
        raise errors.DocumentDefectError(
            f"{what} cannot be read", why=str(answer), hint="correct the document at that place"
        )
    return answer


def _response(operation: Operation, status: str | None) -> tuple[str, JsonNode]:
    """Return the status and the schema of the response to generate."""
    answers, declared = operation.answers, ", ".join(operation.statuses) or "none"
    hint = "choose another operation, or give its response a schema under application/json"
    choices = [code for code, answer in answers.items() if isinstance(answer, JsonNode)]
    if choices:
        hint = f"responses with a JSON schema: {', '.join(choices)}; choose with --status"
    if status is not None:
        # Ranges are written 2xx as well as 2XX.
        spelled = {code.lower(): code for code in reversed(operation.statuses)}
        exact = spelled.get(status.lower())
        if exact is None:
            raise errors.UsageError(
                f"{operation} has no response {status!r}",
                hint=f"choose one of its responses with --status: {declared}",
            )
        what = f"response {exact} of {operation}"
        if exact not in answers:
            raise errors.NothingToGenerateError(f"{what} has no JSON schema", hint=hint)
        return exact, _readable(answers[exact], what)
    first = next((code for code in operation.successes if code in answers), None)
    if first is not None:
        return first, _readable(answers[first], f"response {first} of {operation}")
    raise errors.NothingToGenerateError(
        f"{operation} has no successful response with a JSON schema",
        why=f"its responses are: {declared}",
        hint=hint,
    )
