"""Strings that patterns allow, as hypothesis finds them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pytest_regen.extras import needs
from pytest_regen.strategies.patterns import to_python

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Json = Any


def draw(strategy: "SearchStrategy[Json]", count: int) -> list[Json]:
    """Return values of a strategy, the same every time."""
    with needs("strategies", "instances"):
        from hypothesis import HealthCheck, Phase, given, settings
    found: list[Json] = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(value: Json) -> None:
        found.append(value)

    collect()
    return found


def texts_matching(patterns: Sequence[str]) -> "SearchStrategy[str]":
    """Return a strategy of strings that may hold a match of each pattern; of one, they do.

    Raises:
        UnreadablePatternError: a pattern that Python cannot read.
    """
    with needs("strategies", "instances"):
        from hypothesis import strategies as st
    letters = st.characters(exclude_categories=["Cs"])
    found = [st.from_regex(to_python(pattern), alphabet=letters) for pattern in patterns]
    # One after the other: most patterns that hold together say how a text begins and ends.
    return found[0] if len(found) == 1 else st.one_of(*found, st.tuples(*found).map("".join))
