"""Types as the source spells them, schemas of zod among them, and which hold what values.

A schema is read as the type that it infers: ``z.array(z.int())`` is ``number[]``. What is finer
only running shows.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from pytest_regen.documents.ir import ArrayOf, MapOf, Ref, Scalar, TypeExpr, UnionOf
from pytest_regen.languages.base import TypeRef
from pytest_regen.languages.names import word_set
from pytest_regen.languages.trees import Node, text_of
from pytest_regen.languages.typescript.names import KNOWN_TYPES, literal
from pytest_regen.languages.typescript.schemas import base_call, items_of, returned
from pytest_regen.languages.typescript.tree import child_of, constant, inside, options_of

_UNDEFINED: Final = TypeRef("undefined")
_NULL: Final = TypeRef("null")
_STRING: Final = TypeRef("string")
_HOLDERS: Final[Mapping[str, re.Pattern[str]]] = {
    "string": re.compile(r'string|".*"', re.DOTALL),
    "integer": re.compile(r"number|-?\d.*"),
    "number": re.compile(r"number|-?\d.*"),
    "boolean": re.compile(r"boolean|true|false"),
    "any": re.compile(r"any|unknown"),
}
"""Types that hold a scalar of the IR, and literals of it: which one it must be, running tells."""
_INFERRED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("string", "guid", "iso.date", "iso.datetime"), "string"),
    **dict.fromkeys(("int", "int32", "uint32", "number", "float32", "float64"), "number"),
    **{name: name for name in ("any", "boolean", "null", "undefined", "unknown")},
    "json": "unknown",
}
"""Functions of zod that take a value of JSON as it is, and the type that they infer. Others, like
``z.date()`` and ``z.email()``, take none of it, or not all."""
_ADDED: Final[Mapping[str, tuple[TypeRef, ...]]] = {
    "exactOptional": (_UNDEFINED,),
    "nullable": (_NULL,),
    "nullish": (_NULL, _UNDEFINED),
    "optional": (_UNDEFINED,),
}
_KEEPS: Final = word_set(
    """
    brand check describe finite gt gte int length lt lte max meta min multipleOf negative nonempty
    nonnegative nonpositive positive readonly refine regex safe step superRefine with
    """
)
"""Methods of a schema that change neither its type nor a value: only running tells what they
refuse. Others, such as ``trim``, ``default`` and ``partial``, make another schema of it."""


def spelled_type(node: Node) -> TypeRef:
    """Return a type of the source; ``node`` is what stands behind the colon."""
    return _join(map(_option, options_of(node)))


def _join(options: Iterable[TypeRef]) -> TypeRef:
    """Return the union of some types: each is in it once, and null beside them all."""
    whole = [*options]
    flat = [part for each in whole for part in (each.args if each.name == "|" else (each,))]
    is_nullable = any(each.nullable or each == _NULL for each in (*whole, *flat))
    kept = tuple(dict.fromkeys(replace(each, nullable=False) for each in flat if each != _NULL))
    if len(kept) == 1:
        return replace(kept[0], nullable=is_nullable)
    tag = next((each.qualifier for each in whole if each.qualifier), "")
    return TypeRef("|", kept, is_nullable, tag) if kept else _NULL


def without_undefined(type_: TypeRef) -> TypeRef:
    """Return a type without ``undefined`` among its options."""
    kept = tuple(each for each in type_.args if each != _UNDEFINED)
    if type_.name != "|" or kept == type_.args:
        return type_
    return _join([replace(type_, args=kept)])


def is_optional(type_: TypeRef) -> bool:
    """Return whether ``undefined`` is among the options of a type."""
    return without_undefined(type_) != type_


def is_nullable_inside(type_: TypeRef | None) -> bool | None:
    """Return whether null may stand in an array or a map; ``None`` where anything may, or all."""
    held = type_.args[0] if type_ is not None and type_.name in {"[]", "{}"} else TypeRef("any")
    return None if held.name in {"any", "unknown"} else held.nullable


def _option(node: Node) -> TypeRef:
    """Return a type that is no union. One that is not taken apart is known by its text alone."""
    match node.type:
        case "literal_type" | "template_literal_type":
            return _of_literal(node)
        case "array_type":
            return TypeRef("[]", (spelled_type(inside(node)[0]),))
        case "readonly_type":  # It stands before arrays alone.
            return spelled_type(inside(node)[0])
        case "generic_type":
            name, arguments = inside(node)[:2]
            return _generic(text_of(name), tuple(map(spelled_type, inside(arguments))))
        case "object_type" if [each.type for each in inside(node)] == ["index_signature"]:
            index = inside(node)[0]
            value, keys = child_of(index, "type_annotation"), child_of(index, "predefined_type")
            if value is not None and keys is not None:
                return _generic("Record", (_option(keys), spelled_type(inside(value)[0])))
    return TypeRef(" ".join(text_of(node).split()))


def _generic(name: str, arguments: tuple[TypeRef, ...]) -> TypeRef:
    if name in {"Array", "ReadonlyArray"} and len(arguments) == 1:
        return TypeRef("[]", arguments)
    if name == "Record" and len(arguments) == 2 and arguments[0] == _STRING:  # keys and values
        return TypeRef("{}", arguments[1:])
    return TypeRef(name, arguments)


def _of_literal(node: Node) -> TypeRef:
    """Return a literal as a type, known by its value."""
    value = constant(node)
    is_plain = isinstance(value, str | int | float)
    return TypeRef(literal(value) if is_plain else " ".join(text_of(node).split()))


# --- schemas -------------------------------------------------------------------------------------


def schema_type(node: Node) -> TypeRef:
    """Return the type that a schema infers; one that is no chain of calls has its text alone."""
    call = base_call(node)
    if call is None:
        return TypeRef(f"({text_of(node)})")
    type_ = TypeRef(text_of(call.reference)) if call.reference is not None else _inferred(*call[:2])
    for name, arguments in call.methods:
        if name in _ADDED:
            type_ = _join([type_, *_ADDED[name]])
        elif name == "array":
            type_ = TypeRef("[]", (type_,))
        elif name == "or" and arguments:
            type_ = _join([type_, schema_type(arguments[0])])
        elif name not in _KEEPS:
            type_ = TypeRef(f"{show_type(type_)} with .{name}()")
    return type_


def _inferred(name: str, arguments: tuple[Node, ...]) -> TypeRef:
    """Return the type that a function of zod infers."""
    if not arguments or name in _INFERRED:
        return TypeRef(_INFERRED.get(name, f"z.{name}()"))
    first, last = arguments[0], arguments[-1]
    if name in _ADDED:
        return _join([schema_type(first), *_ADDED[name]])
    match name:
        case "readonly":
            return schema_type(first)
        case "lazy":
            body = returned(first)
            return TypeRef(text_of(first)) if body is None else schema_type(body)
        case "literal":
            return _join(map(_of_literal, items_of(first) or [first]))
        case "array":
            return TypeRef("[]", (schema_type(first),))
        case "record" if len(arguments) == 2:  # keys and values
            return _generic("Record", (schema_type(first), schema_type(last)))
        case "discriminatedUnion" | "union":
            options = next((each for each in map(items_of, arguments) if each), [])
            tag = "" if name == "union" else _of_literal(first).name
            return replace(_join(map(schema_type, options)), qualifier=tag)
    return TypeRef(f"z.{name}(…)")


# --- words ---------------------------------------------------------------------------------------


def is_known(reference: TypeRef) -> bool:
    """Return whether a type of that name exists without being declared in the source."""
    return reference.name in KNOWN_TYPES or not reference.name.replace("$", "_").isidentifier()


def show_type(reference: TypeRef) -> str:
    """Return a type as TypeScript spells it; that of a schema too."""
    arguments = [show_type(each) for each in reference.args]
    match reference.name:
        case "|":
            shown = " | ".join(arguments)
        case "[]":
            shown = f"({arguments[0]})[]" if " | " in arguments[0] else f"{arguments[0]}[]"
        case "{}":
            shown = f"Record<string, {arguments[0]}>"
        case name:
            shown = f"{name}<{', '.join(arguments)}>" if arguments else name
    return f"{shown} | null" if reference.nullable else shown


# --- what holds which values ---------------------------------------------------------------------


def accepts(expression: TypeExpr, spelled: TypeRef) -> bool:
    """Return whether ``spelled`` holds the values of ``expression``, null aside, and no others."""
    match expression:
        case Ref(name=name):
            return spelled.name == name and not spelled.args
        case ArrayOf(items=inner):
            return spelled.name == "[]" and accepts(inner, spelled.args[0])
        case MapOf(values=inner):
            return spelled.name == "{}" and accepts(inner, spelled.args[0])
        case UnionOf(options=options, discriminator=tag):
            if spelled.qualifier not in {"", literal(tag)}:
                return False
            if any(isinstance(each, Scalar) and each.kind == "any" for each in options):
                return bool(_HOLDERS["any"].fullmatch(spelled.name))
            parts = spelled.args if spelled.name == "|" else (spelled,)
            return all(any(accepts(each, part) for part in parts) for each in options) and all(
                any(accepts(each, part) for each in options) for part in parts
            )
        case Scalar(kind=kind):
            return bool(_HOLDERS[kind].fullmatch(spelled.name))
