"""Values of a plan, chosen so that few of them show a lot.

First the least value, the whole one, and both with names that the document does not declare; then
each property through all of its own values, side by side, absent and null among them; what is left
is mixed at random, the same way every time. Deeper inside fewer and smaller ones: a type of its own
is tried by its own values.
"""

import random
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from itertools import islice, zip_longest
from typing import Any, Final

from pytest_regen.canonical import canonical_json
from pytest_regen.strategies.plans import ArrayOption, ObjectOption, Option, Plan, Values
from pytest_regen.strategies.scalars import Numbers, Texts

Json = Any
Pool = Callable[[Plan], list[Json]]
"""Returns the values of an inner plan."""

_SIZES: Final = {-1: (0, 0), 0: (130, 100), 1: (130, 12), 2: (8, 3)}
"""By level: how many scalars, how many objects and arrays. Below the last, the least alone."""
_LEAST: Final = 3
"""The level from which on only the least values are made."""
_DEEPEST: Final = 12
"""Objects and arrays inside one another in the least value; what needs more never ends."""
_MAX_IN_ALL: Final = 2_000
_MAX_TRIES: Final = 400
"""Values in a row that the document does not allow, after which no more are made."""
_ENDED: Final = object()
_FEW: Final = 3
_MOST_TRIED: Final = 30
_GROUP: Final = 8
"""Optional properties that are there together in an object that has many."""
_CHOSEN: Final = 24
_CHUNK: Final = 4
"""Items in the arrays that go through what is allowed."""
_MAX_ITEMS: Final = 40
_NAMES: Final = ("key", "other key", "ключ", "a.b", "42", "$x", "Key", "a/b~c", "-", "_")
_UNDECLARED: Final = ("x-new", "newField")
"""Names that an API may add to an object some day."""


class Samples:
    """Makes the values of plans; each list is made once."""

    def __init__(self) -> None:
        self._made: dict[Hashable, list[Json]] = {}

    def of(self, plan: Plan, wanted: int, *, only_objects: bool = False) -> list[Json]:
        """Return up to ``wanted`` different values that the schemas of ``plan`` allow."""
        values = self._distinct(plan, wanted, 0, only_objects=only_objects)
        if len(values) < wanted:
            # It is little more than a type inside it: then more of that one are needed.
            values = self._distinct(plan, wanted, -1, only_objects=only_objects)
        return values

    def least(self, plan: Plan) -> list[Json]:
        """Return a few values that are as flat as can be; none where every value has no end."""
        return next(filter(None, (self._within(plan, depth) for depth in range(_DEEPEST))), [])

    def _within(self, plan: Plan, depth: int) -> list[Json]:
        """Return a few values with no more than so many objects and arrays inside one another."""
        key = ("least", id(plan), depth)
        if key not in self._made:
            values: list[Json] = []
            inner: Pool = partial(self._within, depth=depth - 1) if depth else lambda _: []
            for option in plan.options:
                tried = islice(_least_of(option, inner), _MOST_TRIED)
                is_plain = isinstance(option, Values | Texts | Numbers)
                values += islice(filter(plan.check.allows, tried), _FEW if is_plain else 1)
            self._made[key] = values
        return self._made[key]

    def inside(self, plan: Plan, level: int) -> list[Json]:
        """Return the values that are put into others, the plainest first."""
        if level >= _LEAST:
            return self.least(plan)[:1]
        scalars, objects = _SIZES[level]
        return self._distinct(plan, scalars if _is_scalar(plan) else objects, level)

    def _distinct(
        self, plan: Plan, wanted: int, level: int, *, only_objects: bool = False
    ) -> list[Json]:
        key = (id(plan), wanted, level, only_objects)
        if key not in self._made:
            found: dict[str, Json] = {}
            is_checked = level <= 0 or not plan.is_exact
            options = [
                option
                for option in plan.options
                if not only_objects or isinstance(option, ObjectOption | Values)
            ]
            failed = 0
            streams = [self._of_option(each, wanted, level) for each in options]
            # Because each value is held against the whole schema, those tried have an end as well.
            for value in islice(_in_turn(streams), _MAX_IN_ALL):
                if len(found) >= wanted or failed > _MAX_TRIES:
                    break
                identity = canonical_json(value)
                is_other = identity in found or (only_objects and not isinstance(value, dict))
                if is_other or (is_checked and not plan.check.allows(value)):
                    failed += 1
                else:
                    found[identity] = value
                    failed = 0
            self._made[key] = list(found.values())
        return self._made[key]

    def _of_option(self, option: Option, wanted: int, level: int) -> Iterator[Json]:
        match option:
            case Values(values=values):
                yield from values
            case Texts() | Numbers():
                yield from option.values()
            case ArrayOption():
                yield from self._arrays(option, level)
            case ObjectOption():
                yield from self._objects(option, wanted, level)

    # --- arrays ---------------------------------------------------------------------------------

    def _arrays(self, option: ArrayOption, level: int) -> Iterator[list[Json]]:
        pool: list[Json] = []
        if option.items is not None:
            inner = max(level, 1) if _is_scalar(option.items) else level + 1
            pool = self.inside(option.items, inner)
        make = partial(_array, option, pool)
        yield from make(option.shortest, 0)
        top = _MAX_ITEMS if option.longest is None else option.longest
        for size in (1, 2, 3, top if top <= _MAX_ITEMS and option.longest else 1):
            yield from make(min(max(size, option.shortest), top), 0)
        if pool and not option.is_unique and option.shortest <= 2 <= top:
            yield [pool[0], pool[0]]
        # Every value of the items is in some array, among few others, and in one of its own.
        size = min(max(option.shortest, _CHUNK), top)
        for start in range(1, len(pool), max(size, 1)):
            yield from make(size, start)
        for start in range(1, len(pool)):
            yield from make(min(max(option.shortest, 1), top), start)

    # --- objects --------------------------------------------------------------------------------

    def _objects(self, option: ObjectOption, wanted: int, level: int) -> Iterator[dict[str, Json]]:
        pools = {name: self.inside(each, level + 1) for name, each in option.properties.items()}
        pools = {name: pool for name, pool in pools.items() if pool}
        if not option.required <= pools.keys():
            return
        extra = self.inside(option.extra, level + 1) if option.extra else []
        named = extra if option.is_map else []
        required = {name: pools[name][0] for name in pools if name in option.required}
        yield required
        optional = [name for name in pools if name not in option.required]
        if level <= 0:
            whole = {name: pool[0] for name, pool in pools.items()}
            yield whole
            for least, number in ((required, 0), (required, 1), (whole, 2)) if pools else ():
                yield _with_more(least, extra, number)
        # The values at the front of a list were chosen; those after them were thrown.
        most = _CHOSEN if len(pools) > 1 else wanted
        shown = {name: pool[:most] for name, pool in pools.items()}
        longest = max(map(len, shown.values()), default=0) + 1
        # So many go together that all rows are among those wanted.
        together = -(-len(optional) // max(1, wanted * 2 // 3 // longest))
        size = 2 if level > 0 else max(_GROUP, together)
        groups = [optional[at : at + size] for at in range(0, len(optional), size)] or [[]]
        for turn in range(max(longest * len(groups), len(named) + 2)):
            there = groups[turn % len(groups)]
            yield _with_names(_row(option, shown, there, turn // len(groups)), named, turn)
        dice = random.Random(len(pools))  # noqa: S311 - to be the same again
        for _ in range(wanted * 4 if pools else 0):
            share = dice.random()
            row = {
                name: pool[dice.randrange(len(pool))]
                for name, pool in pools.items()
                if name in option.required or dice.random() < share
            }
            yield _with_names(row, named, dice.randrange(64))


def _in_turn(streams: list[Iterator[Json]]) -> Iterator[Json]:
    """Yield one value of each stream after the other, until all have ended."""
    for row in zip_longest(*streams, fillvalue=_ENDED):
        yield from (value for value in row if value is not _ENDED)


def _is_scalar(plan: Plan) -> bool:
    return all(isinstance(option, Values | Texts | Numbers) for option in plan.options)


def _least_of(option: Option, inner: Pool) -> Iterator[Json]:
    match option:
        case Values(values=values):
            yield from values
        case Texts() | Numbers():
            yield from option.values()
        case ArrayOption():
            yield from _array(option, inner(option.items) if option.items else [], option.shortest)
        case ObjectOption():
            needed = {name: inner(option.properties[name]) for name in option.required}
            if not all(needed.values()):
                return
            in_order = [name for name in option.properties if name in needed]
            yield {name: needed[name][0] for name in in_order}
            # Where so few are not enough: all that there can be.
            pools = {name: inner(plan) for name, plan in option.properties.items()}
            extra = inner(option.extra) if option.extra else []
            yield _with_more({name: pool[0] for name, pool in pools.items() if pool}, extra, 2)


def _array(
    option: ArrayOption, pool: list[Json], size: int, start: int = 0
) -> Iterator[list[Json]]:
    """Yield an array of a size that begins with the values at ``start``, if there is one."""
    places = range(start, start + (len(pool) if option.is_unique else size)) if pool else ()
    order = [pool[place % len(pool)] for place in places]
    if option.is_unique:
        order = list({canonical_json(value): value for value in order}.values())
    if len(order) >= size:
        yield order[:size]


def _with_more(row: dict[str, Json], extra: list[Json], number: int) -> dict[str, Json]:
    """Return an object with names that the document does not declare, where it allows them."""
    names = _UNDECLARED[number : number + 1] or _UNDECLARED
    return row | {name: extra[number % len(extra)] for name in names if extra}


def _with_names(row: dict[str, Json], extra: list[Json], turn: int) -> dict[str, Json]:
    """Return a map with up to three names of its own beside those that are declared."""
    names = {_NAMES[(turn + more) % len(_NAMES)]: turn + more for more in range(turn % 4)}
    added = {name: extra[place % len(extra)] for name, place in names.items() if extra}
    return row | {name: value for name, value in added.items() if name not in row}


def _row(
    option: ObjectOption, pools: dict[str, list[Json]], there: Sequence[str], turn: int
) -> dict[str, Json]:
    """Return the properties of one row: each goes through its values, and through being absent."""
    row = {}
    for place, (name, pool) in enumerate(pools.items()):
        if name in option.required:
            row[name] = pool[(turn + place) % len(pool)]
        elif name in there:
            choice = (turn + place) % (len(pool) + 1)
            if choice < len(pool):
                row[name] = pool[choice]
    return row
