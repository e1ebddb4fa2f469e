"""From a failing instance to a small one, without hypothesis in the loop.

The caller tries whole batches, because what it tries by is a process of its own each time.
"""

import math
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

from pytest_regen.canonical import canonical_json

Json = Any
_MAX_STEPS: Final = 2000
"""Candidates that are looked at for one value; a larger one is small enough then."""


class Shrinker:
    """Finds simpler values to try.

    ::

        shrinker = Shrinker(instance, allows(store, "Pet"))
        while batch := shrinker.batch():
            failing = first_that_fails(batch)
            if failing is None:
                continue
            shrinker.keep(failing)

    Args:
        instance: what fails.
        is_allowed: which simpler values may be tried; all by default.

    Attributes:
        smallest: the simplest value so far that fails.
    """

    def __init__(self, instance: Json, is_allowed: Callable[[Json], bool] | None = None) -> None:
        self.smallest = instance
        self._is_allowed = is_allowed
        self._seen = {_text(instance)}
        self._candidates = self._fresh()

    def batch(self, size: int = 50) -> list[Json]:
        """Return the next simpler values, boldest first; none when all have been tried."""
        return list(islice(self._candidates, size))

    def keep(self, candidate: Json) -> None:
        """Go on from a value that fails as well."""
        self.smallest = candidate
        self._candidates = self._fresh()

    def _fresh(self) -> Iterator[Json]:
        for candidate in islice(_simpler(self.smallest), _MAX_STEPS):
            text = _text(candidate)
            if text not in self._seen:
                self._seen.add(text)
                if self._is_allowed is None or self._is_allowed(candidate):
                    yield candidate


def _text(value: Json) -> str:
    # True is not 1 here, and 1.0 is not 1: each may be what fails.
    return canonical_json(value)


def _simpler(value: Json) -> Iterator[Json]:
    """Yield simpler values of the same type, large steps first."""
    match value:
        case dict():
            yield from _simpler_objects(value)
        case list():
            yield from _simpler_arrays(value)
        case str():
            yield from _simpler_texts(value)
        case bool():
            yield from [False] * value
        case int() | float():
            yield from _simpler_numbers(value)
        case _:
            return


def _simpler_objects(value: dict[str, Json]) -> Iterator[dict[str, Json]]:
    names = list(value)
    size = len(names)
    while size:
        for start in range(0, len(names), size):
            gone = names[start : start + size]
            yield {name: value[name] for name in names if name not in gone}
        size //= 2
    for name in names:
        for inner in _simpler(value[name]):
            yield {**value, name: inner}


def _simpler_arrays(value: list[Json]) -> Iterator[list[Json]]:
    size = len(value)
    while size:
        for start in range(0, len(value), size):
            yield value[:start] + value[start + size :]
        size //= 2
    for place, item in enumerate(value):
        for inner in _simpler(item):
            yield [*value[:place], inner, *value[place + 1 :]]


def _simpler_texts(value: str) -> Iterator[str]:
    if not value:
        return
    yield ""
    if value != "a":
        yield "a"
    size = len(value) // 2
    while size:
        for start in range(0, len(value), size):
            yield value[:start] + value[start + size :]
        size //= 2
    plain = "".join(
        letter if letter.isascii() and letter.isprintable() else "a" for letter in value
    )
    if plain != value:
        yield plain


def _simpler_numbers(value: float) -> Iterator[float]:
    for simpler in (
        0,
        1,
        math.trunc(value),
        round(value, 1),
        round(value, 3),
        math.trunc(value / 2),
    ):
        if len(repr(simpler)) < len(repr(value)) or (abs(simpler), simpler < 0) < (
            abs(value),
            value < 0,
        ):
            yield simpler
    if value < 0:
        yield -value
