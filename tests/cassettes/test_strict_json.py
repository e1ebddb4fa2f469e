"""The one reader of JSON: what it refuses, and what each caller may let through."""

from pathlib import Path

import pytest

from pytest_regen.errors import StoreCorruptError
from pytest_regen.strict_json import (
    json_or_none,
    parse_json,
    strict_loads,
)


@pytest.mark.parametrize(
    "text", ['{"a": 1, "b": {"a": 2, "a": 3}}', "[NaN]", '{"a": -Infinity}', "[" * 200_000]
)
def test_what_parsers_read_differently_is_refused(text: str) -> None:
    """As text and as bytes; one that needs no reason gets ``None``."""
    for data in (text, text.encode()):
        with pytest.raises(ValueError, match=r"twice|no JSON value|too deeply"):
            strict_loads(data)
        assert json_or_none(data) is None


def test_a_refusal_names_the_value() -> None:
    with pytest.raises(ValueError, match="'b' is given twice"):
        strict_loads('{"a": 1, "b": 2, "b": 3}')
    with pytest.raises(ValueError, match="NaN"):
        strict_loads("NaN")


def test_a_caller_says_what_it_lets_through() -> None:
    """Each guard has a switch of its own; the last of two values counts, as in Python."""
    assert strict_loads('{"a": 1, "a": 2}', unique_keys=False) == {"a": 2}
    assert strict_loads("[Infinity, 1e999]", constants=True) == [float("inf")] * 2
    assert strict_loads("[1e999]") == [float("inf")]


@pytest.mark.parametrize("data", [rb'"\ud83d"', rb'["a", {"\uDE00": 1}]'])
def test_half_a_character_is_refused_where_the_value_is_written_again(data: bytes) -> None:
    assert strict_loads(data)
    with pytest.raises(StoreCorruptError, match=r"half a surrogate pair, '\\ud"):
        parse_json(data, Path("ir.json"))


def test_two_halves_that_belong_together_are_a_character() -> None:
    """Whoever reads it."""
    data = rb'["\ud83d\ude00"]'
    assert strict_loads(data) == parse_json(data, Path("ir.json")) == ["😀"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32-le"])
def test_every_encoding_that_json_may_be_sent_in_is_read(encoding: str) -> None:
    assert strict_loads('["😀"]'.encode(encoding)) == ["😀"]
