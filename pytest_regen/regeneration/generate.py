"""An API description becomes a store, or an existing store follows its document."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from pytest_regen.documents import Document, Part, read_document
from pytest_regen.documents.changes import compare_types
from pytest_regen.errors import HandEditError, RefusedError, RegenError
from pytest_regen.languages import DEFAULT_LANGUAGE, find_language
from pytest_regen.prompts.values import PageKey, PromptEntry
from pytest_regen.regeneration.costs import AskSize, page_size
from pytest_regen.regeneration.flow import Work, source_diff, work_steps
from pytest_regen.regeneration.planning import StorePlan, plan_store, schema_markdown
from pytest_regen.regeneration.policies import Generate
from pytest_regen.regeneration.prompt_faults import prompt_faults
from pytest_regen.regeneration.queue import Flow, drive_flow, drive_flows
from pytest_regen.regeneration.restore import rebuild_source
from pytest_regen.regeneration.sharing import Sharing
from pytest_regen.regeneration.store_place import (
    LockedStore,
    StorePlace,
    StoreView,
    ask_for_page,
    is_edited,
    keeps_template,
    model_for,
    with_pages,
    without_types,
)
from pytest_regen.regeneration.values import (
    Answer,
    Ask,
    GenerateResult,
    HealResult,
    Known,
    TurnSettings,
)
from pytest_regen.stores import (
    RegenStore,
    StoredPage,
    refuse_unwritable,
)
from pytest_regen.stores.formats import PagesEnvelope
from pytest_regen.turns import AnthropicProvider
from pytest_regen.turns.providers import TemplateProvider
from pytest_regen.turns.values import Provider, Usage, provider_reference
from pytest_regen.validation import validate_store
from pytest_regen.validation.issues import Feedback, Ignore
from pytest_regen.validation.stores import format_note, validate_pages


def generate_store(
    document: Document | Path | str,
    part: Part | str,
    out: Path | str,
    *,
    provider: Provider | None = None,
    settings: TurnSettings | None = None,
    language: str | None = None,
    default_language: str = DEFAULT_LANGUAGE,
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
        language: name of the target language; by default the stored one.
        default_language: of a new store where ``language`` is not given.
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
    steps = _steps(
        document,
        part,
        out,
        settings if dry_run else _settings(provider, settings),
        sharing,
        ignore=lambda _: ignore,
        attempts=attempts,
        discard_edits=discard_edits,
        dry_run=dry_run,
        plan_options={
            "language": language,
            "default_language": default_language,
            "status": status,
            "fields_per_page": fields_per_page,
            "namespace": namespace,
            "profile": profile,
            "force": force,
            "allow_defects": allow_defects,
        },
    )
    return drive_flow(steps, _settings(provider, settings))


class GenerateOptions(TypedDict, total=False):
    """The options of ``generate_store`` that stores generated together have in common."""

    language: str | None
    default_language: str
    status: str | None
    fields_per_page: int | None
    namespace: str | None
    profile: str | None
    attempts: int
    force: bool
    discard_edits: bool
    allow_defects: bool
    dry_run: bool


def generate_stores(
    document: Document | Path | str,
    parts: Iterable[Part | str],
    out: Path | str,
    *,
    provider: Provider | None = None,
    settings: TurnSettings | None = None,
    ignore: Callable[[Path], Ignore] = lambda _: (),
    sharing: Sharing | None = None,
    begins: Callable[[int, Part | str], None] = lambda _number, _part: None,
    **options: Unpack[GenerateOptions],
) -> Iterator[tuple[str, GenerateResult | RegenError]]:
    """Generate the types of several parts of a document, each into a folder below ``out``.

    All are asked for through one queue: ``settings.jobs`` pages are under way, whichever store they
    belong to, and each system prompt is warmed once. A store is planned when there is room for its
    pages, so that any number of them takes little memory. Pages with the same prompt are asked for
    once; a store that has one waits for the store that began earlier.

    Args:
        document: an API description, or the path of one.
        parts: as ``part`` of ``generate_store``.
        out: the folder in which each store has a folder of its own.
        provider: answers instead of the Anthropic API.
        settings: provider, model, budget, jobs and hooks in one; wins over ``provider``.
        ignore: returns the codes that do not count, given the folder of a store.
        sharing: the stores that these share answers with; by default those below ``out``.
        begins: called with the number of a part, from 1, and the part, when it begins.
        **options: those of ``generate_store``, for all parts.

    Yields:
        The name of a part and what came of it, as stores are finished. A ``RegenError`` is what
        ``generate_store`` would have raised; the others go on. After a failure that would meet
        every request no store is begun, and those that got no answer are left out.

    Raises:
        DocumentError: the document cannot be read.
    """
    if not isinstance(document, Document):
        document = read_document(Path(document))
    parts = list(parts)
    plan_options: dict[str, Any] = dict(options)
    attempts, is_dry = plan_options.pop("attempts", 2), plan_options.pop("dry_run", False)
    discard_edits = plan_options.pop("discard_edits", False)
    if sharing is None:
        sharing = Sharing(out, reads_stored=not options.get("force", False))

    def flows() -> Iterator[tuple[str, Flow[GenerateResult]]]:
        for number, part in enumerate(parts, 1):
            begins(number, part)
            flow = _steps(
                document,
                part,
                out,
                settings if is_dry else asked,
                sharing,
                ignore=ignore,
                attempts=attempts,
                discard_edits=discard_edits,
                dry_run=is_dry,
                plan_options=plan_options,
            )
            yield str(part), flow

    asked = _settings(provider, settings)
    yield from drive_flows(flows(), asked, total=len(parts))


def _settings(provider: Provider | None, settings: TurnSettings | None) -> TurnSettings:
    return settings or TurnSettings(
        provider or AnthropicProvider(), keeps_template=provider is None
    )


def _steps(
    document: Document | Path | str,
    part: Part | str,
    out: Path | str,
    settings: TurnSettings | None,
    sharing: Sharing | None,
    *,
    ignore: Callable[[Path], Ignore],
    attempts: int,
    discard_edits: bool,
    dry_run: bool,
    plan_options: Mapping[str, Any],
) -> Flow[GenerateResult]:
    """Generate one store, as ``generate_store`` says."""
    plan = plan_store(
        document,
        part,
        out,
        resolve=not dry_run,
        is_shared=sharing is not None and sharing.is_for_many,
        **plan_options,
    )
    written = _written(plan, settings)
    known = _find_known(plan, None if dry_run else settings, sharing, written)
    if dry_run or settings is None:
        if sharing is not None:
            sharing.plan(plan.path, (e for e in plan.asked if e.key not in known))
        sizes = _sizes(plan, {*known, *written})
        return replace(_result(plan, known, written), sizes=sizes, is_stored=False)
    if not discard_edits:
        _refuse_edits(plan)
    place = _PlannedStore(
        plan, ignore(plan.path), known, sharing, settings, discard_edits=discard_edits
    )
    place.check_ready(written)
    if not plan.asked:
        place.store_plan()
    names = dict.fromkeys(entry.type_name for entry in plan.asked)
    try:
        task = yield from work_steps(place, Generate(), settings, names=names, rounds=attempts)
        results = task.results
        if any(result.stop_reason == "refused" for result in results):
            place.store_plan()  # Whoever is refused wants to read the prompt.
        if sharing is not None:
            _note_refused(plan, task, settings, sharing)
    finally:
        if sharing is not None:
            # Also where the store could not be finished: what it was answered is paid for.
            if place.is_stored:
                sharing.add(plan.path, (entry.key for entry in plan.asked))
            sharing.release(plan.path)
    if not place.is_stored:
        return _result_without_store(plan, place.known, results)
    return replace(_result_with_store(place, results), written=written)


def _note_refused(
    plan: StorePlan, task: Work[StoreView], settings: TurnSettings, sharing: Sharing
) -> None:
    """Tell other stores which prompts they need not ask."""
    for result in task.results:
        asked = [entry for entry in plan.asked if entry.type_name == result.name]
        # Of several pages nobody knows here which one was refused; of a page that is there, it was
        # a correction.
        if (
            isinstance(result.failure, RefusedError)
            and len(asked) == 1
            and task.view.missing(result.name)
        ):
            model = model_for(plan.previous, asked[0], settings.model)
            sharing.refuse(asked[0], model, result.failure)


def _written(plan: StorePlan, settings: TurnSettings | None) -> tuple[PageKey, ...]:
    """Return the pages that the template writes: all, or those of the types that it wrote."""
    if settings is None:
        return ()
    is_all = isinstance(settings.provider, TemplateProvider)
    return tuple(
        entry.key
        for entry in plan.asked
        if is_all or keeps_template(plan.previous, entry, settings)
    )


def _find_known(
    plan: StorePlan,
    settings: TurnSettings | None,
    sharing: Sharing | None,
    written: Collection[PageKey],
) -> dict[PageKey, Known | str]:
    """Return the answers that are there without asking, or who is going to have them.

    An enum of one value leaves nothing to decide: its language writes it.
    """
    language, template = find_language(plan.ir.language), TemplateProvider.reference
    types = {type_.name: type_ for type_ in plan.ir.types}
    found: dict[PageKey, Known | str] = {}
    asked = [entry for entry in plan.asked if entry.key not in written]
    for entry in asked:
        type_ = types[entry.type_name]
        if len(type_.enum_values) == 1:
            code = language.write_page(type_, entry.fields, "enum_only", profile=plan.profile)
            found[entry.key] = Known(code, template, template)

    if sharing is not None:
        rest = (entry for entry in asked if entry.key not in found)
        found |= sharing.find(plan.path, rest, partial(_may_answer, plan, settings))
    return found


def _may_answer(
    plan: StorePlan, settings: TurnSettings | None, entry: PromptEntry, page: StoredPage
) -> bool:
    """Return whether who wrote a page is who would be asked with a prompt."""
    if settings is None:
        return True  # A plan does not know who is going to be asked.
    if page.provider != provider_reference(settings.provider):
        return False
    model = model_for(plan.previous, entry, settings.model)
    # An alias of a model stands for its versions.
    return page.model in {model, page.provider} or page.model.startswith(f"{model}-")


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
        sharing: Sharing | None,
        settings: TurnSettings,
        *,
        discard_edits: bool,
    ) -> None:
        super().__init__(plan.path, ignore)
        self.plan = plan
        self.known = dict(known)
        """Answers that are there without asking."""
        self._sharing = sharing
        self._settings = settings
        self._discards = discard_edits
        self._followed: tuple[RegenStore, RegenStore] | None = None
        self.is_stored = False

    def check_ready(self, written: Collection[PageKey]) -> None:
        """Raise what would stop the first page, or what it would be paid for in vain."""
        plan, settings = self.plan, self._settings
        if plan.previous is not None and plan.asked:
            plan.previous.refuse_links()
        # The first write comes after the first answer, which is paid for by then.
        refuse_unwritable(self._without_unwritten, schema_markdown(plan.ir))
        if settings.ready and {entry.key for entry in plan.asked} - {*self.known, *written}:
            settings.ready()

    def open(self) -> StoreView:
        """Return what the folder holds, or is going to hold, without its unwritten pages."""
        if self.is_stored:
            return super().open()
        return self.view_of(self._without_unwritten)

    @cached_property
    def _without_unwritten(self) -> RegenStore:
        plan = self.plan
        return RegenStore.from_plan(
            plan.path,
            ir=plan.ir,
            prompts=plan.prompts,
            pages=plan.carried.values(),
            source=plan.previous.source if plan.previous else "",
            source_file=plan.source_file,
            namespace=plan.namespace,
            profile=plan.profile,
        )

    def _follow(self, store: RegenStore) -> RegenStore:
        """Return a store as it is going to be when it follows its document."""
        if self._followed is None or self._followed[0] is not store:
            self._followed = store, _follow(store, self.plan)
        return self._followed[1]

    def asks(
        self,
        view: StoreView,
        name: str,
        wanted: Mapping[int, Sequence[Feedback]],
        settings: TurnSettings,
    ) -> list[Ask]:
        """Return the requests for pages of a type; models are those of the store before."""
        return [
            ask if wanted[ask.page] else self._as_draft(ask)
            for ask in self._requests(view, name, wanted, settings)
        ]

    def _as_draft(self, ask: Ask) -> Ask:
        """Return an ask without corrections: another store may have the answer, now or soon."""
        assert isinstance(ask.entry, PromptEntry)  # asks of a store hold one
        known = self.known.get(ask.entry.key)
        if isinstance(known, Known):
            return replace(ask, known=known)
        who = ask.provider or self._settings.provider
        is_own = self._sharing is None or isinstance(who, TemplateProvider)
        return (
            ask
            if is_own
            else replace(ask, claim=partial(self._claim, ask.entry, ask.request.model))
        )

    def _claim(
        self, entry: PromptEntry, model: str
    ) -> Known | RefusedError | Literal["wait", "ask"]:
        assert self._sharing is not None  # else nothing is claimed
        may_answer = partial(_may_answer, self.plan, self._settings)
        found = self._sharing.claim(self.path, entry, model, may_answer)
        if isinstance(found, Known):
            self.known[entry.key] = found
        return found

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
                before=self.plan.previous,
            )
            for entry in view.store.prompts_of(name)
            if entry.page in wanted
        ]

    def prepare(self, answers: Sequence[Answer]) -> None:
        """Validate new outputs before others are locked out; drafts of half a store alone."""
        view = self.open()
        if not self.is_stored and self.plan.previous is not None:
            view = self.view_of(self._follow(self.plan.previous))
        after = view.with_answers(answers)
        names = dict.fromkeys(answer.ask.name for answer in answers)
        if after.store.missing_pages and any(view.missing(name) for name in names):
            for name in names:
                validate_pages(after.store, name)
        else:
            _ = after.results

    @contextmanager
    def update(self) -> Iterator[LockedStore]:
        """Lock the store; the first change also makes the folder follow its document.

        From then on a run that was stopped can be resumed.
        """
        if self.is_stored:
            with super().update() as locked:
                yield locked
            return
        if self._discards:
            _drop_edits(self.plan)
        plan, planned = self.plan, self._without_unwritten
        if plan.previous is None:
            # Another process may have made it while the first page was asked: that one serves.
            creating = RegenStore.create_or_update(planned, schema=schema_markdown(plan.ir))
            with creating as transaction:
                yield LockedStore(self, transaction)
        else:
            with RegenStore.update(self.path) as transaction:
                followed = self._follow(transaction.store)
                changes = _changes(plan, transaction.store, followed)
                yield LockedStore(self, transaction, followed, changes)
        self.is_stored = True

    def store_plan(self) -> None:
        """Make the folder follow its document where no answer did."""
        if not self.is_stored:
            with self.update() as locked:
                locked.write(locked.view, (), ())


def _follow(store: RegenStore, plan: StorePlan) -> RegenStore:
    """Return a store as it is going to be when it follows its document, before any answer."""
    stored = {**store.pages, **plan.carry_over(store)}
    planned = store.with_plan(
        ir=plan.ir,
        prompts=plan.prompts,
        pages=[stored[entry.key] for entry in plan.prompts if entry.key in stored],
        source=without_types(store.source, plan.removed) if plan.removed else store.source,
        envelope=_envelope(plan, store),
    )
    # A type may have lost a page without any of its others changing.
    whole = {name for name in plan.changed if name not in {e.type_name for e in plan.asked}}
    return with_pages(planned, [p for p in planned.pages.values() if p.type_name in whole])


def _changes(plan: StorePlan, store: RegenStore, followed: RegenStore) -> dict[str, Any]:
    """Return what is written so that a store that is there follows its document."""
    return {
        "ir": plan.ir,
        "prompts": plan.prompts,
        "schema": schema_markdown(plan.ir),
        "pages": tuple(plan.carry_over(store).values()),
        "source": None if followed.source == store.source else followed.source,
        "envelope": _envelope(plan, store),
    }


def _envelope(plan: StorePlan, store: RegenStore) -> PagesEnvelope:
    return replace(
        store.envelope,
        source_file=plan.source_file,
        namespace=plan.namespace,
        profile=plan.profile,
    )


def _result(
    plan: StorePlan,
    known: Mapping[PageKey, Known | str],
    written: tuple[PageKey, ...] = (),
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
        written=written,
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
        results=tuple(results),
    )


def _sizes(plan: StorePlan, known: Collection[PageKey]) -> tuple[AskSize, ...]:
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
        _result(plan, known, results=results),
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
        _result(place.plan, place.known, results=results),
        validation=validate_store(store, ignore=place.ignore),
        diff=source_diff(before, store.source, store.source_path.name),
    )


def _note(plan: StorePlan) -> str:
    """Return what the user should know beside what was asked."""
    names = ", ".join(plan.joined)
    notes = [f"our version of {names} was taken; history/ keeps theirs"] if names else []
    notes += filter(None, [format_note(plan.previous) if plan.previous else ""])
    return "; ".join(notes)
