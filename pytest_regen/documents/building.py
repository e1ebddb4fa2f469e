"""From one part of a document, such as the response of an operation, to its IR."""

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
from pytest_regen.documents.parts import (
    Components,
    Part,
    Request,
    endpoint_of,
    find_schemas,
    part_of,
)
from pytest_regen.documents.places import Defect, DefectLog, JsonNode, Pointer
from pytest_regen.documents.schemas import Schemas
from pytest_regen.documents.settling import Found, settle, tag_names
from pytest_regen.errors import DocumentDefectError, NothingToGenerateError

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
    skipped: Mapping[str, str]
    """Schemas with names that are no types by themselves, and what they are."""


def rebuild_ir(ir: IR, document: Document, *, language: NamingRules) -> IRBuild:
    """Return the build of what ``ir`` was built from, as the document has it now.

    Raises:
        UnknownOperationError, UnknownSchemaError: the document no longer has the part.
        UsageError, NothingToGenerateError, DocumentDefectError: as ``build_ir`` does.
    """
    part = part_of(ir, document)
    status = ir.endpoint.status if isinstance(part, Operation) else None
    return build_ir(document, part, language=language, status=status)


def build_ir(
    document: Document, part: Part, *, language: NamingRules, status: str | None = None
) -> IRBuild:
    """Return the IR of one part of a document: its roots, and every type that they use.

    Args:
        document: as read by ``read_document``.
        part: one of ``document.operations``, whose response is read; its ``Request``; or
            ``Components``, the schemas with names, none of which is a root.
        language: the target language, which makes names of types legal.
        status: the response, exactly; default 200, else the lowest 2xx that is JSON, else
            ``default`` where no success is declared.

    Raises:
        UsageError: the operation declares no response of that status, or there is no such schema.
        NothingToGenerateError: there is no JSON schema, or it holds plain values only.
        DocumentDefectError: the part cannot be read, or its root is a value of which no type can
            be made.
    """
    log = DefectLog()
    chosen, starts = find_schemas(part, document, status, log)
    schemas = Schemas(
        document.references,
        log,
        has_ref_siblings=document.has_ref_siblings,
        has_unions=language.has_unions,
        subtypes=document.subtypes.places if language.has_unions else (),
    )
    expressions = Expressions(
        schemas, log, document.subtypes, language, is_request=isinstance(part, Request)
    )
    closure = _Closure(expressions, schemas, log)
    begun, is_wrapped, skipped = closure.begin(starts, is_whole=isinstance(part, Components))
    closure.close(begun)
    roots = {} if isinstance(part, Components) else begun
    if language.has_unions:
        closure.found = settle(closure.found, list(begun), expressions.tags)
    titles = [text_in(schemas.shape(root).notes, "title") for root in roots.values()]
    places = {key: expressions.types[key][0].place for key in closure.found}
    names = give_names(
        places.values(),
        [root.place for root in roots.values()],
        titles[0] if len(titles) == 1 else None,
        language,
        {"#": document.name} | tag_names(closure.found) | expressions.option_names,
    )
    keys = [*roots, *sorted(closure.found.keys() - roots.keys(), key=names.__getitem__)]
    types = [closure.found[key].with_names(names, is_root=key in roots) for key in keys]
    for number, root in enumerate(roots.values()):
        notes = schemas.shape(root).notes
        key_field = _primary_key(types[number], notes, root, part, log, is_wrapped=is_wrapped)
        types[number] = types[number].model_copy(update={"primary_key": key_field})
    of_files = document.references.log.in_order()
    reviews: list[Review] = []
    if of_files or log.in_order():
        first = expressions.types[keys[0]][0]
        begins = [schema.place for schema in starts.values()]
        reached = _Origins(begins, first.place, places, expressions, schemas)
        log.extend(filter(reached.has, of_files))
        reviews = [review for each in log.in_order() for review in reached.reviews(each, names)]
    order = {type_.name: number for number, type_ in enumerate(types)}
    ir = IR(
        endpoint=endpoint_of(part, document, chosen),
        language=language.name,
        document=DocumentRef(path=document.path.name),
        schemas=part.names or None if isinstance(part, Components) else None,
        types=tuple(types),
        reviews=tuple(sorted(reviews, key=lambda review: order[review.type_name])),
        format=FORMAT,
    )
    read_from = {names[key]: expressions.types[key][0] for key in keys}
    return IRBuild(ir, log.in_order(), chosen, read_from, skipped)


class _Closure:
    """Every type that the root reaches, and no other."""

    def __init__(self, expressions: Expressions, schemas: Schemas, log: DefectLog) -> None:
        self.expressions = expressions
        self._schemas = schemas
        self._log = log
        self.found: dict[str, Found] = {}

    def begin(
        self, starts: Mapping[str, JsonNode], *, is_whole: bool
    ) -> tuple[dict[str, JsonNode], bool, dict[str, str]]:
        """Return the types to begin with, and whether arrays or maps stand around them.

        There are several where a response is a union.

        Args:
            starts: schemas, under what they are called in messages.
            is_whole: whether each of them is to be a type by itself; what else they are is
                returned as well, by name.
        """
        begun: dict[str, JsonNode] = {}
        others: dict[str, str] = {}
        is_wrapped = False
        for title, schema in starts.items():
            whole = self.expressions.type_of(schema).expression
            expression = _unwrapped(whole)
            is_wrapped |= whole is not expression
            types = self.expressions.types
            begun.update((name, types[name][0]) for name in _root_names(expression))
            if not isinstance(whole, Ref):
                others[title] = _describe(whole)
        if begun:
            return begun, is_wrapped, others if is_whole else {}
        first, described = next(iter(others.items()))
        expression = _unwrapped(self.expressions.type_of(starts[first]).expression)
        defects = self._log.in_order()
        what = f"{first} is {described}"
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
        case Ref():
            word, rest = "type", ""
        case UnionOf(options=options) if _root_names(expression):
            word, rest = "union", f" of {len(options)}"
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
        begins: Iterable[Pointer],
        root: Pointer,
        types: Mapping[str, Pointer],
        expressions: Expressions,
        schemas: Schemas,
    ) -> None:
        self._root = str(root)
        cores = frozenset(types.values())
        owners: dict[Pointer, list[tuple[str, str | None]]] = {
            place: [] for begin in begins for place in schemas.places_read(begin, stop=cores)
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
    part: Part,
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
    operation = part.operation if isinstance(part, Request) else part
    path = operation.path if isinstance(operation, Operation) else ""
    last = path.rstrip("/").rpartition("/")[2]
    match = _PARAMETER.fullmatch(last)
    field = known.get(match[1]) if match and not is_wrapped else None
    if field is None or not field.required or field.nullable:
        return None
    is_scalar = isinstance(field.type, Scalar) and field.type.kind in {"string", "integer"}
    return field.json_name if is_scalar else None
