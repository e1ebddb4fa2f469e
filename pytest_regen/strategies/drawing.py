"""Hypothesis strategies for what plans allow."""

import math
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import islice
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from pytest_regen.strategies.dialects import FORMAT_RANGES
from pytest_regen.strategies.matching import texts_matching
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
from pytest_regen.strategies.samples import Samples
from pytest_regen.strategies.scalars import MAX_EXACT, TEXT_FORMATS, Numbers, Texts, as_number

Json = Any
_DEPTH: Final = 3
"""Objects inside one another in which optional properties are still drawn."""
_MAX_ITEMS: Final = 5
_MAX_TEXT: Final = 40
_TRIES: Final = 30
_OFFSETS: Final = (0, 330, -480, 840, -60)
"""Minutes from UTC."""


class Drawing:
    """Makes strategies of plans; each is made once, when the first value is drawn of it."""

    def __init__(self) -> None:
        self._samples = Samples()
        self._made: dict[tuple[int, int], SearchStrategy[Json]] = {}
        self._kept: list[Plan] = []

    def of(self, plan: Plan, depth: int = _DEPTH) -> SearchStrategy[Json]:
        """Return a strategy of values that the schemas of a plan allow.

        Args:
            plan: one that has values at all, or the strategy is empty.
            depth: objects inside one another in which optional properties are drawn.
        """
        key = (id(plan), depth)
        if key not in self._made:
            self._kept.append(plan)  # Its identity stays its own.
            self._made[key] = st.deferred(lambda: self._make(plan, depth))
        return self._made[key]

    def _make(self, plan: Plan, depth: int) -> SearchStrategy[Json]:
        options = [o for o in plan.options if all(p.height < math.inf for p in needed_by(o))]
        if depth <= 0:
            options = sorted(options, key=height_of)[:1]
        if plan.is_exact:
            return st.one_of([self._of(option, depth) for option in options])
        # An option that the document allows nothing of would be drawn in vain for ever.
        useful = [option for option in options if self._is_useful(option, plan)]
        return st.one_of([self._of(o, depth) for o in useful]).filter(plan.check.allows)

    def _is_useful(self, option: Option, plan: Plan) -> bool:
        return any(map(plan.check.allows, islice(self._samples.of_option(option), _TRIES)))

    def _of(self, option: Option, depth: int) -> SearchStrategy[Json]:
        match option:
            case Values(values=values):
                return st.sampled_from(values)
            case Texts():
                return self._texts(option)
            case Numbers():
                return self._numbers(option)
            case ArrayOption():
                return self._arrays(option, depth)
            case ObjectOption():
                return self._objects(option, depth)

    # --- scalars --------------------------------------------------------------------------------

    def _texts(self, option: Texts) -> SearchStrategy[str]:
        if option.patterns:
            if option.patterns[1:] or option.shortest or option.longest is not None:
                # Few of what matches would be of the size, or match the others.
                return st.sampled_from(list(option.values()))
            return texts_matching(option.patterns)
        if option.format is not None and option.format in TEXT_FORMATS:
            return self._formatted(option.format).filter(option.fits)
        most = max(option.shortest, _MAX_TEXT) if option.longest is None else option.longest
        plain = st.text(
            st.characters(exclude_categories=["Cs"]),
            min_size=option.shortest,
            max_size=min(most, max(option.shortest, 10 * _MAX_TEXT)),
        ).filter(option.fits)
        known = list(islice(option.values(), 20))
        return plain | st.sampled_from(known) if known else plain

    def _formatted(self, name: str) -> SearchStrategy[str]:
        known = st.sampled_from(TEXT_FORMATS[name])
        match name:
            case "date-time":
                zones = st.sampled_from([timezone(timedelta(minutes=m)) for m in _OFFSETS])
                drawn = st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1), timezones=zones)  # noqa: DTZ001 - zones are drawn
                return drawn.map(lambda moment: moment.isoformat().replace("+00:00", "Z")) | known
            case "date":
                return st.dates(date(1900, 1, 1), date(2100, 1, 1)).map(str) | known
            case "uuid":
                return st.uuids().map(str) | known
            case "int32" | "int64" | "uint64":
                return st.integers(*FORMAT_RANGES[name]).map(str) | known
            case "decimal":
                return st.decimals(-(10**12), 10**12, places=4).map(str) | known
        return known

    def _numbers(self, option: Numbers) -> SearchStrategy[int | float]:
        low, high = option.limits
        known = list(islice(option.values(), 30))
        if option.steps:
            step = max(Decimal(str(step)) for step in option.steps)
            least = -(10**6) if low is None else math.ceil(Decimal(str(low)) / step)
            most = max(least, 0) + 10**6 if high is None else math.floor(Decimal(str(high)) / step)
            if least > most:
                return st.sampled_from(known)
            numbers = st.integers(least, most).map(lambda n: as_number(n * step))
        else:
            numbers = st.integers(
                -MAX_EXACT if low is None and (high is None or high > -MAX_EXACT) else _up(low),
                MAX_EXACT if high is None and (low is None or low < MAX_EXACT) else _down(high),
            )
            if not option.is_integer:
                floats = st.floats(
                    low,
                    high,
                    allow_nan=False,
                    allow_infinity=False,
                    allow_subnormal=False,
                )
                numbers = floats if not _has_integer(low, high) else numbers | floats
        fitting = numbers.filter(option.fits)
        return fitting | st.sampled_from(known) if known else fitting

    # --- collections ----------------------------------------------------------------------------

    def _arrays(self, option: ArrayOption, depth: int) -> SearchStrategy[list[Json]]:
        prefix = [self.of(plan, depth) for plan in option.prefix if plan.height < math.inf]
        is_open = option.items is not None and option.items.height < math.inf
        least = max(option.shortest - len(prefix), 0)
        limit = _MAX_ITEMS if depth == _DEPTH else 1 if depth > 0 else 0
        most = max(least, limit)
        if option.longest is not None:
            most = max(least, min(most, option.longest - len(prefix)))
        rest = (
            st.lists(self.of(option.items, depth), min_size=least, max_size=most)
            if option.items is not None and is_open
            else st.just([])
        )
        if option.is_unique and not prefix and option.items is not None and is_open:
            rest = st.lists(
                self.of(option.items, depth), min_size=least, max_size=most, unique_by=same_json
            )
        if option.contained:
            rest = st.builds(lambda a, b: [*a, b], rest, self.of(option.contained, depth))
        if not prefix:
            return rest
        return st.builds(lambda head, tail: [*head, *tail], st.tuples(*prefix), rest)

    def _objects(self, option: ObjectOption, depth: int) -> SearchStrategy[dict[str, Json]]:
        required, optional = {}, {}
        for name, plan in option.properties.items():
            if name in option.required:
                required[name] = self.of(plan, depth - 1)
            elif plan.height < math.inf and (depth > 0 or plan.height == 0):
                optional[name] = self.of(plan, depth - 1)
        listed = st.fixed_dictionaries(required, optional=optional)
        if option.extra is None or option.extra.height == math.inf:
            return listed
        names = (
            st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
            if option.names is None
            else self._texts(option.names)
        )
        fewest = max(option.fewest - len(required), 0)
        limit = _MAX_ITEMS if depth > 0 else 0
        extra = st.dictionaries(
            names.filter(lambda name: name not in option.properties),
            self.of(option.extra, depth - 1),
            min_size=fewest,
            max_size=max(fewest, limit if option.most is None else min(limit, option.most)),
        )
        return st.builds(lambda own, more: {**own, **more}, listed, extra)


def _up(limit: float | None) -> int | None:
    return None if limit is None else math.ceil(limit)


def _down(limit: float | None) -> int | None:
    return None if limit is None else math.floor(limit)


def _has_integer(low: float | None, high: float | None) -> bool:
    return low is None or high is None or math.ceil(low) <= math.floor(high)
