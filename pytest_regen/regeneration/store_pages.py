"""The pages of a store: asked for, written by a language, put into the source."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pytest_regen import sources
from pytest_regen.errors import StaleStoreError
from pytest_regen.languages import find_language
from pytest_regen.languages.base import Language
from pytest_regen.prompts import estimated_input_tokens, estimated_output_tokens
from pytest_regen.prompts.values import PromptEntry, output_mode
from pytest_regen.regeneration.asking import model_to_ask
from pytest_regen.regeneration.costs import AskSize
from pytest_regen.regeneration.values import Answer, TurnSettings
from pytest_regen.stores import RegenStore, StoredPage
from pytest_regen.turns.reply_text import join_text
from pytest_regen.turns.values import DEFAULT_MODEL, estimate_tokens
from pytest_regen.validation.stores import is_by_template, update_command

_FENCE: Final = 10
"""Tokens of the fence around the code of a reply."""


def page_of(store: RegenStore, answer: Answer) -> StoredPage:
    """Return an answer as the page of ``store`` that it would become."""
    entry = answer.ask.entry
    before = store.pages.get(entry.key)
    ready = answer.ask.known
    return StoredPage.of(
        entry,
        answer.output,
        model=answer.model,
        type_hash=store.prompt_type_hash(entry),
        usage=answer.usage,
        stop_reason=answer.stop_reason or None,
        provider=answer.provider,
        attempt=(before.attempt if before else 0) + 1,
        generated_at=ready.generated_at if ready else None,
        shared_from=ready.shared_from if ready else None,
    )


def keeps_template(store: RegenStore | None, entry: PromptEntry, settings: TurnSettings) -> bool:
    """Return whether the template writes a page because it wrote the type before."""
    return settings.keeps_template and store is not None and is_by_template(store, entry.type_name)


def write_page(store: RegenStore, entry: PromptEntry) -> str:
    """Return a page as its language writes it: what the prompt asks for, without a model.

    Raises:
        StaleStoreError: ``ir.json`` does not have what the prompt asks for.
    """
    type_ = store.ir.type_named(entry.type_name)
    if type_ is None or not set(entry.fields) <= set(type_.units):
        raise StaleStoreError(
            f"{store.path}: the prompt of {entry.type_name}, page {entry.page}, is not about the "
            "type in ir.json",
            why="the template writes from ir.json what the prompt asks for",
            hint=update_command(store),
        )
    is_enum = type_.kind == "enum"
    mode = output_mode(is_enum=is_enum, is_root=type_.is_root, page=entry.page)
    language = find_language(store.ir.language)
    return language.write_page(type_, entry.fields, mode, profile=store.envelope.profile)


def page_size(store: RegenStore, entry: PromptEntry, model: str) -> AskSize:
    """Return about how large the request for a page is, and its reply.

    The reply is as large as the page that the language itself writes: enum values take a tenth of
    what fields do, and languages differ by two.
    """
    try:
        output_tokens = estimate_tokens(write_page(store, entry)) + _FENCE
    except Exception:  # noqa: BLE001 - a prompt of an older document, or a language that cannot
        output_tokens = estimated_output_tokens(entry)
    return AskSize.of(model, entry.system, estimated_input_tokens(entry), output_tokens)


def code_in(pieces: Sequence[str], *, entry: PromptEntry, language: Language) -> str:
    """Return the code of a reply that came in pieces: of the first way to read them that is legal.

    Where none is, the least illegal one.
    """
    best: tuple[int, str] | None = None
    for text in join_text(pieces):
        code = sources.extract_code(
            text, language=language, type_name=entry.type_name, fields=entry.fields
        ).code
        if len(pieces) == 1:
            return code
        weight = language.illegality(code)
        if best is None or weight < best[0]:
            best = weight, code
        if not weight:
            break
    assert best is not None  # there is at least one text
    return best[1]


def model_for(store: RegenStore | None, entry: PromptEntry, override: str | None) -> str:
    """Return the model to ask for a page: the one named, else the one that wrote it, else ours.

    Where no model of the API wrote it, but a person or a provider of the user's, the one that wrote
    another page last is asked.
    """
    if override:
        return override
    if store is None:
        return DEFAULT_MODEL
    # A store that was just made names the model that is going to be asked.
    default = DEFAULT_MODEL if store.pages else store.envelope.model or DEFAULT_MODEL
    return model_to_ask(store.pages.get(entry.key), store.pages.values(), default)


def with_pages(store: RegenStore, pages: Sequence[StoredPage]) -> RegenStore:
    """Return ``store`` with ``pages`` in place and the blocks of their types rebuilt.

    Every other byte of the source stays as it is, edits made by hand included.
    """
    merged = {**store.pages, **{page.key: page for page in pages}}
    source = store.source
    candidate = store.with_content(merged.values(), source)
    names = dict.fromkeys(page.type_name for page in pages)
    stitched = {name: code for name in names if (code := candidate.stitch_type(name)) is not None}
    # Read once, because it takes as long as the file is, and no block moves another one.
    there = sources.list_type_names(source) if stitched else ()
    comment = find_language(store.ir.language).comment
    for name, code in stitched.items() if source else ():
        if name in there:
            source = sources.replace_type_block(source, name, code)
        else:
            source = sources.insert_type_block(
                source, name, code, order=store.type_names, comment=comment
            )
    if stitched and not source:
        source = candidate.assembly()
    return replace(candidate, source=source, has_source=store.has_source or bool(source))


def without_types(source: str, type_names: Sequence[str]) -> str:
    """Return ``source`` without the blocks of types that are gone."""
    there = sources.list_type_names(source) if type_names else ()
    for name in set(type_names).intersection(there):
        source = sources.remove_type_block(source, name)
    return source
