"""A store as it would be with new outputs: built in memory, judged, then written or not."""

from collections.abc import Sequence
from difflib import unified_diff

from pytest_regen.languages import language_named
from pytest_regen.prompts.values import PromptEntry
from pytest_regen.regeneration.values import PageAnswer
from pytest_regen.sources import (
    extract_type_block,
    insert_type_block,
    remove_type_block,
    replace_type_block,
    stitch,
)
from pytest_regen.stores import RegenStore, StoredPage
from pytest_regen.validation.stores import validate_pages

__all__ = [
    "model_for",
    "page_of",
    "read_ahead",
    "revised",
    "source_diff",
    "stitched_type",
    "without_types",
]


def page_of(store: RegenStore, answer: PageAnswer) -> StoredPage:
    """Return the answer as the page of ``store`` that it would become."""
    old = store.pages.get(answer.entry.key)
    return StoredPage.of(
        answer.entry,
        answer.output,
        model=answer.model,
        type_hash=store.prompt_type_hash(answer.entry),
        usage=answer.usage,
        stop_reason=answer.stop_reason or None,
        provider=answer.provider,
        attempt=(old.attempt if old else 0) + 1,
    )


def stitched_type(store: RegenStore, type_name: str) -> str | None:
    """Return the type as its stored pages make it; ``None`` while a page is missing."""
    prompts = store.prompts_of(type_name)
    outputs = [page.output for page in store.pages_of(type_name)]
    if not prompts or len(outputs) < len(prompts):
        return None
    type_ = store.ir.type_named(type_name)
    is_enum = type_ is not None and type_.kind == "enum"
    language = language_named(store.ir.language)
    return stitch(outputs, name=type_name, is_enum=is_enum, language=language).text


def revised(store: RegenStore, pages: Sequence[StoredPage]) -> RegenStore:
    """Return ``store`` with ``pages`` in place and the blocks of their types rebuilt.

    Every other byte of the source stays as it is, edits made by hand included.
    """
    merged = {**store.pages, **{page.key: page for page in pages}}
    source = store.source
    candidate = store.revised(merged.values(), source)
    for type_name in dict.fromkeys(page.type_name for page in pages):
        source = _with_block(candidate, source, type_name)
    return store.revised(merged.values(), source)


def read_ahead(store: RegenStore, answers: Sequence[PageAnswer]) -> None:
    """Judge the types that ``answers`` belong to, before the store is locked.

    Nothing is stored that cannot be judged, and no other writer waits while it is found out what is
    wrong with illegal code: what was read once is known afterwards.
    """
    pages = [page_of(store, answer) for answer in answers]
    merged = {**store.pages, **{page.key: page for page in pages}}
    candidate = store.revised(merged.values(), store.source)
    for type_name in dict.fromkeys(page.type_name for page in pages):
        validate_pages(candidate, type_name)


def _with_block(store: RegenStore, source: str, type_name: str) -> str:
    code = stitched_type(store, type_name)
    if code is None:
        return source
    if not source:
        return store.assembly()
    if extract_type_block(source, type_name) is not None:
        return replace_type_block(source, type_name, code)
    return insert_type_block(source, type_name, code, order=store.type_names)


def without_types(source: str, type_names: Sequence[str]) -> str:
    """Return ``source`` without the blocks of types that are gone."""
    for name in type_names:
        if extract_type_block(source, name) is not None:
            source = remove_type_block(source, name)
    return source


def model_for(
    store: RegenStore | None, entry: PromptEntry, override: str | None, default: str
) -> str:
    """Return the model to ask for a page: the one named, else the one that wrote it, else ours.

    Where no model of the API wrote it, but a person or a provider of the user's, the one that wrote
    another page last is asked.
    """
    if override:
        return override
    if store is None:
        return default
    page = store.pages.get(entry.key)
    if page is not None and _is_of_the_api(page):
        return page.model
    others = [one for one in store.pages.values() if _is_of_the_api(one)]
    if others:
        return max(others, key=lambda one: one.generated_at).model
    # A store that was just made names the model that is going to be asked.
    return default if store.pages else store.envelope.model or default


def _is_of_the_api(page: StoredPage) -> bool:
    return page.provider is None and page.model not in {"", "hand", "dry-run"}


def source_diff(before: str, after: str, name: str) -> str:
    """Return the unified diff of two states of a source file; empty where they agree."""
    return "".join(
        unified_diff(
            before.splitlines(keepends=True),
            after.splitlines(keepends=True),
            f"a/{name}",
            f"b/{name}",
        )
    )
