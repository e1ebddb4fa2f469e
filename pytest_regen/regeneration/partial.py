"""Regenerate one or more types of a store from stored prompts (requirement 2)."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_regen.errors import UnknownPageError, UsageError
from pytest_regen.regeneration.candidate import source_diff
from pytest_regen.regeneration.flow import ends_the_run, heal_types, regenerate_pages
from pytest_regen.regeneration.policies import judged, obstacle
from pytest_regen.regeneration.restore import rebuild_source
from pytest_regen.regeneration.values import Feedback, HealResult, PartialRegenResult, TurnSettings
from pytest_regen.stores import RegenStore
from pytest_regen.turns import AnthropicProvider
from pytest_regen.turns.values import Provider, Usage
from pytest_regen.validation import validate_store
from pytest_regen.validation.issues import Ignore, ValidationResult

__all__ = [
    "heal_store",
    "merged",
    "partial_regenerate",
    "result_of",
    "summary_of",
    "targets",
    "write_summary",
]


def merged(results: Mapping[str, ValidationResult]) -> ValidationResult:
    """Return the issues of all types as one result, by line."""
    issues = [issue for result in results.values() for issue in result.issues]
    return ValidationResult.of(sorted(issues, key=lambda issue: issue.line or 0))


def summary_of(results: Mapping[str, ValidationResult]) -> dict[str, Any]:
    """Return the ``validation`` of ``ir.json``; no time in it, so that it can be compared."""
    whole = merged(results)
    return {
        "is_clean": whole.is_clean,
        "errors": [issue.to_json() for issue in whole.errors],
        "warnings": [issue.to_json() for issue in whole.warnings],
    }


def write_summary(store: RegenStore, results: Mapping[str, ValidationResult]) -> bool:
    """Update the summary in ``ir.json`` if it changed; return whether it did.

    Raises:
        StoreWriteError: the folder cannot be written.
    """
    summary = summary_of(results)
    if store.ir.validation == summary:
        return False
    with RegenStore.update(store.path) as tx:
        tx.write(ir=tx.store.ir.model_copy(update={"validation": summary}))
    return True


def partial_regenerate(  # noqa: PLR0917 - the order is the requirement's
    output_dir: Path | str,
    type_names: Sequence[str] | None = None,
    page_numbers: Mapping[str, Sequence[int]] | None = None,
    llm_config: Mapping[str, Any] | None = None,
    correction_context: Mapping[str, Sequence[Feedback]] | None = None,
    max_retries: int | None = None,
    *,
    attempts: int | None = None,
    provider: Provider | None = None,
    settings: TurnSettings | None = None,
    accept_any: bool = False,
    discard_edits: bool = False,
    ignore: Ignore = (),
) -> PartialRegenResult:
    """Regenerate one or more types from stored prompts.

    Args:
        output_dir: folder with prompts.json, pages.json and the source file.
        type_names: declared (or unambiguous schema) names; ``None`` means all types.
        page_numbers: type name to the pages to ask again; ``None`` means all pages of each type.
        llm_config: ``model``, ``api_key``, ``base_url``, ``max_tokens``, ``timeout``,
            ``max_retries``; the model overrides the stored one.
        correction_context: type name to what was wrong; an ``Issue`` goes to its page, a text to
            the pages in ``page_numbers``, else to page 1.
        max_retries: the requirement's name for ``attempts``.
        attempts: replies per page at most, 1 by default; those after the first mend what is wrong.
        provider: answers instead of the Anthropic API; wins over ``llm_config``.
        settings: provider, budget, jobs and hooks in one; wins over both.
        accept_any: keep new outputs even if errors rise.
        discard_edits: replace blocks even if they were edited by hand.
        ignore: codes that do not count, as ``validate_store`` takes them.

    Raises:
        TypeError: both ``attempts`` and ``max_retries`` are given.
        UsageError: ``attempts`` is less than 1.
        UnknownTypeError, UnknownPageError: the store has no such type or page.
        HandEditError: a named type was edited by hand and ``discard_edits`` is not set.
        StoreError: the folder cannot be read or written.
    """
    if attempts is not None and max_retries is not None:
        raise TypeError("give attempts or max_retries, not both: they mean the same")
    rounds = next((n for n in (attempts, max_retries) if n is not None), 1)
    if rounds < 1:
        raise UsageError(
            f"attempts is {rounds}, so that no page could be asked",
            hint="give 1 or more; the first reply already counts",
        )
    store = RegenStore.open(output_dir)
    plan = targets(store, type_names, page_numbers or {}, correction_context or {})
    _refuse_blocked(store, plan, discard_edits=discard_edits)
    if discard_edits:
        rebuild_source(store.path, list(plan), keep_lost=True)
    settings = settings or _settings(provider, llm_config or {})
    results = []
    for type_name, pages in plan.items():
        result = regenerate_pages(
            store.path,
            type_name,
            pages,
            settings=settings,
            rounds=rounds,
            accept_any=accept_any,
            discard_edits=discard_edits,
            ignore=ignore,
        )
        results.append(result)
        if ends_the_run(result):
            break
    return result_of(store, results, ignore)


def heal_store(
    path: Path | str,
    *,
    settings: TurnSettings,
    attempts: int = 2,
    type_names: Sequence[str] | None = None,
    accept_any: bool = False,
    discard_edits: bool = False,
    ignore: Ignore = (),
) -> PartialRegenResult:
    """Mend every type of a store that has errors, or those of ``type_names`` that have.

    The store is validated afresh; the summary in ``ir.json`` is not trusted.

    Args:
        path: the store's folder.
        settings: with what, and within which limits, pages are asked.
        attempts: replies per page at most.
        type_names: declared names to look at; ``None`` for all.
        accept_any: keep new outputs even if they are not better.
        discard_edits: put edited types back as their stored pages make them, then mend those too.
        ignore: codes that do not count, as ``validate_store`` takes them.

    Raises:
        StoreError: the folder cannot be read or written.
    """
    before = RegenStore.open(path)
    names = before.type_names if type_names is None else type_names
    if discard_edits:
        rebuild_source(path, names, keep_lost=True)
    store = RegenStore.open(path) if discard_edits else before
    failing = [
        name
        for name, result in judged(store, ignore).items()
        if result.has_errors and name in names
    ]
    results = heal_types(
        path, failing, settings=settings, rounds=attempts, accept_any=accept_any, ignore=ignore
    )
    return result_of(before, results, ignore)


def _settings(provider: Provider | None, config: Mapping[str, Any]) -> TurnSettings:
    model = config.get("model")
    if provider is None:
        known = ("api_key", "base_url", "max_retries", "timeout")
        provider = AnthropicProvider(model, **{key: config[key] for key in known if key in config})
    return TurnSettings(provider, model=model, max_tokens=config.get("max_tokens"))


def targets(
    store: RegenStore,
    type_names: Sequence[str] | None,
    page_numbers: Mapping[str, Sequence[int]],
    corrections: Mapping[str, Sequence[Feedback]] | None = None,
) -> dict[str, dict[int, list[Feedback]]]:
    """Return type name to page number to corrections, for all that is to be asked.

    Raises:
        UnknownTypeError, UnknownPageError: the store has no such type or page.
    """
    named = store.type_names if type_names is None else type_names
    names = dict.fromkeys(store.resolve_type(name) for name in named)
    pages = {store.resolve_type(name): numbers for name, numbers in page_numbers.items()}
    notes = {store.resolve_type(name): told for name, told in (corrections or {}).items()}
    return {name: _pages_of(store, name, pages.get(name), notes.get(name, ())) for name in names}


def _pages_of(
    store: RegenStore, name: str, numbers: Sequence[int] | None, notes: Sequence[Feedback]
) -> dict[int, list[Feedback]]:
    known = [entry.page for entry in store.prompts_of(name)]
    for number in numbers or ():
        if number not in known:
            raise UnknownPageError(
                f"{name} has no page {number}",
                hint=f"its pages are 1 to {known[-1]}" if len(known) > 1 else "it has one page, 1",
            )
    asked: dict[int, list[Feedback]] = {page: [] for page in sorted(set(numbers or known))}
    for note in notes:
        if isinstance(note, str):
            # A text cannot say where it belongs: the pages named get it, else the first.
            for page in asked if numbers else (1,):
                asked[page].append(note)
        elif note.page in asked:
            asked[note.page].append(note)
        else:
            asked[min(asked)].append(note)
    return asked


def _refuse_blocked(store: RegenStore, names: Iterable[str], *, discard_edits: bool) -> None:
    """Refuse to ask what may not be asked, or what could not be put into the source.

    Raises:
        HandEditError: an edit stands in the way, of a type, a prompt, or the file as a whole.
    """
    blocked = obstacle(store, validate_store(store), names, discard_edits=discard_edits)
    if blocked is not None:
        raise blocked


def result_of(
    before: RegenStore, results: Sequence[HealResult], ignore: Ignore = ()
) -> PartialRegenResult:
    """Return what the work on several types did to the store ``before`` it."""
    store = RegenStore.open(before.path)
    usage = Usage()
    for result in results:
        usage += result.usage
    models = [page.model for page in store.pages.values()]
    return PartialRegenResult(
        source=store.source,
        validation=merged(validate_store(store, ignore=ignore)),
        regenerated=[pair for result in results for pair in result.regenerated],
        model_used=store.envelope.model or (models[-1] if models else ""),
        pages_json_path=store.path / "pages.json",
        source_path=store.source_path,
        rejected=tuple(id_ for result in results for id_ in result.rejected),
        stop_reasons={
            result.type_name: result.stop_reason for result in results if result.stop_reason
        },
        usage=usage,
        calls=sum(result.calls for result in results),
        failures=tuple(result.failure for result in results if result.failure),
        skipped={result.type_name: result.skipped for result in results if result.skipped},
        diff=source_diff(before.source, store.source, store.source_path.name),
    )
