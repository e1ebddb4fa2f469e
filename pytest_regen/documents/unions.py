"""What several schemas are together: a union, or the one type that says as much."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from pytest_regen.documents.ir import (
    EnumValue,
    Ref,
    Scalar,
    TypeExpr,
    UnionOf,
)
from pytest_regen.documents.schemas import CoreSchema
from pytest_regen.documents.shapes import SchemaKind, Shape, types_of

ANY: Final = Scalar(kind="any")
NUMBER_FORMATS: Final = frozenset({"int32", "int64", "float", "double", "decimal"})


def one_of(options: Iterable[TypeExpr], scalar_kinds: Callable[[Ref], frozenset[str]]) -> TypeExpr:
    """Return a union of what is different among ``options``, or the one that is left.

    Args:
        options: in the document's order; unions among them count as their own options.
        scalar_kinds: returns the scalars that hold all values of a type.
    """
    flat = [
        inner
        for option in options
        for inner in (option.options if isinstance(option, UnionOf) else (option,))
    ]
    if ANY in flat:
        return ANY
    scalars = _merge_scalars(option for option in flat if isinstance(option, Scalar))
    wide = scalars.keys() | ({"integer"} if "number" in scalars else set())
    different: list[TypeExpr] = []
    for option in flat:
        if isinstance(option, Ref) and scalar_kinds(option) <= wide:
            continue  # Beside any text, an enum of texts says nothing.
        is_scalar = isinstance(option, Scalar)
        merged = scalars.get(option.kind, scalars.get("number")) if is_scalar else option
        if merged is not None and merged not in different:
            different.append(merged)
    return different[0] if len(different) == 1 else UnionOf(options=tuple(different))


def _merge_scalars(scalars: Iterable[Scalar]) -> dict[str, Scalar]:
    """Return one scalar of each kind, with the format that all of that kind have."""
    merged: dict[str, Scalar] = {}
    for scalar in scalars:
        first = merged.setdefault(scalar.kind, scalar)
        if first.format != scalar.format:
            merged[scalar.kind] = Scalar(kind=scalar.kind)
    if {"integer", "number"} <= merged.keys():
        if merged["integer"].format != merged["number"].format:
            merged["number"] = Scalar(kind="number")
        del merged["integer"]
    return merged


def type_order(notes: Iterable[Mapping[str, Any]]) -> Callable[[str], tuple[int, str]]:
    """Return the key that sorts types as the document lists them."""
    declared = (note.get("type") for note in notes)
    listed: list[Any] = next((allowed for allowed in declared if isinstance(allowed, list)), [])
    return lambda name: (listed.index(name) if name in listed else len(listed), name)


# --- the only value ----------------------------------------------------------------------------


def only_value(reduced: CoreSchema, shape: Shape, kind: SchemaKind) -> EnumValue | bool | None:
    """Return the one text, whole number or truth value that a schema allows; ``None`` if none."""
    if kind not in {"enum", "scalar"}:
        return None
    consts = (note["const"] for note in reduced.overlay if "const" in note)
    values: Sequence[Any] = list(consts)[:1] or narrowed_values(reduced.overlay) or shape.enum or ()
    if len(values) != 1:
        return None
    value = values[0]
    is_in = shape.enum is None or any(value == allowed for allowed in shape.enum)
    types = shape.types or types_of([value])
    if "integer" in types and is_whole(value):
        value = int(value)
    wide = types | {"integer"} if "number" in types else types
    return value if is_in and types_of([value]) <= wide and isinstance(value, str | int) else None


def narrowed_values(overlay: Iterable[Mapping[str, Any]]) -> tuple[Any, ...] | None:
    """Return the values that wrappers of an enum leave; ``None`` where they leave all."""
    for note in overlay:
        if isinstance(note.get("enum"), list):
            return tuple(value for value in note["enum"] if value is not None)
    return None


def is_whole(value: Any) -> bool:
    """Return whether a value is a number without a fraction."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and (isinstance(value, int) or value.is_integer())
    )
