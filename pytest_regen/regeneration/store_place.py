"""A store as a place of the main flow: its pieces are types, its files those of the store."""

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

from pytest_regen.canonical import canonical_hash
from pytest_regen.errors import EditedPromptError, HandEditError, SourceError, StaleStoreError
from pytest_regen.languages import find_language, find_weaknesses
from pytest_regen.languages.base import Language
from pytest_regen.modes import BEHAVIOUR_CODES, TEMPLATE
from pytest_regen.prompts import correction_block, estimated_output_tokens, with_correction
from pytest_regen.prompts.values import PromptEntry, output_mode
from pytest_regen.regeneration.asking import FIRST_LIMIT
from pytest_regen.regeneration.places import Trial
from pytest_regen.regeneration.policies import fixable, signature, without_marks
from pytest_regen.regeneration.values import Answer, Ask, Mark, Rejected, Score, TurnSettings
from pytest_regen.sources import (
    extract_code,
    extract_type_block,
    insert_type_block,
    remove_type_block,
    replace_type_block,
)
from pytest_regen.store_folders import PAGES_FILE, PROMPTS_FILE
from pytest_regen.stores import HistoryEntry, RegenStore, StoredPage, StoreUpdate
from pytest_regen.stores.history import store_files
from pytest_regen.turns.providers import TemplateProvider
from pytest_regen.turns.reply_text import join_text
from pytest_regen.turns.values import DEFAULT_MODEL, Message, TurnRequest
from pytest_regen.validation.edits import broken_file
from pytest_regen.validation.issues import (
    WEAKENED,
    Excerpt,
    Feedback,
    Ignore,
    Issue,
    ValidationResult,
    without_ignored,
)
from pytest_regen.validation.pieces import split
from pytest_regen.validation.stores import (
    behaviour_of_store,
    is_by_template,
    update_command,
    validate_store,
    wants_behaviour,
)

_HIDING_CODES: Final = frozenset(
    {"ARTIFACT", "EMPTY_OUTPUT", "INVALID_IDENTIFIER", "MISSING_CLASS", "SYNTAX", "TRUNCATED"}
)
"""Codes after which a page was read in part or not at all."""

Results = Mapping[str, ValidationResult]


_ORDERED: Final = "ordered"
"""Under this name a snapshot keeps what was found."""


@dataclass(frozen=True, slots=True)
class _Ordered:
    """The errors that prompts ask for, found for one state of a store."""

    key: object
    marks: Mapping[str, frozenset[Mark]]
    """By type."""


class StoreView:
    """A store at one moment, with the issues of each type."""

    def __init__(
        self, store: RegenStore, ignore: Ignore = (), *, discard_edits: bool = False
    ) -> None:
        self.store = store
        self._ignore = ignore
        self._discard_edits = discard_edits
        self._base: StoreView | None = None
        """What a candidate was made from."""
        self._answered: tuple[str, ...] = ()
        """The types that it has new outputs of."""
        self._candidates: dict[tuple[int, ...], tuple[Sequence[Answer], StoreView]] = {}

    @cached_property
    def results(self) -> dict[str, ValidationResult]:
        """The issues of each type that count."""
        results = results_that_count(self.store, self._ignore)
        if self._base is not None:
            known = self._base.results
            weakened = {
                name: ValidationResult.of(
                    (*results[name].issues, *_weakened(self._base.store, self.store, name, known))
                )
                for name in self._answered
                if name in results
            }
            results |= without_ignored(weakened, self._ignore)
        return results

    @cached_property
    def _scores(self) -> dict[str, Score]:
        return {
            name: _score(self.store, name, result, is_unasked=name in self._unasked)
            for name, result in self.results.items()
            if result.issues or name in self._unasked
        }

    @cached_property
    def _unasked(self) -> frozenset[str]:
        """The types that could not be run because of some code."""
        if not wants_behaviour(self.store, self._ignore):
            return frozenset()
        return behaviour_of_store(self.store).unasked

    @property
    def names(self) -> tuple[str, ...]:
        """The types with issues; all others have the same score."""
        return tuple(self._scores)

    @property
    def text(self) -> str:
        """The source."""
        return self.store.source

    def issues(self, name: str) -> tuple[Issue, ...]:
        """Return what is wrong with a type."""
        result = self.results.get(name)
        return result.issues if result else ()

    def score(self, name: str) -> Score:
        """Return the errors of a type, and its pages that cannot be read."""
        return self._scores.get(name, Score())

    def missing(self, name: str) -> tuple[int, ...]:
        """Return the pages of a type without an output."""
        stored = {page.page for page in self.store.pages_of(name)}
        return tuple(e.page for e in self.store.prompts_of(name) if e.page not in stored)

    def page_count(self, name: str) -> int:
        """Return how many prompts a type has."""
        return len(self.store.prompts_of(name))

    def ordered(self, name: str) -> frozenset[Mark]:
        """Return the marks of errors that the code which the prompts ask for has as well.

        That code is what the language itself writes of a type. It is put in the place of all types
        that have errors, at once, so that a store is validated once more and not for each of them.
        """
        known: _Ordered | None = self.store.memo.get(_ORDERED)
        if known is None or known.key != self._ordered_key:
            known = _Ordered(self._ordered_key, self._find_ordered())
            self.store.memo[_ORDERED] = known
        return known.marks.get(name, frozenset())

    def correctable(self, name: str) -> tuple[Issue, ...]:
        """Return the errors of a type that another reply could correct."""
        found = fixable(self.results.get(name))
        return without_marks(found, self.ordered(name)) if found else ()

    @property
    def _ordered_key(self) -> object:
        return self.store.source, self.store.prompts, self.store.ir_data

    def _find_ordered(self) -> dict[str, frozenset[Mark]]:
        failing = [
            name
            for name, result in self.results.items()
            if fixable(result) and self.store.prompts_of(name)
        ]
        try:
            pages = [
                StoredPage.of(
                    entry, write_page(self.store, entry), model=TEMPLATE, type_hash=entry.type_hash
                )
                for name in failing
                for entry in self.store.prompts_of(name)
            ]
            results = results_that_count(with_pages(self.store, pages), self._ignore)
        except Exception:  # noqa: BLE001 - a language that cannot say what it orders orders nothing
            return {}
        return {name: signature(fixable(results.get(name))) for name in failing}

    def obstacle(self, name: str) -> str:
        """Return why a type must not be asked for; empty if it may."""
        found = find_obstacle(self.store, self.results, [name], discard_edits=self._discard_edits)
        if found is None:
            return ""
        if is_edited(self.results.get(name)):
            return "it was edited by hand: adopt the edit, or drop it with rebuild"
        return f"{found.what}; {found.hint}"

    def users(self, name: str) -> Collection[str]:
        """Return nothing: of a type that is wrong no other type fails."""
        del name
        return ()

    def output(self, name: str, page: int) -> str | None:
        """Return the stored output of a page."""
        found = (each.output for each in self.store.pages_of(name) if each.page == page)
        return next(found, None)

    def is_placed(self, name: str) -> bool:  # a type has a place from the beginning
        """Return True: what cannot be read in an output is an issue of its type."""
        return True

    def basis(self, name: str) -> str:
        """Return a digest of a type's block, its pages, its prompts, and whether it is stale."""
        store = self.store
        try:
            block = extract_type_block(store.source, name)
        except SourceError:
            block = None
        asked = [[entry.page, entry.prompt_hash] for entry in store.prompts_of(name)]
        pages = [[page.page, page.output] for page in store.pages_of(name)]
        return canonical_hash([block, asked, pages, store.is_stale(name)])

    def with_answers(self, answers: Sequence[Answer]) -> "StoreView":
        """Return the view with new outputs in place of the stored ones; nothing is written."""
        key = tuple(map(id, answers))
        if key not in self._candidates:
            pages = [_page_of(self.store, answer) for answer in answers]
            view = StoreView(
                with_pages(self.store, pages), self._ignore, discard_edits=self._discard_edits
            )
            view._base = self
            view._answered = tuple(dict.fromkeys(page.type_name for page in pages))
            self._candidates[key] = answers, view  # The answers are kept: their ids are the key.
        return self._candidates[key][1]


class StorePlace:
    """The folder of a store."""

    def __init__(
        self, path: Path | str, ignore: Ignore = (), *, discard_edits: bool = False
    ) -> None:
        self.path = Path(path)
        self.ignore = ignore
        """Codes that do not count."""
        self._discard_edits = discard_edits
        self._view: StoreView | None = None

    @property
    def file_name(self) -> str:
        """The name of the source."""
        return (self._view or self.open()).store.envelope.source_file

    def open(self) -> StoreView:
        """Read the store; what is as it was is not read or validated again."""
        return self.view_of(RegenStore.open(self.path))

    def view_of(self, store: RegenStore) -> StoreView:
        """Return the view of a store: the last one, where it is the same store."""
        if self._view is None or self._view.store is not store:
            self._view = StoreView(store, self.ignore, discard_edits=self._discard_edits)
        return self._view

    def asks(
        self,
        view: StoreView,
        name: str,
        wanted: Mapping[int, Sequence[Feedback]],
        settings: TurnSettings,
    ) -> list[Ask]:
        """Return the requests for pages of a type, each with its corrections."""
        return [
            ask_for_page(
                entry,
                wanted[entry.page],
                settings,
                model=model_for(view.store, entry, settings.model),
                store=view.store,
            )
            for entry in view.store.prompts_of(name)
            if entry.page in wanted
        ]

    def prepare(self, answers: Sequence[Answer]) -> None:
        """Validate the candidate before the store is locked.

        Nothing is stored that cannot be validated, and no other writer waits meanwhile.
        """
        _ = self.open().with_answers(answers).results

    @contextmanager
    def update(self) -> Iterator["LockedStore"]:
        """Lock the store and read it afresh."""
        with RegenStore.update(self.path) as transaction:
            yield LockedStore(self, transaction)

    @contextmanager
    def trial(
        self, view: StoreView, candidate: StoreView, answers: Sequence[Answer]
    ) -> Iterator[Trial]:
        """Put a candidate in place for a test that reads the folder."""
        keys = {_entry(answer).key for answer in answers}
        pages = [page for key, page in candidate.store.pages.items() if key in keys]
        with view.store.trial(pages=pages, source=candidate.store.source) as trial:
            yield trial

    def is_on_trial(self) -> bool:
        """Return whether a test looks at a candidate that is in place for that time only."""
        return bool(store_files(self.path).live_trials())

    def changed_paths(self) -> tuple[Path, ...]:
        """Return the files that a kept output changes."""
        store = (self._view or self.open()).store
        return (store.source_path, store.path / PAGES_FILE)


class LockedStore:
    """A store that is locked for writing.

    Args:
        place: the store.
        transaction: holds its lock.
        planned: the store as it is going to be with the first change, if that is more than pages.
        plan: what that change writes beside pages, as arguments of ``StoreUpdate.write``.
    """

    def __init__(
        self,
        place: StorePlace,
        transaction: StoreUpdate,
        planned: RegenStore | None = None,
        plan: Mapping[str, Any] | None = None,
    ) -> None:
        self._place = place
        self._transaction = transaction
        self._plan = dict(plan or {})
        self.view = place.view_of(planned or transaction.store)
        """What it holds, read under the lock and again after ``write``."""

    def write(
        self, candidate: StoreView, kept: Sequence[Answer], rejected: Sequence[Rejected]
    ) -> tuple[str, ...]:
        """Write what is kept and put the rest in the history; return the ids of the rest."""
        store = self.view.store
        entries = [
            HistoryEntry.of(_page_of(store, item.answer), "rejected", item.issues)
            for item in rejected
        ]
        plan, self._plan = self._plan, {}
        if kept:
            plan["pages"] = (
                *plan.get("pages", ()),
                *(candidate.store.pages[_entry(answer).key] for answer in kept),
            )
            plan["source"] = candidate.store.source or None
        ids = self._transaction.write(**plan, replaced=entries)
        if kept:
            # What is stored now was validated as a candidate.
            self._transaction.store.memo.update(candidate.store.memo)
        self.view = self._place.view_of(self._transaction.store)
        return ids[: len(entries)]


def _entry(answer: Answer) -> PromptEntry:
    entry = answer.ask.entry
    assert isinstance(entry, PromptEntry)  # asks of a store hold one
    return entry


def _page_of(store: RegenStore, answer: Answer) -> StoredPage:
    """Return an answer as the page of ``store`` that it would become."""
    entry = _entry(answer)
    old = store.pages.get(entry.key)
    known = answer.ask.known
    return StoredPage.of(
        entry,
        answer.output,
        model=answer.model,
        type_hash=store.prompt_type_hash(entry),
        usage=answer.usage,
        stop_reason=answer.stop_reason or None,
        provider=answer.provider,
        attempt=(old.attempt if old else 0) + 1,
        generated_at=known.generated_at if known else None,
        shared_from=known.shared_from if known else None,
    )


def ask_for_page(
    entry: PromptEntry,
    corrections: Sequence[Feedback],
    settings: TurnSettings,
    *,
    model: str,
    store: RegenStore,
    before: RegenStore | None = None,
) -> Ask:
    """Return the request for one page; its stored prompt is followed by the corrections.

    Args:
        entry: the prompt.
        corrections: what is wrong with the page.
        settings: for the limit of the reply.
        model: who is asked.
        store: the store of the page, which may be planned only.
        before: what is stored, where that is another.
    """
    language = find_language(store.ir.language)
    correction = correction_block(corrections, entry.user) if corrections else ""
    user = with_correction(entry.user, correction)
    limit = settings.max_tokens or FIRST_LIMIT
    page = None if corrections else (before or store).pages.get(entry.key)
    # The template reads no corrections; what a person or a test says, a model is told.
    is_told = any(isinstance(one, str) for one in corrections)
    by_template = not is_told and keeps_template(before or store, entry, settings)
    return Ask(
        entry.type_name,
        entry.page,
        TurnRequest(entry.system, (Message("user", user),), model, limit, cache="5m"),
        output_tokens=estimated_output_tokens(entry),
        prompt_file=PROMPTS_FILE,
        title=f"{entry.type_name}, page {entry.page} of {entry.total_pages}",
        extract=partial(_code_in, entry=entry, language=language),
        entry=entry,
        template=partial(write_page, store, entry),
        provider=TemplateProvider() if by_template else None,
        correction=correction,
        stored=page.output if page and page.prompt_hash == entry.prompt_hash else None,
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


def _code_in(pieces: Sequence[str], *, entry: PromptEntry, language: Language) -> str:
    """Return the code of a reply that came in pieces: of the first way to read them that is legal.

    Where none is, the least illegal one.
    """
    best: tuple[int, str] | None = None
    for text in join_text(pieces):
        code = extract_code(
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
    page = store.pages.get(entry.key)
    if page is not None and _is_of_the_api(page):
        return page.model
    others = [other for other in store.pages.values() if _is_of_the_api(other)]
    if others:
        return max(others, key=lambda other: other.generated_at).model
    # A store that was just made names the model that is going to be asked.
    return DEFAULT_MODEL if store.pages else store.envelope.model or DEFAULT_MODEL


def _is_of_the_api(page: StoredPage) -> bool:
    return page.provider is None and page.model not in {"", "hand", "dry-run"}


def with_pages(store: RegenStore, pages: Sequence[StoredPage]) -> RegenStore:
    """Return ``store`` with ``pages`` in place and the blocks of their types rebuilt.

    Every other byte of the source stays as it is, edits made by hand included.
    """
    merged = {**store.pages, **{page.key: page for page in pages}}
    source = store.source
    candidate = store.with_content(merged.values(), source)
    for type_name in dict.fromkeys(page.type_name for page in pages):
        source = _with_block(candidate, source, type_name)
    return store.with_content(merged.values(), source)


def _with_block(store: RegenStore, source: str, type_name: str) -> str:
    code = store.stitch_type(type_name)
    if code is None:
        return source
    if not source:
        return store.assembly()
    if extract_type_block(source, type_name) is not None:
        return replace_type_block(source, type_name, code)
    comment = find_language(store.ir.language).comment
    return insert_type_block(source, type_name, code, order=store.type_names, comment=comment)


def without_types(source: str, type_names: Sequence[str]) -> str:
    """Return ``source`` without the blocks of types that are gone."""
    for name in type_names:
        if extract_type_block(source, name) is not None:
            source = remove_type_block(source, name)
    return source


def results_that_count(store: RegenStore, ignore: Ignore) -> dict[str, ValidationResult]:
    """Return the issues of a store that count, type by type.

    What a project ignores neither counts nor is corrected. An edit by hand always counts: to be
    silent about it is no leave to overwrite it.
    """
    found = validate_store(store, behaviour=wants_behaviour(store, ignore))
    kept = without_ignored(found, ignore)
    for name, result in found.items():
        if is_edited(result) and not is_edited(kept[name]):
            drift = [issue for issue in result.issues if issue.code == "DRIFT"]
            kept[name] = ValidationResult.of([*drift, *kept[name].issues])
    return kept


def is_edited(result: ValidationResult | None) -> bool:
    """Return whether the type's block is not what its pages make."""
    return any(issue.code == "DRIFT" for issue in (result.issues if result else ()))


def find_obstacle(
    store: RegenStore, results: Results, names: Iterable[str], *, discard_edits: bool = False
) -> HandEditError | EditedPromptError | None:
    """Return why types must not be asked, although there is a model; ``None`` where they may.

    Args:
        store: the store.
        results: what is wrong with each type.
        names: of the types; the first one with an obstacle counts.
        discard_edits: whether edits of the source may be lost.

    Raises:
        StoreWriteError: what is answered could not be written.
    """
    store.refuse_links()
    place = shlex.quote(str(store.path))
    broken = broken_file(store, split(store.source, store.envelope.language))
    if broken and store.has_source and not discard_edits:
        return HandEditError(
            f"{store.source_path}: {broken}",
            why="the blocks of the file cannot be found, so no reply could be put into it",
            hint=f"pytest-regen rebuild {place}",
        )
    for name in names:
        result = results.get(name)
        if is_edited(result) and not discard_edits:
            return HandEditError(
                f"{name} in {store.source_path} was edited by hand",
                why="regenerating it would discard the edit",
                hint=f"keep it: pytest-regen adopt {place} --type {name}; "
                f"or drop it: pytest-regen rebuild {place} --type {name}",
            )
        if result and any(issue.code == "EDITED_PROMPT" for issue in result.issues):
            return EditedPromptError(
                f"a prompt of {name} in {store.path / 'prompts.json'} was edited",
                why="its answer would pass for one to the document",
                hint=f"{update_command(store)}, which writes the prompts anew",
            )
    return None


def _score(
    store: RegenStore, type_name: str, result: ValidationResult, *, is_unasked: bool
) -> Score:
    """Return a type's score; an issue without a page is about all of them."""
    found = sum(issue.code in BEHAVIOUR_CODES for issue in result.errors)
    ran = Score(
        len(result.errors), found_by_running=0 if is_unasked else found, is_unasked=is_unasked
    )
    hiding = [issue for issue in result.errors if issue.code in _HIDING_CODES]
    if not hiding:
        return ran
    named = {issue.page for issue in hiding}
    unreadable = [
        prompt for prompt in store.prompts_of(type_name) if None in named or prompt.page in named
    ]
    reported = {issue.field for issue in result.errors}
    hidden = sum(
        str(unit) not in reported and not _stands_in(str(unit), store.pages.get(prompt.key))
        for prompt in unreadable
        for unit in prompt.fields
    )
    pages = frozenset(prompt.page for prompt in unreadable)
    return replace(ran, errors=len(result.errors) + hidden, unreadable=pages)


def _weakened(before: RegenStore, after: RegenStore, name: str, known: Results) -> Iterator[Issue]:
    """Yield by what a type is tested less than as it stands.

    Nothing where it was not written, or was written for another description.
    """
    type_, old = before.ir.type_named(name), before.stitch_type(name)
    if type_ is None or not old or after.stitch_type(name) is None or before.is_stale(name):
        return
    language = find_language(after.ir.language)
    outputs = [page.output for page in after.pages_of(name)]
    new = language.stitch(outputs, name=name, is_enum=type_.kind == "enum")
    # A check that refused what the document allows is dropped with good reason.
    issues = known[name].issues if name in known else ()
    is_wrong = any(issue.code in BEHAVIOUR_CODES for issue in issues)
    for found in find_weaknesses(language, type_, old, new.text):
        if is_wrong and found.key[0] == "validator":
            continue
        page, excerpt = None, None
        if found.line is not None and found.line <= len(new.line_pages):
            page, line = new.line_pages[found.line - 1], new.page_lines[found.line - 1]
            excerpt = Excerpt(line, new.text.splitlines()[found.line - 1])
        yield Issue.of(
            WEAKENED,
            found.message,
            type_name=name,
            detail=found.detail,
            page=page,
            field=found.field,
            excerpt=excerpt,
        )


def _stands_in(word: str, page: StoredPage | None) -> bool:
    """Return whether a field's name is in code that cannot be read, so that it may be there."""
    text = page.output if page else ""
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None
