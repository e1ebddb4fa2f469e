"""An API description becomes a store, or an existing store follows its document."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_regen.documents import Document, Part
from pytest_regen.documents.changes import compare_types
from pytest_regen.errors import HandEditError, StoreWriteError
from pytest_regen.languages import DEFAULT_LANGUAGE, find_language
from pytest_regen.prompts.values import PageKey, PromptEntry
from pytest_regen.regeneration.costs import AskSize, page_size
from pytest_regen.regeneration.flow import source_diff, work
from pytest_regen.regeneration.planning import StorePlan, plan_store, schema_markdown
from pytest_regen.regeneration.policies import Generate
from pytest_regen.regeneration.prompt_faults import prompt_faults
from pytest_regen.regeneration.restore import rebuild_source
from pytest_regen.regeneration.sharing import Sharing
from pytest_regen.regeneration.store_place import (
    StorePlace,
    StoreView,
    ask_for_page,
    is_edited,
    model_for,
    with_pages,
    without_types,
)
from pytest_regen.regeneration.values import (
    Answer,
    Ask,
    Feedback,
    GenerateResult,
    HealResult,
    Known,
    TurnSettings,
)
from pytest_regen.stores import RegenStore, StoredPage, is_store, refuse_unwritable
from pytest_regen.turns import AnthropicProvider
from pytest_regen.turns.providers import TemplateProvider
from pytest_regen.turns.values import Provider, Usage, provider_reference
from pytest_regen.validation import validate_store
from pytest_regen.validation.issues import Ignore
from pytest_regen.validation.stores import format_note, validate_pages

__all__ = ["generate_store"]


def generate_store(
    document: Document | Path | str,
    part: Part | str,
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
    sharing: Sharing | None = None,
) -> GenerateResult:
    """Generate the types of a part of a document into a folder below ``out``.

    A folder that holds a store already is updated: pages whose fields are unchanged are kept, the
    others asked, vanished types go to the history. A run that was stopped is resumed the same way.

    Args:
        document: an API description, or the path of one.
        part: an operation, whose response is read, or its method and path: ``GET /v1/projects``;
            ``Request`` of an operation; ``Components``, the schemas with names.
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
        sharing: the stores that this one shares answers with.

    Raises:
        DocumentError, UsageError, StoreError: the work cannot start; nothing was written.
    """
    plan = plan_store(
        document,
        part,
        out,
        language=language,
        status=status,
        fields_per_page=fields_per_page,
        namespace=namespace,
        profile=profile,
        force=force,
        allow_defects=allow_defects,
        resolve=not dry_run,
        is_shared=sharing is not None and sharing.is_for_many,
    )
    known = _find_known(plan, settings, sharing)
    if dry_run:
        if sharing is not None:
            sharing.plan(plan.path, (e for e in plan.asked if e.key not in known))
        return replace(_result(plan, known), sizes=_sizes(plan, known), is_stored=False)
    if plan.previous is not None and plan.asked:
        plan.previous.refuse_links()
    settings = settings or TurnSettings(provider or AnthropicProvider())
    if not discard_edits:
        _refuse_edits(plan)
    # The first write comes after the first answer, which is paid for by then.
    refuse_unwritable(plan.path, plan.ir, plan.prompts, schema_markdown(plan.ir))
    if settings.ready and any(entry.key not in known for entry in plan.asked):
        settings.ready()
    place = _PlannedStore(plan, ignore, known, discard_edits=discard_edits)
    if not plan.asked:
        place.store_plan()
    names = dict.fromkeys(entry.type_name for entry in plan.asked)
    results = work(place, Generate(), settings, names=names, rounds=attempts).results
    if any(result.stop_reason == "refused" for result in results):
        place.store_plan()  # Whoever is refused wants to read the prompt.
    if not place.is_stored:
        return _result_without_store(plan, known, results)
    if sharing is not None:
        sharing.add(plan.path, (entry.key for entry in plan.asked))
    return _result_with_store(place, results)


def _find_known(
    plan: StorePlan, settings: TurnSettings | None, sharing: Sharing | None
) -> dict[PageKey, Known | str]:
    """Return the answers that are there without asking, or who is going to have them.

    An enum of one value leaves nothing to decide: its language writes it.
    """
    provider = settings.provider if settings else None
    if isinstance(provider, TemplateProvider):
        return {}
    language, template = find_language(plan.ir.language), TemplateProvider.reference
    types = {type_.name: type_ for type_ in plan.ir.types}
    found: dict[PageKey, Known | str] = {}
    for entry in plan.asked:
        type_ = types[entry.type_name]
        if len(type_.enum_values) == 1:
            code = language.write_page(type_, entry.fields, "enum_only", profile=plan.profile)
            found[entry.key] = Known(code, template, template)

    def may_answer(entry: PromptEntry, page: StoredPage) -> bool:
        if settings is None:
            return True  # A plan does not know who is going to be asked.
        if page.provider != provider_reference(settings.provider):
            return False
        model = model_for(plan.previous, entry, settings.model)
        # An alias of a model stands for its versions.
        return page.model in {model, page.provider} or page.model.startswith(f"{model}-")

    if sharing is not None:
        rest = (entry for entry in plan.asked if entry.key not in found)
        found |= sharing.find(plan.path, rest, may_answer)
    return found


def _refuse_edits(plan: StorePlan) -> None:
    """Refuse to rebuild blocks that somebody edited, before anything is written or asked."""
    if plan.previous is None:
        return
    touched = {*plan.changed, *plan.removed}
    for name, result in validate_store(plan.previous, behaviour=False).items():
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
            ir=plan.ir,
            prompts=plan.prompts,
            pages=plan.carry_over(tx.store).values(),
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
        rebuilt = with_pages(tx.store, [p for p in tx.store.pages.values() if p.type_name in whole])
        if rebuilt.source != tx.store.source:
            tx.write(source=rebuilt.source)


class _PlannedStore(StorePlace):
    """A store as its document wants it; the plan is stored with the first answer.

    Until then nothing is written, so that a store that is there stays as it is if no request is
    answered.
    """

    def __init__(
        self,
        plan: StorePlan,
        ignore: Ignore,
        known: Mapping[PageKey, Known | str],
        *,
        discard_edits: bool,
    ) -> None:
        super().__init__(plan.path, ignore)
        self.plan = plan
        self.known = known
        """Answers that are there without asking."""
        self._discards = discard_edits
        self.is_stored = False

    def open(self) -> StoreView:
        """Return what the folder holds, or is going to hold, without its unwritten pages."""
        if self.is_stored:
            return super().open()
        plan = self.plan
        return self.view_of(
            RegenStore.from_plan(
                plan.path,
                ir=plan.ir,
                prompts=plan.prompts,
                pages=plan.carried.values(),
                source=plan.previous.source if plan.previous else "",
                source_file=plan.source_file,
                namespace=plan.namespace,
                profile=plan.profile,
            )
        )

    def asks(
        self,
        view: StoreView,
        name: str,
        wanted: Mapping[int, Sequence[Feedback]],
        settings: TurnSettings,
    ) -> list[Ask]:
        """Return the requests for pages of a type; models are those of the store before."""
        return [
            replace(ask, known=known)
            if not wanted[ask.page] and isinstance(known := self._known_of(ask), Known)
            else ask
            for ask in self._requests(view, name, wanted, settings)
        ]

    def _known_of(self, ask: Ask) -> Known | str | None:
        return self.known.get(ask.entry.key) if isinstance(ask.entry, PromptEntry) else None

    def _requests(
        self,
        view: StoreView,
        name: str,
        wanted: Mapping[int, Sequence[Feedback]],
        settings: TurnSettings,
    ) -> list[Ask]:
        if self.is_stored:
            return super().asks(view, name, wanted, settings)
        return [
            ask_for_page(
                entry,
                wanted[entry.page],
                settings,
                model=model_for(self.plan.previous, entry, settings.model),
                store=view.store,
            )
            for entry in view.store.prompts_of(name)
            if entry.page in wanted
        ]

    def prepare(self, answers: Sequence[Answer]) -> None:
        """Store the plan with the first answer; a draft is read alone, nothing depends on it."""
        self.store_plan()
        view = self.open()
        if any(answer.ask.page in view.missing(answer.ask.name) for answer in answers):
            validate_pages(view.with_answers(answers).store, answers[0].ask.name)
        else:
            super().prepare(answers)

    def store_plan(self) -> None:
        """Make the folder follow its document, so that a run stopped from here on is resumed."""
        if not self.is_stored:
            if self._discards:
                _drop_edits(self.plan)
            _write_plan(self.plan)
            self.is_stored = True


def _result(
    plan: StorePlan,
    known: Mapping[PageKey, Known | str],
    results: Sequence[HealResult] = (),
) -> GenerateResult:
    usage = Usage()
    for result in results:
        usage += result.usage
    return GenerateResult(
        path=plan.path,
        ir=plan.ir,
        prompts=plan.prompts,
        asked=tuple(entry.key for entry in plan.asked if entry.key not in known),
        shared=_shared(known),
        source_file=plan.source_file,
        defects=plan.defects,
        added=plan.added,
        changed=plan.changed,
        removed=plan.removed,
        kept=plan.kept,
        changes=() if plan.previous is None else compare_types(plan.previous.ir, plan.ir),
        is_new=plan.previous is None,
        is_current=plan.is_current,
        note=_note(plan),
        skipped=plan.skipped,
        stop_reasons={
            result.type_name: result.stop_reason
            for result in results
            if result.stop_reason and not _is_first_try(result)
        },
        usage=usage,
        calls=sum(result.calls for result in results),
        failures=tuple(result.failure for result in results if result.failure),
        prompt_faults=prompt_faults(
            (result.name, issue) for result in results for issue in result.ordered
        ),
    )


def _sizes(plan: StorePlan, known: Mapping[PageKey, Known | str]) -> tuple[AskSize, ...]:
    """Return about how large each request is that a plan needs."""
    return tuple(
        page_size(entry, model_for(plan.previous, entry, None), plan.ir, plan.profile)
        for entry in plan.asked
        if entry.key not in known
    )


def _shared(known: Mapping[PageKey, Known | str]) -> dict[PageKey, str]:
    """Return the folders that answers come from, or are going to come from."""
    folders = {
        key: each if isinstance(each, str) else each.shared_from for key, each in known.items()
    }
    return {key: folder for key, folder in folders.items() if folder is not None}


def _is_first_try(result: HealResult) -> bool:
    """Return whether the drafts of a type needed no correction."""
    return result.stop_reason == "clean" and result.attempts <= 1


def _result_without_store(
    plan: StorePlan, known: Mapping[PageKey, Known | str], results: Sequence[HealResult]
) -> GenerateResult:
    """Return why there was no answer at all; the folder is as it was."""
    return replace(
        _result(plan, known, results),
        added=(),
        changed=(),
        removed=(),
        kept=tuple(plan.previous.type_names) if plan.previous else (),
        is_stored=False,
    )


def _result_with_store(place: _PlannedStore, results: Sequence[HealResult]) -> GenerateResult:
    store = place.open().store
    before = place.plan.previous.source if place.plan.previous else ""
    return replace(
        _result(place.plan, place.known, results),
        validation=validate_store(store, ignore=place.ignore),
        diff=source_diff(before, store.source, store.source_path.name),
    )


def _note(plan: StorePlan) -> str:
    """Return what the user should know beside what was asked."""
    names = ", ".join(plan.joined)
    notes = [f"both versions of {names} were joined; history/ keeps the rest"] if names else []
    notes += filter(None, [format_note(plan.previous) if plan.previous else ""])
    return "; ".join(notes)
