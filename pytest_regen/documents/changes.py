"""What changed between two IRs of one operation, and for whom.

What counts is the JSON on the wire. Types are held against each other from the root on, by the
place where they are used: a schema under another name is no change of what is sent. Each change
says whether more is allowed than before (``wider``), less (``narrower``), or something else; who
only reads breaks on the first, who only writes on the second.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, Literal

from pytest_regen.documents.ir import (
    IR,
    REQUEST,
    SCHEMAS,
    ArrayOf,
    EnumValue,
    FieldIR,
    MapOf,
    Ref,
    Scalar,
    TypeExpr,
    TypeIR,
    UnionOf,
    show_expression,
)
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
    field: EnumValue | None
    """The JSON name of the field, or the value of an enum; ``None`` for the type itself."""
    message: str
    """In words that follow the name."""
    effect: Effect
    before: Any = None
    after: Any = None

    def breaks(self, direction: Direction) -> bool:
        """Return whether code for the older version may fail with what the newer one allows."""
        return self.effect in _BREAKS[direction]


def compare_types(old: IR, new: IR) -> tuple[Change, ...]:
    """Return what changed from ``old`` to ``new``, from the root on, each type once."""
    return tuple(_Comparison(old, new).run())


def direction_of(ir: IR) -> Direction:
    """Return for whom types are compared; for schemas it is not known, and readers are the rule."""
    return "request" if ir.endpoint.status == REQUEST else "response"


class _Comparison:
    """Two IRs side by side."""

    def __init__(self, old: IR, new: IR) -> None:
        self._old = {type_.name: type_ for type_ in old.types}
        self._new = {type_.name: type_ for type_ in new.types}
        self._are_named = new.endpoint.status == SCHEMAS
        self._waiting: deque[tuple[str, str]] = deque()
        self._seen: set[tuple[str, str]] = set()

    def run(self) -> Iterator[Change]:
        """Yield all changes."""
        yield from self._roots()
        while self._waiting:
            yield from self._pair(*self._waiting.popleft())

    def _roots(self) -> Iterator[Change]:
        """Meet the types to begin with: one as a rule, several for a union, or schemas by name."""
        old, new = (
            [name for name, type_ in types.items() if type_.is_root or self._are_named]
            for types in (self._old, self._new)
        )
        message: str
        effect: Effect
        if len(old) == len(new) == 1 and not self._are_named:
            self._meet(old[0], new[0])
            return
        for pair in product(old, new):
            if self._is_same(*pair):
                self._meet(*pair)
        known = [{pair[side] for pair in self._seen} for side in (0, 1)]
        for name in old:
            if name not in known[0]:
                message, effect = "is no longer one of the types", "narrower"
                if self._are_named:
                    message, effect = "was removed", "gone"
                yield Change("root_removed", name, None, message, effect)
        for name in new:
            if name not in known[1]:
                message, effect = "is one of the types now", "wider"
                if self._are_named:
                    message, effect = "was added", "none"
                yield Change("root_added", name, None, message, effect)

    def _meet(self, old: str, new: str) -> None:
        if (old, new) not in self._seen:
            self._seen.add((old, new))
            self._waiting.append((old, new))

    def _is_same(self, old: str, new: str) -> bool:
        """Return whether two names mean one schema."""
        before, after = self._old.get(old), self._new.get(new)
        if before is None or after is None:
            return old == new
        return old == new or before.schema_id == after.schema_id

    # --- types -----------------------------------------------------------------------------------

    def _pair(self, old_name: str, new_name: str) -> Iterator[Change]:
        old, new = self._old.get(old_name), self._new.get(new_name)
        if old is None or new is None:
            return  # An IR that was edited: there is nothing to compare.
        if old_name != new_name:
            yield Change(
                "renamed", new_name, None, f"was called {old_name}", "none", old_name, new_name
            )
        if old.kind != new.kind:
            message = f"was {old.kind}, is {new.kind}"
            yield Change("type", new_name, None, message, "other", old.kind, new.kind)
        elif new.kind == "enum":
            yield from _values(new_name, old.enum_values, new.enum_values)
        else:
            yield from self._fields(old, new)
        yield from _documentation(new_name, None, old.description, new.description)

    def _fields(self, old: TypeIR, new: TypeIR) -> Iterator[Change]:
        before = {field.json_name: field for field in old.fields}
        after = {field.json_name: field for field in new.fields}
        for name, field in before.items():
            if name in after:
                yield from self._field(new.name, field, after[name])
            else:
                effect: Effect = "none" if field.write_only else "gone"
                type_ = show_expression(field.type)
                yield Change("field_removed", new.name, name, "was removed", effect, type_)
        for name, field in after.items():
            if name not in before:
                type_ = show_expression(field.type)
                how = "required" if field.required else "optional"
                effect = "narrower" if field.required else "none"
                message = f"was added, {how}"
                yield Change("field_added", new.name, name, message, effect, None, type_)

    def _field(self, owner: str, old: FieldIR, new: FieldIR) -> Iterator[Change]:
        def change(kind: str, message: str, effect: Effect, before: Any, after: Any) -> Change:
            return Change(kind, owner, new.json_name, message, effect, before, after)

        if old.required != new.required and not new.write_only:
            word = "is always there now" if new.required else "may be left out now"
            effect: Effect = "narrower" if new.required else "wider"
            yield change("required", word, effect, old.required, new.required)
        if old.nullable != new.nullable:
            word = "may be null now" if new.nullable else "is never null now"
            effect = "wider" if new.nullable else "narrower"
            yield change("nullable", word, effect, old.nullable, new.nullable)
        if old.write_only != new.write_only:
            word = "is left out of answers now" if new.write_only else "is in answers now"
            effect = "gone" if new.write_only else "none"
            yield change("write_only", word, effect, old.write_only, new.write_only)
        contents = list(self._contents(owner, old, new))
        yield from contents
        is_other = any(each.kind == "type" and each.effect == "other" for each in contents)
        # Limits of another type say nothing of those that there were.
        limits = () if is_other else _constraint_effects(old.constraints, new.constraints)
        for key, effect in limits:
            before, after = old.constraints.get(key), new.constraints.get(key)
            yield change("constraint", _change_of(key, before, after), effect, before, after)
        if old.deprecated != new.deprecated:
            word = "is deprecated now" if new.deprecated else "is no longer deprecated"
            yield change("deprecated", word, "none", old.deprecated, new.deprecated)
        yield from _documentation(owner, new.json_name, old.description, new.description)

    def _contents(self, owner: str, old: FieldIR, new: FieldIR) -> Iterator[Change]:
        """Yield what changed about the type of a field, or about the values it is limited to."""
        before, after = self._allowed(old, self._old), self._allowed(new, self._new)
        are_named = isinstance(old.type, Ref) and isinstance(new.type, Ref)
        is_limited = any({"enum", "const"} & field.constraints.keys() for field in (old, new))
        effect = self._relation(old.type, new.type)
        if before is not None and after is not None and (is_limited or not are_named):
            # An enum of one value may be no type of its own: what is allowed counts.
            yield from _field_values(owner, new.json_name, before, after)
            return
        if effect != "none":
            was, now = show_expression(old.type), show_expression(new.type)
            message = f"was {was}, is {now}"
            yield Change("type", owner, new.json_name, message, effect, was, now)
        if is_limited and (before is None) != (after is None):
            message = "is limited to certain values now"
            if after is None:
                message = "is no longer limited to certain values"
            effect = "wider" if after is None else "narrower"
            listed = (None if values is None else list(values) for values in (before, after))
            yield Change("values", owner, new.json_name, message, effect, *listed)

    def _allowed(self, field: FieldIR, types: Mapping[str, TypeIR]) -> Sequence[Any] | None:
        """Return the values that a field is limited to; ``None`` where it is not."""
        if "const" in field.constraints:
            return [field.constraints["const"]]
        if isinstance(field.constraints.get("enum"), list):
            listed: list[Any] = field.constraints["enum"]
            return listed
        if isinstance(field.type, Ref):
            named = types.get(field.type.name)
            return named.enum_values if named is not None and named.kind == "enum" else None
        return None

    # --- type expressions ------------------------------------------------------------------------

    def _relation(self, old: TypeExpr, new: TypeExpr) -> Effect:
        """Return what became of a type; types that are referred to are met for later."""
        match old, new:
            case Ref(name=before), Ref(name=after):
                return self._references(before, after)
            case (ArrayOf(items=inner), ArrayOf(items=inner_now)) | (
                MapOf(values=inner),
                MapOf(values=inner_now),
            ):
                return self._relation(inner, inner_now)
            case Scalar(), Scalar():
                return _scalars(old, new)
            case _, Scalar(kind="any"):
                return "wider"
            case Scalar(kind="any"), _:
                return "narrower"
            case (UnionOf(), _) | (_, UnionOf()):
                options = (
                    each.options if isinstance(each, UnionOf) else (each,) for each in (old, new)
                )
                return self._options(*options)
            case Ref(), Scalar():
                return "wider" if self._is_of(self._old.get(old.name), new) else "other"
            case Scalar(), Ref():
                return "narrower" if self._is_of(self._new.get(new.name), old) else "other"
        return "other"

    def _references(self, old: str, new: str) -> Effect:
        before, after = self._old.get(old), self._new.get(new)
        if before is not None and after is not None and before.kind != after.kind:
            return "other"
        self._meet(old, new)
        return "none"

    @staticmethod
    def _is_of(type_: TypeIR | None, scalar: Scalar) -> bool:
        """Return whether the values of an enum are values of a plain type."""
        if type_ is None or type_.kind != "enum" or scalar.format is not None:
            return False
        kinds = {"integer" if isinstance(value, int) else "string" for value in type_.enum_values}
        return kinds <= ({"integer"} if scalar.kind == "number" else {scalar.kind})

    def _options(self, old: Sequence[TypeExpr], new: Sequence[TypeExpr]) -> Effect:
        left, effects = list(new), set[Effect]()
        for option in old:
            match = next((other for other in left if self._matches(option, other)), None)
            if match is None:
                effects.add("narrower")
            else:
                left.remove(match)
                effects.add(self._relation(option, match))
        effects |= {"wider"} if left else set()
        if len(left) == len(new):  # Nothing that was allowed is allowed now.
            return "other"
        effects.discard("none")
        return effects.pop() if len(effects) == 1 else "other" if effects else "none"

    def _matches(self, old: TypeExpr, new: TypeExpr) -> bool:
        match old, new:
            case Ref(), Ref():
                return self._is_same(old.name, new.name)
            case Scalar(), Scalar():
                return old.kind == new.kind
        return type(old) is type(new)


def _holds(values: Iterable[Any], wanted: object) -> bool:
    """Return whether a value is among others; ``True`` is not ``1``."""
    return any(type(value) is type(wanted) and value == wanted for value in values)


def _values(owner: str, old: Sequence[EnumValue], new: Sequence[EnumValue]) -> Iterator[Change]:
    for value in old:
        if not _holds(new, value):
            yield Change("value_removed", owner, value, "is no longer a value", "narrower", value)
    for value in new:
        if not _holds(old, value):
            yield Change("value_added", owner, value, "is a new value", "wider", None, value)


def _field_values(
    owner: str, field: str, old: Sequence[Any], new: Sequence[Any]
) -> Iterator[Change]:
    for value in old:
        if not _holds(new, value):
            message = f"may no longer be {quoted(value)}"
            yield Change("value_removed", owner, field, message, "narrower", value)
    for value in new:
        if not _holds(old, value):
            message = f"may be {quoted(value)} now"
            yield Change("value_added", owner, field, message, "wider", None, value)


def _documentation(
    owner: str, field: str | None, old: str | None, new: str | None
) -> Iterator[Change]:
    if old != new:
        yield Change("description", owner, field, "has another description", "none", old, new)


_SIZES: Final[Mapping[str, Mapping[str, int]]] = {
    "integer": {"int8": 8, "int16": 16, "int32": 32, "int64": 64},
    "number": {"float": 32, "double": 64},
}


def _scalars(old: Scalar, new: Scalar) -> Effect:
    if old.kind != new.kind:
        wider = {("integer", "number"), *((old.kind, "any"),)}
        if (old.kind, new.kind) in wider:
            return "wider"
        return "narrower" if old.kind == "any" or (new.kind, old.kind) in wider else "other"
    if old.format == new.format:
        return "none"
    if new.format is None:
        return "wider"
    if old.format is None:
        return "narrower"
    sizes = _SIZES.get(old.kind, {})
    before, after = sizes.get(old.format), sizes.get(new.format)
    if before is None or after is None:
        return "other"
    return "wider" if after > before else "narrower"


# --- constraints ---------------------------------------------------------------------------------

_Constraints = Mapping[str, Any]

_SIZE_LIMITS: Final = ("Length", "Items", "Properties")
_TEXTS: Final = ("pattern", "contentEncoding", "contentMediaType")


def _constraint_effects(old: _Constraints, new: _Constraints) -> Iterator[tuple[str, Effect]]:
    """Yield the constraints that differ, by the key to show, and what became of the values."""
    checks: tuple[tuple[str, Callable[[_Constraints], Any], Callable[[Any, Any], Effect]], ...] = (
        ("minimum", lambda limits: _bound(limits, "minimum", "exclusiveMinimum", 1), _lower),
        ("maximum", lambda limits: _bound(limits, "maximum", "exclusiveMaximum", -1), _upper),
        *((f"min{name}", _number(f"min{name}"), _lower) for name in _SIZE_LIMITS),
        *((f"max{name}", _number(f"max{name}"), _upper) for name in _SIZE_LIMITS),
        ("multipleOf", _number("multipleOf"), _multiple),
        *((key, _plain(key), _either) for key in _TEXTS),
        ("uniqueItems", lambda limits: limits.get("uniqueItems") is True or None, _either),
        *(
            (key, lambda limits, key=key: limits.get(key) is not True or None, _either)
            for key in ("nullableItems", "nullableValues")
        ),
        ("default", _plain("default"), lambda *_: "none"),
    )
    for key, read, relate in checks:
        before, after = read(old), read(new)
        if before == after and type(before) is type(after):
            continue
        if before is None or after is None:
            effect: Effect = "wider" if after is None else "narrower"
            effect = "none" if key == "default" else effect
        else:
            effect = relate(before, after)
        yield _shown_key(key, old, new), effect


def _shown_key(key: str, old: _Constraints, new: _Constraints) -> str:
    """Return the key under which a bound stands."""
    exclusive = f"exclusive{key.capitalize()}"
    changed = old.get(key) != new.get(key) or key not in {"minimum", "maximum"}
    return key if changed else exclusive


def _plain(key: str) -> Callable[[_Constraints], Any]:
    return lambda limits: limits.get(key)


def _number(key: str) -> Callable[[_Constraints], Any]:
    return lambda limits: limits[key] if _is_number(limits.get(key)) else None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _bound(limits: _Constraints, key: str, exclusive: str, sign: int) -> tuple[float, int] | None:
    """Return a bound as a pair that orders as it limits: OpenAPI 3.0 and 3.1 spell it apart."""
    found = []
    if _is_number(limits.get(key)):
        found.append((limits[key], sign * (limits.get(exclusive) is True)))
    if _is_number(limits.get(exclusive)):
        found.append((limits[exclusive], sign))
    if not found:
        return None
    return max(found) if sign > 0 else min(found)


def _lower(old: Any, new: Any) -> Effect:
    return "narrower" if new > old else "wider"


def _upper(old: Any, new: Any) -> Effect:
    return "narrower" if new < old else "wider"


def _multiple(old: float, new: float) -> Effect:
    if old and new and new % old == 0:
        return "narrower"
    return "wider" if old and new and old % new == 0 else "other"


def _either(_old: Any, _new: Any) -> Effect:
    return "other"


def _change_of(key: str, old: Any, new: Any) -> str:
    if old is None:
        return f"has {key} {quoted(new)} now"
    if new is None:
        return f"has no {key} any more, it was {quoted(old)}"
    return f"has {key} {quoted(new)}, it was {quoted(old)}"
