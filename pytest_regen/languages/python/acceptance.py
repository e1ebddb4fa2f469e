"""Which types of the source can hold what the document allows."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from pytest_regen.documents.ir import ArrayOf, MapOf, Ref, Scalar, TypeExpr, UnionOf
from pytest_regen.languages.base import Declaration, TypeRef

UNION: Final = "|"
"""The name of a reference to one of several types, which are its arguments."""
LITERAL: Final = "Literal"
"""The name of a reference to values: the name of each argument is the text of a literal."""

_SEQUENCES: Final = frozenset({"List", "MutableSequence", "Sequence", "list"})
"""What keeps every element of a JSON array, in order. Sets do not."""
_MAPS: Final = frozenset({"Dict", "Mapping", "MutableMapping", "dict"})
_TEXT: Final = frozenset({"StrictStr", "str"})
_WHOLE: Final = frozenset({"StrictInt", "int"})
_FRACTION: Final = frozenset({"StrictFloat", "float"})

_SCALARS: Final[Mapping[str, frozenset[str]]] = {
    "any": frozenset({"Any", "JsonValue", "object"}),
    "boolean": frozenset({"StrictBool", "bool"}),
    "integer": _WHOLE,
    "number": _FRACTION,
    "number decimal": _FRACTION | {"DecimalNumber"},
    "number int32": _WHOLE | _FRACTION | {"DecimalNumber"},
    "number int64": _WHOLE | {"DecimalNumber"},
    "string": _TEXT,
    "string date": _TEXT | {"date"},
    "string date-time": _TEXT | {"AwareDatetime", "datetime"},
    "string uuid": _TEXT | {"UUID"},
}
"""Kind and format to what holds every such value, and writes it as it read it."""
_KINDS: Final = {"string": "str", "integer": "int", "number": "int", "boolean": "bool"}
"""What a ``Literal`` holds of each kind."""


def show_type(reference: TypeRef) -> str:
    """Return a type as Python spells it; ``None`` stands last, whatever the source does."""
    if reference.nullable:
        inner = replace(reference, nullable=False)
        return f"{show_type(inner)} | None" if inner.name != "None" else "None"
    if reference.name == UNION:
        return " | ".join(map(show_type, reference.args))
    dotted = f"{reference.qualifier}.{reference.name}" if reference.qualifier else reference.name
    return f"{dotted}[{', '.join(map(show_type, reference.args))}]" if reference.args else dotted


def accepts(expression: TypeExpr, spelled: TypeRef, declared: Mapping[str, Declaration]) -> bool:
    """Return whether ``spelled`` can hold every value of ``expression``, null aside.

    Args:
        expression: what the document allows.
        spelled: what the source says.
        declared: what the source declares, by name.
    """
    name, args = spelled.name, spelled.args
    match expression:
        case Ref(name=wanted) if wanted in declared and declared[wanted].kind == "alias":
            # The interpreter knows what an alias stands for, and not what it is called.
            values = [each.type for each in declared[wanted].members if each.type is not None]
            plain = replace(spelled, nullable=False)
            return all(show_type(replace(v, nullable=False)) == show_type(plain) for v in values)
        case Ref(name=wanted):
            # An alias of a Literal is its values to the interpreter, whatever it is called.
            is_values = name == LITERAL and wanted in declared
            wires = {each.wire_name for each in declared[wanted].members} if is_values else set()
            return set(literals_of(spelled)) == wires if is_values else name == wanted and not args
        case ArrayOf(items=items):
            # ``tuple[str, ...]`` holds any number of items, ``tuple[str, str]`` holds two.
            is_tuple = name in {"Tuple", "tuple"} and [each.name for each in args[1:]] == ["..."]
            is_sequence = is_tuple or (name in _SEQUENCES and len(args) == 1)
            return is_sequence and accepts(items, args[0], declared)
        case MapOf(values=values):
            is_map = name in _MAPS and len(args) == 2 and args[0].name in _TEXT  # key and value
            return is_map and not args[0].nullable and accepts(values, args[1], declared)
        case UnionOf(options=options):
            if any(isinstance(option, Scalar) and option.kind == "any" for option in options):
                return accepts(Scalar(kind="any"), spelled, declared)
            places = _places(options, spelled)
            # Because each option needs a place, and no place may be for anything else.
            fits = [[accepts(option, place, declared) for place in places] for option in options]
            return all(map(any, fits)) and all(map(any, zip(*fits, strict=True)))
        case Scalar(kind=kind) if name == LITERAL:
            kinds = {type(value).__name__ for value in literals_of(spelled)}
            return bool(kinds) and (kind == "any" or kinds == {_KINDS[kind]})
        case Scalar(kind="number") if name == UNION:
            # ``int | float`` keeps the digits of whole numbers.
            names = {part.name for part in args}
            return names <= _WHOLE | _FRACTION and bool(names & _FRACTION)
        case Scalar(kind=kind, format_family=family):
            accepted = _SCALARS.get(f"{kind} {family}", _SCALARS[kind])
            # A decimal is right where it says how it is written.
            is_decimal = name == "Decimal" and spelled.is_wrapped
            return not args and ("DecimalNumber" if is_decimal else name) in accepted


def _places(options: Sequence[TypeExpr], spelled: TypeRef) -> tuple[TypeRef, ...]:
    """Return the types of a union, without ``int`` that keeps the digits of a ``float`` whole."""
    places = spelled.args if spelled.name == UNION else (spelled,)
    has_whole = any(isinstance(option, Scalar) and option.kind == "integer" for option in options)
    if has_whole or not any(place.name in _FRACTION for place in places):
        return places
    return tuple(place for place in places if place.name not in _WHOLE)


def literals_of(spelled: TypeRef) -> tuple[object, ...]:
    """Return the values of ``Literal[...]``."""
    return tuple(ast.literal_eval(part.name) for part in spelled.args)
