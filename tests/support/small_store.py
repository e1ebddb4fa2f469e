"""The store of the factory on five pages, put together by hand, for tests of what stores do."""

from pathlib import Path
from textwrap import dedent

from store_factory import FACTORY_IR, GOOD, new_store

from pytest_regen.documents.ir import TypeIR, type_hash
from pytest_regen.prompts.values import PageKey, PromptEntry
from pytest_regen.stores import RegenStore, StoredPage
from pytest_regen.turns.values import Usage

_FIRST, _SECOND = GOOD["ProjectDataObject", 1].split("\n\n")
_OUTPUTS = {
    **GOOD,
    ("ProjectDataObject", 1): f"{_FIRST}\n}}",
    ("ProjectDataObject", 2): dedent(_SECOND.removesuffix("\n}")),
    ("ProjectDataObject", 3): GOOD["ProjectDataObject", 2],
}
"""A field on each of the first two pages."""


def plan(type_: TypeIR, total_pages: int) -> list[PromptEntry]:
    """Return ``total_pages`` prompts for a type, its units dealt out in order."""
    size = len(type_.units) // total_pages
    return [
        PromptEntry.of(
            PageKey(type_.name, number, total_pages),
            is_root=type_.is_root,
            system="Write C#.",
            user=f"TYPE: {type_.name}\nPAGE: {number}",
            fields=type_.units[
                (number - 1) * size : None if number == total_pages else number * size
            ],
        )
        for number in range(1, total_pages + 1)
    ]


PROMPTS = tuple(
    entry
    for type_, total in zip(FACTORY_IR.types, (3, 1, 1), strict=True)
    for entry in plan(type_, total)
)


def page(
    type_name: str, number: int = 1, output: str | None = None, *, attempt: int = 1
) -> StoredPage:
    """Return the stored page of a type of this store, with right code unless another is given."""
    prompt = next(e for e in PROMPTS if (e.type_name, e.page) == (type_name, number))
    type_ = FACTORY_IR.type_named(type_name)
    assert type_ is not None
    return StoredPage.of(
        prompt,
        _OUTPUTS[type_name, number] if output is None else output,
        model="model-a",
        type_hash=type_hash(type_),
        usage=Usage(100, 20),
        attempt=attempt,
        generated_at="2026-01-02T03:04:05Z",
    )


def source_of(pages: dict[PageKey, StoredPage] | RegenStore) -> str:
    """Return a source with one block per type that holds its outputs one after the other.

    It is no C# that compiles; it only has to change with every page and keep boundaries.
    """
    stored = pages.pages if isinstance(pages, RegenStore) else pages
    blocks: dict[str, list[str]] = {}
    for key, stored_page in sorted(stored.items(), key=lambda item: item[0].page):
        blocks.setdefault(key.type_name, []).append(stored_page.output)
    return "// header\n\n" + "\n".join(
        f"// [REGEN:BEGIN {name}]\n" + "\n".join(outputs) + f"\n// [REGEN:END {name}]\n"
        for name, outputs in sorted(blocks.items())
    )


def filled_store(path: Path) -> RegenStore:
    """Return a complete store in the new folder ``path``."""
    new_store(
        path,
        ir=FACTORY_IR,
        prompts=PROMPTS,
        source_file="ProjectDataObject.cs",
        schema="# ProjectDataObject\n",
        namespace="Projects",
    )
    pages = [page(entry.type_name, entry.page) for entry in PROMPTS]
    with RegenStore.update(path) as tx:
        tx.write(pages=pages, source=source_of({one.key: one for one in pages}))
    return RegenStore.open(path)
