"""Hypothesis strategies for what plans allow."""

from itertools import islice
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from pytest_regen.strategies.patterns import texts_matching
from pytest_regen.strategies.plans import (
    ArrayOption,
    ObjectOption,
    Option,
    Plan,
    Values,
    same_json,
)
from pytest_regen.strategies.samples import Samples
from pytest_regen.strategies.scalars import MAX_EXACT, TEXT_FORMATS, Numbers, Texts

Json = Any
_DEPTH: Final = 3
"""Objects inside one another in which optional properties are still drawn."""
_MAX_ITEMS: Final = 5
_MAX_TEXT: Final = 40
_TRIES: Final = 30


class Drawing:
    """Makes strategies of plans; each is made once, when the first value is drawn of it."""

    def __init__(self) -> None:
        self._samples = Samples()
        self._made: dict[tuple[int, int], SearchStrategy[Json]] = {}

    def of(self, plan: Plan, depth: int = _DEPTH) -> SearchStrategy[Json]:
        """Return a strategy of values that the schemas of a plan allow.

        Args:
            plan: one that has values at all, or the strategy is empty.
            depth: objects inside one another in which optional properties are drawn.
        """
        key = (id(plan), depth)
        if key not in self._made:
            self._made[key] = st.deferred(lambda: self._make(plan, depth))
        return self._made[key]

    def _make(self, plan: Plan, depth: int) -> SearchStrategy[Json]:
        least = self._samples.least(plan)
        # An option that the document allows nothing of would be drawn in vain for ever.
        useful = [
            option
            for option in plan.options
            if any(map(plan.check.allows, islice(self._samples.of_option(option), _TRIES)))
        ]
        if depth <= 0 or not useful:
            return st.sampled_from(least or self._samples.of(plan, 1))
        drawn = st.one_of([self._of(option, depth) for option in useful])
        return drawn if plan.is_exact else drawn.filter(plan.check.allows)

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

    def _texts(self, option: Texts) -> SearchStrategy[str]:
        is_of_any_size = not option.shortest and option.longest is None
        if len(option.patterns) == 1 and is_of_any_size:
            return texts_matching(option.patterns)
        chosen = st.sampled_from(list(option.values()))
        if option.patterns or option.format in TEXT_FORMATS:
            return chosen  # Few of what is drawn would be of the size, or match the others.
        most = max(option.shortest, _MAX_TEXT) if option.longest is None else option.longest
        letters = st.characters(exclude_categories=["Cs"])
        plain = st.text(letters, min_size=option.shortest, max_size=min(most, 10 * _MAX_TEXT))
        return plain.filter(option.fits) | chosen if most <= 10 * _MAX_TEXT else chosen

    def _numbers(self, option: Numbers) -> SearchStrategy[int | float]:
        chosen = st.sampled_from(list(option.values()))
        if option.steps:
            return chosen
        low = option.low if option.low is not None else min(-MAX_EXACT, option.high or 0)
        high = option.high if option.high is not None else max(MAX_EXACT, option.low or 0)
        if option.is_integer:
            return chosen | st.integers(int(low), int(high)).filter(option.fits)
        floats = st.floats(low, high, allow_nan=False, allow_subnormal=False)
        return chosen | floats.filter(option.fits)

    def _arrays(self, option: ArrayOption, depth: int) -> SearchStrategy[list[Json]]:
        heads = st.tuples(*(self.of(plan, depth) for plan in option.prefix))
        least = max(option.shortest - len(option.prefix), 0)
        most = max(least, _MAX_ITEMS if depth == _DEPTH else 1)
        if option.longest is not None:
            most = max(least, min(most, option.longest - len(option.prefix)))
        if option.items is None or not self._samples.least(option.items):
            return heads.map(list)
        unique = same_json if option.is_unique else None
        items = self.of(option.items, depth)
        rest = st.lists(items, min_size=least, max_size=most, unique_by=unique)
        return st.builds(lambda head, tail: [*head, *tail], heads, rest)

    def _objects(self, option: ObjectOption, depth: int) -> SearchStrategy[dict[str, Json]]:
        inner = {
            name: self.of(plan, depth - 1)
            for name, plan in option.properties.items()
            if self._samples.least(plan)
        }
        required = {name: inner[name] for name in inner if name in option.required}
        optional = {name: inner[name] for name in inner if name not in option.required}
        listed = st.fixed_dictionaries(required, optional=optional)
        if not option.is_map or option.extra is None or not self._samples.least(option.extra):
            return listed
        names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
        if option.names is not None:
            names = self._texts(option.names)
        fewest = max(option.fewest - len(required), 0)
        extra = st.dictionaries(
            names.filter(lambda name: name not in option.properties),
            self.of(option.extra, depth - 1),
            min_size=fewest,
            max_size=max(fewest, _MAX_ITEMS),
        )
        return st.builds(lambda own, more: {**own, **more}, listed, extra)
