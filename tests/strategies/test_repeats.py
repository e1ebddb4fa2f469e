"""Documents that would keep the drawing of instances busy without end are told from the others."""

import time
from pathlib import Path

import pytest
from drawn import instances_in
from tables import each

from pytest_regen.strategies.patterns import search


@each(
    "pattern",
    [
        "^(a+)+$",
        "^(?:a?){5000}a{5000}$",
    ],
)
def test_a_repeat_of_repeats_is_tried_with_short_texts_alone(pattern: str) -> None:
    """A longer one that nearly matches would not come to an end; most patterns repeat groups."""
    begin = time.process_time()

    assert not search(pattern, "a" * 60 + "!")
    search(pattern, "a" * 18 + "!")

    assert time.process_time() - begin < 5
    assert search(r"^(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+$", "example.com.")
    assert search(r"^(?!.*--)[a-z](-?[a-z0-9])*$", "a-b")


_UNION: object = {"type": "string"}
for _depth in range(16):
    _UNION = {
        "oneOf": [
            _UNION,
            {"type": "array", "items": {"type": "integer"}},
            {"type": "object", "properties": {f"q{_depth}": {"type": "string"}}},
        ]
    }


@pytest.mark.parametrize(
    "schema",
    [{"type": "string", "pattern": "^(([a-z])+.)+[A-Z]([a-z])+$"}, _UNION],
    ids=["pattern", "unions"],
)
def test_a_hostile_schema_is_drawn_from_in_time(tmp_path: Path, schema: object) -> None:
    """What cannot be drawn is left out, and it is said."""
    begin = time.process_time()
    root = {"title": "Reef", "type": "object", "properties": {"a": schema}}
    found = instances_in(tmp_path, root)

    assert found["Reef"].valid or found["Reef"].skipped
    assert time.process_time() - begin < 20
