"""What changed between two IRs of one operation, and for whom.

What counts is the JSON on the wire. Types are held against each other from the root on, by the
place where they are used: a schema under another name is no change of what is sent. Each change
says whether more is allowed than before (``wider``), less (``narrower``), or something else; who
only reads breaks on the first, who only writes on the second.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final, Literal

from pytest_regen.documents import ir
from pytest_regen.text import quoted

Direction = Literal["response", "request"]
"""Who is asked for: the reader of a response, or the writer of a request."""

Effect = Literal["wider", "narrower", "other", "gone", "none"]
"""What becomes of the values that are allowed; ``gone``: a field that a reader may miss."""

_BREAKS: Final[Mapping[Direction, frozenset[Effect]]] = {
    "response": frozenset({"wider", "other", "gone"}),
    "request": frozenset({"narrower", "other"}),
}


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between two versions."""

    kind: str
    """``field_removed``, ``required``, ``value_added``, …"""
    type_name: str
    """The type that has it, as the newer version calls it."""
    field: ir.EnumValue | None
    """The JSON name of the field, or the value of an enum; ``None`` for the type itself."""
    message: str
    """In words that follow the name."""
    effect: Effect
    before: Any = None
    after: Any = None

    def breaks(self, direction: Direction) -> bool:
        """Return whether code for the older version may fail with what the newer one allows."""
        return self.effect in _BREAKS[direction]


def compare_types(old: ir.IR, new: ir.IR) -> tuple[Change, ...]:
    """Return what changed from ``old`` to ``new``, from the root on, each type once."""
    return tuple(_Comparison(old, new).run())


def direction_of(compared: ir.IR) -> Direction:
    """Return for whom types are compared; for schemas it is not known, and readers are the rule."""
    return "request" if compared.endpoint.status == ir.REQUEST else "response"


_ATTRIBUTES: Final[tuple[tuple[str, str, Effect, str, Effect], ...]] = (
    ("required", "is always there now", "narrower", "may be left out now", "wider"),
    ("nullable", "may be null now", "wider", "is never null now", "narrower"),
    ("write_only", "is left out of answers now", "gone", "is in answers now", "none"),
    ("deprecated", "is deprecated now", "none", "is no longer deprecated", "none"),
)
"""What a field may be: what is said and what it does where it is now, and where it no longer is."""

_BITS: Final = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "float": 32, "double": 64}
_INCOMPARABLE: Final = ("multipleOf", "pattern", "contentEncoding", "contentMediaType")
"""Limits of which another one is neither looser nor tighter."""


class _Comparison:
    """Two IRs side by side."""

    def __init__(self, old: ir.IR, new: ir.IR) -> None:
        self._old, self._new = ir.without_aliases(old.types), ir.without_aliases(new.types)
        self._are_named = new.endpoint.status == ir.SCHEMAS
        self._waiting: deque[tuple[str, str]] = deque()
        self._seen: set[tuple[str, str]] = set()

    def run(self) -> Iterator[Change]:
        """Yield all changes, from the types on with which a part begins.

        That is one as a rule, several for a union, and of schemas each by its name.
        """
        old, new = (
            [name for name, type_ in types.items() if type_.is_root or self._are_named]
            for types in (self._old, self._new)
        )
        # The root of an answer is the same thing on the wire, however its type is called.
        is_one = len(old) == len(new) == 1 and not self._are_named
        for pair in product(old, new):
            is_same = pair[0] == pair[1] or (
                self._old[pair[0]].schema_id == self._new[pair[1]].schema_id
            )
            if is_one or is_same:
                self._meet(*pair)
        # Before anything is called removed, because a schema may only have another name.
        compared = list(self._compare()) if self._are_named else []
        removed: tuple[str, Effect] = ("is no longer one of the types", "narrower")
        added: tuple[str, Effect] = ("is one of the types now", "wider")
        if self._are_named:
            removed, added = ("was removed", "gone"), ("was added", "none")
        for name in old:
            if not any(name == before for before, _ in self._seen):
                yield Change("root_removed", name, None, *removed)
        for name in new:
            if not any(name == after for _, after in self._seen):
                yield Change("root_added", name, None, *added)
        yield from compared
        yield from self._compare()

    def _compare(self) -> Iterator[Change]:
        """Yield what changed about the types that were met, and those that they lead to."""
        while self._waiting:
            before, after = self._waiting.popleft()
            # In an IR that was edited a type may be missing, and there is nothing to compare.
            if before in self._old and after in self._new:
                yield from self.types(self._old[before], self._new[after])

    def _meet(self, old: str, new: str) -> None:
        if (old, new) not in self._seen:
            self._seen.add((old, new))
            self._waiting.append((old, new))

    def types(self, old: ir.TypeIR, new: ir.TypeIR) -> Iterator[Change]:
        """Yield what changed about a type and its fields."""
        if old.name != new.name:
            message = f"was called {old.name}"
            yield Change("renamed", new.name, None, message, "none", old.name, new.name)
        # Fields of an object and values of an enum have nothing to compare.
        if old.kind != new.kind:
            message = f"was {old.kind}, is {new.kind}"
            yield Change("type", new.name, None, message, "other", old.kind, new.kind)
        elif new.kind == "enum":
            yield from _values(new.name, None, old.enum_values, new.enum_values)
        elif new.kind == "alias":
            value_changes = self._field(new.name, *old.fields, *new.fields)
            yield from (replace(change, field=None) for change in value_changes)
        else:
            before = {field.json_name: field for field in old.fields}
            after = {field.json_name: field for field in new.fields}
            for name, field in before.items():
                if name in after:
                    yield from self._field(new.name, field, after[name])
                    continue
                # Nobody misses in an answer what was never in one.
                effect: Effect = "none" if field.write_only else "gone"
                type_ = ir.show_expression(field.type)
                yield Change("field_removed", new.name, name, "was removed", effect, type_)
            for name in (name for name in after if name not in before):
                is_required = after[name].required
                how, effect = ("required", "narrower") if is_required else ("optional", "none")
                type_ = ir.show_expression(after[name].type)
                message = f"was added, {how}"
                yield Change("field_added", new.name, name, message, effect, None, type_)
        yield from _documentation(new.name, None, old.description, new.description)

    def _field(self, owner: str, old: ir.FieldIR, new: ir.FieldIR) -> Iterator[Change]:
        name = new.json_name
        for word, on, effect_on, off, effect_off in _ATTRIBUTES:
            was, now = getattr(old, word), getattr(new, word)
            # What is never in an answer cannot be missed there.
            if was != now and not (word == "required" and new.write_only):
                message, effect = (on, effect_on) if now else (off, effect_off)
                yield Change(word, owner, name, message, effect, was, now)
        contents = list(self.contents(owner, old, new))
        yield from contents
        # Limits of another type say nothing of those that there were.
        if not any(wide.kind == "type" and wide.effect == "other" for wide in contents):
            yield from _limit_changes(owner, name, old.constraints, new.constraints)
        yield from _documentation(owner, name, old.description, new.description)

    def contents(self, owner: str, old: ir.FieldIR, new: ir.FieldIR) -> Iterator[Change]:
        """Yield what changed about the type of a field, or about the values it is limited to."""
        before, after = _allowed(old, self._old), _allowed(new, self._new)
        are_named = isinstance(old.type, ir.Ref) and isinstance(new.type, ir.Ref)
        is_limited = any({"enum", "const"} & field.constraints.keys() for field in (old, new))
        self._meet_inside(old.type, new.type)
        if before is not None and after is not None and (is_limited or not are_named):
            # An enum of one value may be no type of its own: what is allowed counts.
            yield from _values(owner, new.json_name, before, after)
            return
        is_held = _fits(old.type, new.type, self._old, self._new)
        holds = _fits(new.type, old.type, self._new, self._old)
        effect: Effect = "none" if holds else "wider"
        if not is_held:
            effect = "narrower" if holds else "other"
        if effect != "none":
            was, now = ir.show_expression(old.type), ir.show_expression(new.type)
            yield Change("type", owner, new.json_name, f"was {was}, is {now}", effect, was, now)
        if is_limited and (before is None) != (after is None):
            message, effect = "is limited to certain values now", "narrower"
            if after is None:
                message, effect = "is no longer limited to certain values", "wider"
            listed = (None if values is None else list(values) for values in (before, after))
            yield Change("values", owner, new.json_name, message, effect, *listed)

    def _meet_inside(self, old: ir.TypeExpr, new: ir.TypeExpr) -> None:
        """Meet the types that stand at the same place in both."""
        match old, new:
            # Types of another kind are another type, which is told where they are used.
            case ir.Ref(name=before), ir.Ref(name=after) if _fits(old, new, self._old, self._new):
                self._meet(before, after)
            case (ir.ArrayOf(items=inner), ir.ArrayOf(items=inner_now)) | (
                ir.MapOf(values=inner),
                ir.MapOf(values=inner_now),
            ):
                self._meet_inside(inner, inner_now)
            case (ir.UnionOf(), _) | (_, ir.UnionOf()):
                for option, other in product(_options(old), _options(new)):
                    are_refs = isinstance(option, ir.Ref) and isinstance(other, ir.Ref)
                    if not are_refs or _fits(option, other, self._old, self._new, by_name=True):
                        self._meet_inside(option, other)


_Types = Mapping[str, ir.TypeIR]


def _options(expression: ir.TypeExpr) -> tuple[ir.TypeExpr, ...]:
    return expression.options if isinstance(expression, ir.UnionOf) else (expression,)


def _allowed(field: ir.FieldIR, types: _Types) -> Sequence[Any] | None:
    """Return the values that a field is limited to; ``None`` where it is not."""
    if "const" in field.constraints:
        return [field.constraints["const"]]
    if isinstance(field.constraints.get("enum"), list):
        return list(field.constraints["enum"])
    enum = types.get(field.type.name) if isinstance(field.type, ir.Ref) else None
    return enum.enum_values if enum is not None and enum.kind == "enum" else None


def _fits(
    inner: ir.TypeExpr,
    outer: ir.TypeExpr,
    types: _Types,
    other_types: _Types,
    *,
    by_name: bool = False,
) -> bool:
    """Return whether ``outer`` allows all that ``inner`` does.

    Types that are referred to are compared by themselves.

    Args:
        inner: what is to be allowed.
        outer: what allows it.
        types: those that ``inner`` uses.
        other_types: those that ``outer`` uses.
        by_name: whether two types have to be the same, as options of a union have to.
    """
    match inner, outer:
        case _, ir.Scalar(kind="any"):
            return True
        case (ir.UnionOf(), _) | (_, ir.UnionOf()):
            return all(
                any(
                    _fits(narrow, wide, types, other_types, by_name=True)
                    for wide in _options(outer)
                )
                for narrow in _options(inner)
            )
        case ir.Ref(name=name), ir.Ref(name=other_name):
            type_, other = types.get(name), other_types.get(other_name)
            if type_ is None or other is None:
                return name == other_name or not by_name
            is_same = name == other_name or type_.schema_id == other.schema_id
            return type_.kind == other.kind and (is_same or not by_name)
        case (ir.ArrayOf(items=narrow), ir.ArrayOf(items=wide)) | (
            ir.MapOf(values=narrow),
            ir.MapOf(values=wide),
        ):
            return _fits(narrow, wide, types, other_types, by_name=by_name)
        # An enum that became any text is wider, and the other way round narrower.
        case ir.Ref(name=name), ir.Scalar(kind=kind, format=None):
            values = types[name].enum_values if name in types else ()
            kinds = {"integer" if isinstance(value, int) else "string" for value in values}
            return bool(kinds) and kinds <= {"integer" if kind == "number" else kind}
        case ir.Scalar(), ir.Scalar():
            if inner.kind != outer.kind:
                return (inner.kind, outer.kind) == ("integer", "number")
            bits, more = _BITS.get(inner.format or ""), _BITS.get(outer.format or "")
            is_larger = bits is not None and more is not None and bits <= more
            return outer.format in (None, inner.format) or is_larger
    return False


def _values(
    owner: str, field: str | None, old: Sequence[Any], new: Sequence[Any]
) -> Iterator[Change]:
    """Yield the values that are gone and those that are new: of an enum, or of a field."""
    words = ("is no longer a value", "is a new value")
    for value in _missing(old, new):
        message = f"may no longer be {quoted(value)}" if field else words[0]
        yield Change("value_removed", owner, field or value, message, "narrower", value)
    for value in _missing(new, old):
        message = f"may be {quoted(value)} now" if field else words[1]
        yield Change("value_added", owner, field or value, message, "wider", None, value)


def _missing(values: Iterable[Any], among: Sequence[Any]) -> list[Any]:
    """Return those of ``values`` that are not ``among`` these; ``True`` is not ``1``."""
    typed = [(type(other), other) for other in among]
    return [value for value in values if (type(value), value) not in typed]


def _documentation(
    owner: str, field: str | None, old: str | None, new: str | None
) -> Iterator[Change]:
    if old != new:
        yield Change("description", owner, field, "has another description", "none", old, new)


def _limit_changes(
    owner: str, field: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[Change]:
    before, after = _limits(old), _limits(new)
    for limit in before | after:
        was, now = before.get(limit), after.get(limit)
        if was == now:
            continue
        effect: Effect = "wider" if now is None else "narrower"
        if limit == "default":
            effect = "none"
        elif was is not None and now is not None:
            effect = "other" if limit in _INCOMPARABLE else "narrower" if now > was else "wider"
        exclusive = f"exclusive{limit.capitalize()}"
        is_exclusive = old.get(limit) == new.get(limit) and exclusive in {*old, *new}
        key = exclusive if is_exclusive else limit
        was, now = old.get(key), new.get(key)
        message = f"has {key} {quoted(now)}, it was {quoted(was)}"
        if was is None:
            message = f"has {key} {quoted(now)} now"
        elif now is None:
            message = f"has no {key} any more, it was {quoted(was)}"
        yield Change("constraint", owner, field, message, effect, was, now)


def _limits(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return limits as values of which the larger one is the tighter."""
    numbers = {k: v for k, v in said.items() if type(v) in (int, float)}
    limits: dict[str, Any] = {}
    for key, sign in (("minimum", 1), ("maximum", -1)):
        exclusive = f"exclusive{key.capitalize()}"
        bounds = [(sign * numbers[key], said.get(exclusive) is True)] if key in numbers else []
        # OpenAPI 3.0 says beside a bound that it is exclusive, 3.1 has bounds that are.
        bounds += [(sign * numbers[exclusive], True)] if exclusive in numbers else []
        limits |= {key: max(bounds)} if bounds else {}
    for name in ("Length", "Items", "Properties"):
        limits |= {f"min{name}": numbers.get(f"min{name}")}
        limits |= {f"max{name}": -numbers[f"max{name}"]} if f"max{name}" in numbers else {}
    limits |= {key: said.get(key) for key in (*_INCOMPARABLE, "default")}
    limits["uniqueItems"] = said.get("uniqueItems") is True or None
    # Null inside an array or map is what is noted, so that its absence is the limit.
    for key in ("nullableItems", "nullableValues"):
        limits[key] = said.get(key) is not True or None
    return limits
