"""Types whose references are still places, and what is known of them once all are found."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from pytest_regen.documents.ir import (
    ArrayOf,
    EnumValue,
    FieldIR,
    MapOf,
    Ref,
    Scalar,
    TypeExpr,
    TypeIR,
    UnionOf,
    referenced_names,
)

Tags = Mapping[str, Mapping[str, Iterable[str]]]
"""By place of a type: properties, and the values that stand for the type by a mapping."""


@dataclass(frozen=True, slots=True)
class Found:
    """A type whose references are still places."""

    schema_id: str
    kind: str
    description: str | None
    fields: tuple[FieldIR, ...] = ()
    enum_values: tuple[EnumValue, ...] = ()
    enum_names: tuple[str, ...] | None = None

    def with_names(self, names: Mapping[str, str], *, is_root: bool) -> TypeIR:
        """Return the type with every reference under its declared name."""
        return TypeIR(
            name=names[self.schema_id],
            schema_id=self.schema_id,
            is_root=is_root,
            kind="enum" if self.kind == "enum" else "object",
            description=self.description,
            fields=tuple(
                field.model_copy(update={"type": _rename_refs(field.type, names)})
                for field in self.fields
            ),
            enum_values=self.enum_values,
            enum_names=self.enum_names,
        )


def _rename_refs(expression: TypeExpr, names: Mapping[str, str]) -> TypeExpr:
    match expression:
        case Ref(name=place):
            return Ref(name=names[place])
        case ArrayOf(items=items):
            return ArrayOf(items=_rename_refs(items, names))
        case MapOf(values=values):
            return MapOf(values=_rename_refs(values, names))
        case UnionOf(options=options):
            renamed = tuple(_rename_refs(option, names) for option in options)
            return expression.model_copy(update={"options": renamed})
        case Scalar():
            return expression


# --- unions -------------------------------------------------------------------------------------


def settle(found: Mapping[str, Found], roots: Iterable[str], tags: Tags) -> dict[str, Found]:
    """Return the types with what tells the options of their unions apart.

    A mapping of a discriminator may give a property its one value; then nothing may be left that
    uses the enum of all of them.

    Args:
        found: by place; every type that is referred to.
        roots: places of those that are there by themselves.
        tags: what mappings say.
    """
    tagged = {key: _with_tags(type_, tags.get(key, {}), found) for key, type_ in found.items()}
    settled = {
        key: replace(
            type_,
            fields=tuple(
                field.model_copy(update={"type": _with_discriminators(field.type, tagged)})
                for field in type_.fields
            ),
        )
        for key, type_ in tagged.items()
    }
    waiting, kept = list(roots), set()
    while waiting:
        key = waiting.pop()
        if key not in kept:
            kept.add(key)
            for field in settled[key].fields:
                waiting.extend(referenced_names(field.type))
    return {key: type_ for key, type_ in settled.items() if key in kept}


def _with_tags(
    type_: Found, tags: Mapping[str, Iterable[str]], found: Mapping[str, Found]
) -> Found:
    """Return ``type_`` with the one value of each property that a mapping gives it."""
    wanted = {name: values[0] for name, own in tags.items() if len(values := list(own)) == 1}
    fields = (
        _limit(field, wanted[field.json_name], found) if field.json_name in wanted else field
        for field in type_.fields
    )
    return replace(type_, fields=tuple(fields))


def _limit(field: FieldIR, value: str, found: Mapping[str, Found]) -> FieldIR:
    """Return ``field`` with ``value`` as its only one, if it can have that one."""
    if not _may_be(field, value, found):
        return field
    constraints = {key: said for key, said in field.constraints.items() if key != "enum"}
    constraints["const"] = value
    return field.model_copy(update={"type": Scalar(kind="string"), "constraints": constraints})


def _may_be(field: FieldIR, value: str, found: Mapping[str, Found]) -> bool:
    """Return whether a field that has no one value yet can be ``value``."""
    if "const" in field.constraints or value not in field.constraints.get("enum", [value]):
        return False
    match field.type:
        case Scalar(kind=kind):
            return kind == "string"
        case Ref(name=place):
            return value in found[place].enum_values
        case _:
            return False


def tag_names(found: Mapping[str, Found]) -> dict[str, str]:
    """Return by place the value that tells a type from the others of a union."""
    names: dict[str, str] = {}
    for type_ in found.values():
        for union in (inner for field in type_.fields for inner in _unions(field.type)):
            word = union.discriminator
            for place in referenced_names(union) if word is not None else ():
                (tag,) = (each for each in found[place].fields if each.json_name == word)
                names[place] = str(tag.constraints["const"])
    return names


def _unions(expression: TypeExpr) -> Iterator[UnionOf]:
    match expression:
        case ArrayOf(items=inner) | MapOf(values=inner):
            yield from _unions(inner)
        case UnionOf(options=options):
            yield expression
            for option in options:
                yield from _unions(option)


def _with_discriminators(expression: TypeExpr, found: Mapping[str, Found]) -> TypeExpr:
    match expression:
        case ArrayOf(items=items):
            return ArrayOf(items=_with_discriminators(items, found))
        case MapOf(values=values):
            return MapOf(values=_with_discriminators(values, found))
        case UnionOf(options=options, discriminator=declared):
            inner = tuple(_with_discriminators(option, found) for option in options)
            return UnionOf(options=inner, discriminator=_discriminator(options, declared, found))
        case _:
            return expression


def _discriminator(
    options: Iterable[TypeExpr], declared: str | None, found: Mapping[str, Found]
) -> str | None:
    """Return the property whose one value differs from option to option: the declared one first."""
    constants: list[dict[str, EnumValue]] = []
    for option in options:
        if not isinstance(option, Ref):
            return None
        constants.append(
            {
                field.json_name: field.constraints["const"]
                for field in found[option.name].fields
                if field.required and not field.nullable
                if isinstance(field.constraints.get("const"), str | int)
            }
        )
    names = [name for name in constants[0] if all(name in own for own in constants[1:])]
    for name in sorted(names, key=lambda name: name != declared):
        if len({repr(own[name]) for own in constants}) == len(constants):
            return name
    return None
