"""From one part of a document, such as the response of an operation, to its IR."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import chain
from typing import Any, Final

from pytest_regen.documents import ir as nodes
from pytest_regen.documents import parts
from pytest_regen.documents.document import Document, Operation
from pytest_regen.documents.expressions import Expressions, text_in
from pytest_regen.documents.ir import FORMAT, IR, TypeIR
from pytest_regen.documents.naming import NamingRules, give_names
from pytest_regen.documents.places import Defect, DefectLog, JsonNode, pointer_segments
from pytest_regen.documents.reading import References
from pytest_regen.documents.schemas import Schemas
from pytest_regen.documents.unions import close, settle, tag_names
from pytest_regen.errors import DocumentDefectError, NothingToGenerateError

_WRAPS: Final = {"array": "List", "map": "Map"}
"""What follows the name of what an answer holds, in the name of the answer."""
_PARAMETER: Final = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True, slots=True)
class IRBuild:
    """The IR of one operation, and what is wrong or doubtful in the part it was read from."""

    ir: IR
    """``ir.document.path`` is the file's name; a store makes it relative to itself."""
    defects: tuple[Defect, ...]
    """By place. Of the files themselves, only those that the operation reaches."""
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
    part = parts.part_of(ir, document)
    status = ir.endpoint.status if isinstance(part, Operation) else None
    return build_ir(document, part, language=language, status=status)


def build_ir(
    document: Document, part: parts.Part, *, language: NamingRules, status: str | None = None
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
    chosen, starts = parts.find_schemas(part, document, status)
    schemas = Schemas(
        document.references,
        log,
        has_ref_siblings=document.has_ref_siblings,
        has_unions=language.has_unions,
        subtypes=document.subtypes.places if language.has_unions else (),
    )
    # What only goes the other way is never there: passwords of a request, ids of a response.
    absent = "readOnly" if isinstance(part, parts.Request) else "writeOnly"
    expressions = Expressions(schemas, log, document.subtypes, language, absent)
    wholes = {title: expressions.root_of(schema) for title, schema in starts.items()}
    # Several where an answer is a union of them.
    begun = list(dict.fromkeys(chain.from_iterable(map(nodes.referenced_names, wholes.values()))))
    descriptions = {
        title: f"{'an' if e.kind[0] in 'ai' else 'a'} {e.kind}" if e.kind != "any" else "any value"
        for title, e in wholes.items()
        if not isinstance(e, nodes.Ref)
    }
    if not begun:
        first, expression = next(iter(wholes.items()))
        what, defects = f"{first} is {descriptions[first]}", log.in_order()
        # Told with the first of its defects, because that may be why nothing is left.
        if defects and {e.kind for e in nodes.expressions_in(expression)} & {"any", "union"}:
            hint = (
                "a type is generated from an object with properties, from an enum, or from arrays "
                "and maps of them; correct the schema, or choose another operation or --status"
            )
            raise DocumentDefectError(what, why=str(defects[0]), hint=hint)
        raise NothingToGenerateError(
            what,
            why="plain values need no type: only objects with properties and enums are generated",
            hint="read the response as it is, or choose another operation or --status",
        )
    roots = [] if isinstance(part, parts.Components) else begun
    types = close(expressions.type_at, begun)
    if language.has_unions:
        types = settle(types, begun, expressions.tags)
    cores = {key: expressions.types[key][0] for key in types}
    # What an array, a map or a union of the answer holds is what people look for by its name.
    main = list(dict.fromkeys(name for key in roots for name in _held(types[key])))
    titles = [text_in(schemas.shape(cores[key]).notes, "title") for key in main]
    wraps = {
        key: _WRAPS.get(types[key].fields[0].type.kind, "") for key in roots if key not in main
    }
    names = give_names(
        [core.place for core in cores.values()],
        [cores[key].place for key in main],
        titles[0] if len(titles) == 1 else None,
        language,
        {"#": document.name} | tag_names(types) | expressions.option_names | wraps,
    )
    order = [*main, *sorted(types.keys() - set(main), key=names.__getitem__)]
    # An alias stands after what it is made of, because Python and zod make its value at once.
    aliases = [key for key in sorted(types, key=names.__getitem__) if types[key].kind == "alias"]
    made_of = {key: [name for name in _held(types[key]) if name in aliases] for key in aliases}
    order = [key for key in order if key not in made_of]
    order += TopologicalSorter(made_of).static_order()
    is_wrapped = any(wraps.values()) or any(
        isinstance(w, nodes.ArrayOf | nodes.MapOf) for w in wholes.values()
    )
    for key in main:
        notes = schemas.shape(cores[key]).notes
        primary = _primary_key(types[key], notes, cores[key], part, log, is_wrapped=is_wrapped)
        types[key] = types[key].model_copy(update={"primary_key": primary})
    for key in roots:
        types[key] = types[key].model_copy(update={"is_root": True})
    of_files = document.references.log.in_order()
    reviews: list[nodes.Review] = []
    if of_files or log.in_order():
        owners = _owners(starts.values(), cores, document.references)
        log.extend(
            defect
            for defect in of_files
            if _owned(defect.where, owners) is not None
            or any(place.startswith(defect.where + "/") for place in owners)
        )
        for defect in log.in_order():
            where = defect.where
            # What no type was read from is told of the first type, so that nobody misses it.
            for key in dict.fromkeys(_owned(where, owners) or order[:1]):
                # Merged types have places that nothing stands at; their fields are found as well.
                below = where.removeprefix(key).partition("/properties/")[2].partition("/")[0]
                field = "".join(pointer_segments("/" + below))
                review = nodes.Review(
                    type_name=names[key],
                    field=field if where.startswith(key) and field in types[key].units else None,
                    where=where,
                    message=defect.message,
                    detail=defect.detail,
                )
                reviews.append(review)
    positions = {names[key]: number for number, key in enumerate(order)}

    def with_name(expression: nodes.TypeExpr) -> nodes.TypeExpr:
        return (
            nodes.Ref(name=names[expression.name])
            if isinstance(expression, nodes.Ref)
            else expression
        )

    declared = (
        nodes.with_expressions(types[key], with_name).model_copy(update={"name": names[key]})
        for key in order
    )
    ir = IR(
        endpoint=parts.endpoint_of(part, document, chosen),
        language=language.name,
        document=nodes.DocumentRef(path=document.path.name),
        schemas=part.names or None if isinstance(part, parts.Components) else None,
        types=tuple(declared),
        reviews=tuple(sorted(reviews, key=lambda review: positions[review.type_name])),
        format=FORMAT,
    )
    skipped = descriptions if isinstance(part, parts.Components) else {}
    return IRBuild(ir, log.in_order(), {names[key]: cores[key] for key in order}, skipped)


def _held(type_: TypeIR) -> list[str]:
    """Return the places of the types that an alias is made of, or the type's own."""
    is_alias = type_.kind == "alias"
    return [*nodes.referenced_names(type_.fields[0].type)] if is_alias else [type_.schema_id]


def _owners(
    starts: Iterable[JsonNode], cores: Mapping[str, JsonNode], references: References
) -> dict[str, list[str]]:
    """Return by place the types that were read from it; none where it is only on the way."""
    owners: dict[str, list[str]] = {}
    types = {core.place for core in cores.values()}
    readers: list[tuple[list[str], JsonNode]]
    readers = [([], start) for start in starts if start.place not in types]
    for keys, first in [*readers, *(([key], core) for key, core in cores.items())]:
        waiting, read = [first], set(types)
        while waiting:
            node = waiting.pop()
            owners.setdefault(str(node.place), []).extend(keys)
            read.add(node.place)
            if isinstance(node.value, dict | list):
                is_list = isinstance(node.value, list)
                inside = map(node.child, range(len(node.value)) if is_list else node.value)
                waiting += [part for part in inside if part.place not in read]
            if isinstance(node.value, dict) and "$ref" in node.value:
                target = references.target(node)
                if isinstance(target, JsonNode) and target.place not in read:
                    waiting.append(target)
    return owners


def _owned(where: str, owners: Mapping[str, list[str]]) -> list[str] | None:
    """Return the types that were read from around a place; ``None`` where nothing was read."""
    while where not in owners:
        where, slash, _ = where.rpartition("/")
        if not slash:
            return None
    return owners[where]


def _primary_key(
    root: TypeIR,
    notes: tuple[Mapping[str, Any], ...],
    node: JsonNode,
    part: parts.Part,
    log: DefectLog,
    *,
    is_wrapped: bool,
) -> str | None:
    """Return the root's key where the document makes it plain; never a guess from a part of a name.

    ``x-primary-key`` says it; so does a path that ends in a parameter called exactly like a
    required field that is never null.
    """
    by_name = {field.json_name: field for field in root.fields}
    for note in notes:
        declared = note.get("x-primary-key")
        if isinstance(declared, list) and len(declared) == 1:
            declared = declared[0]
        # Some tools say it of properties, by true; that names no property of the root.
        if declared is None or isinstance(declared, bool):
            continue
        if isinstance(declared, str) and declared in by_name:
            return declared
        log.review(node.place, f"x-primary-key {declared!r:.60} is not one property of the root")
    operation = part.operation if isinstance(part, parts.Request) else part
    path = operation.path if isinstance(operation, Operation) else ""
    # GET /ships/{shipId}: an answer with a field of that very name is found by it.
    last = path.rstrip("/").rpartition("/")[2]
    match = _PARAMETER.fullmatch(last)
    field = by_name.get(match[1]) if match and not is_wrapped else None
    if field is None or not field.required or field.nullable:
        return None
    is_scalar = isinstance(field.type, nodes.Scalar) and field.type.kind in {"string", "integer"}
    return field.json_name if is_scalar else None
