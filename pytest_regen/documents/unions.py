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
        fields = []
        for field in type_.fields:
            values, limits = [*tags.get(key, {}).get(field.json_name, ())], field.constraints
            # Of an enum the value has to be one, because mappings of real documents name others.
            enum = types[field.type.name].enum_values if isinstance(field.type, ir.Ref) else values
            is_one = len(values) == 1 and field.type.kind in {"ref", "string"} and values[0] in enum
            if is_one and "const" not in limits and values[0] in limits.get("enum", values):
                only = {name: limits[name] for name in limits if name != "enum"}
                only["const"] = values[0]
                changes = {"type": ir.Scalar(kind="string"), "constraints": only}
                fields.append(field.model_copy(update=changes))
            else:
                fields.append(field)
        tagged[key] = type_.model_copy(update={"fields": tuple(fields)})

    def with_discriminator(expression: ir.TypeExpr) -> ir.TypeExpr:
        if not isinstance(expression, ir.UnionOf):
            return expression
        constants: list[dict[str, ir.EnumValue]] = [
            {
                field.json_name: field.constraints["const"]
                for field in (tagged[option.name].fields if isinstance(option, ir.Ref) else ())
                if field.required and not field.nullable
                if isinstance(field.constraints.get("const"), str | int)
            }
            for option in expression.options
        ]
        # The declared one first; any property will do, because openai.yaml declares no
        # discriminator for most of its unions.
        names = sorted(constants[0], key=lambda name: name != expression.discriminator)
        telling = (
            name
            for name in names
            if len({repr(constant.get(name)) for constant in constants if name in constant})
            == len(constants)
        )
        return expression.model_copy(update={"discriminator": next(telling, None)})

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
