"""Several schemas as one type, and what tells the options of a union apart once all are found."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from pytest_regen.documents import ir

ANY: Final = ir.Scalar(kind="any")


def one_of(options: Iterable[ir.TypeExpr], enums: Mapping[str, frozenset[str]]) -> ir.TypeExpr:
    """Return a union of what is different among ``options``, or the one that is left.

    Args:
        options: in the document's order; unions among them count as their own options.
        enums: by place of an enum the types of its values.
    """
    flat = [
        inner
        for option in options
        for inner in (option.options if isinstance(option, ir.UnionOf) else (option,))
    ]
    if ANY in flat:
        return ANY
    # One scalar of each kind, with the format that all of that kind have.
    scalars: dict[str, ir.Scalar] = {}
    for scalar in (option for option in flat if isinstance(option, ir.Scalar)):
        if scalars.setdefault(scalar.kind, scalar).format != scalar.format:
            scalars[scalar.kind] = ir.Scalar(kind=scalar.kind)
    whole = scalars.pop("integer", None) if "number" in scalars else None
    if whole is not None and whole.format != scalars["number"].format:
        scalars["number"] = ir.Scalar(kind="number")
    wide = scalars.keys() | ({"integer"} if "number" in scalars else set())
    different: list[ir.TypeExpr] = []
    for option in flat:
        if isinstance(option, ir.Ref) and enums.get(option.name, {"object"}) <= wide:
            continue  # Because beside any text an enum of texts says nothing.
        is_scalar = isinstance(option, ir.Scalar)
        merged = scalars.get(option.kind, scalars.get("number")) if is_scalar else option
        if merged is not None and merged not in different:
            different.append(merged)
    return different[0] if len(different) == 1 else ir.UnionOf(options=tuple(different))


Tags = Mapping[str, Mapping[str, Iterable[str]]]
"""By place of a type: properties, and the values that stand for the type by a mapping."""


def settle(
    types: Mapping[str, ir.TypeIR], roots: Iterable[str], tags: Tags
) -> dict[str, ir.TypeIR]:
    """Return the types with what tells the options of their unions apart.

    A mapping of a discriminator may give a property its one value; then nothing may be left that
    uses the enum of all of them.

    Args:
        types: by place; every type that is referred to.
        roots: places of those that are there by themselves.
        tags: what mappings say.
    """
    tagged = {}
    for key, type_ in types.items():
        words = {word: list(values) for word, values in tags.get(key, {}).items()}
        fields = tuple(
            _limit(field, values[0], types)
            if len(values := words.get(field.json_name, [])) == 1
            else field
            for field in type_.fields
        )
        tagged[key] = type_.model_copy(update={"fields": fields})

    def with_discriminator(expression: ir.TypeExpr) -> ir.TypeExpr:
        if not isinstance(expression, ir.UnionOf):
            return expression
        return expression.model_copy(update={"discriminator": _discriminator(expression, tagged)})

    settled = close(lambda key: ir.with_expressions(tagged[key], with_discriminator), roots)
    # In the order that they were met in, because the last union decides what an option is called.
    return {key: settled[key] for key in types if key in settled}


def close(type_at: Callable[[str], ir.TypeIR], roots: Iterable[str]) -> dict[str, ir.TypeIR]:
    """Return by place the types that ``roots`` use, directly or not, and they themselves."""
    types: dict[str, ir.TypeIR] = {}
    waiting = list(roots)
    while waiting:
        key = waiting.pop()
        if key not in types:
            types[key] = type_at(key)
            for field in types[key].fields:
                waiting.extend(ir.referenced_names(field.type))
    return types


def _limit(field: ir.FieldIR, value: str, types: Mapping[str, ir.TypeIR]) -> ir.FieldIR:
    """Return ``field`` with ``value`` as its only one, if it can have that one."""
    limits = field.constraints
    # Of an enum the value has to be one, because mappings of real documents name others.
    is_possible = field.type.kind == "string" or (
        isinstance(field.type, ir.Ref) and value in types[field.type.name].enum_values
    )
    if not is_possible or "const" in limits or value not in limits.get("enum", [value]):
        return field
    limits = {key: limit for key, limit in limits.items() if key != "enum"} | {"const": value}
    return field.model_copy(update={"type": ir.Scalar(kind="string"), "constraints": limits})


def tag_names(types: Mapping[str, ir.TypeIR]) -> dict[str, str]:
    """Return by place the value that tells a type from the others of a union."""
    names: dict[str, str] = {}
    for type_ in types.values():
        for union in (inner for field in type_.fields for inner in ir.expressions_in(field.type)):
            if isinstance(union, ir.UnionOf) and union.discriminator is not None:
                for place in ir.referenced_names(union):
                    (tag,) = (
                        inner.constraints["const"]
                        for inner in types[place].fields
                        if inner.json_name == union.discriminator
                    )
                    names[place] = str(tag)
    return names


def _discriminator(union: ir.UnionOf, types: Mapping[str, ir.TypeIR]) -> str | None:
    """Return the property whose one value differs from option to option: the declared one first."""
    constants: list[dict[str, ir.EnumValue]] = []
    for option in union.options:
        if not isinstance(option, ir.Ref):
            return None
        constants.append(
            {
                field.json_name: field.constraints["const"]
                for field in types[option.name].fields
                if field.required and not field.nullable
                if isinstance(field.constraints.get("const"), str | int)
            }
        )
    names = [name for name in constants[0] if all(name in constant for constant in constants[1:])]
    # Any property will do, because openai.yaml declares no discriminator for most of its unions.
    for name in sorted(names, key=lambda name: name != union.discriminator):
        if len({repr(constant[name]) for constant in constants}) == len(constants):
            return name
    return None
