"""Types whose references are still places, and what is known of them once all are found."""

from collections.abc import Iterable, Mapping

from pytest_regen.documents.ir import (
    EnumValue,
    FieldIR,
    Ref,
    Scalar,
    TypeExpr,
    TypeIR,
    UnionOf,
    expressions_in,
    referenced_names,
    with_expressions,
)

Tags = Mapping[str, Mapping[str, Iterable[str]]]
"""By place of a type: properties, and the values that stand for the type by a mapping."""


def settle(types: Mapping[str, TypeIR], roots: Iterable[str], tags: Tags) -> dict[str, TypeIR]:
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

    def with_discriminator(expression: TypeExpr) -> TypeExpr:
        if not isinstance(expression, UnionOf):
            return expression
        return expression.model_copy(update={"discriminator": _discriminator(expression, tagged)})

    settled: dict[str, TypeIR] = {}
    waiting = list(roots)
    while waiting:
        key = waiting.pop()
        if key not in settled:
            settled[key] = with_expressions(tagged[key], with_discriminator)
            for field in settled[key].fields:
                waiting.extend(referenced_names(field.type))
    return {key: settled[key] for key in types if key in settled}


def _limit(field: FieldIR, value: str, types: Mapping[str, TypeIR]) -> FieldIR:
    """Return ``field`` with ``value`` as its only one, if it can have that one."""
    limits = field.constraints
    match field.type:
        case Scalar(kind="string"):
            is_possible = True
        case Ref(name=place):
            is_possible = value in types[place].enum_values
        case _:
            is_possible = False
    if not is_possible or "const" in limits or value not in limits.get("enum", [value]):
        return field
    limits = {key: limit for key, limit in limits.items() if key != "enum"} | {"const": value}
    return field.model_copy(update={"type": Scalar(kind="string"), "constraints": limits})


def tag_names(types: Mapping[str, TypeIR]) -> dict[str, str]:
    """Return by place the value that tells a type from the others of a union."""
    names: dict[str, str] = {}
    for type_ in types.values():
        for union in (inner for field in type_.fields for inner in expressions_in(field.type)):
            if isinstance(union, UnionOf) and union.discriminator is not None:
                for place in referenced_names(union):
                    (tag,) = (
                        inner.constraints["const"]
                        for inner in types[place].fields
                        if inner.json_name == union.discriminator
                    )
                    names[place] = str(tag)
    return names


def _discriminator(union: UnionOf, types: Mapping[str, TypeIR]) -> str | None:
    """Return the property whose one value differs from option to option: the declared one first."""
    constants: list[dict[str, EnumValue]] = []
    for option in union.options:
        if not isinstance(option, Ref):
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
    for name in sorted(names, key=lambda name: name != union.discriminator):
        if len({repr(constant[name]) for constant in constants}) == len(constants):
            return name
    return None
