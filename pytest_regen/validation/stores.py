"""Validation of a store: its types, and what only the folder shows: DRIFT and STALE."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pytest_regen.canonical import source_hash
from pytest_regen.languages import Language, language_named
from pytest_regen.sources import same_leaves
from pytest_regen.stores import RegenStore
from pytest_regen.stores.strict_json import without_collection
from pytest_regen.validation.attribution import PageText, stitched
from pytest_regen.validation.by_type import validate_by_type, validate_split
from pytest_regen.validation.freshness import stale_types
from pytest_regen.validation.ignoring import Ignore, ignoring
from pytest_regen.validation.issues import Issue, ValidationResult
from pytest_regen.validation.splitting import Split, split

__all__ = ["validate_pages", "validate_store"]

_EDITED = (
    "keep the edit with pytest-regen adopt, or drop it with pytest-regen regenerate --discard-edits"
)


def validate_store(
    store: RegenStore, *, types: Sequence[str] | None = None, ignore: Ignore = ()
) -> dict[str, ValidationResult]:
    """Return what is wrong with each type of a store.

    Nothing is written. Each issue is put on the page at fault, where one page is.

    Args:
        store: a store as it was opened.
        types: declared names; the results of other types are left out. All by default.
        ignore: codes that are not reported, or codes by type name; ``STRUCTURAL`` is ``SYNTAX``.

    Returns:
        A result for each type of the IR, then for each block that the IR has no type for.

    Raises:
        StoreCorruptError: ``ir.json`` does not hold an IR.
        UsageError: a code to ignore, or the language of the store, is unknown.
    """
    ir = store.ir
    source = store.source if store.has_source else store.assembly()
    with without_collection():
        found = split(source, store.envelope.language)
        pages = {name: _pages(store, name) for name in store.type_names}
        results = validate_split(found, ir, pages=pages, profile=store.envelope.profile)
    stale = _staleness(store)
    drifted = dict(_drifted(store, found, pages))
    for name, result in results.items():
        own = [*([stale[name]] if name in stale else []), *drifted.get(name, ())]
        issues = [*own, *_without_echoes(result.issues, drifted.get(name, ()))]
        results[name] = ValidationResult.of(issues)
    if types is not None:
        results = {name: result for name, result in results.items() if name in types}
    return ignoring(results, ignore)


def validate_pages(store: RegenStore, type_name: str) -> ValidationResult:
    """Return what is wrong with one type as its stored pages make it; nothing else is read.

    Types that other blocks declare are unknown here: whether a store is right, ``validate_store``
    says.
    """
    type_ = store.ir.type_named(type_name)
    if type_ is None:
        return ValidationResult.of([])
    pages = _pages(store, type_name)
    outputs = tuple(page.output for page in pages)
    text = stitched(store.ir.language, outputs, type_name, type_.kind == "enum").text
    ir = store.ir.model_copy(update={"types": (type_,)})
    profile = store.envelope.profile
    return validate_by_type(text, ir, pages={type_name: pages}, profile=profile)[type_name]


def _pages(store: RegenStore, name: str) -> tuple[PageText, ...]:
    """Return a page per prompt; one that was never written is there too, empty."""
    stored = {page.page: page for page in store.pages_of(name)}
    found = []
    for prompt in store.prompts_of(name):
        page = stored.get(prompt.page)
        text = PageText(prompt.page, prompt.total_pages, prompt.fields, page.output if page else "")
        if page is None:
            found.append(replace(text, stop_reason=None, was_written=False))
        else:
            found.append(replace(text, stop_reason=page.stop_reason))
    return tuple(found)


def _staleness(store: RegenStore) -> dict[str, Issue]:
    """Return a warning for each type whose prompts were made from another IR."""
    detail = "run `pytest-regen generate` on the folder again: it asks only for what changed"
    return {
        name: Issue.of("STALE", message, type_name=name, detail=detail)
        for name, message in stale_types(store).items()
    }


def _without_echoes(issues: Sequence[Issue], drift: Sequence[Issue]) -> Iterator[Issue]:
    """Yield the issues but MISSING_CLASS where the whole block was taken out by hand."""
    is_gone = any(issue.line is None for issue in drift)
    for issue in issues:
        if not (is_gone and issue.code == "MISSING_CLASS"):
            yield issue


def _drifted(
    store: RegenStore, found: Split, pages: dict[str, tuple[PageText, ...]]
) -> Iterator[tuple[str, tuple[Issue, ...]]]:
    """Yield the types whose block differs from their pages by more than white space."""
    if not store.has_source and store.envelope.source_sha256 is None:
        return  # Nothing was ever written that could be missing.
    if not store.has_source or found.broken:
        name = next(iter(store.type_names), None)
        if name is not None:
            missing = f"the source file {store.envelope.source_file} is missing"
            yield name, (_drift(name, found.broken or missing, None),)
        return
    suspects = _suspects(store)
    if not suspects:
        return
    language = language_named(store.envelope.language)
    pieces = {piece.name: piece for piece in found.pieces}
    for name in suspects:
        written = pages[name]
        if not written or not all(page.was_written for page in written):
            continue
        piece = pieces.get(name)
        if piece is None:
            message = f"the block of {name!r} is gone from {store.envelope.source_file}"
            yield name, (_drift(name, message, None),)
        elif not _is_same(store, name, written, piece.text, language):
            message = f"the block of {name!r} was edited: it differs from its stored pages"
            yield name, (_drift(name, message, piece.first_line),)


def _suspects(store: RegenStore) -> tuple[str, ...]:
    """Return the types that may have drifted; none where source and pages are as we wrote them."""
    if store.envelope.source_sha256 != source_hash(store.source):
        return store.type_names
    return tuple(dict.fromkeys(key.type_name for key in store.tampered_pages))


def _is_same(
    store: RegenStore, name: str, pages: Sequence[PageText], text: str, language: Language
) -> bool:
    outputs = tuple(page.output for page in pages)
    type_ = store.ir.type_named(name)
    is_enum = type_ is not None and type_.kind == "enum"
    joined = stitched(store.envelope.language, outputs, name, is_enum).text
    return joined == text or same_leaves(joined, text, language=language.name)


def _drift(name: str, message: str, line: int | None) -> Issue:
    return Issue.of("DRIFT", message, type_name=name, line=line, detail=_EDITED)
