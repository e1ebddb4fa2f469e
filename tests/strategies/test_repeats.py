"""Documents that would keep the drawing of instances busy without end are told from the others."""

import json
import time
from pathlib import Path

import pytest
from command_line import command

from pytest_regen.strategies.patterns import search


@pytest.mark.parametrize(
    "pattern",
    [
        "^(a+)+$",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
        "(x+x+)+y",
        "^(?:a?){5000}a{5000}$",
        r"^(.*)*$",
        r"^(\w+\s?)*$",
        r"^([a-z]+|\d+)*$",
    ],
)
def test_a_repeat_of_repeats_is_tried_with_short_texts_alone(pattern: str) -> None:
    """A longer one that nearly matches would not come to an end."""
    begin = time.process_time()

    assert not search(pattern, "a" * 60 + "!")
    search(pattern, "a" * 18 + "!")

    assert time.process_time() - begin < 5


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"^([a-z0-9]+-)*[a-z]+$", "a-b-c"),
        (r"^\w+(\.\w+)*$", "a.b"),
        (r"^(\s+\w+)*$", " a b"),
        (r"^(?:[A-Za-z0-9+/]{4})*$", "QUJD"),
        (r"^0(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*$", "0.1.x"),
        (r"^(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+$", "example.com."),
        (r"^[A-Za-z0-9]+(?:[ _-][A-Za-z0-9]+)*$", "a_b"),
        (r"^(?!.*--)[a-z](-?[a-z0-9])*$", "a-b"),
        (r"^(\d+)?$", "12"),
    ],
)
def test_repeats_with_something_between_are_patterns_as_others(pattern: str, text: str) -> None:
    """Most patterns of real documents repeat groups."""
    assert search(pattern, text)


_UNION: object = {"type": "string"}
for _depth in range(30):
    _UNION = {
        "oneOf": [
            _UNION,
            {"type": "array", "items": {"type": "integer"}},
            {"type": "object", "properties": {f"q{_depth}": {"type": "string"}}},
        ]
    }


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^(([a-z])+.)+[A-Z]([a-z])+$"},
        {"type": "integer", "minimum": 10**400},
        {"type": "number", "maximum": -(10**400)},
        _UNION,
    ],
    ids=["pattern", "minimum", "maximum", "unions"],
)
def test_a_hostile_schema_is_generated_for_in_time(tmp_path: Path, schema: object) -> None:
    """What cannot be drawn is left out; the code is written all the same."""
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Reefs", "version": "1"},
        "paths": {
            "/reef": {
                "get": {
                    "responses": {
                        "200": {
                            "description": "ok",
                            "content": {
                                "application/json": {
                                    "schema": {"$ref": "#/components/schemas/Reef"}
                                }
                            },
                        }
                    }
                }
            }
        },
        "components": {"schemas": {"Reef": {"type": "object", "properties": {"a": schema}}}},
    }
    path = tmp_path / "api.json"
    path.write_text(json.dumps(document), "utf-8")
    begin = time.process_time()

    made = command(
        *("generate", path, "GET /reef", "--out", tmp_path / "api"),
        *("--language", "python", "--provider", "template"),
    )

    assert made.code == 0, made.err
    assert time.process_time() - begin < 20
