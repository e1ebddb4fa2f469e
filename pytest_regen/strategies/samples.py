"""Values of a plan, chosen so that few of them show a lot.

First the least value, the whole one, and both with names that the document does not declare; then
each property through all of its own values, side by side, absent and null among them; what is left
is mixed at random, the same way every time. Deeper inside fewer and smaller ones: a type of its own
is tried by its own values.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product, zip_longest
from typing import Any, Final

from pytest_regen.canonical import canonical_json
from pytest_regen.strategies.plans import ArrayOption, ObjectOption, Option, Plan, Values
from pytest_regen.strategies.scalars import Numbers, Texts, dice_of

Json = Any

_SIZES: Final[Mapping[int, tuple[int, int]]] = {
    -1: (130, 0),
    0: (130, 100),
    1: (130, 12),
    2: (8, 3),
}
"""By level: how many scalars, how many objects and arrays."""
_LEAST: Final = 3
"""The level at which only the least value is made. Those above hold no value with more than so many
objects and arrays inside one another as there are levels left."""
_DEEPEST: Final = 15
"""The last level: what needs more never ends."""
_MAX_SPARE: Final = 900
"""Values more than are asked for that are tried, because each is held against the whole schema."""
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
        self._pools: dict[tuple[int, int], list[Json]] = {}

    def of(
        self, plan: Plan, count: int, is_fit: Callable[[Json], bool] = lambda _: True
    ) -> list[Json]:
        """Return up to ``count`` different values that the schemas of ``plan`` allow.

        Args:
            plan: says what is allowed.
            count: how many, where there are as many.
            is_fit: tells which of them count.
        """
        values = self._distinct(plan, count, 0, is_fit)
        # It is little more than a type inside it: then more of that one are needed.
        return values if len(values) >= count else self._distinct(plan, count, -1, is_fit)

    def inside(self, plan: Plan, level: int) -> list[Json]:
        """Return the values that are put into others, the plainest first."""
        # By identity, because plans that hold themselves cannot be compared.
        key = id(plan), level
        if key not in self._pools:
            if level < _LEAST:
                scalars, nested = _SIZES[level]
                count = scalars if _is_scalar(plan) else nested
                self._pools[key] = self._distinct(plan, count, level)
            elif level == _LEAST:
                flat = (self.inside(plan, deep) for deep in range(_DEEPEST, _LEAST, -1))
                self._pools[key] = next(filter(None, flat), [])[:1]
            else:
                self._pools[key] = []
                for option in plan.options if level <= _DEEPEST else ():
                    tried = islice(self._of_option(option, 0, level), _MOST_TRIED)
                    is_nested = isinstance(option, ArrayOption | ObjectOption)
                    allowed = islice(filter(plan.allows, tried), 1 if is_nested else _FEW)
                    self._pools[key] += allowed
        return self._pools[key]

    def _distinct(
        self, plan: Plan, count: int, level: int, is_fit: Callable[[Json], bool] = lambda _: True
    ) -> list[Json]:
        by_text: dict[str, Json] = {}
        is_checked = level <= 0 or not plan.is_exact
        rows = zip_longest(
            *(self._of_option(option, count, level) for option in plan.options), fillvalue=_ENDED
        )
        # One of each option after the other, so that none is missing among few.
        values = (value for row in rows for value in row if value is not _ENDED and is_fit(value))
        for value in islice(values, count + _MAX_SPARE):
            if len(by_text) >= count:
                break
            text = canonical_json(value)
            if text not in by_text and (not is_checked or plan.allows(value)):
                by_text[text] = value
        return list(by_text.values())

    def _of_option(self, option: Option, count: int, level: int) -> Iterator[Json]:
        match option:
            case Values(values=values):
                yield from values
            case Texts() | Numbers():
                yield from option.values()
            case ArrayOption(items=items):
                inner = level if items is None or _is_scalar(items) else level + 1
                yield from _arrays(option, self.inside(items, inner) if items else [])
            case ObjectOption():
                yield from self._objects(option, count, level)

    def _objects(self, option: ObjectOption, count: int, level: int) -> Iterator[dict[str, Json]]:
        properties = option.properties
        needed = {
            name: self.inside(plan, level + 1)
            for name, plan in properties.items()
            if name in option.required
        }
        if not all(needed.values()):
            return
        required = {name: pool[0] for name, pool in needed.items()}
        # Before all others are looked at, because the least value needs no more.
        yield required
        pools = {name: self.inside(plan, level + 1) for name, plan in properties.items()}
        pools = {name: pool for name, pool in pools.items() if pool}
        extra = self.inside(option.extra, level + 1) if option.extra else []
        if level <= 0 or level > _LEAST:
            whole = {name: pool[0] for name, pool in pools.items()}
            yield whole
            if pools:
                yield _with_more(required, extra, _UNDECLARED[:1], 0)
                yield _with_more(required, extra, _UNDECLARED[1:], 1)
                yield _with_more(whole, extra, _UNDECLARED, 1)
        values = extra if option.is_map else []
        optional = [name for name in pools if name not in needed]
        # The values at the front of a list were chosen; those after them were thrown.
        most = _CHOSEN if len(pools) > 1 else count
        fronts = {name: pool[:most] for name, pool in pools.items()}
        longest = max(map(len, fronts.values()), default=0) + 1
        # So many go together that all rows are among those that are asked for.
        together = -(-len(optional) // max(1, count * 2 // 3 // longest))
        size = 2 if level > 0 else max(_GROUP, together)
        groups = [optional[at : at + size] for at in range(0, len(optional), size)] or [[]]
        for turn in range(max(longest * len(groups), len(values) + 2)):
            # Each property goes through its values; one that may be absent through that as well.
            present = {*needed, *groups[turn % len(groups)]}
            row = {}
            for place, (name, pool) in enumerate(fronts.items(), turn // len(groups)):
                choice = place % (len(pool) + (name not in needed))
                if name in present and choice < len(pool):
                    row[name] = pool[choice]
            yield _with_more(row, values, _names(turn), turn)
        dice = dice_of(len(pools))
        for _ in range(count * 4 if pools else 0):
            share = dice.random()
            row = {
                name: pool[dice.randrange(len(pool))]
                for name, pool in pools.items()
                if name in needed or dice.random() < share
            }
            turn = dice.randrange(64)
            yield _with_more(row, values, _names(turn), turn)


def _is_scalar(plan: Plan) -> bool:
    return all(isinstance(option, Values | Texts | Numbers) for option in plan.options)


def _arrays(option: ArrayOption, pool: Sequence[Json]) -> Iterator[list[Json]]:
    """Yield arrays, the shortest first; with every item in one of a few and in one of its own."""
    shortest = option.shortest
    top = max(_MAX_ITEMS, shortest) if option.longest is None else option.longest

    def arrays(sizes: Iterable[int], starts: Iterable[int]) -> Iterator[list[Json]]:
        for wish, start in product(sizes, starts):
            size = min(max(wish, shortest), top)
            places = range(start, start + (len(pool) if option.is_unique else size))
            items = [pool[place % len(pool)] for place in places] if pool else []
            if len(items) >= size:
                yield items[:size]

    longest = top if option.longest and top <= _MAX_ITEMS else 1
    yield from arrays((shortest, 1, 2, 3, longest), (0,))
    if pool and not option.is_unique and shortest <= 2 <= top:
        yield [pool[0], pool[0]]
    chunk = min(max(shortest, _CHUNK), top)
    yield from arrays((chunk,), range(1, len(pool), max(chunk, 1)))
    yield from arrays((1,), range(1, len(pool)))


def _names(turn: int) -> list[str]:
    """Return up to three names for a map."""
    return [_NAMES[(turn + more) % len(_NAMES)] for more in range(turn % 4)]


def _with_more(
    row: dict[str, Json], extra: Sequence[Json], names: Sequence[str], start: int
) -> dict[str, Json]:
    """Return an object with names that the document does not declare, where it allows them."""
    added = {
        name: extra[place % len(extra)]
        for place, name in enumerate(names, start)
        if extra and name not in row
    }
    return row | added
