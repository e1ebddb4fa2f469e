"""Laws that hold for every document, whatever is in it."""

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from laws import scaled
from small_documents import build_file, document_of

from pytest_regen.documents import IR, IRBuild
from pytest_regen.documents.ir import referenced_names
from pytest_regen.errors import DocumentDefectError

NAMES = ("Ship", "ship", "Port_1", "a/b", "String", "Line.Item")
TEXT = st.sampled_from(("id", "$type", "a b", "class", "items", "properties", "é"))


_DISCRIMINATORS: st.SearchStrategy[Any] = st.sampled_from(
    (
        "id",
        {"propertyName": "id"},
        {"propertyName": "class", "mapping": {"a": "Ship", "b": "#/components/schemas/Port_1"}},
        {"propertyName": 5, "mapping": {"a": "Nowhere", "b": 7}},
        {"mapping": []},
        None,
    )
)


def _schemas(version: str) -> st.SearchStrategy[Any]:
    """Return schemas of one dialect, right and wrong ones."""
    targets = (*NAMES, "Nowhere")
    prefix = "#/definitions/" if version == "2.0" else "#/components/schemas/"
    refs = st.sampled_from(targets).map(lambda n: {"$ref": prefix + n.replace("/", "~1")})
    scalar = st.sampled_from(
        (
            {"type": "string", "format": "date"},
            {"type": "integer", "x-nullable": True},
            {"type": ["number", "null"]},
            {"type": "boolean", "nullable": True},
            {"enum": ["a", "b", None]},
            {"enum": [1, 2]},
            {"enum": [1, "b", True]},
            {"const": "c"},
            {"type": "null"},
            {"type": "wrong"},
            {"required": ["id"]},
            {},
            True,
            False,
            None,
        )
    )

    def compose(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        lists = st.lists(inner, min_size=1, max_size=3)
        properties = st.dictionaries(TEXT, inner, max_size=4)
        required = st.lists(TEXT, max_size=2, unique=True)
        objects = st.fixed_dictionaries(
            {"properties": properties},
            optional={
                "required": required,
                "allOf": lists,
                "oneOf": lists,
                "discriminator": _DISCRIMINATORS,
            },
        )
        return st.one_of(
            objects,
            st.builds(lambda items: {"type": "array", "items": items}, inner),
            st.builds(lambda extra: {"type": "object", "additionalProperties": extra}, inner),
            st.builds(lambda parts: {"allOf": parts, "description": "d"}, lists),
            st.builds(lambda parts: {"oneOf": parts}, lists),
            st.builds(lambda parts: {"anyOf": parts, "nullable": True}, lists),
        )

    return st.recursive(st.one_of(refs, scalar), compose, max_leaves=8)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Return a document of any dialect with up to six components that refer to one another."""
    version = draw(st.sampled_from(("2.0", "3.0.3", "3.1.0")))
    schemas = _schemas(version)
    root = {"type": "object", "properties": draw(st.dictionaries(TEXT, schemas, min_size=1))}
    return document_of(root, {name: draw(schemas) for name in NAMES}, version=version)


def built(document: Any) -> IRBuild | str:
    """Return the build, or what is said where the root cannot serve."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "api.json"
        path.write_text(json.dumps(document), "utf-8")
        try:
            return build_file(path)
        except DocumentDefectError as error:
            return error.what


LAW = settings(max_examples=scaled(20), suppress_health_check=[HealthCheck.too_slow])


@LAW
@given(documents())
def test_every_build_is_whole(document: Any) -> None:
    """Names are unique, every reference has its type, every type is used, and JSON keeps it all."""
    made = built(document)
    if isinstance(made, str):
        return
    names = [type_.name for type_ in made.ir.types]
    assert len({name.casefold() for name in names}) == len(names)
    used = {n for t in made.ir.types for f in t.fields for n in referenced_names(f.type)}
    assert used <= set(names)
    assert set(names) <= used | {names[0]}
    assert [t.is_root for t in made.ir.types] == [True] + [False] * (len(names) - 1)
    assert names[1:] == sorted(names[1:])
    for type_ in made.ir.types:
        assert bool(type_.enum_values) == (type_.kind == "enum")
        assert len(set(type_.units)) == len(type_.units)
    for review in made.ir.reviews:
        reviewed = made.ir.type_named(review.type_name)
        assert reviewed is not None
        assert review.field is None or review.field in reviewed.units
    assert {r.where for r in made.ir.reviews} == {defect.where for defect in made.defects}
    text = json.dumps(made.ir.to_json(), allow_nan=False)
    assert IR.model_validate_json(text) == made.ir
