"""An API description becomes a store, or an existing store follows its document."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

from pytest_regen.documents import Document, Part, read_document
from pytest_regen.documents.changes import Change, compare_types
from pytest_regen.errors import RefusedError, RegenError
from pytest_regen.languages import DEFAULT_LANGUAGE, find_language
from pytest_regen.prompts.values import PageKey, PromptEntry
from pytest_regen.regeneration import verbs
from pytest_regen.regeneration.costs import AskSize, page_size
from pytest_regen.regeneration.flow import Job, source_diff, work_steps
from pytest_regen.regeneration.planning import StorePlan, plan_store, schema_markdown
from pytest_regen.regeneration.policies import Generate
from pytest_regen.regeneration.queue import Flow, drive_flow, drive_flows
from pytest_regen.regeneration.sharing import Sharing
from pytest_regen.regeneration.store_pages import (
    keeps_template,
    model_for,
    with_pages,
    without_types,
)
from pytest_regen.regeneration.store_place import LockedStore, StorePlace
from pytest_regen.regeneration.store_view import StoreView, edit_error, is_edited
from pytest_regen.regeneration.values import (
    Answer,
    Ask,
    HealResult,
    Known,
    StopReason,
    TurnSettings,
)
from pytest_regen.stores import RegenStore, StoredPage, refuse_unwritable
from pytest_regen.stores.formats import PagesEnvelope
from pytest_regen.turns import AnthropicProvider
from pytest_regen.turns.providers import TemplateProvider
from pytest_regen.turns.values import Provider, provider_reference
from pytest_regen.validation import validate_store
from pytest_regen.validation.issues import Feedback, Ignore, ValidationResult
from pytest_regen.validation.stores import format_note, validate_pages

KnownPages = Mapping[PageKey, Known | str]
"""Answers that are there without asking; in a plan, the folder of the store that would have one."""


@dataclass(frozen=True, kw_only=True)
class GenerateResult(verbs.Result):
    """What ``generate_store`` did, or would do in a dry run."""

    plan: StorePlan
    known: KnownPages = field(default_factory=dict)
    written: tuple[PageKey, ...] = ()
    """Those of ``asked`` that the template writes, so that no model is asked."""
    sizes: tuple[AskSize, ...] = ()
    """In a dry run about how large each request to a model is."""
    validation: Mapping[str, ValidationResult] = field(default_factory=dict)
    is_stored: bool = True
    """Whether the folder follows the document now; not in a dry run, or without any answer."""

    @property
    def asked(self) -> tuple[PageKey, ...]:
        """Pages asked, or to be asked in a dry run."""
        return tuple(entry.key for entry in self.plan.asked if entry.key not in self.known)

    @property
    def shared(self) -> Mapping[PageKey, str]:
        """Pages that another store has the answer to, and its folder; not in ``asked``."""
        folders = {
            key: answer if isinstance(answer, str) else answer.shared_from
            for key, answer in self.known.items()
        }
        return {key: folder for key, folder in folders.items() if folder is not None}

    @property
    def added(self) -> tuple[str, ...]:
        """Types that are new."""
        return self.plan.added if self._follows else ()

    @property
    def changed(self) -> tuple[str, ...]:
        """Types that the document says otherwise."""
        return self.plan.changed if self._follows else ()

    @property
    def removed(self) -> tuple[str, ...]:
        """Types that the document no longer has."""
        return self.plan.removed if self._follows else ()

    @property
    def kept(self) -> tuple[str, ...]:
        """Types that stay as they are."""
        previous = self.plan.previous
        return self.plan.kept if self._follows else previous.type_names if previous else ()

    @property
    def _follows(self) -> bool:
        """Whether the folder follows the document, or would."""
        return self.is_stored or self.view is None

    @property
    def changes(self) -> tuple[Change, ...]:
        """What the document says otherwise than the store that was there."""
        previous = self.plan.previous
        return compare_types(previous.ir, self.plan.ir) if previous else ()

    @property
    def note(self) -> str:
        """What is to be known of the store that was there."""
        plan = self.plan
        names = ", ".join(plan.joined)
        ours = f"our version of {names} was taken; history/ keeps theirs" if names else ""
        older = format_note(plan.previous) if plan.previous else ""
        return "; ".join(filter(None, [ours, older]))

    @property
    def stop_reasons(self) -> Mapping[str, StopReason]:
        """The types whose drafts had to be corrected, or got no answer, and how that ended."""
        return {
            result.name: result.stop_reason
            for result in self.results
            if result.stop_reason and (result.stop_reason != "clean" or result.attempts > 1)
        }


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
    options = {
        "language": language,
        "default_language": default_language,
        "status": status,
        "fields_per_page": fields_per_page,
        "namespace": namespace,
        "profile": profile,
        "force": force,
        "allow_defects": allow_defects,
    }
    generating = _Generating(
        out,
        None if dry_run and settings is None else _settings(provider, settings),
        sharing,
        lambda _: ignore,
        options,
        attempts=attempts,
        discard_edits=discard_edits,
        dry_run=dry_run,
    )
    return drive_flow(generating.steps(document, part), _settings(provider, settings))


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
    **options: Any,
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
    is_dry = options.pop("dry_run", False)
    if sharing is None:
        sharing = Sharing(out, reads_stored=not options.get("force", False))
    asking = _settings(provider, settings)
    generating = _Generating(
        out,
        settings if is_dry else asking,
        sharing,
        ignore,
        options,
        attempts=options.pop("attempts", 2),
        discard_edits=options.pop("discard_edits", False),
        dry_run=is_dry,
    )

    def flows() -> Iterator[tuple[str, Flow[GenerateResult]]]:
        for number, part in enumerate(parts, 1):
            begins(number, part)
            yield str(part), generating.steps(document, part)

    yield from drive_flows(flows(), asking, total=len(parts))


def _settings(provider: Provider | None, settings: TurnSettings | None) -> TurnSettings:
    return settings or TurnSettings(
        provider or AnthropicProvider(), keeps_template=provider is None
    )


@dataclass(frozen=True)
class _Generating:
    """Stores that are made of documents, with all that they have in common."""

    out: Path | str
    settings: TurnSettings | None
    """``None`` in a dry run that does not know who is going to be asked."""
    sharing: Sharing | None
    ignore: Callable[[Path], Ignore]
    plan_options: Mapping[str, Any]
    _: KW_ONLY
    attempts: int
    discard_edits: bool
    dry_run: bool

    def steps(self, document: Document | Path | str, part: Part | str) -> Flow[GenerateResult]:
        """Generate one store, as ``generate_store`` says."""
        sharing = self.sharing
        plan = plan_store(
            document,
            part,
            self.out,
            resolve=not self.dry_run,
            is_shared=sharing is not None and sharing.is_for_many,
            **self.plan_options,
        )
        settings = self.settings
        written = self._written(plan)
        ready = self._known(plan, written)
        if self.dry_run or settings is None:
            place = _PlannedStore(plan, self, ready)
            if sharing is not None:
                sharing.plan(plan.path, (e for e in plan.asked if e.key not in ready))
            sizes = tuple(
                page_size(entry, model_for(plan.previous, entry, None), plan.ir, plan.profile)
                for entry in plan.asked
                if entry.key not in ready and entry.key not in written
            )
            return GenerateResult(
                place, None, plan=plan, known=ready, written=written, sizes=sizes, is_stored=False
            )
        # Before anything is asked, because an answer that could not be stored is paid for.
        if not self.discard_edits:
            _refuse_edits(plan)
        place = _PlannedStore(plan, self, ready)
        place.check_ready(written)
        if not plan.asked:
            place.store_plan()
        names = dict.fromkeys(entry.type_name for entry in plan.asked)
        try:
            job = Job(Generate(), names, self.attempts)
            work = yield from work_steps(place, job, settings)
            results = tuple(work.results)
            if any(result.stop_reason == "refused" for result in results):
                place.store_plan()  # Whoever is refused wants to read the prompt.
            self._note_refused(plan, work.view, results)
        finally:
            if sharing is not None:
                # Also where the store could not be finished: what it was answered is paid for.
                if place.is_stored:
                    sharing.add(plan.path, (entry.key for entry in plan.asked))
                sharing.release(plan.path)
        view = place.open()
        if not place.is_stored:
            return GenerateResult(
                place, view, results, plan=plan, known=place.known, is_stored=False
            )
        before = plan.previous.source if plan.previous else ""
        return GenerateResult(
            place,
            view,
            results,
            source_diff(before, view.text, place.file_name),
            plan=plan,
            known=place.known,
            written=written,
            validation=validate_store(view.store, ignore=place.ignore),
        )

    def _note_refused(
        self, plan: StorePlan, view: StoreView, results: Iterable[HealResult]
    ) -> None:
        """Tell other stores which prompts they need not ask."""
        sharing, settings = self.sharing, self.settings
        if sharing is None or settings is None:
            return
        for result in results:
            entries = [entry for entry in plan.asked if entry.type_name == result.name]
            # Of several pages nobody knows here which one was refused; of a page that is there, it
            # was a correction.
            is_one = len(entries) == 1 and bool(view.missing(result.name))
            if isinstance(result.failure, RefusedError) and is_one:
                model = model_for(plan.previous, entries[0], settings.model)
                sharing.refuse(entries[0], model, result.failure)

    def _written(self, plan: StorePlan) -> tuple[PageKey, ...]:
        """Return the pages that the template writes: all, or those of the types that it wrote."""
        settings = self.settings
        if settings is None:
            return ()
        is_all = isinstance(settings.provider, TemplateProvider)
        return tuple(
            entry.key
            for entry in plan.asked
            if is_all or keeps_template(plan.previous, entry, settings)
        )

    def _known(self, plan: StorePlan, written: Collection[PageKey]) -> dict[PageKey, Known | str]:
        """Return the answers that are there without asking, or who is going to have them.

        An enum of one value leaves nothing to decide: its language writes it.
        """
        language, template = find_language(plan.ir.language), TemplateProvider.reference
        types = {type_.name: type_ for type_ in plan.ir.types}
        ready: dict[PageKey, Known | str] = {}
        unknown: list[PromptEntry] = []
        for entry in plan.asked:
            type_ = types[entry.type_name]
            if entry.key in written:
                continue
            # Not asked, because a model could only get it wrong.
            if len(type_.enum_values) == 1:
                code = language.write_page(type_, entry.fields, "enum_only", profile=plan.profile)
                ready[entry.key] = Known(code, template, template)
            else:
                unknown.append(entry)
        if self.sharing is not None:
            ready |= self.sharing.find(plan.path, unknown, partial(self.may_answer, plan))
        return ready

    def may_answer(self, plan: StorePlan, entry: PromptEntry, page: StoredPage) -> bool:
        """Return whether who wrote a page is who would be asked with a prompt."""
        settings = self.settings
        if settings is None or self.dry_run:
            return True  # A plan does not know who is going to be asked.
        if page.provider != provider_reference(settings.provider):
            return False
        model = model_for(plan.previous, entry, settings.model)
        # An alias of a model stands for its versions.
        return page.model in {model, page.provider} or page.model.startswith(f"{model}-")


def _refuse_edits(plan: StorePlan) -> None:
    """Refuse to rebuild blocks that somebody edited, before anything is written or asked."""
    previous, touched = plan.previous, {*plan.changed, *plan.removed}
    results = {} if previous is None else validate_store(previous, behaviour=False)
    for name, result in results.items():
        if previous is not None and name in touched and is_edited(result):
            why = "the document changed this type, and updating it would discard the edit"
            raise edit_error(previous, name, why)


class _PlannedStore(StorePlace):
    """A store as its document wants it; the plan is stored with the first answer.

    Until then nothing is written, so that a store that is there stays as it is if no request is
    answered.
    """

    def __init__(self, plan: StorePlan, generating: _Generating, ready: KnownPages) -> None:
        super().__init__(plan.path, generating.ignore(plan.path))
        self.plan = plan
        self.known = dict(ready)
        """Answers that are there without asking."""
        self._generating = generating
        self._followed: tuple[RegenStore, RegenStore] | None = None
        self.is_stored = False

    def check_ready(self, written: Collection[PageKey]) -> None:
        """Raise what would stop the first page, or what it would be paid for in vain."""
        plan, settings = self.plan, self._generating.settings
        if plan.previous is not None and plan.asked:
            plan.previous.refuse_links()
        # The first write comes after the first answer, which is paid for by then.
        refuse_unwritable(self._without_unwritten, schema_markdown(plan.ir))
        unanswered = {entry.key for entry in plan.asked} - {*self.known, *written}
        if settings and settings.ready and unanswered:
            settings.ready()

    def open(self) -> StoreView:
        """Return what the folder holds, or is going to hold, without its unwritten pages."""
        return super().open() if self.is_stored else self.view_of(self._without_unwritten)

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
        """Return a store as it is going to be when it follows its document, before any answer."""
        # Worked out once per store, because each group of answers is put on top of it.
        if self._followed is not None and self._followed[0] is store:
            return self._followed[1]
        plan = self.plan
        stored = {**store.pages, **plan.carry_over(store)}
        planned = store.with_plan(
            ir=plan.ir,
            prompts=plan.prompts,
            pages=[stored[entry.key] for entry in plan.prompts if entry.key in stored],
            source=without_types(store.source, plan.removed) if plan.removed else store.source,
            envelope=self._envelope(store),
        )
        # A type may have lost a page without any of its others changing.
        whole = {name for name in plan.changed if name not in {e.type_name for e in plan.asked}}
        followed = with_pages(planned, [p for p in planned.pages.values() if p.type_name in whole])
        self._followed = store, followed
        return followed

    def _envelope(self, store: RegenStore) -> PagesEnvelope:
        plan = self.plan
        return replace(
            store.envelope,
            source_file=plan.source_file,
            namespace=plan.namespace,
            profile=plan.profile,
        )

    def written(self, view: StoreView) -> RegenStore | None:
        """Return what the folder holds, which says who wrote each page."""
        return view.store if self.is_stored else self.plan.previous

    def asks(
        self,
        view: StoreView,
        name: str,
        findings: Mapping[int, Sequence[Feedback]],
        settings: TurnSettings,
    ) -> list[Ask]:
        """Return the requests for pages of a type; models are those of the store before."""
        asks = super().asks(view, name, findings, settings)
        return [ask if findings[ask.page] else self._as_draft(ask, settings) for ask in asks]

    def _as_draft(self, ask: Ask, settings: TurnSettings) -> Ask:
        """Return an ask without corrections: another store may have the answer, now or soon."""
        assert isinstance(ask.entry, PromptEntry)  # asks of a store hold one
        ready = self.known.get(ask.entry.key)
        if isinstance(ready, Known):
            return replace(ask, known=ready)
        is_template = isinstance(ask.provider or settings.provider, TemplateProvider)
        if self._generating.sharing is None or is_template:
            return ask
        return replace(ask, claim=partial(self._claim, ask.entry, ask.request.model))

    def _claim(
        self, entry: PromptEntry, model: str
    ) -> Known | RefusedError | Literal["wait", "ask"]:
        generating = self._generating
        assert generating.sharing is not None  # else nothing is claimed
        may_answer = partial(generating.may_answer, self.plan)
        answer = generating.sharing.claim(self.path, entry, model, may_answer)
        if isinstance(answer, Known):
            # Noted, because the result tells which pages are shared.
            self.known[entry.key] = answer
        return answer

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
        plan, planned = self.plan, self._without_unwritten
        if plan.previous is None:
            # Another process may have made it while the first page was asked: that one serves.
            creating = RegenStore.create_or_update(planned, schema=schema_markdown(plan.ir))
            with creating as transaction:
                yield LockedStore(self, transaction)
        else:
            # First and by itself, because the history is to have the edit as it stood.
            if self._generating.discard_edits:
                touched = {*plan.changed, *plan.removed}
                names = [name for name in plan.previous.type_names if name in touched]
                with StorePlace(plan.path).update() as locked:
                    locked.rebuild(names, keep_lost=True)
            with RegenStore.update(self.path) as transaction:
                store = transaction.store
                followed = self._follow(store)
                changes = {
                    "ir": plan.ir,
                    "prompts": plan.prompts,
                    "schema": schema_markdown(plan.ir),
                    "pages": tuple(plan.carry_over(store).values()),
                    "source": None if followed.source == store.source else followed.source,
                    "envelope": self._envelope(store),
                }
                yield LockedStore(self, transaction, followed, changes)
        self.is_stored = True

    def store_plan(self) -> None:
        """Make the folder follow its document where no answer did."""
        if not self.is_stored:
            with self.update() as locked:
                locked.write(locked.view, (), ())
