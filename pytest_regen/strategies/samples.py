"""Values of a plan, chosen so that few of them show a lot.

First the least value, the whole one, and both with names that the document does not declare; then
each property through all of its own values, side by side, absent and null among them; what is left
is mixed at random, the same way every time. Deeper inside fewer and smaller ones: a type of its own
is tried by its own values.
"""

import random
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final

from pytest_regen.strategies.plans import ArrayOption, ObjectOption, Option, Plan, Values, same_json
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
_MAX_TRIES: Final = 400
"""Values in a row that the document does not allow, after which no more are made."""
_FEW: Final = 3
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

    def of_option(self, option: Option) -> Iterator[Json]:
        """Yield values of one option of a plan; the document may refuse them."""
        return self._of_option(option, 1, 1)

    def _within(self, plan: Plan, depth: int) -> list[Json]:
        """Return a few values with no more than so many objects and arrays inside one another."""
        key = ("least", id(plan), depth)
        if key not in self._made:
            values: list[Json] = []
            inner = partial(self._within, depth=depth - 1) if depth else _none
            for option in plan.options:
                tried = islice(_least_of(option, inner), 30)
                values += islice(filter(plan.check.allows, tried), _FEW - len(values))
            self._made[key] = values
        return self._made[key]

    def _inside(self, plan: Plan, level: int) -> list[Json]:
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
            found: dict[Hashable, Json] = {}
            is_checked = level <= 0 or not plan.is_exact
            options = [
                option
                for option in plan.options
                if not only_objects or isinstance(option, ObjectOption | Values)
            ]
            failed = 0
            for value in _in_turn([self._of_option(each, wanted, level) for each in options]):
                if len(found) >= wanted or failed > _MAX_TRIES:
                    break
                identity = same_json(value)
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
        pools = _pools(option, lambda plan: self._items(plan, level))
        make = partial(_array, option, pools)
        yield from make(option.shortest, 0)
        top = _MAX_ITEMS if option.longest is None else option.longest
        sizes = [*range(max(option.shortest, 1), 4), len(option.prefix), len(option.prefix) + 1]
        sizes += [option.longest] if option.longest and option.longest <= _MAX_ITEMS else []
        for size in dict.fromkeys(size for size in sizes if option.shortest <= size <= top):
            yield from make(size, 0)
        *heads, rest = pools
        if rest and not heads and not option.is_unique and option.shortest <= 2 <= top:
            yield [rest[0], rest[0]]
        # Every value of the items is in some array, among few others, and in one of its own.
        longest = max(map(len, pools))
        size = min(max(option.shortest, len(heads), _CHUNK), top)
        for start in range(1, longest, max(size, 1)):
            yield from make(size, start)
        for start in range(1, longest):
            yield from make(min(max(option.shortest, len(heads), 1), top), start)

    def _items(self, plan: Plan, level: int) -> list[Json]:
        return self._inside(plan, max(level, 1) if _is_scalar(plan) else level + 1)

    # --- objects --------------------------------------------------------------------------------

    def _objects(self, option: ObjectOption, wanted: int, level: int) -> Iterator[dict[str, Json]]:
        pools = {name: self._inside(each, level + 1) for name, each in option.properties.items()}
        pools = {name: pool for name, pool in pools.items() if pool}
        if not option.required <= pools.keys():
            return
        extra = self._inside(option.extra, level + 1) if option.extra else []
        finish = partial(_finish, option, pools, extra)
        required = {name: pools[name][0] for name in pools if name in option.required}
        yield finish(required, 0)
        optional = [name for name in pools if name not in option.required]
        if level <= 0:
            whole = {name: pool[0] for name, pool in pools.items()}
            yield finish(whole, 0)
            for least, number in ((required, 0), (required, 1), (whole, 2)) if pools else ():
                yield _with_more(least, option, extra, number)
        # The values at the front of a list were chosen; those after them were thrown.
        most = _CHOSEN if len(pools) > 1 else wanted
        shown = {name: pool[:most] for name, pool in pools.items()}
        longest = max(map(len, shown.values()), default=0) + 1
        groups = _groups(optional, 2 if level > 0 else _share(optional, wanted, longest))
        for turn in range(max(longest * len(groups), len(extra) * option.is_map + 2)):
            there = groups[turn % len(groups)]
            yield finish(_row(option, shown, there, turn // len(groups)), turn)
        dice = random.Random(len(pools))  # noqa: S311 - to be the same again
        for _ in range(wanted * 4 if pools else 0):
            share = dice.random()
            row = {
                name: pool[dice.randrange(len(pool))]
                for name, pool in pools.items()
                if name in option.required or dice.random() < share
            }
            yield finish(row, dice.randrange(64) if extra else 0)


def _none(_: Plan) -> list[Json]:
    return []


def _in_turn(streams: list[Iterator[Json]]) -> Iterator[Json]:
    """Yield one value of each stream after the other, until all have ended."""
    while streams:
        for stream in list(streams):
            try:
                yield next(stream)
            except StopIteration:
                streams.remove(stream)


def _is_scalar(plan: Plan) -> bool:
    return all(isinstance(option, Values | Texts | Numbers) for option in plan.options)


def _least_of(option: Option, inner: Pool) -> Iterator[Json]:
    match option:
        case Values(values=values):
            yield from values
        case Texts() | Numbers():
            yield from option.values()
        case ArrayOption():
            yield from _array(option, _pools(option, inner), option.shortest, 0)
        case ObjectOption():
            pools = {name: inner(option.properties[name]) for name in option.required}
            if all(pools.values()):
                extra = inner(option.extra) if option.extra and option.fewest else []
                required = {name: pool[0] for name, pool in pools.items()}
                yield _finish(option, pools, extra, required, 0)


def _pools(option: ArrayOption, inner: Pool) -> list[list[Json]]:
    """Return the values of each of the first places, and last those of all that follow."""
    return [*map(inner, option.prefix), inner(option.items) if option.items else []]


def _array(
    option: ArrayOption, pools: Sequence[list[Json]], size: int, start: int
) -> Iterator[list[Json]]:
    """Yield an array of a size that begins with the values at ``start``, if there is one."""
    made: list[Json] = []
    used: set[Hashable] = set()
    for place in range(size):
        values = pools[min(place, len(pools) - 1)]
        order = (values[(start + place + more) % len(values)] for more in range(len(values)))
        fresh = [each for each in order if not (option.is_unique and same_json(each) in used)][:1]
        if not fresh:
            return
        used.add(same_json(fresh[0]))
        made += fresh
    yield made


def _finish(
    option: ObjectOption,
    pools: dict[str, list[Json]],
    extra: list[Json],
    row: dict[str, Json],
    turn: int,
) -> dict[str, Json]:
    """Return an object of chosen properties, filled up to the size that it must have."""
    row = dict(row)
    for name, pool in pools.items():
        if len(row) < option.fewest:
            row.setdefault(name, pool[0])
    names = _NAMES if option.names is None else tuple(islice(option.names.values(), 12))
    more = max(option.fewest - len(row), turn % 4 * option.is_map) if extra and names else 0
    for number in range(more):
        name = names[(turn + number) % len(names)]
        row.setdefault(name, extra[(turn + number) % len(extra)])
    # In the document's order, as a person would write it.
    order = {name: place for place, name in enumerate(option.properties)}
    return dict(sorted(row.items(), key=lambda item: order.get(item[0], len(order))))


def _with_more(
    row: dict[str, Json], option: ObjectOption, extra: list[Json], number: int
) -> dict[str, Json]:
    """Return an object with names that the document does not declare, where it allows them."""
    names = _UNDECLARED[number : number + 1] or _UNDECLARED
    return row | {name: extra[number % len(extra)] for name in names if extra and not option.names}


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


def _share(names: Sequence[str], wanted: int, longest: int) -> int:
    """Return how many optional properties go together, so that all rows are among those wanted."""
    groups = max(1, wanted * 2 // 3 // max(longest, 1))
    return max(_GROUP, -(-len(names) // groups))


def _groups(names: Sequence[str], size: int) -> list[list[str]]:
    return [list(names[at : at + size]) for at in range(0, len(names), size)] or [[]]
