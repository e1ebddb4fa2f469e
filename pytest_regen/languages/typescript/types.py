"""Types as the source spells them, schemas of zod among them, and which hold what values.

A schema is read as the type that it infers: ``z.array(z.int())`` is ``number[]``. What is finer
only running shows.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from pytest_regen.documents.ir import ArrayOf, MapOf, Ref, Scalar, TypeExpr, UnionOf
from pytest_regen.languages.base import Declaration, TypeRef
from pytest_regen.languages.names import word_set
from pytest_regen.languages.trees import Node, child_of, text_of
from pytest_regen.languages.typescript.names import KNOWN_TYPES
from pytest_regen.languages.typescript.schemas import base_call, items_of, returned
from pytest_regen.languages.typescript.spelling import is_any
from pytest_regen.languages.typescript.tree import constant, inside, options_of
from pytest_regen.text import quoted

_UNDEFINED: Final = TypeRef("undefined")
_NULL: Final = TypeRef("null")
_STRING: Final = TypeRef("string")
ANYTHING: Final = frozenset({"any", "unknown"})
_HOLDERS: Final[Mapping[str, re.Pattern[str]]] = {
    "string": re.compile(r'string|".*"', re.DOTALL),
    "integer": re.compile(r"number|-?\d.*"),
    "number": re.compile(r"number|-?\d.*"),
    "boolean": re.compile(r"boolean|true|false"),
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
    brand check date datetime describe finite gt gte guid int length lt lte max meta min multipleOf
    negative nonempty nonnegative nonpositive positive readonly refine regex safe step superRefine
    with
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
    flat = [part for type_ in whole for part in (type_.args if type_.name == "|" else (type_,))]
    is_nullable = _NULL in flat or any(type_.nullable for type_ in (*whole, *flat))
    parts = tuple(dict.fromkeys(replace(part, nullable=False) for part in flat if part != _NULL))
    if len(parts) == 1:
        return replace(parts[0], nullable=is_nullable)
    # Null may be said behind a discriminated union, which stays one.
    tag = next((type_.qualifier for type_ in whole if type_.qualifier), "")
    return TypeRef("|", parts, is_nullable, tag) if parts else _NULL


def without_undefined(type_: TypeRef) -> TypeRef:
    """Return a type without ``undefined`` among its options."""
    if _UNDEFINED not in type_.args or type_.name != "|":
        return type_
    parts = tuple(part for part in type_.args if part != _UNDEFINED)
    return _join([replace(type_, args=parts)])


def _option(node: Node) -> TypeRef:
    """Return a type that is no union. One that is not taken apart is known by its text alone."""
    value = constant(node)
    if isinstance(value, str | int | float):
        return TypeRef(quoted(value))
    match node.type:
        case "array_type":
            return TypeRef("[]", (spelled_type(inside(node)[0]),))
        case "readonly_type":  # It stands before arrays alone.
            return spelled_type(inside(node)[0])
        case "generic_type":
            name, arguments = inside(node)[:2]
            return _generic(text_of(name), tuple(map(spelled_type, inside(arguments))))
        case "object_type" if [part.type for part in inside(node)] == ["index_signature"]:
            index = inside(node)[0]
            # ``[K in string]`` holds its keys one level deeper.
            clause = child_of(index, "mapped_type_clause") or index
            value, keys = child_of(index, "type_annotation"), child_of(clause, "predefined_type")
            if value is not None and keys is not None:
                return _generic("Record", (_option(keys), spelled_type(inside(value)[0])))
    return TypeRef(" ".join(text_of(node).split()))


def _generic(name: str, arguments: tuple[TypeRef, ...]) -> TypeRef:
    if name in {"Array", "ReadonlyArray"} and len(arguments) == 1:
        return TypeRef("[]", arguments)
    if name == "Readonly" and len(arguments) == 1:
        return arguments[0]
    if name == "Record" and len(arguments) == 2 and arguments[0] == _STRING:  # keys and values
        return TypeRef("{}", arguments[1:])
    return TypeRef(name, arguments)


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
        elif name == "catchall" and [text_of(part) for part in call.arguments] == ["{}"]:
            type_ = _generic("Record", (_STRING, schema_type(arguments[0])))
        elif name == "or" and arguments:
            type_ = _join([type_, schema_type(arguments[0])])
        # The method stands in the name, because a message shows it so.
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
        case "lazy":
            body = returned(first)
            return TypeRef(text_of(first)) if body is None else schema_type(body)
        case "literal" | "enum":
            return _join(map(_option, items_of(first) or [first]))
        case "array":
            return TypeRef("[]", (schema_type(first),))
        case "record" if len(arguments) == 2:  # keys and values
            return _generic("Record", (schema_type(first), schema_type(last)))
        case "union":
            return _join(map(schema_type, items_of(first) or []))
        case "discriminatedUnion":
            whole = _join(map(schema_type, items_of(last) or []))
            return replace(whole, qualifier=_option(first).name)
    return TypeRef(f"z.{name}(…)")


# --- words ---------------------------------------------------------------------------------------


def is_known(reference: TypeRef) -> bool:
    """Return whether a type of that name exists without being declared in the source."""
    return reference.name in KNOWN_TYPES or not reference.name.replace("$", "_").isidentifier()


def show_type(reference: TypeRef) -> str:
    """Return a type as TypeScript spells it; that of a schema too."""
    arguments = [show_type(part) for part in reference.args]
    match reference.name:
        case "|":
            text = " | ".join(arguments)
        case "[]":
            text = f"({arguments[0]})[]" if " | " in arguments[0] else f"{arguments[0]}[]"
        case "{}":
            text = f"Record<string, {arguments[0]}>"
        case name:
            text = f"{name}<{', '.join(arguments)}>" if arguments else name
    return f"{text} | null" if reference.nullable else text


# --- what holds which values ---------------------------------------------------------------------


def accepts(expression: TypeExpr, spelled: TypeRef, declared: Mapping[str, Declaration]) -> bool:
    """Return whether ``spelled`` holds the values of ``expression``, null aside, and no others.

    Args:
        expression: what the document allows.
        spelled: what the source says.
        declared: what the source declares, by name.
    """
    if is_any(expression):
        return spelled.name in ANYTHING
    match expression:
        case Ref(name=name) if spelled.name != name and name in declared:
            # What an alias stands for may be written out where its name could stand.
            members = declared[name].members if declared[name].kind == "alias" else ()
            values = [member.type for member in members if member.type]
            same = (spelled.name, {*spelled.args})
            return any((value.name, {*value.args}) == same for value in values)
        case Ref(name=name):
            return spelled.name == name and not spelled.args
        case ArrayOf(items=inner):
            return spelled.name == "[]" and accepts(inner, spelled.args[0], declared)
        case MapOf(values=inner):
            return spelled.name == "{}" and accepts(inner, spelled.args[0], declared)
        case UnionOf(options=options, discriminator=tag):
            if spelled.qualifier not in {"", quoted(tag)}:
                return False
            parts = spelled.args if spelled.name == "|" else (spelled,)
            pairs = [[accepts(option, part, declared) for part in parts] for option in options]
            return all(map(any, pairs)) and all(map(any, zip(*pairs, strict=True)))
        case Scalar(kind=kind):
            return bool(_HOLDERS[kind].fullmatch(spelled.name))
