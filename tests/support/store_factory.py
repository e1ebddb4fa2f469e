"""A small legal store with correct C#, made by hand, which a test can damage type by type."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pytest_regen.documents.ir import (
    FORMAT,
    IR,
    ArrayOf,
    Endpoint,
    FieldIR,
    Ref,
    Scalar,
    TypeIR,
    type_hash,
)
from pytest_regen.languages import find_language
from pytest_regen.prompts import PromptEntry, build_prompts
from pytest_regen.regeneration.planning import StorePlan
from pytest_regen.stores import RegenStore, StoredPage
from pytest_regen.turns.values import Usage

_STRING = Scalar(kind="string")

FACTORY_IR = IR(
    format=FORMAT,
    endpoint=Endpoint(method="GET", path="/v1/projects"),
    language="csharp",
    types=(
        TypeIR(
            name="ProjectDataObject",
            schema_id="#/components/schemas/Project",
            is_root=True,
            kind="object",
            fields=(
                FieldIR(json_name="id", type=_STRING, required=True),
                FieldIR(json_name="name", type=_STRING),
                FieldIR(json_name="owner", type=Ref(name="Owner")),
                FieldIR(json_name="tags", type=ArrayOf(items=_STRING)),
            ),
        ),
        TypeIR(
            name="Owner",
            schema_id="#/components/schemas/Owner",
            kind="object",
            fields=(
                FieldIR(json_name="name", type=_STRING),
                FieldIR(json_name="state", type=Ref(name="State")),
            ),
        ),
        TypeIR(
            name="State",
            schema_id="#/components/schemas/State",
            kind="enum",
            enum_values=("open", "closed"),
        ),
    ),
)
"""Three types; the root's fields are on two pages, ``id`` and ``name`` on the first."""

GOOD: Mapping[tuple[str, int], str] = {
    ("ProjectDataObject", 1): """\
public class ProjectDataObject
{
    [JsonPropertyName("id")]
    public required string Id { get; set; }

    [JsonPropertyName("name")]
    public string? Name { get; set; }
}""",
    ("ProjectDataObject", 2): """\
[JsonPropertyName("owner")]
public Owner? Owner { get; set; }

[JsonPropertyName("tags")]
public List<string>? Tags { get; set; }""",
    ("Owner", 1): """\
public class Owner
{
    [JsonPropertyName("name")]
    public string? Name { get; set; }

    [JsonPropertyName("state")]
    public State? State { get; set; }
}""",
    ("State", 1): """\
[JsonConverter(typeof(JsonStringEnumConverter))]
public enum State
{
    [JsonStringEnumMemberName("open")]
    Open,

    [JsonStringEnumMemberName("closed")]
    Closed,
}""",
}
"""What a model that makes no mistake wrote, by type and page."""

MISSPELT: Mapping[tuple[str, int], str] = {
    ("Owner", 1): GOOD["Owner", 1].replace('("name")', '("nmae")')
}
"""One field of ``Owner`` under a wrong name: a field is missing and another is invented."""

_FIELDS_PER_PAGE = 2
_MADE: dict[tuple[object, ...], dict[str, bytes]] = {}
"""The files of each store made so far, by what the store holds."""


def make_store(
    path: Path, wrong: Mapping[tuple[str, int], str] | None = None, *, ir: IR = FACTORY_IR
) -> RegenStore:
    """Return a complete store in the new folder ``path``, its source assembled.

    It is written once; later stores that hold the same are copies.

    Args:
        path: the folder to make.
        wrong: outputs that take the place of good ones, by type and page.
        ir: what the artifacts say the types are; the outputs stay those of ``FACTORY_IR``.
    """
    outputs = {**GOOD, **(wrong or {})}
    key = (ir.model_dump_json(), *sorted(outputs.items()))
    if key not in _MADE:
        _MADE[key] = _files(ir, outputs)
    path.mkdir(parents=True)
    for name, content in _MADE[key].items():
        (path / name).write_bytes(content)
    return RegenStore.open(path)


def planned_store(path: Path, **plan: Any) -> RegenStore:
    """Return a store that is not there yet, all of whose pages are missing."""
    return StorePlan(path=path, **plan).unwritten


def new_store(path: Path, *, schema: str = "", **plan: Any) -> RegenStore:
    """Make a store whose pages are all missing yet."""
    with RegenStore.create_or_update(planned_store(path, **plan), schema=schema) as tx:
        tx.write()
    return RegenStore.open(path)


def _files(ir: IR, outputs: Mapping[tuple[str, int], str]) -> dict[str, bytes]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "store"
        _write(path, ir, outputs)
        return {file.name: file.read_bytes() for file in path.iterdir()}


def _write(path: Path, ir: IR, outputs: Mapping[tuple[str, int], str]) -> None:
    prompts = build_prompts(ir, language=find_language("csharp"), fields_per_page=_FIELDS_PER_PAGE)
    new_store(
        path,
        ir=ir,
        prompts=prompts,
        source_file="ProjectDataObject.cs",
        schema="# ProjectDataObject\n",
        namespace="Projects",
    )
    pages = [_page(ir, entry, outputs[entry.type_name, entry.page]) for entry in prompts]
    with RegenStore.update(path) as tx:
        tx.write(pages=pages)
        tx.write(source=tx.store.assembly())


def _page(ir: IR, prompt: PromptEntry, output: str) -> StoredPage:
    type_ = ir.type_named(prompt.type_name)
    assert type_ is not None
    return StoredPage.of(
        prompt,
        output,
        model="claude-sonnet-5-5",
        type_hash=type_hash(type_),
        usage=Usage(100, 20),
        generated_at="2026-01-02T03:04:05Z",
    )
