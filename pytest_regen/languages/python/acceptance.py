"""Which types of the source can hold what the document allows."""

import ast
from collections.abc import Mapping
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

_SCALARS: Final[Mapping[str, Mapping[str, frozenset[str]]]] = {
    "string": {
        "": _TEXT,
        "date": _TEXT | {"date"},
        "date-time": _TEXT | {"AwareDatetime", "datetime"},
        "uuid": _TEXT | {"UUID"},
    },
    "integer": {"": _WHOLE},
    "number": {
        "": _FRACTION,
        "decimal": _FRACTION | {"DecimalNumber"},
        "int32": _WHOLE | _FRACTION | {"DecimalNumber"},
        "int64": _WHOLE | {"DecimalNumber"},
    },
    "boolean": {"": frozenset({"StrictBool", "bool"})},
    "any": {"": frozenset({"Any", "JsonValue", "object"})},
}
"""Kind and format to what holds every such value, and writes it as it read it."""


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
    match expression:
        case Ref(name=name):
            if spelled.name == LITERAL:
                # An alias of a Literal is its values to the interpreter, whatever it is called.
                entry = declared.get(name)
                values = {member.wire_name for member in entry.members} if entry else set()
                return set(literals_of(spelled)) == values
            return spelled.name == name and not spelled.args
        case ArrayOf(items=items):
            return _is_sequence(spelled) and accepts(items, spelled.args[0], declared)
        case MapOf(values=values):
            is_map = spelled.name in _MAPS and len(spelled.args) == 2  # key and value
            is_text = is_map and _is_text(spelled.args[0])
            return is_text and accepts(values, spelled.args[1], declared)
        case UnionOf(options=options):
            return _accepts_union(options, spelled, declared)
        case Scalar():
            return _accepts_scalar(expression, spelled)


def _is_sequence(spelled: TypeRef) -> bool:
    if spelled.name in {"Tuple", "tuple"}:
        return len(spelled.args) == 2 and spelled.args[1].name == "..."  # any number of them
    return spelled.name in _SEQUENCES and len(spelled.args) == 1


def _is_text(spelled: TypeRef) -> bool:
    return spelled.name in _TEXT and not spelled.nullable


def _accepts_union(
    options: tuple[TypeExpr, ...], spelled: TypeRef, declared: Mapping[str, Declaration]
) -> bool:
    """Return whether each option has a place, and no place is for anything else."""
    if any(isinstance(option, Scalar) and option.kind == "any" for option in options):
        return accepts(Scalar(kind="any"), spelled, declared)
    places = spelled.args if spelled.name == UNION else (spelled,)

    def fits(option: TypeExpr, place: TypeRef) -> bool:
        return accepts(option, place, declared)

    return all(any(fits(option, place) for place in places) for option in options) and all(
        any(fits(option, place) for option in options) for place in places
    )


def _accepts_scalar(scalar: Scalar, spelled: TypeRef) -> bool:
    if spelled.name == LITERAL:
        return _are_of(literals_of(spelled), scalar.kind)
    formats = _SCALARS[scalar.kind]
    accepted = formats.get(scalar.format_family, formats[""])
    if spelled.name == UNION and scalar.kind == "number":
        # ``int | float`` keeps the digits of whole numbers.
        names = {part.name for part in spelled.args}
        return names <= _WHOLE | _FRACTION and bool(names & _FRACTION)
    if spelled.args:
        return False
    return spelled.name in accepted or (
        # A decimal that says how it is written.
        spelled.name == "Decimal" and spelled.is_wrapped and "DecimalNumber" in accepted
    )


def literals_of(spelled: TypeRef) -> tuple[object, ...]:
    """Return the values of ``Literal[...]``; a member of an enum is no value."""
    return tuple(
        ast.literal_eval(part.name)
        for part in spelled.args
        if not part.name.isidentifier() or part.name in {"True", "False"}
    )


def _are_of(values: tuple[object, ...], kind: str) -> bool:
    """Return whether values are of the kind that JSON has."""
    kinds: Mapping[str, type | tuple[type, ...]] = {
        "string": str,
        "integer": int,
        "number": int,
        "boolean": bool,
    }
    if kind == "any":
        return bool(values)
    return bool(values) and all(
        isinstance(value, kinds[kind]) and isinstance(value, bool) == (kind == "boolean")
        for value in values
    )
