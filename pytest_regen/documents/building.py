"""From one operation of a document to the IR of its response."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pytest_regen.documents.defects import Defect, DefectLog
from pytest_regen.documents.document import Document, Operation
from pytest_regen.documents.expressions import Expressions, text_in
from pytest_regen.documents.ir import (
    FORMAT,
    IR,
    ArrayOf,
    DocumentRef,
    Endpoint,
    FieldIR,
    MapOf,
    Ref,
    Scalar,
    TypeExpr,
    TypeIR,
    referenced_names,
)
from pytest_regen.documents.naming import NamingRules, give_names
from pytest_regen.documents.places import Node
from pytest_regen.documents.schemas import Schemas
from pytest_regen.errors import DocumentDefectError, UsageError

__all__ = ["IRBuild", "build_ir"]

_MAX_UNWRAPPED: Final = 20
_PARAMETER: Final = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True, slots=True)
class IRBuild:
    """The IR of one operation, and what is wrong or doubtful in the part it was read from."""

    ir: IR
    """``ir.document.path`` is the file's name; a store makes it relative to itself."""
    defects: tuple[Defect, ...]
    """By place; those of the files themselves included."""
    status: str
    """The response that was chosen, as the document writes it."""


def build_ir(
    document: Document,
    operation: Operation,
    *,
    language: NamingRules,
    status: str | None = None,
    language_name: str = "csharp",
) -> IRBuild:
    """Return the IR of one response of ``operation``: its root and every type the root uses.

    Args:
        document: as read by ``read_document``.
        operation: one of ``document.operations``.
        language: makes names of types legal.
        status: the response, exactly; default 200, else the lowest 2xx that is JSON.
        language_name: the name under which the IR records the language.

    Raises:
        UsageError: the operation declares no response of that status.
        DocumentDefectError: the response has no JSON schema, or its root is no object, no enum
            and no array of them.
    """
    chosen, schema = _response(operation, status)
    log = DefectLog()
    schemas = Schemas(document.references, log, has_ref_siblings=document.has_ref_siblings)
    closure = _Closure(Expressions(schemas, log), schemas, log)
    root, is_listed = closure.root(schema, operation, chosen)
    closure.close(root)
    title = text_in(schemas.shape(root).notes, "title")
    places = {key: closure.expressions.types[key][0].place for key in closure.found}
    names = give_names(places.values(), root.place, title, language)
    keys = sorted(closure.found, key=lambda key: (key != str(root.place), names[key]))
    types = [closure.found[key].named(names, is_root=key == str(root.place)) for key in keys]
    key_field = _primary_key(
        types[0], schemas.shape(root).notes, root, operation, log, is_listed=is_listed
    )
    types[0] = types[0].model_copy(update={"primary_key": key_field})
    log.extend(document.references.log.sorted())
    ir = IR(
        endpoint=Endpoint(method=operation.method, path=operation.path, status=chosen),
        language=language_name,
        document=DocumentRef(path=document.path.name, sha256=document.sha256),
        types=tuple(types),
        format=FORMAT,
    )
    return IRBuild(ir, log.sorted(), chosen)


def _response(operation: Operation, status: str | None) -> tuple[str, Node]:
    """Return the status and the schema of the response to generate."""
    schemas = dict(operation.schemas)
    declared = ", ".join(operation.statuses) or "none"
    if status is not None:
        exact = next(
            (known for known in operation.statuses if known.lower() == status.lower()), None
        )
        if exact is None:
            raise UsageError(
                f"{operation} has no response {status!r}",
                hint=f"choose one of its responses with --status: {declared}",
            )
        if exact not in schemas:
            raise DocumentDefectError(
                f"response {exact} of {operation} has no JSON schema",
                hint=_choices(operation),
            )
        return exact, schemas[exact]
    good = sorted(
        (known for known in schemas if re.fullmatch(r"2(\d\d|XX)", known, re.IGNORECASE)),
        key=str.upper,
    )
    if not good:
        raise DocumentDefectError(
            f"{operation} has no successful response with a JSON schema",
            why=f"its responses are: {declared}",
            hint=_choices(operation),
        )
    chosen = "200" if "200" in good else good[0]
    return chosen, schemas[chosen]


def _choices(operation: Operation) -> str:
    if not operation.json_statuses:
        return "choose another operation, or give its response a schema under application/json"
    return (
        f"responses with a JSON schema: {', '.join(operation.json_statuses)}; choose with --status"
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """A type of the closure whose references are still places."""

    schema_id: str
    kind: str
    description: str | None
    fields: tuple[FieldIR, ...] = ()
    enum_values: tuple[str | int, ...] = ()
    enum_names: tuple[str, ...] | None = None

    def named(self, names: Mapping[str, str], *, is_root: bool) -> TypeIR:
        """Return the type with every reference under its declared name."""
        return TypeIR(
            name=names[self.schema_id],
            schema_id=self.schema_id,
            is_root=is_root,
            kind="enum" if self.kind == "enum" else "object",
            description=self.description,
            fields=tuple(
                field.model_copy(update={"type": _renamed(field.type, names)})
                for field in self.fields
            ),
            enum_values=self.enum_values,
            enum_names=self.enum_names,
        )


def _renamed(expression: TypeExpr, names: Mapping[str, str]) -> TypeExpr:
    match expression:
        case Ref(name=place):
            return Ref(name=names[place])
        case ArrayOf(items=items):
            return ArrayOf(items=_renamed(items, names))
        case MapOf(values=values):
            return MapOf(values=_renamed(values, names))
        case Scalar():
            return expression


class _Closure:
    """Every type that the root reaches, and no other."""

    def __init__(self, expressions: Expressions, schemas: Schemas, log: DefectLog) -> None:
        self.expressions = expressions
        self._schemas = schemas
        self._log = log
        self.found: dict[str, _Found] = {}

    def root(self, schema: Node, operation: Operation, status: str) -> tuple[Node, bool]:
        """Return the schema of the root type, and whether arrays stand around it."""
        expression = self.expressions.typed(schema).expression
        is_listed = False
        while isinstance(expression, ArrayOf):
            expression, is_listed = expression.items, True
        if isinstance(expression, Ref):
            return self.expressions.types[expression.name][0], is_listed
        kind = "a map" if isinstance(expression, MapOf) else _said(expression)
        raise DocumentDefectError(
            f"response {status} of {operation} is {'an array of ' if is_listed else ''}{kind}",
            why=self._why(schema),
            hint="a type is generated from an object with properties, from an enum, or from an "
            "array of them; correct the schema, or choose another operation or --status",
        )

    def _why(self, schema: Node) -> str:
        found = self._log.sorted()
        return str(found[0]) if found else f"the schema stands at {schema.place}"

    def close(self, root: Node) -> None:
        """Read the types that ``root`` uses, directly or not."""
        waiting = [str(root.place)]
        while waiting:
            key = waiting.pop()
            if key in self.found:
                continue
            found = self.found[key] = self._read(key)
            for field in found.fields:
                waiting.extend(referenced_names(field.type))

    def _read(self, key: str) -> _Found:
        core, kind = self.expressions.types[key]
        shape, _ = self.expressions.judged(core)
        description = text_in(shape.notes, "description")
        if kind == "enum":
            return _Found(key, kind, description, (), shape.enum or (), shape.labels)
        return _Found(key, kind, description, tuple(self.expressions.fields(core, shape)))


def _said(expression: TypeExpr) -> str:
    name = expression.kind
    return "any value" if name == "any" else f"{'an' if name == 'integer' else 'a'} {name}"


def _primary_key(
    root: TypeIR,
    notes: tuple[Mapping[str, Any], ...],
    node: Node,
    operation: Operation,
    log: DefectLog,
    *,
    is_listed: bool,
) -> str | None:
    """Return the root's key where the document makes it plain; never a guess from a part of a name.

    ``x-primary-key`` says it; so does a path that ends in a parameter called exactly like a
    required field that is never null.
    """
    known = {field.json_name: field for field in root.fields}
    for note in notes:
        declared = note.get("x-primary-key")
        if isinstance(declared, list) and len(declared) == 1:
            declared = declared[0]
        if declared is None or isinstance(declared, bool):
            continue
        if isinstance(declared, str) and declared in known:
            return declared
        log.review(node.place, f"x-primary-key {declared!r:.60} is no single property of the root")
    last = operation.path.rstrip("/").rpartition("/")[2]
    match = _PARAMETER.fullmatch(last)
    field = known.get(match[1]) if match and not is_listed else None
    if field is None or not field.required or field.nullable:
        return None
    is_scalar = isinstance(field.type, Scalar) and field.type.kind in {"string", "integer"}
    return field.json_name if is_scalar else None
