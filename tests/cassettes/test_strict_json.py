"""The one reader of JSON: what it refuses, and what each caller may let through."""

import pytest

from pytest_regen.strict_json import (
    json_or_none,
    strict_loads,
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a": 1, "b": {"a": 2, "c": 3, "c": 3}}', "'c' is given twice"),
        ("[NaN]", "NaN"),
        ('{"a": -Infinity}', "-Infinity"),
        ("[" * 200_000, "too deeply"),
    ],
)
def test_what_parsers_read_differently_is_refused(text: str, why: str) -> None:
    """As text and as bytes, by the value; one that needs no reason gets ``None``."""
    for data in (text, text.encode()):
        with pytest.raises(ValueError, match=why):
            strict_loads(data)
        assert json_or_none(data) is None


def test_a_caller_says_what_it_lets_through() -> None:
    """Each guard has a switch of its own; the last of two values counts, as in Python."""
    assert strict_loads('{"a": 1, "a": 2}', unique_keys=False) == {"a": 2}
    assert strict_loads("[Infinity, 1e999]", constants=True) == [float("inf")] * 2
    assert strict_loads("[1e999]") == [float("inf")]
