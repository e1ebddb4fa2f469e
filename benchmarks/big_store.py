"""A store of any size, written without a model, for the benchmarks that need a large one."""

from pathlib import Path

from pytest_regen.documents.ir import IR, ArrayOf, Endpoint, FieldIR, Ref, Scalar, TypeIR, type_hash
from pytest_regen.languages import find_language
from pytest_regen.modes import TEMPLATE
from pytest_regen.prompts import build_prompts
from pytest_regen.prompts.values import PromptEntry
from pytest_regen.regeneration.planning import StorePlan
from pytest_regen.regeneration.store_view import write_page
from pytest_regen.stores import RegenStore, StoredPage

__all__ = ["FIELDS", "make_store"]

FIELDS = 20
"""Fields of each type."""

_KINDS = (
    Scalar(kind="string"),
    Scalar(kind="integer", format="int64"),
    Scalar(kind="boolean"),
    ArrayOf(items=Scalar(kind="string")),
)

_SOURCES = {"csharp": "Large.cs", "python": "large.py", "typescript": "large.ts"}


def make_store(path: Path, types: int, language: str = "csharp") -> RegenStore:
    """Write a store of ``types`` types with ``FIELDS`` fields each; return it."""
    ir = IR(
        endpoint=Endpoint(method="GET", path="/v1/large"),
        language=language,
        types=tuple(_type(number, types) for number in range(types)),
    )
    prompts = build_prompts(ir, language=find_language(language))
    plan = StorePlan(path=path, ir=ir, prompts=prompts, source_file=_SOURCES[language])
    store = plan.unwritten
    by_name = {type_.name: type_ for type_ in ir.types}
    pages = [_page(store, entry, by_name[entry.type_name]) for entry in prompts]
    with RegenStore.create_or_update(store, schema="") as tx:
        tx.write(pages=pages)
        tx.write(source=tx.store.assembly())
    return RegenStore.open(store.path)


def _type(number: int, types: int) -> TypeIR:
    fields = [
        FieldIR(json_name=f"field_{i}", type=_KINDS[i % len(_KINDS)], required=i % 2 == 0)
        for i in range(FIELDS - 1)
    ]
    neighbour = Ref(name=f"Type{(number + 1) % types}")
    return TypeIR(
        name=f"Type{number}",
        schema_id=f"#/components/schemas/Type{number}",
        kind="object",
        is_root=number == 0,
        fields=(*fields, FieldIR(json_name="next", type=neighbour)),
    )


def _page(store: RegenStore, entry: PromptEntry, type_: TypeIR) -> StoredPage:
    output = write_page(store, entry)
    return StoredPage.of(entry, output, model=TEMPLATE, type_hash=type_hash(type_))
