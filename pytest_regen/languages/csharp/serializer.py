"""What System.Text.Json makes of a type: which members it fills, and whether it can create it.

Source of the rules: "Use immutable types and properties", "Customize property names and values",
"Required properties" and "Populate initialized properties" in Microsoft's documentation of
System.Text.Json for .NET 9.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pytest_regen.languages.base import Attribute, Declaration, Member, SyntaxFault, TypeRef
from pytest_regen.languages.csharp.compiler import (
    ACCESS,
    MODIFIERS_IN_CONTEXT,
    Accessor,
    Head,
    context_faults,
)
from pytest_regen.languages.csharp.names import canonical_name, is_collection, show_type
from pytest_regen.languages.names import word_set

_VALUES: Final = word_set(
    """
    bool byte char decimal double float int long sbyte short uint ulong ushort DateOnly DateTime
    DateTimeOffset Guid JsonElement TimeOnly TimeSpan
    """
)


@dataclass(frozen=True, slots=True)
class Constructor:
    """A constructor as the serializer sees it."""

    parameters: tuple[tuple[str, TypeRef | None], ...]
    is_public: bool
    is_marked: bool
    """Whether it has ``[JsonConstructor]``."""
    line: int


@dataclass(frozen=True, slots=True)
class RawMember:
    """What of a member can be checked only together with its type."""

    modifiers: frozenset[str] = frozenset()
    accessors: tuple[Accessor, ...] = ()
    has_initial_value: bool = False
    lacks_setter: bool = False
    """Whether only that keeps the serializer from filling it: a constructor may."""


@dataclass(frozen=True, slots=True)
class DeclarationShape:
    """One declaration and what is checked together with its other parts."""

    declaration: Declaration
    modifiers: tuple[str, ...]
    raw: tuple[RawMember, ...]
    """Of each member of the declaration."""
    constructors: tuple[Constructor, ...] = ()
    condition: str | None = None
    """The directive that it depends on whether it is compiled."""


def why_hidden(kind: str, modifiers: Sequence[str], attributes: Sequence[Attribute]) -> str | None:
    """Return why the serializer does not see a member, by its modifiers; ``None`` if it does."""
    for word in ("static", "const"):
        if word in modifiers:
            return f"is {word}, which is not serialized; make it a property of the object"
    is_included = any(attribute.name == "JsonInclude" for attribute in attributes)
    if kind == "field" and not is_included:
        return "is a field, which is not serialized; make it a property"
    if kind == "parameter" or "public" in modifiers or is_included:
        return None
    access = [word for word in modifiers if word in ACCESS]
    if access:
        return f"is {' '.join(access)}, which is not serialized; make it public"
    return "has no access modifier, so it is private and not serialized; make it public"


def is_never_null(reference: TypeRef) -> bool:
    """Return whether the type is known to be a value that is never null."""
    return _simple(reference) in _VALUES and not reference.nullable


def never_set(
    accessors: Sequence[Accessor],
    attributes: Sequence[Attribute],
    on_type: Sequence[Attribute],
    *,
    has_initial_value: bool,
) -> str | None:
    """Return why nothing is read into a visible property that no constructor fills."""
    setter = next((each for each in accessors if each.name in {"set", "init"}), None)
    if setter is None:
        creation = [each for each in (*attributes, *on_type) if each.name == _CREATION]
        is_filled = any(word == "Populate" for each in creation for _, word in each.options)
        if is_filled and has_initial_value:
            return None
        return "has no set or init, so nothing is read into it; write { get; init; }"
    access = [word for word in setter.modifiers if word in ACCESS]
    if access and not any(attribute.name == "JsonInclude" for attribute in attributes):
        shown = f"{' '.join(access)} {setter.name}"
        return f"has {shown!r}, so nothing is read into it; write {{ get; init; }}"
    return None


_CREATION: Final = "JsonObjectCreationHandling"


def resolve_shapes(shapes: Sequence[DeclarationShape]) -> list[Declaration]:
    """Return the declarations with what follows from all parts of a type together."""
    groups: dict[tuple[str, str | None], list[DeclarationShape]] = {}
    for shape in shapes:
        groups.setdefault((shape.declaration.name, shape.declaration.outer), []).append(shape)
    public: dict[str, bool] = {}
    found: list[Declaration] = []
    for shape in shapes:
        declaration = shape.declaration
        parts = groups[declaration.name, declaration.outer]
        is_public = any("public" in part.modifiers for part in parts)
        if declaration.outer is not None:
            is_public = is_public and public.get(declaration.outer, True)
        public.setdefault(declaration.name, is_public)
        found.append(_resolve_shape(shape, parts, is_public=is_public))
    return found


def _resolve_shape(
    shape: DeclarationShape, parts: Sequence[DeclarationShape], *, is_public: bool
) -> Declaration:
    declaration = shape.declaration
    if declaration.kind not in {"class", "record", "struct"}:
        faults = (*declaration.faults, *_conditional(shape))
        return replace(declaration, is_public=is_public, faults=faults)
    head = _head(parts)
    constructor, uncreatable = _creation(head, parts)
    filled = {name.lower() for name, _ in constructor.parameters} if constructor else set()
    members = tuple(
        _resolve_member(member, raw, head, filled)
        for member, raw in zip(declaration.members, shape.raw, strict=True)
    )
    faults = (*declaration.faults, *_conditional(shape))
    if shape is parts[0]:
        faults += tuple(uncreatable)
    is_same = is_public and faults == declaration.faults
    if is_same and all(new is old for new, old in zip(members, declaration.members, strict=True)):
        return declaration  # as nearly every one is
    return replace(declaration, is_public=is_public, members=members, faults=faults)


def _conditional(shape: DeclarationShape) -> list[SyntaxFault]:
    if shape.condition is None:
        return []
    declaration = shape.declaration
    message = (
        f"{declaration.name!r} stands under '{shape.condition}' and is not always compiled; "
        "take the directives away"
    )
    return [SyntaxFault(declaration.name_line, message, "MISSING_CLASS")]


def _head(parts: Sequence[DeclarationShape]) -> Head:
    first = parts[0].declaration
    bases = [base for part in parts for base in part.declaration.bases]
    kind = "record struct" if first.kind == "record" and first.is_value else first.kind
    return Head(
        first.name,
        kind,
        frozenset(word for part in parts for word in part.modifiers),
        has_base_class=any(not _is_interface(base) for base in bases),
        has_constructor=any(part.constructors for part in parts),
    )


def _is_interface(base: TypeRef) -> bool:
    """Return whether a base is named as interfaces are: ``IShip``."""
    return base.name[:1] == "I" and base.name[1:2].isupper()


def _resolve_member(member: Member, raw: RawMember, head: Head, filled: set[str]) -> Member:
    changed = member
    if raw.lacks_setter and member.name.lower() in filled:
        changed = replace(changed, unread=None, is_serialized=True)
    if not (head.is_struct or raw.modifiers & MODIFIERS_IN_CONTEXT or member.name == "Clone"):
        return changed
    faults = tuple(
        context_faults(
            head,
            member.name,
            raw.modifiers,
            raw.accessors,
            member.line,
            has_initial_value=raw.has_initial_value,
        )
    )
    return replace(changed, faults=(*changed.faults, *faults)) if faults else changed


# -- creation ------------------------------------------------------------------------------------


def _creation(
    head: Head, parts: Sequence[DeclarationShape]
) -> tuple[Constructor | None, list[SyntaxFault]]:
    """Return the constructor that the serializer calls, and why it could create nothing.

    Without a constructor of its own a type has a public one without parameters.
    """
    first = parts[0].declaration
    converter = next((part.declaration.converter for part in parts), None)
    if converter is not None and converter.reads == "unknown":
        return None, []
    why = _uncreatable(head, parts)
    constructor, refused = _choose_constructor(head, parts)
    if why is None and refused:
        why = refused
    if why is None and constructor is not None and not head.has_base_class:
        members = [member for part in parts for member in part.declaration.members]
        why = _unbound(constructor, members)
    if why is None:
        return constructor, []
    message = f"System.Text.Json cannot create {head.name!r}: it {why}"
    return constructor, [SyntaxFault(first.name_line, message, "MISSING_CLASS")]


def _uncreatable(  # one line per reason
    head: Head, parts: Sequence[DeclarationShape]
) -> str | None:
    """Return why no constructor would help."""
    declarations = [part.declaration for part in parts]
    attributes = [each for entry in declarations for each in entry.attributes]
    converter = next((entry.converter for entry in declarations if entry.converter), None)
    if converter is not None:
        return f"has {converter.text}, which reads no objects"
    if "abstract" in head.modifiers and not any(
        each.name == "JsonDerivedType" for each in attributes
    ):
        return "is abstract; take the modifier away"
    if "static" in head.modifiers:
        return "is static; take the modifier away"
    if "ref" in head.modifiers:
        return "is a ref struct; make it a class"
    if any(entry.type_parameters for entry in declarations):
        return "is generic, and no type is given for its parameters; take them away"
    for base in (base for entry in declarations for base in entry.bases):
        if is_collection(base):
            what = f"is a collection, {show_type(base)}, whose properties are passed over"
            return f"{what}; take the base away"
    return None


def _choose_constructor(  # one line per case of the serializer's own order
    head: Head, parts: Sequence[DeclarationShape]
) -> tuple[Constructor | None, str | None]:
    """Return the constructor that is called, or why no constructor can be called."""
    constructors = [each for part in parts for each in part.constructors]
    marked = [each for each in constructors if each.is_marked]
    if len(marked) > 1:
        return None, "has [JsonConstructor] on several constructors; keep one"
    if marked:
        return marked[0], None
    if head.is_struct or not constructors:
        return None, None
    public = [each for each in constructors if each.is_public]
    plain = [each for each in public if not each.parameters]
    if plain:
        return plain[0], None
    if len(public) == 1:
        return public[0], None
    if public:
        return None, "has several public constructors and none without parameters; take them away"
    return None, "has no public constructor; take its constructors away"


def _unbound(constructor: Constructor, members: Sequence[Member]) -> str | None:
    """Return which parameter of the constructor no member matches, by name and type."""
    for name, type_ in constructor.parameters:
        same = [each for each in members if each.name.lower() == name.lower() and _is_bound(each)]
        if not same:
            return f"has a constructor whose parameter {name!r} matches no property; take it away"
        if not any(_is_same(type_, each.type) for each in same):
            own, other = (show_type(found) if found else "None" for found in (type_, same[0].type))
            return (
                f"has a constructor whose parameter {name!r} is of type '{own}', and the"
                f" property of type '{other}'"
            )
    return None


def _is_bound(member: Member) -> bool:
    """Return whether a parameter may stand for the member: one that is ignored is bound as well."""
    return member.is_serialized or (member.is_public and member.kind != "field")


def _is_same(left: TypeRef | None, right: TypeRef | None) -> bool:
    """Return whether two spellings are one type; ``?`` counts on what is known to be a value."""
    if left is None or right is None:
        return True
    name = _simple(left)
    if name != _simple(right) or len(left.args) != len(right.args):
        return False
    if name in _VALUES and left.nullable != right.nullable:
        return False
    return all(map(_is_same, left.args, right.args))


def _simple(reference: TypeRef) -> str:
    return reference.name if reference.args else canonical_name(TypeRef(reference.name))
