"""From one operation of a document to the IR of its response."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pytest_regen.documents.document import Document, Operation
from pytest_regen.documents.expressions import Expressions, text_in
from pytest_regen.documents.ir import (
    FORMAT,
    IR,
    ArrayOf,
    DocumentRef,
    Endpoint,
    MapOf,
    Ref,
    Review,
    Scalar,
    TypeExpr,
    TypeIR,
    UnionOf,
    referenced_names,
)
from pytest_regen.documents.naming import NamingRules, give_names
from pytest_regen.documents.places import Defect, DefectLog, JsonNode, Pointer
from pytest_regen.documents.schemas import Schemas
from pytest_regen.documents.settling import Found, settle, tag_names
from pytest_regen.errors import DocumentDefectError, NothingToGenerateError, UsageError

__all__ = ["IRBuild", "build_ir", "rebuild_ir"]

_PARAMETER: Final = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True, slots=True)
class IRBuild:
    """The IR of one operation, and what is wrong or doubtful in the part it was read from."""

    ir: IR
    """``ir.document.path`` is the file's name; a store makes it relative to itself."""
    defects: tuple[Defect, ...]
    """By place. Of the files themselves, only those that the operation reaches."""
    status: str
    """The response that was chosen, as the document writes it."""
    schemas: Mapping[str, JsonNode]
    """The schema of each type by the type's name; where several were merged, a node of nodes."""


def rebuild_ir(ir: IR, document: Document, *, language: NamingRules) -> IRBuild:
    """Return the build of what ``ir`` was built from, as the document has it now.

    Raises:
        UnknownOperationError: the document no longer has the operation.
        UsageError, NothingToGenerateError, DocumentDefectError: as ``build_ir`` does.
    """
    endpoint = ir.endpoint
    return build_ir(
        document,
        document.find(f"{endpoint.method} {endpoint.path}"),
        language=language,
        status=endpoint.status,
    )


def build_ir(
    document: Document,
    operation: Operation,
    *,
    language: NamingRules,
    status: str | None = None,
) -> IRBuild:
    """Return the IR of one response of ``operation``: its root and every type the root uses.

    Args:
        document: as read by ``read_document``.
        operation: one of ``document.operations``.
        language: the target language, which makes names of types legal.
        status: the response, exactly; default 200, else the lowest 2xx that is JSON, else
            ``default`` where no success is declared.

    Raises:
        UsageError: the operation declares no response of that status.
        NothingToGenerateError: the response has no JSON schema, or holds plain values only.
        DocumentDefectError: the response cannot be read, or its root is a value of which no type
            can be made.
    """
    log = DefectLog()
    chosen, schema = _response(operation, status, log)
    schemas = Schemas(
        document.references,
        log,
        has_ref_siblings=document.has_ref_siblings,
        has_unions=language.has_unions,
        subtypes=document.subtypes.places if language.has_unions else (),
    )
    expressions = Expressions(schemas, log, document.subtypes, language)
    closure = _Closure(expressions, schemas, log)
    roots, is_wrapped = closure.roots(schema, operation, chosen)
    closure.close(roots)
    if language.has_unions:
        closure.found = settle(closure.found, list(roots), expressions.tags)
    title = text_in(schemas.shape(next(iter(roots.values()))).notes, "title")
    places = {key: expressions.types[key][0].place for key in closure.found}
    names = give_names(
        places.values(),
        [root.place for root in roots.values()],
        title if len(roots) == 1 else None,
        language,
        tag_names(closure.found) | expressions.option_names,
    )
    keys = [*roots, *sorted(closure.found.keys() - roots.keys(), key=names.__getitem__)]
    types = [closure.found[key].with_names(names, is_root=key in roots) for key in keys]
    for number, root in enumerate(roots.values()):
        notes = schemas.shape(root).notes
        key_field = _primary_key(types[number], notes, root, operation, log, is_wrapped=is_wrapped)
        types[number] = types[number].model_copy(update={"primary_key": key_field})
    of_files = document.references.log.in_order()
    reviews: list[Review] = []
    if of_files or log.in_order():
        first = next(iter(roots.values()))
        reached = _Origins(schema.place, first.place, places, expressions, schemas)
        log.extend(filter(reached.has, of_files))
        reviews = [review for each in log.in_order() for review in reached.reviews(each, names)]
    order = {type_.name: number for number, type_ in enumerate(types)}
    ir = IR(
        endpoint=Endpoint(method=operation.method, path=operation.path, status=chosen),
        language=language.name,
        document=DocumentRef(path=document.path.name, sha256=document.sha256),
        types=tuple(types),
        reviews=tuple(sorted(reviews, key=lambda review: order[review.type_name])),
        format=FORMAT,
    )
    read_from = {names[key]: expressions.types[key][0] for key in keys}
    return IRBuild(ir, log.in_order(), chosen, read_from)


def _response(operation: Operation, status: str | None, log: DefectLog) -> tuple[str, JsonNode]:
    """Return the status and the schema of the response to generate."""
    schemas = dict(operation.schemas)
    broken = dict(operation.broken)
    if status is not None:
        return _exact_response(operation, status)
    for candidate in operation.successes:
        if candidate in schemas:
            return candidate, schemas[candidate]
        if candidate in broken:
            log.extend([broken[candidate]])
    defects = log.in_order()
    if defects:
        raise DocumentDefectError(
            f"the successful response of {operation} cannot be read",
            why=str(defects[0]),
            hint="correct the document at that place",
        )
    raise NothingToGenerateError(
        f"{operation} has no successful response with a JSON schema",
        why=f"its responses are: {', '.join(operation.statuses) or 'none'}",
        hint=_choices(operation),
    )


def _exact_response(operation: Operation, status: str) -> tuple[str, JsonNode]:
    exact = next((known for known in operation.statuses if known.lower() == status.lower()), None)
    if exact is None:
        raise UsageError(
            f"{operation} has no response {status!r}",
            hint="choose one of its responses with --status: "
            f"{', '.join(operation.statuses) or 'none'}",
        )
    schemas, broken = dict(operation.schemas), dict(operation.broken)
    if exact in broken:
        raise DocumentDefectError(
            f"response {exact} of {operation} cannot be read",
            why=str(broken[exact]),
            hint="correct the document at that place",
        )
    if exact not in schemas:
        raise NothingToGenerateError(
            f"response {exact} of {operation} has no JSON schema", hint=_choices(operation)
        )
    return exact, schemas[exact]


def _choices(operation: Operation) -> str:
    if not operation.json_statuses:
        return "choose another operation, or give its response a schema under application/json"
    return (
        f"responses with a JSON schema: {', '.join(operation.json_statuses)}; choose with --status"
    )


class _Closure:
    """Every type that the root reaches, and no other."""

    def __init__(self, expressions: Expressions, schemas: Schemas, log: DefectLog) -> None:
        self.expressions = expressions
        self._schemas = schemas
        self._log = log
        self.found: dict[str, Found] = {}

    def roots(
        self, schema: JsonNode, operation: Operation, status: str
    ) -> tuple[dict[str, JsonNode], bool]:
        """Return the schemas of the root types, and whether arrays or maps stand around them.

        There are several where the response is a union.
        """
        whole = self.expressions.type_of(schema).expression
        expression = _unwrapped(whole)
        names = _root_names(expression)
        if names:
            types = self.expressions.types
            return {name: types[name][0] for name in names}, whole is not expression
        defects = self._log.in_order()
        what = f"response {status} of {operation} is {_describe(whole)}"
        if expression.kind in {"any", "union"} and defects:
            raise DocumentDefectError(
                what,
                why=str(defects[0]),
                hint="a type is generated from an object with properties, from an enum, or from "
                "arrays and maps of them; correct the schema, or choose another operation or "
                "--status",
            )
        raise NothingToGenerateError(
            what,
            why="plain values need no type: only objects with properties and enums are generated",
            hint="read the response as it is, or choose another operation or --status",
        )

    def close(self, roots: Iterable[str]) -> None:
        """Read the types that ``roots`` use, directly or not."""
        waiting = list(roots)
        while waiting:
            key = waiting.pop()
            if key in self.found:
                continue
            found = self.found[key] = self._read(key)
            for field in found.fields:
                waiting.extend(referenced_names(field.type))

    def _read(self, key: str) -> Found:
        core, kind = self.expressions.types[key]
        shape, _ = self.expressions.classify(core)
        description = text_in(shape.notes, "description")
        if kind == "enum":
            return Found(key, kind, description, (), shape.enum or (), shape.labels)
        return Found(key, kind, description, tuple(self.expressions.fields(core, shape)))


def _unwrapped(expression: TypeExpr) -> TypeExpr:
    """Return what is inside the arrays and maps."""
    while isinstance(expression, ArrayOf | MapOf):
        expression = expression.items if isinstance(expression, ArrayOf) else expression.values
    return expression


def _root_names(expression: TypeExpr) -> dict[str, None]:
    """Return the types that a response is, without those that they use in turn."""
    match _unwrapped(expression):
        case Ref(name=name):
            return {name: None}
        case UnionOf(options=options):
            return {name: None for option in options for name in _root_names(option)}
        case _:
            return {}


def _describe(expression: TypeExpr, *, is_plural: bool = False) -> str:
    """Return in words what a response without a type of its own is: ``an array of strings``."""
    match expression:
        case ArrayOf(items=inner):
            word, rest = "array", f" of {_describe(inner, is_plural=True)}"
        case MapOf(values=inner):
            word, rest = "map", f" of {_describe(inner, is_plural=True)}"
        case Scalar(kind="any"):
            return "any values" if is_plural else "any value"
        case UnionOf(options=options):
            return " or ".join(_describe(option, is_plural=is_plural) for option in options)
        case _:
            word, rest = expression.kind, ""
    if is_plural:
        return f"{word}s{rest}"
    return f"{'an' if word[0] in 'ai' else 'a'} {word}{rest}"


class _Origins:
    """Which types and fields of an IR were read from which places of the document."""

    def __init__(
        self,
        schema: Pointer,
        root: Pointer,
        types: Mapping[str, Pointer],
        expressions: Expressions,
        schemas: Schemas,
    ) -> None:
        self._root = str(root)
        cores = frozenset(types.values())
        owners: dict[Pointer, list[tuple[str, str | None]]] = {
            place: [] for place in schemas.places_read(schema, stop=cores)
        }
        for key, core in types.items():
            for place in schemas.places_read(core):
                owners.setdefault(place, []).append((key, None))
            for name, start in expressions.fields_read.get(key, {}).items():
                for place in schemas.places_read(start, stop=cores) - cores:
                    owners.setdefault(place, []).append((key, name))
        self._owners = {str(place): found for place, found in owners.items()}
        """By place: types, by theirs, and the fields that were read from it."""

    def has(self, defect: Defect) -> bool:
        """Return whether the IR was read from the place of a defect, or from inside it."""
        inside = defect.where + "/"
        return bool(self._at(defect.where)) or any(
            place.startswith(inside) for place in self._owners
        )

    def reviews(self, defect: Defect, names: Mapping[str, str]) -> Iterator[Review]:
        """Yield what validation is to say about a defect: on each type or field it concerns."""
        found = self._owners.get(self._at(defect.where) or "") or [(self._root, None)]
        for key, field in dict.fromkeys(found):
            if field is None and any(k == key and f is not None for k, f in found):
                continue  # Said once, where it is most precise.
            yield Review(
                type_name=names[key],
                field=field,
                where=defect.where,
                message=defect.message,
                detail=defect.detail,
            )

    def _at(self, where: str) -> str | None:
        """Return the innermost place that was read around ``where``."""
        while where not in self._owners:
            where, slash, _ = where.rpartition("/")
            if not slash:
                return None
        return where


def _primary_key(
    root: TypeIR,
    notes: tuple[Mapping[str, Any], ...],
    node: JsonNode,
    operation: Operation,
    log: DefectLog,
    *,
    is_wrapped: bool,
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
    field = known.get(match[1]) if match and not is_wrapped else None
    if field is None or not field.required or field.nullable:
        return None
    is_scalar = isinstance(field.type, Scalar) and field.type.kind in {"string", "integer"}
    return field.json_name if is_scalar else None
