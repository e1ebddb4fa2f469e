"""What each version of OpenAPI allows: schemas with values whose verdict is known."""

from pathlib import Path
from typing import Any

from drawn import plan_of
from tables import each

THINGS = {
    "Cat": {
        "type": "object",
        "required": ["kind"],
        "properties": {"kind": {"type": "string"}, "lives": {"type": "integer"}},
    },
    "Dog": {
        "type": "object",
        "required": ["kind"],
        "properties": {"kind": {"type": "string"}, "trick": {"type": "string"}},
    },
    "Text": {"type": "string", "minLength": 2},
    "Secret": {"type": "string", "writeOnly": True},
}
CAT, DOG, TEXT = ({"$ref": f"#/components/schemas/{name}"} for name in ("Cat", "Dog", "Text"))
SECRET = {"$ref": "#/components/schemas/Secret"}
PICKED = {
    "oneOf": [CAT, DOG],
    "discriminator": {
        "propertyName": "kind",
        "mapping": {"cat": "#/components/schemas/Cat", "dog": "Dog"},
    },
}

CASES: list[tuple[str, str, Any, list[Any], list[Any]]] = [
    ("nullable", "3.0.3", {"type": "string", "nullable": True}, ["a", None], [1]),
    ("nullable means nothing since", "3.1.0", {"type": "string", "nullable": True}, ["a"], [None]),
    ("exclusive, boolean", "3.0.3", {"minimum": 1, "exclusiveMinimum": True}, [2, 1.1], [1]),
    ("siblings are void", "3.0.3", {**TEXT, "maxLength": 2}, ["abc"], ["a"]),
    ("pattern to the end", "3.1.0", {"pattern": "^a$"}, ["a"], ["a\n", "b"]),
    ("a sign in brackets", "3.1.0", {"pattern": r"^[[$]\/$"}, ["[/", "$/"], ["a/"]),
    (
        "date-time",
        "3.1.0",
        {"format": "date-time"},
        ["2024-02-29T01:02:03Z"],
        ["2023-02-29T01:02:03Z"],
    ),
    (
        "a tag picks the branch",
        "3.0.3",
        PICKED,
        [{"kind": "cat", "lives": 9}, {"kind": "dog", "lives": "none"}],
        [{"kind": "cat", "lives": "x"}, {"kind": "fish"}, {"kind": 1}],
    ),
    (
        "what is only written is not required",
        "3.1.0",
        {
            "required": ["name", "key", "pin"],
            "properties": {"name": {"type": "string"}, "key": SECRET, "pin": {"writeOnly": True}},
        },
        [{"name": "a"}],
        [{}, {"name": 1}],
    ),
]


@each(("version", "schema", "good", "bad"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_a_version_allows_what_it_says(
    tmp_path: Path, version: str, schema: Any, good: list[Any], bad: list[Any]
) -> None:
    """Each verdict was written down by hand, from the specification of the version."""
    check = plan_of(tmp_path, schema, components=THINGS, version=version)

    assert [value for value in good if not check.allows(value)] == []
    assert [value for value in bad if check.allows(value)] == []


def test_a_request_lacks_what_is_only_read(tmp_path: Path) -> None:
    """The other way round than a response."""
    schema = {
        "required": ["id", "key"],
        "properties": {"id": {"readOnly": True}, "key": {"writeOnly": True}},
    }
    answer = plan_of(tmp_path, schema)
    request = plan_of(tmp_path, schema, direction="request")

    assert answer.allows({"id": 1})
    assert not answer.allows({"key": 1})
    assert request.allows({"key": 1})
    assert not request.allows({"id": 1})


def test_files_beside_the_document_are_read_and_no_others(tmp_path: Path) -> None:
    """A reference to a file is followed, one out of the folder or into the network is not."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "kite.yaml").write_text(
        "Kite: {type: object, required: [sail], properties: {sail: {$ref: '#/Sail'}}}\n"
        "Sail: {type: string, maxLength: 3}\n",
        "utf-8",
    )
    (tmp_path.parent / "outside.yaml").write_text("type: string", "utf-8")
    schema = {
        "properties": {
            "kite": {"$ref": "parts/kite.yaml#/Kite"},
            "out": {"$ref": "../outside.yaml"},
            "far": {"$ref": "https://example.com/schema.json"},
        }
    }
    check = plan_of(tmp_path, schema)

    assert check.allows({"kite": {"sail": "red"}, "out": 1, "far": 2})
    assert not check.allows({"kite": {"sail": "green"}})
    assert not check.allows({"kite": {}})
