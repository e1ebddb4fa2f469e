"""Values of a plan, chosen so that few of them show a lot.

First the least value and the whole one, then each property through all of its own values, side by
side, absent and null among them; what is left is mixed at random, the same way every time. Deeper
inside fewer and smaller ones: a type of its own is tried by its own values.
"""

import random
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from math import inf
from typing import Any, Final

from pytest_regen.strategies.plans import (
    ArrayOption,
    ObjectOption,
    Option,
    Plan,
    Values,
    height_of,
    needed_by,
    same_json,
)
from pytest_regen.strategies.scalars import Numbers, Texts

Json = Any
_ABSENT: Final = object()
_SIZES: Final = {-1: (0, 0), 0: (130, 100), 1: (130, 12), 2: (8, 3)}
"""By level: how many scalars, how many objects and arrays. Below the last, one."""
_LEAST: Final = 3
"""The level from which on only the least value is made."""
_MAX_TRIES: Final = 400
"""Values in a row that the document does not allow, after which no more are made."""
_GROUP: Final = 8
"""Optional properties that are there together in an object that has many."""
_CHOSEN: Final = 24
_CHUNK: Final = 4
"""Items in the arrays that go through what is allowed."""
_MAX_ITEMS: Final = 40
_NAMES: Final = ("key", "other key", "ключ", "a.b", "42", "$x", "Key", "a/b~c", "-", "_")


@dataclass(frozen=True, slots=True)
class _Items:
    """Values that an array is made of."""

    heads: Sequence[list[Json]]
    """Of each of the first places."""
    rest: list[Json]
    contained: list[Json]
    """One of them has to be there."""

    def at(self, place: int, size: int) -> list[Json]:
        """Return what may stand at a place in an array of a size."""
        if self.contained and place == size - 1:
            return self.contained
        return self.heads[place] if place < len(self.heads) else self.rest


@dataclass(frozen=True, slots=True)
class _Members:
    """Values that an object is made of."""

    own: dict[str, list[Json]]
    """By declared name."""
    extra: list[Json]
    """Under names of one's own."""
    names: list[str]
    """Names of one's own."""


class Samples:
    """Makes the values of plans; each list is made once."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, int, int, bool], list[Json]] = {}
        self._kept: list[Plan] = []

    def of(self, plan: Plan, wanted: int, *, only_objects: bool = False) -> list[Json]:
        """Return up to ``wanted`` different values that the schemas of ``plan`` allow."""
        found = self._distinct(plan, wanted, 0, only_objects=only_objects)
        if len(found) < wanted:
            # It is little more than a type inside it: then more of that one are needed.
            found = self._distinct(plan, wanted, -1, only_objects=only_objects)
        return found

    def of_option(self, option: Option) -> Iterator[Json]:
        """Yield values of one option of a plan; the document may refuse them."""
        return self._of_option(option, 1, 1)

    def _inside(self, plan: Plan, level: int) -> list[Json]:
        """Return the values that are put into others, the plainest first."""
        if level >= _LEAST:
            return self._distinct(plan, 1, level)
        scalars, objects = _SIZES[level]
        return self._distinct(plan, scalars if _is_scalar(plan) else objects, level)

    def _items(self, plan: Plan, level: int) -> list[Json]:
        return self._inside(plan, max(level, 1) if _is_scalar(plan) else level + 1)

    def _distinct(
        self, plan: Plan, wanted: int, level: int, *, only_objects: bool = False
    ) -> list[Json]:
        key = (id(plan), wanted, min(level, _LEAST), only_objects)
        if key not in self._made:
            self._kept.append(plan)  # Its identity stays its own.
            found: dict[Hashable, Json] = {}
            is_checked = level <= 0 or not plan.is_exact or level >= _LEAST
            failed = 0
            options = plan.options
            if only_objects:
                options = tuple(o for o in options if isinstance(o, ObjectOption | Values))
            for value in self._values(options, wanted, level):
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

    def _values(self, allowed: Sequence[Option], wanted: int, level: int) -> Iterator[Json]:
        """Yield values of all options in turn, the ones that end soonest first."""
        options = [option for option in allowed if height_of(option) < inf]
        if level >= _LEAST:
            options.sort(key=height_of)
        streams = [self._of_option(option, wanted, level) for option in options]
        while streams:
            for stream in list(streams):
                try:
                    yield next(stream)
                except StopIteration:
                    streams.remove(stream)

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
        if level >= _LEAST and not needed_by(option):
            yield []
            return
        heads = [self._items(plan, level) for plan in option.prefix if plan.height < inf]
        has_items = option.items is not None and option.items.height < inf
        pool = self._items(option.items, level) if option.items and has_items else []
        contained = self._items(option.contained, level) if option.contained else []
        make = partial(_array, option, _Items(heads, pool, contained))
        least = make(max(option.shortest, bool(contained)), 0)
        if least is not None:
            yield least
        if level >= _LEAST:
            return
        top = option.longest if option.longest is not None else _MAX_ITEMS
        sizes = [*range(max(option.shortest, 1), 4), len(heads), len(heads) + 1]
        sizes += [option.longest] if option.longest and option.longest <= _MAX_ITEMS else []
        for size in dict.fromkeys(size for size in sizes if option.shortest <= size <= top):
            made = make(size, 0)
            if made is not None:
                yield made
        twice = [pool[0], pool[0]] if pool and not heads and not option.is_unique else []
        yield from [twice] if option.shortest <= len(twice) <= top and twice else []
        # Every value of the items is in some array, among few others.
        longest = max(map(len, (pool, *heads)), default=0)
        size = min(max(option.shortest, len(heads), _CHUNK), top)
        for start in range(1, longest, max(size, 1)):
            made = make(size, start)
            if made is not None:
                yield made
        for start in range(1, longest):
            made = make(min(max(option.shortest, len(heads), 1), top), start)
            if made is not None:
                yield made

    # --- objects --------------------------------------------------------------------------------

    def _objects(self, option: ObjectOption, wanted: int, level: int) -> Iterator[dict[str, Json]]:
        pools: dict[str, list[Json]] = {}
        for name, plan in option.properties.items():
            if name not in option.required and (level >= _LEAST or plan.height == inf):
                continue
            pool = self._inside(plan, level + 1)
            if pool:
                pools[name] = pool
            elif name in option.required:
                return
        members = _Members(pools, self._extra(option, level), _names(option))
        finish = partial(_finish, option, members)
        yield finish({name: pools[name][0] for name in pools if name in option.required}, 0)
        if level >= _LEAST:
            return
        optional = [name for name in pools if name not in option.required]
        is_small = level > 0
        if not is_small:
            yield finish({name: pool[0] for name, pool in pools.items()}, 0)
        # The values at the front of a list were chosen; those after them were thrown.
        most = _CHOSEN if len(pools) > 1 else wanted
        shown = {name: pool[:most] for name, pool in pools.items()}
        longest = max(map(len, shown.values()), default=0) + 1
        groups = _groups(
            optional, 2 if is_small else max(_GROUP, _share(optional, wanted, longest))
        )
        rounds = range(max(longest * len(groups), len(members.extra) + 2))
        for turn in rounds:
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
            yield finish(row, dice.randrange(64) if members.extra else 0)

    def _extra(self, option: ObjectOption, level: int) -> list[Json]:
        """Return values to stand under names of one's own; none where there should be none."""
        if option.extra is None or option.extra.height == inf:
            return []
        return self._inside(option.extra, level + 1) if level < _LEAST or option.fewest else []


def _array(option: ArrayOption, items: _Items, size: int, start: int) -> list[Json] | None:
    """Return an array of a size that begins with the values at ``start``."""
    made: list[Json] = []
    used: set[Hashable] = set()
    for place in range(size):
        values = items.at(place, size)
        order = (values[(start + place + more) % len(values)] for more in range(len(values)))
        found = next((v for v in order if not (option.is_unique and same_json(v) in used)), _ABSENT)
        if found is _ABSENT:
            return None
        used.add(same_json(found))
        made.append(found)
    return made


def _is_scalar(plan: Plan) -> bool:
    return all(isinstance(option, Values | Texts | Numbers) for option in plan.options)


def _finish(
    option: ObjectOption, members: _Members, row: dict[str, Json], turn: int
) -> dict[str, Json]:
    """Return an object of chosen properties, with what its size and the others ask for."""
    waiting = list(row)
    while waiting:
        for needed in option.needs.get(waiting.pop(), ()):
            if needed not in row and needed in members.own:
                row[needed] = members.own[needed][0]
                waiting.append(needed)
    for name, pool in members.own.items():
        if len(row) >= option.fewest:
            break
        row.setdefault(name, pool[0])
    extra, names = members.extra, members.names
    more = max(option.fewest - len(row), turn % 4) if extra and names else 0
    for number in range(more):
        row[names[(turn + number) % len(names)]] = extra[(turn + number) % len(extra)]
    if option.most is not None and len(row) > option.most:
        spare = [name for name in row if name not in option.required]
        for name in spare[: len(row) - option.most]:
            del row[name]
    # In the document's order, as a person would write it.
    order = {name: place for place, name in enumerate(option.properties)}
    return dict(sorted(row.items(), key=lambda item: order.get(item[0], len(order))))


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
    return -(-len(names) // groups)


def _groups(names: Sequence[str], size: int) -> list[list[str]]:
    return [list(names[at : at + size]) for at in range(0, len(names), max(size, 1))] or [[]]


def _names(option: ObjectOption) -> list[str]:
    """Return names of one's own, the plainest first."""
    known = _NAMES if option.names is None else islice(option.names.values(), 12)
    return [name for name in known if name not in option.properties]
