"""An API description becomes a store, or an existing store follows its document."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pytest_regen.documents import Document, Part, read_document
from pytest_regen.documents.changes import Change, compare_types
from pytest_regen.errors import RegenError
from pytest_regen.prompts.values import PageKey, PromptEntry
from pytest_regen.regeneration import store_view, verbs
from pytest_regen.regeneration.costs import AskSize, asks_for
from pytest_regen.regeneration.flow import Job, work_steps
from pytest_regen.regeneration.planning import StoreOptions, StorePlan, plan_store, schema_markdown
from pytest_regen.regeneration.policies import Policy
from pytest_regen.regeneration.queue import Flow, drive_flows, only_result
from pytest_regen.regeneration.sharing import Recipient, Sharing
from pytest_regen.regeneration.store_edits import LockedStore
from pytest_regen.regeneration.store_place import StorePlace
from pytest_regen.regeneration.store_view import StoreView, edit_error
from pytest_regen.regeneration.values import Ask, Known, StopReason, TurnSettings
from pytest_regen.stores import RegenStore
from pytest_regen.stores.store import refuse_unwritable
from pytest_regen.text import source_diff
from pytest_regen.turns import AnthropicProvider
from pytest_regen.turns.providers import TemplateProvider
from pytest_regen.turns.values import Provider, provider_reference
from pytest_regen.validation.edits import edited_types
from pytest_regen.validation.issues import Feedback, Ignore, ValidationResult
from pytest_regen.validation.stores import format_note


@dataclass(frozen=True, kw_only=True)
class GenerateResult(verbs.Result):
    """What ``generate_store`` did, or would do in a dry run."""

    plan: StorePlan
    shared: Mapping[PageKey, str] = field(default_factory=dict)
    """Pages that another store has the answer to, and its folder; not in ``asked``."""
    asked: tuple[PageKey, ...] = ()
    """Pages asked, or to be asked in a dry run."""
    written: tuple[PageKey, ...] = ()
    """Those of ``asked`` that the template writes, so that no model is asked."""
    sizes: tuple[AskSize, ...] = ()
    """In a dry run about how large each request to a model is."""
    validation: Mapping[str, ValidationResult] = field(default_factory=dict)
    is_stored: bool = True
    """Whether the folder follows the document now; not in a dry run, or without any answer."""

    @property
    def types(self) -> Mapping[str, tuple[str, ...]]:
        """Names of types by what became of them: ``added``, ``changed``, ``removed``, ``kept``."""
        if self.is_stored or self.view is None:
            return self.plan.types
        stays = self.plan.previous.type_names if self.plan.previous else ()
        return {**dict.fromkeys(self.plan.types, ()), "kept": stays}

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
    ignore: Ignore = (),
    sharing: Sharing | None = None,
    **options: Any,
) -> GenerateResult:
    """Generate the types of a part of a document into a folder below ``out``.

    A folder that holds a store already is updated: pages whose fields are unchanged are kept, the
    others asked, vanished types go to the history. A run that was stopped is resumed the same way.

    Args:
        document: an API description, or the path of one.
        part: an operation, whose response is read, or its method and path: ``GET /v1/projects``;
            ``Request`` of an operation; ``Components``, the schemas with names.
        out: the folder in which each store has a folder of its own.
        ignore: codes that do not count, as ``validate_store`` takes them.
        sharing: the stores that this one shares answers with; by default none.
        **options: those of ``generate_stores``.

    Raises:
        DocumentError, UsageError, StoreError: the work cannot start; nothing was written.
    """
    sharing = sharing or Sharing(out, is_for_many=False, reads_stored=False)
    options |= {"ignore": lambda _: ignore, "sharing": sharing}
    return only_result(generate_stores(document, [part], out, **options))


def generate_stores(
    document: Document | Path | str,
    parts: Iterable[Part | str],
    out: Path | str,
    *,
    provider: Provider | None = None,
    settings: TurnSettings | None = None,
    attempts: int = 2,
    discard_edits: bool = False,
    dry_run: bool = False,
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
        attempts: replies per page at most, the draft included.
        discard_edits: rebuild types that were edited by hand and have changed in the document.
        dry_run: plan only; nothing is asked or written.
        ignore: returns the codes that do not count, given the folder of a store.
        sharing: the stores that these share answers with; by default those below ``out``.
        begins: called with the number of a part, from 1, and the part, when it begins.
        **options: the fields of ``StoreOptions``, for all parts.

    Yields:
        The name of a part and what came of it, as stores are finished. A ``RegenError`` is what
        ``generate_store`` would have raised; the others go on. After a failure that would meet
        every request no store is begun, and those that got no answer are left out.

    Raises:
        DocumentError: the document cannot be read.
    """
    document = document if isinstance(document, Document) else read_document(Path(document))
    parts = list(parts)
    settings = settings or TurnSettings(
        provider or AnthropicProvider(), keeps_template=provider is None
    )
    sharing = sharing or Sharing(out, reads_stored=not options.get("force", False))
    store_options = StoreOptions(**options)
    run = _Run(settings, sharing, ignore, attempts, discard_edits, dry_run)

    def steps(part: Part | str) -> Flow[GenerateResult]:
        # Planned in its turn, because the plans of many stores take much memory.
        is_shared = sharing.is_for_many
        plan = plan_store(
            document, part, out, store_options, resolve=not dry_run, is_shared=is_shared
        )
        place = _PlannedStore(plan, run)
        return place.result(is_stored=False) if dry_run else (yield from place.steps())

    def flows() -> Iterator[tuple[str, Flow[GenerateResult]]]:
        for number, part in enumerate(parts, 1):
            begins(number, part)
            yield str(part), steps(part)

    yield from drive_flows(flows(), settings, total=len(parts))


class _Run(NamedTuple):
    """What stores have in common that are generated together."""

    settings: TurnSettings
    sharing: Sharing
    ignore: Callable[[Path], Ignore]
    attempts: int
    discard_edits: bool
    dry_run: bool


class _PlannedStore(StorePlace):
    """A store as its document wants it; the plan is stored with the first answer.

    Until then nothing is written, so that a store that is there stays as it is if no request is
    answered.
    """

    def __init__(self, plan: StorePlan, run: _Run) -> None:
        super().__init__(plan.path, run.ignore(plan.path))
        self._plan = plan
        self._run = run
        self._is_stored = False
        self._known: dict[PageKey, Known] = {}
        """Answers that are there without asking."""
        self._shared: dict[PageKey, str] = {}
        """Pages that another store answers, and its folder; some of ``_known``."""
        self._written = tuple(
            entry.key
            for entry in plan.asked
            if store_view.keeps_template(plan.previous, entry, run.settings)
        )
        for entry in plan.asked:
            if entry.key not in self._written:
                self._look_up(entry)

    def _look_up(self, entry: PromptEntry) -> None:
        """Note the answer that is there without asking, or who is going to have it."""
        sharing, path, template = self._run.sharing, self.path, TemplateProvider.reference
        type_ = self._plan.ir.type_named(entry.type_name)
        if type_ is not None and len(type_.enum_values) == 1:
            # Its language writes it, because a model could only get it wrong.
            code = store_view.write_page(self._plan.unwritten, entry)
            self._known[entry.key] = Known(code, template, template)
        elif not self._run.dry_run:
            self._note(entry, sharing.find(path, entry, self._recipient(entry)) or path.name)
        else:
            # A plan does not know who is going to be asked.
            self._note(entry, sharing.claim(path, entry, None))

    def _note(self, entry: PromptEntry, answer: Known | str) -> None:
        if isinstance(answer, Known):
            self._known[entry.key] = answer
            answer = answer.shared_from or self.path.name
        if answer != self.path.name:
            self._shared[entry.key] = answer

    def _recipient(self, entry: PromptEntry) -> Recipient:
        settings = self._run.settings
        model = store_view.model_for(self._plan.previous, entry, settings)
        return provider_reference(settings.provider), model

    def result(self, view: StoreView | None = None, **facts: Any) -> GenerateResult:
        """Return what came of the store, or would."""
        plan = self._plan
        asked = [e for e in plan.asked if e.key not in self._known and e.key not in self._shared]
        sizes: tuple[AskSize, ...] = ()
        if view is None:
            pages = [(e.type_name, e.page) for e in asked if e.key not in self._written]
            planned = self.view_of(plan.unwritten)
            sizes = tuple(map(AskSize.of, asks_for(self, planned, pages, self._run.settings)))
        return GenerateResult(
            self,
            view,
            plan=plan,
            shared=self._shared,
            asked=tuple(entry.key for entry in asked),
            written=self._written,
            sizes=sizes,
            **facts,
        )

    def steps(self) -> Flow[GenerateResult]:
        """Ask for the pages without an output that answers."""
        plan, run = self._plan, self._run
        # Before anything is asked, because an answer that could not be stored is paid for.
        previous = plan.previous
        if previous is not None and not run.discard_edits:
            edited = edited_types(previous)
            for name in (*plan.types["changed"], *plan.types["removed"]):
                if name in edited:
                    why = "the document changed this type, and updating it would discard the edit"
                    raise edit_error(previous, name, why)
        refuse_unwritable(plan.unwritten, schema_markdown(plan.ir))
        unanswered = {entry.key for entry in plan.asked} - {*self._known, *self._written}
        if run.settings.ready and unanswered:
            run.settings.ready()
        # Because no answer is going to make the folder follow its document.
        if not plan.asked:
            self._store_plan()
        try:
            names = dict.fromkeys(entry.type_name for entry in plan.asked)
            work = yield from work_steps(
                self, Job(Policy(is_draft=True), names, run.attempts), run.settings
            )
            results = tuple(work.results)
            if any(result.stop_reason == "refused" for result in results):
                self._store_plan()  # Whoever is refused wants to read the prompt.
        finally:
            # Also where the store could not be finished: what it was answered is paid for.
            if self._is_stored:
                run.sharing.add(self.path, (entry.key for entry in plan.asked))
            run.sharing.release(self.path)
        view = self.open()
        if not self._is_stored:
            return self.result(view, results=results, is_stored=False)
        before = previous.source if previous else ""
        diff = source_diff(before, view.text, self.file_name)
        return self.result(view, results=results, diff=diff, validation=view.results)

    def open(self) -> StoreView:
        """Return what the folder holds, or is going to hold, without its unwritten pages."""
        return super().open() if self._is_stored else self.view_of(self._plan.unwritten)

    def written(self, view: StoreView) -> RegenStore | None:
        """Return what the folder holds, which says who wrote each page."""
        return view.store if self._is_stored else self._plan.previous

    def asks(
        self,
        view: StoreView,
        name: str,
        findings: Mapping[int, Sequence[Feedback]],
        settings: TurnSettings,
    ) -> list[Ask]:
        """Return the requests for pages of a type; models are those of the store before."""
        run, asks = self._run, super().asks(view, name, findings, settings)
        for number, ask in enumerate(asks):
            # A correction is about an output of this store, so that no other has the answer.
            if findings[ask.page]:
                continue
            # A draft: another store may have the answer, now or soon.
            if ask.entry.key in self._known:
                asks[number] = replace(ask, known=self._known[ask.entry.key])
            elif run.sharing.is_for_many and ask.entry.key not in self._written:
                asks[number] = replace(ask, claim=partial(self._claim, ask.entry))
        return asks

    def _claim(self, entry: PromptEntry) -> Known | Literal["wait", "ask"]:
        answer = self._run.sharing.claim(self.path, entry, self._recipient(entry))
        if isinstance(answer, Known):
            self._note(entry, answer)
            return answer
        return "ask" if answer == self.path.name else "wait"

    @contextmanager
    def update(self) -> Iterator[LockedStore]:
        """Lock the store; before the first change, make the folder follow its document.

        From then on a run that was stopped can be resumed.
        """
        if self._follow():
            with super().update() as locked:
                yield locked
        else:
            # Another process may have made it while the first page was asked: that one serves.
            schema = schema_markdown(self._plan.ir)
            creating = RegenStore.create_or_update(self._plan.unwritten, schema=schema)
            with creating as transaction:
                yield LockedStore(self, transaction)
            self._is_stored = True

    def _follow(self) -> bool:
        """Make a store that was there before follow its document, before any answer is in it.

        Returns:
            Whether there is a store now.
        """
        plan, types, previous = self._plan, self._plan.types, self._plan.previous
        if self._is_stored or previous is None:
            return self._is_stored
        # First and by itself, because the history is to have the edit as it stood.
        if self._run.discard_edits:
            touched = {*types["changed"], *types["removed"]}
            names = [name for name in previous.type_names if name in touched]
            with StorePlace(plan.path).update() as locked:
                locked.rebuild(names)
        with RegenStore.update(self.path) as transaction:
            store, carried = transaction.store, plan.carry_over(transaction.store)
            source = store_view.without_types(store.source, types["removed"])
            # A type may have lost a page without any of its others changing.
            whole = {*types["changed"]} - {entry.type_name for entry in plan.asked}
            changed = [page for page in carried.values() if page.type_name in whole]
            source = store_view.with_pages(replace(plan.unwritten, source=source), changed).source
            transaction.write(
                planned=plan.unwritten,
                schema=schema_markdown(plan.ir),
                pages=tuple(carried.values()),
                source=None if source == store.source else source,
            )
        self._is_stored = True
        return True

    def _store_plan(self) -> None:
        """Make the folder follow its document where no answer did."""
        if not self._follow():
            with self.update() as locked:
                locked.write(locked.view, (), {})
