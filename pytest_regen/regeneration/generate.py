"""The main flow: an API description becomes a store, or an existing store follows its document."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_regen.documents import Document, Operation
from pytest_regen.errors import HandEditError, RegenError, StoreWriteError
from pytest_regen.languages import DEFAULT_LANGUAGE, find_language
from pytest_regen.regeneration.asking import Ask, ask_pages
from pytest_regen.regeneration.candidate import (
    model_for,
    page_of,
    read_ahead,
    revised,
    source_diff,
    without_types,
)
from pytest_regen.regeneration.flow import heal_types, stop_reason_of
from pytest_regen.regeneration.partial import write_summary
from pytest_regen.regeneration.planning import StorePlan, plan_store, schema_markdown
from pytest_regen.regeneration.policies import is_edited, judged
from pytest_regen.regeneration.restore import rebuild_source
from pytest_regen.regeneration.values import (
    GenerateResult,
    HealResult,
    PageAnswer,
    Progress,
    StopReason,
    TurnSettings,
)
from pytest_regen.stores import RegenStore, is_store, refuse_unwritable
from pytest_regen.turns import AnthropicProvider
from pytest_regen.turns.values import DEFAULT_MODEL, Provider, Usage
from pytest_regen.validation import validate_store
from pytest_regen.validation.issues import Ignore
from pytest_regen.validation.stores import format_note

__all__ = ["generate_store"]


def generate_store(
    document: Document | Path | str,
    operation: Operation | str,
    out: Path | str,
    *,
    provider: Provider | None = None,
    settings: TurnSettings | None = None,
    language: str = DEFAULT_LANGUAGE,
    status: str | None = None,
    fields_per_page: int | None = None,
    namespace: str | None = None,
    profile: str | None = None,
    attempts: int = 2,
    force: bool = False,
    discard_edits: bool = False,
    allow_defects: bool = False,
    dry_run: bool = False,
    ignore: Ignore = (),
) -> GenerateResult:
    """Generate the types of one operation's response into a folder below ``out``.

    A folder that holds a store already is updated: pages whose fields are unchanged are kept, the
    others asked, vanished types go to the history. A run that was stopped is resumed the same way.

    Args:
        document: an API description, or the path of one.
        operation: one of its operations, or its method and path: ``GET /v1/projects``.
        out: the folder in which each store has a folder of its own.
        provider: answers instead of the Anthropic API.
        settings: provider, model, budget, jobs and hooks in one; wins over ``provider``.
        language: name of the target language.
        status: of the response to read; by default 200, else the lowest 2xx with JSON.
        fields_per_page: fields or enum values per page, instead of a number chosen by tokens.
        namespace: of the source; by default the stored one, else one made from the operation.
        profile: of the language; by default the stored one, else ``default``.
        attempts: replies per page at most, the draft included.
        force: ask every page, whatever is stored.
        discard_edits: rebuild types that were edited by hand and have changed in the document.
        allow_defects: generate what can be read where the document is broken, a reference to
            nothing for one; the store reports what is lost as REVIEW.
        dry_run: plan only; nothing is asked or written.
        ignore: codes that do not count, as ``validate_store`` takes them.

    Raises:
        DocumentError, UsageError, StoreError: the work cannot start; nothing was written.
    """
    plan = plan_store(
        document,
        operation,
        out,
        language=language,
        status=status,
        fields_per_page=fields_per_page,
        namespace=namespace,
        profile=profile,
        force=force,
        allow_defects=allow_defects,
    )
    if dry_run:
        return replace(_result(plan), is_stored=False)
    if plan.previous is not None and plan.asked:
        plan.previous.refuse_links()
    settings = settings or TurnSettings(provider or AnthropicProvider())
    if not discard_edits:
        _refuse_edited(plan)
    # The first write comes after the first answer, which is paid for by then.
    refuse_unwritable(plan.path, plan.ir, plan.prompts, schema_markdown(plan.ir))
    if plan.asked and settings.ready:
        settings.ready()
    before = plan.previous.source if plan.previous else ""
    draft = _Draft(plan, settings, discard_edits=discard_edits)
    draft.ask()
    if not draft.is_stored:
        return _unstored(plan, draft)
    heals = [] if draft.failure else _mend(plan, settings, attempts - 1, draft.failures, ignore)
    return _finished(plan, draft, heals, before, ignore)


def _refuse_edited(plan: StorePlan) -> None:
    """Refuse to rebuild blocks that somebody edited, before anything is written or asked."""
    if plan.previous is None:
        return
    touched = {*plan.changed, *plan.removed}
    for name, result in validate_store(plan.previous).items():
        if name in touched and is_edited(result):
            raise HandEditError(
                f"{name} in {plan.previous.source_path} was edited by hand",
                why="the document changed this type, and updating it would discard the edit",
                hint=f"keep it: pytest-regen adopt {plan.path} --type {name}; "
                f"or drop it: pytest-regen rebuild {plan.path} --type {name}",
            )


def _drop_edits(plan: StorePlan) -> None:
    """Write the blocks of types that are about to change from their pages; edits are kept aside."""
    if plan.previous is None:
        return
    touched = {*plan.changed, *plan.removed}
    names = [name for name in plan.previous.type_names if name in touched]
    rebuild_source(plan.path, names, keep_lost=True)


def _write_plan(plan: StorePlan) -> None:
    """Store IR, prompts and what is kept, so that a run stopped from here on can be resumed."""
    if plan.previous is None:
        try:
            RegenStore.create(
                plan.path,
                ir=plan.ir,
                prompts=plan.prompts,
                source_file=plan.source_file,
                schema=schema_markdown(plan.ir),
                namespace=plan.namespace,
                profile=plan.profile,
            )
        except StoreWriteError:
            # Another process may have made it while the first page was asked: that one serves.
            if not is_store(plan.path):
                raise
        return
    with RegenStore.update(plan.path) as tx:
        tx.write(
            ir=plan.ir.model_copy(update={"validation": tx.store.ir.validation}),
            prompts=plan.prompts,
            pages=plan.carried_from(tx.store).values(),
            source=without_types(tx.store.source, plan.removed) if plan.removed else None,
            schema=schema_markdown(plan.ir),
            envelope=replace(
                tx.store.envelope,
                source_file=plan.source_file,
                namespace=plan.namespace,
                profile=plan.profile,
            ),
        )
        # A type may have lost a page without any of its others changing.
        whole = {name for name in plan.changed if name not in {e.type_name for e in plan.asked}}
        rebuilt = revised(tx.store, [p for p in tx.store.pages.values() if p.type_name in whole])
        if rebuilt.source != tx.store.source:
            tx.write(source=rebuilt.source)


class _Draft:
    """The pages asked for the first time in this run, each stored as it arrives.

    The plan is stored with the first of them: where nobody answers, nothing is left behind, and a
    store that is there stays as it is.
    """

    def __init__(self, plan: StorePlan, settings: TurnSettings, *, discard_edits: bool) -> None:
        self._plan = plan
        self._settings = settings
        self._discard_edits = discard_edits
        self._store: RegenStore | None = None
        """As of the last page stored; ``None`` until the plan is."""
        self.usage = Usage()
        self.calls = 0
        self.failures: dict[str, RegenError] = {}
        """Type name to why one of its pages has no output."""
        self.failure: RegenError | None = None
        """What would stop every further page as well."""

    @property
    def is_stored(self) -> bool:
        """Whether the folder follows the document now."""
        return self._store is not None

    def ask(self) -> None:
        """Ask all pages that have no output; a refusal stops its own page only."""
        if not self._plan.asked:
            self._store_plan()
        language = find_language(self._plan.ir.language)
        waiting = [
            Ask(entry, model_for(self._plan.previous, entry, self._settings.model, DEFAULT_MODEL))
            for entry in self._plan.asked
        ]
        total = len(waiting)
        while waiting and self.failure is None:
            answered = set()
            for answer in ask_pages(waiting, self._settings, language=language):
                answered.add(answer.entry.key)
                self._take(answer)
                self._tell(answer, total - len(waiting) + len(answered), total)
            waiting = [ask for ask in waiting if ask.entry.key not in answered]

    def _take(self, answer: PageAnswer) -> None:
        self.usage += answer.usage
        self.calls += answer.calls
        if answer.failure is None:
            read_ahead(self._store_plan(), [answer])
            with RegenStore.update(self._plan.path) as tx:
                page = page_of(tx.store, answer)
                tx.write(pages=[page], source=revised(tx.store, [page]).source or None)
                self._store = tx.store
            return
        self.failures.setdefault(answer.entry.type_name, answer.failure)
        if stop_reason_of(answer.failure) == "refused":
            self._store_plan()  # Whoever is refused wants to read the prompt.
        else:
            self.failure = answer.failure

    def _store_plan(self) -> RegenStore:
        if self._store is None:
            if self._discard_edits:
                _drop_edits(self._plan)
            _write_plan(self._plan)
            self._store = RegenStore.open(self._plan.path)
        return self._store

    def _tell(self, answer: PageAnswer, done: int, total: int) -> None:
        if self._settings.progress:
            self._settings.progress(
                Progress(answer.entry.key, done, total, "failed" if answer.failure else "asked")
            )


def _mend(
    plan: StorePlan,
    settings: TurnSettings,
    rounds: int,
    refused: Collection[str],
    ignore: Ignore,
) -> list[HealResult]:
    """Mend the types asked in this run that have errors; the others are only reported.

    What was refused would be refused again: it is left to a command that names it.
    """
    asked = {entry.type_name for entry in plan.asked}.difference(refused)
    failing = [
        name
        for name, result in judged(RegenStore.open(plan.path), ignore).items()
        if result.has_errors and name in asked
    ]
    return heal_types(plan.path, failing, settings=settings, rounds=rounds, ignore=ignore)


def _result(plan: StorePlan) -> GenerateResult:
    return GenerateResult(
        path=plan.path,
        ir=plan.ir,
        prompts=plan.prompts,
        asked=tuple(entry.key for entry in plan.asked),
        source_file=plan.source_file,
        defects=plan.defects,
        added=plan.added,
        changed=plan.changed,
        removed=plan.removed,
        kept=plan.kept,
        is_new=plan.previous is None,
        is_current=plan.is_current,
        note=format_note(plan.previous) if plan.previous else "",
    )


def _unstored(plan: StorePlan, draft: _Draft) -> GenerateResult:
    """Return why there was no answer at all; the folder is as it was."""
    return replace(
        _result(plan),
        added=(),
        changed=(),
        removed=(),
        kept=tuple(plan.previous.type_names) if plan.previous else (),
        stop_reasons={name: stop_reason_of(one) for name, one in draft.failures.items()},
        usage=draft.usage,
        calls=draft.calls,
        failures=tuple(draft.failures.values()),
        is_stored=False,
    )


def _finished(
    plan: StorePlan,
    draft: _Draft,
    heals: Sequence[HealResult],
    before: str,
    ignore: Ignore,
) -> GenerateResult:
    store = RegenStore.open(plan.path)
    results = validate_store(store, ignore=ignore)
    write_summary(store, results)
    usage = draft.usage
    for heal in heals:
        usage += heal.usage
    reasons: dict[str, StopReason] = {
        name: stop_reason_of(failure) for name, failure in draft.failures.items()
    }
    reasons |= {heal.type_name: heal.stop_reason for heal in heals if heal.stop_reason}
    failures = [*draft.failures.values(), *(heal.failure for heal in heals if heal.failure)]
    return replace(
        _result(plan),
        validation=results,
        stop_reasons=reasons,
        usage=usage,
        calls=draft.calls + sum(heal.calls for heal in heals),
        failures=tuple(failures),
        diff=source_diff(before, store.source, store.source_path.name),
    )
