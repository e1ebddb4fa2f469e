"""From a failing instance to a small one, a batch at a time."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_regen.strategies import Shrinker

Json = Any
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=8,
)


def shrunk(
    instance: Json,
    fails: Callable[[Json], bool],
    is_allowed: Callable[[Json], bool] | None = None,
) -> Json:
    """Return the smallest value that is found."""
    shrinker = Shrinker(instance, is_allowed)
    while batch := shrinker.batch():
        failing = next(filter(fails, batch), None)
        if failing is not None:
            shrinker.keep(failing)
    return shrinker.smallest


@pytest.mark.parametrize(
    ("instance", "fails", "smallest"),
    [
        ({"a": 1, "b": [1, 2, {"c": "xyz"}], "d": None}, lambda v: "b" in v, {"b": []}),
        ({"a": ["x" * 300, "é", 7]}, lambda v: "é" in v.get("a", []), {"a": ["é"]}),
        ([12345.678, True], lambda v: len(v) == 2, [0, False]),
        ("a long text with  two spaces", lambda v: "  " in v, "  "),
        ({"n": -273.15}, lambda v: v.get("n", 0) < 0, {"n": -1}),
        (7, lambda v: v == 7, 7),
    ],
)
def test_what_remains_is_what_fails(
    instance: Json, fails: Callable[[Json], bool], smallest: Json
) -> None:
    """All else is taken away, or made plain."""
    found = shrunk(instance, fails)

    assert found == smallest or len(json.dumps(found)) <= len(json.dumps(smallest)) + 3
    assert fails(found)


def test_only_allowed_values_are_tried() -> None:
    """A required property stays, however little it has to do with the failure."""
    instance = {"id": 77, "name": "Zoë", "tags": ["a", "b"]}
    tried: list[Json] = []

    def fails(value: Json) -> bool:
        tried.append(value)
        return "name" in value

    assert shrunk(instance, fails, lambda v: "id" in v) == {"id": 0, "name": ""}
    assert all("id" in value for value in tried)


@given(JSON)
def test_it_comes_to_an_end(value: Json) -> None:
    """Whatever fails for whatever reason: here everything does."""
    found = shrunk(value, lambda _: True)

    assert type(found) is type(value) or isinstance(value, float)
    assert found in (None, False, 0, "", [], {})
