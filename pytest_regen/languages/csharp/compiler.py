"""What the C# compiler refuses although the grammar takes it: modifiers, accessors, defaults."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pytest_regen.languages.base import SyntaxFault
from pytest_regen.languages.names import word_set

ACCESS: Final = frozenset({"public", "private", "protected", "internal", "file"})
_PAIRS: Final = (frozenset({"protected", "internal"}), frozenset({"private", "protected"}))
_RANK: Final[Mapping[frozenset[str], int]] = {
    frozenset(): 0,
    frozenset({"private"}): 0,
    frozenset({"private", "protected"}): 1,
    frozenset({"protected"}): 2,
    frozenset({"internal"}): 2,
    frozenset({"protected", "internal"}): 3,
    frozenset({"public"}): 4,
}
"""Access modifiers, the more open the higher."""

_TYPE_ACCESS: Final = ACCESS | {"new", "unsafe"}
_MODIFIERS: Final[Mapping[str, frozenset[str]]] = {
    "class": _TYPE_ACCESS | {"abstract", "partial", "sealed", "static"},
    "record": _TYPE_ACCESS | {"abstract", "partial", "sealed"},
    "record struct": _TYPE_ACCESS | {"partial", "readonly"},
    "struct": _TYPE_ACCESS | {"partial", "readonly", "ref"},
    "enum": ACCESS | {"new"},
    "property": word_set(
        """
        abstract extern internal new override partial private protected public readonly required
        sealed static unsafe virtual
        """
    ),
    "field": word_set(
        """
        const fixed internal new private protected public readonly required static unsafe volatile
        """
    ),
}
"""Kind to the modifiers it may have: CS0106 for others."""

MODIFIERS_IN_CONTEXT: Final = frozenset({"abstract", "override", "virtual"})
"""Modifiers whose right depends on the type around a member."""

_SIZES: Final[Mapping[str, tuple[int, int]]] = {
    "sbyte": (-(2**7), 2**7 - 1),
    "byte": (0, 2**8 - 1),
    "short": (-(2**15), 2**15 - 1),
    "ushort": (0, 2**16 - 1),
    "int": (-(2**31), 2**31 - 1),
    "uint": (0, 2**32 - 1),
    "long": (-(2**63), 2**63 - 1),
    "ulong": (0, 2**64 - 1),
}
"""What an enum may be based on, and the numbers it then holds."""


@dataclass(frozen=True, slots=True)
class Accessor:
    """One accessor of a property."""

    name: str
    """``get``, ``set`` or ``init``."""
    modifiers: tuple[str, ...] = ()
    has_body: bool = False


@dataclass(frozen=True, slots=True)
class Head:
    """What all parts of a type say before its body."""

    name: str
    kind: str
    """Kind of the declaration; ``record struct`` for those."""
    modifiers: frozenset[str]
    has_base_class: bool
    has_constructor: bool

    @property
    def is_struct(self) -> bool:
        """Whether it is copied where it is assigned."""
        return self.kind in {"struct", "record struct"}


def modifier_faults(
    kind: str, name: str, modifiers: Sequence[str], line: int
) -> Iterator[SyntaxFault]:
    """Yield modifiers that are repeated, contradict each other, or do not belong there."""
    if _has_wrong_modifiers(kind, tuple(modifiers)):
        yield from _modifier_faults(kind, name, modifiers, line)


@lru_cache(maxsize=1024)
def _has_wrong_modifiers(kind: str, modifiers: tuple[str, ...]) -> bool:
    """Return whether there is a fault to tell; nearly all members have the same modifiers."""
    return any(_modifier_faults(kind, "", modifiers, 0))


def _modifier_faults(
    kind: str, name: str, modifiers: Sequence[str], line: int
) -> Iterator[SyntaxFault]:
    for modifier, count in Counter(modifiers).items():
        if count > 1:
            yield SyntaxFault(line, f"{name!r} has the modifier {modifier!r} twice")
    given = frozenset(modifiers)
    access = given & ACCESS
    if len(access) > 1 and access not in _PAIRS:
        shown = " and ".join(map(repr, sorted(access)))
        yield SyntaxFault(line, f"{name!r} is {shown} at once; one of them only")
    allowed = _MODIFIERS.get(kind)
    article = "an" if kind[0] in "aeiou" else "a"
    for modifier in sorted(given - allowed) if allowed else ():
        yield SyntaxFault(
            line, f"{modifier!r} is no modifier of {article} {kind}: take it from {name!r}"
        )
    if "partial" in given and modifiers[-1] != "partial" and kind != "enum":
        yield SyntaxFault(line, f"'partial' must be the last modifier of {name!r}")
    if given & {"abstract", "static"} and "sealed" in given and kind == "class":
        yield SyntaxFault(line, f"{name!r} cannot be sealed and abstract or static")


def accessor_faults(
    name: str, modifiers: Sequence[str], accessors: Sequence[Accessor], line: int
) -> Iterator[SyntaxFault]:
    """Yield accessors that are there twice, exclude each other, or are open too wide."""
    if _has_wrong_accessors(tuple(modifiers), tuple(accessors)):
        yield from _accessor_faults(name, modifiers, accessors, line)


@lru_cache(maxsize=1024)
def _has_wrong_accessors(modifiers: tuple[str, ...], accessors: tuple[Accessor, ...]) -> bool:
    return any(_accessor_faults("", modifiers, accessors, 0))


def _accessor_faults(
    name: str, modifiers: Sequence[str], accessors: Sequence[Accessor], line: int
) -> Iterator[SyntaxFault]:
    names = [accessor.name for accessor in accessors]
    for accessor, count in Counter(names).items():
        if count > 1:
            yield SyntaxFault(line, f"{name!r} has two accessors {accessor!r}")
    if {"set", "init"} <= set(names):
        yield SyntaxFault(line, f"{name!r} has both set and init; keep init")
    settable = [accessor for accessor in accessors if accessor.name in {"set", "init"}]
    is_automatic = not any(accessor.has_body for accessor in accessors)
    if settable and "get" not in names and is_automatic and "abstract" not in modifiers:
        only = settable[0].name
        yield SyntaxFault(
            line, f"{name!r} has {only} and no get, which needs a body; write {{ get; {only}; }}"
        )
    yield from _access_faults(name, modifiers, accessors, line)


def _access_faults(
    name: str, modifiers: Sequence[str], accessors: Sequence[Accessor], line: int
) -> Iterator[SyntaxFault]:
    own = frozenset(modifiers) & ACCESS
    narrowed = [each for each in accessors if frozenset(each.modifiers) & ACCESS]
    for accessor in narrowed:
        access = frozenset(accessor.modifiers) & ACCESS
        if _RANK.get(access, 0) >= _RANK.get(own, 0):
            shown = f"{' '.join(accessor.modifiers)} {accessor.name}"
            yield SyntaxFault(line, f"{shown!r} of {name!r} must be less open than the property")
            return
    if len(narrowed) > 1 or (narrowed and len(accessors) == 1):
        yield SyntaxFault(
            line, f"only one of two accessors of {name!r} may have an access modifier"
        )


def required_faults(
    name: str, modifiers: Sequence[str], accessors: Sequence[Accessor], line: int
) -> Iterator[SyntaxFault]:
    """Yield a required property that not everybody who makes the type can set."""
    for accessor in accessors if {"required", "public"} <= set(modifiers) else ():
        if accessor.name != "get" and frozenset(accessor.modifiers) & ACCESS:
            shown = f"{' '.join(accessor.modifiers)} {accessor.name}"
            yield SyntaxFault(line, f"{name!r} is required and its setter is not public: {shown!r}")


def context_faults(
    head: Head,
    name: str,
    modifiers: frozenset[str],
    accessors: Sequence[Accessor],
    line: int,
    *,
    has_initial_value: bool,
) -> Iterator[SyntaxFault]:
    """Yield what is refused of a member because of the type it stands in."""
    if "override" in modifiers and not head.has_base_class:
        why = f"{head.name!r} has no base class; take 'override' away"
        yield SyntaxFault(line, f"{name!r} overrides nothing: {why}")
    if "abstract" in modifiers and "abstract" not in head.modifiers:
        yield SyntaxFault(line, f"{name!r} is abstract in {head.name!r}, which is not")
    is_sealed = head.is_struct or "sealed" in head.modifiers
    if "virtual" in modifiers and is_sealed:
        what = "a struct" if head.is_struct else "sealed"
        yield SyntaxFault(line, f"{name!r} is virtual, but {head.name!r} is {what}")
    if head.kind == "record" and name == "Clone":
        yield SyntaxFault(line, "a record cannot have a member called 'Clone'")
    if not head.is_struct or "static" in modifiers or "const" in modifiers:
        return
    if has_initial_value and not head.has_constructor:
        yield SyntaxFault(
            line,
            f"{name!r} has an initial value, which a struct without a constructor cannot give",
        )
    is_automatic = not any(accessor.has_body for accessor in accessors)
    is_settable = any(accessor.name == "set" for accessor in accessors)
    if "readonly" in head.modifiers and is_settable and is_automatic:
        yield SyntaxFault(line, f"{name!r} has set, but {head.name!r} is readonly; write init")


def default_faults(
    parameters: Sequence[tuple[str, str | None, int]],
) -> Iterator[tuple[int, SyntaxFault]]:
    """Yield default values that stand before a parameter without one, or are no constants.

    With each comes the number of its parameter, counted from 0.

    Args:
        parameters: of each the name, the kind of node of its default value, and the line.
    """
    last = max((i for i, (_, kind, _) in enumerate(parameters) if kind is None), default=-1)
    for number, (name, kind, line) in enumerate(parameters):
        if kind is None:
            continue
        if number < last:
            after = parameters[last][0]
            message = f"{name!r} has a default value, but {after!r} after it has none"
            yield number, SyntaxFault(line, f"{message}; take the default away")
        elif kind.endswith("creation_expression") or kind == "collection_expression":
            yield number, SyntaxFault(line, f"the default value of {name!r} is no constant")


def enum_faults(
    name: str, base: str, numbers: Sequence[tuple[str, int]], line: int
) -> Iterator[SyntaxFault]:
    """Yield a base that no enum can have, or one too small for the numbers of the members.

    Args:
        name: of the enum.
        base: the keyword after the colon; ``int`` where there is none.
        numbers: names and numbers of the members, as far as they are known.
        line: on which the enum is named.
    """
    if base not in _SIZES:
        message = f"an enum cannot be based on {base!r}: take it from {name!r}, or write ': long'"
        yield SyntaxFault(line, message)
        return
    low, high = _SIZES[base]
    beyond = [(member, number) for member, number in numbers if not low <= number <= high]
    if beyond:
        member, number = beyond[0]
        fits = [
            kind
            for kind in ("int", "long", "ulong")
            if all(_SIZES[kind][0] <= one <= _SIZES[kind][1] for _, one in numbers)
        ]
        advice = f"; declare 'enum {name} : {fits[0]}'" if fits else ""
        message = f"{member!r} is {number}, which an enum of {base} cannot hold{advice}"
        yield SyntaxFault(line, message, "ENUM_MEMBER")
