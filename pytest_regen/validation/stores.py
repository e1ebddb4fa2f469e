"""Validation of a store: its types, and what only the folder shows: DRIFT and STALE."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pytest_regen.stores import RegenStore
from pytest_regen.stores.strict_json import without_collection
from pytest_regen.validation.attribution import PageText, stitched
from pytest_regen.validation.by_type import validate_by_type, validate_split
from pytest_regen.validation.edits import edited_prompts, edits
from pytest_regen.validation.freshness import stale_types
from pytest_regen.validation.ignoring import Ignore, ignoring
from pytest_regen.validation.issues import Issue, ValidationResult
from pytest_regen.validation.outside import file_issues
from pytest_regen.validation.splitting import split

__all__ = ["validate_pages", "validate_store"]


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
    drifted = [edit.issue for edit in edits(store, found)]
    others = (*drifted, *edited_prompts(store), *file_issues(store, found))
    for name, result in results.items():
        own = [issue for issue in others if issue.type_name == name]
        issues = _without_echoes(result.issues, [one for one in drifted if one.type_name == name])
        results[name] = ValidationResult.of([*filter(None, [stale.get(name)]), *own, *issues])
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
    is_gone = any(issue.line is None and issue.file is None for issue in drift)
    for issue in issues:
        if not (is_gone and issue.code == "MISSING_CLASS"):
            yield issue
