"""A store at one moment: its types, what is wrong with each, and its pages put into the source."""

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

from pytest_regen import sources
from pytest_regen.canonical import canonical_hash
from pytest_regen.errors import EditedPromptError, HandEditError, SourceError, StaleStoreError
from pytest_regen.languages import find_language, find_weaknesses
from pytest_regen.languages.base import Language
from pytest_regen.modes import BEHAVIOUR_CODES
from pytest_regen.prompts.values import PromptEntry, output_mode
from pytest_regen.regeneration import places, values
from pytest_regen.regeneration.asking import model_to_ask
from pytest_regen.regeneration.policies import fixable_issues
from pytest_regen.stores import RegenStore, StoredPage
from pytest_regen.turns.providers import TemplateProvider
from pytest_regen.turns.reply_text import join_text
from pytest_regen.validation import stores
from pytest_regen.validation.edits import broken_file, edited_types, edits
from pytest_regen.validation.issues import (
    WEAKENED,
    Excerpt,
    Ignore,
    Issue,
    ValidationResult,
    without_ignored,
)
from pytest_regen.validation.pieces import split
from pytest_regen.validation.store_cache import lines_of

# Codes after which a page was read in part or not at all.
_HIDING_CODES: Final = frozenset(
    {
        "ARTIFACT",
        "EMPTY_OUTPUT",
        "IMPORT_FAILED",
        "INVALID_IDENTIFIER",
        "MISSING_CLASS",
        "NOT_ALLOWED",
        "SYNTAX",
        "TRUNCATED",
    }
)

_CLEAN: Final = places.Score()


class StoreView(places.View):
    """A store at one moment, with the issues of each type."""

    def __init__(self, store: RegenStore, ignore: Ignore = ()) -> None:
        self.store = store
        self._ignore = ignore
        self._base: StoreView | None = None
        """What a candidate was made from."""
        self._answered: tuple[str, ...] = ()
        """The types that it has new outputs of."""
        self._candidates: dict[tuple[int, ...], tuple[Sequence[values.Answer], StoreView]] = {}

    @cached_property
    def results(self) -> dict[str, ValidationResult]:
        """The issues of each type that count."""
        results = stores.validate_store(self.store, ignore=self._ignore)
        for name in self._answered if self._base is not None else ():
            if name in results:
                weaker = ValidationResult.of((*results[name].issues, *self._weakened(name)))
                results |= without_ignored({name: weaker}, self._ignore)
        return results

    @cached_property
    def _scores(self) -> dict[str, places.Score]:
        is_run = stores.runs_any(self.names, self._ignore)
        unasked = stores.behaviour_of_store(self.store).unasked if is_run else ()
        return {
            name: self._score(name, result, is_unasked=name in unasked)
            for name, result in self.results.items()
            if result.issues or name in unasked
        }

    @property
    def names(self) -> tuple[str, ...]:
        """The types, in the order of their prompts."""
        return self.store.type_names

    @cached_property
    def orphans(self) -> tuple[Issue, ...]:
        """What is wrong with blocks that no prompt asks for."""
        strays = [result for name, result in self.results.items() if name not in self.names]
        return tuple(issue for result in strays for issue in result.issues)

    @property
    def format_note(self) -> str:
        """That another version of the package made the store; empty where this one did."""
        return stores.format_note(self.store)

    @property
    def not_run(self) -> str:
        """Why the types were not run; empty where they were, or nobody wants it."""
        is_wanted = stores.runs_any(self.names, self._ignore)
        return stores.behaviour_of_store(self.store).why_not if is_wanted else ""

    @property
    def notes(self) -> tuple[str, ...]:
        """Why the types were not run, unless that is so on most machines."""
        if not self.not_run or stores.behaviour_of_store(self.store).is_expected:
            return ()
        return (f"behaviour: not run: {self.not_run}",)

    @property
    def origin(self) -> stores.Origin:
        """The document that the store is made of."""
        return stores.Origin.of(self.store)

    def author(self, name: str) -> places.Author:
        """Return the models that wrote the pages of a type, and when the last of them did."""
        pages = self.store.pages_of(name)
        return places.Author(
            ", ".join(dict.fromkeys(page.model for page in pages)),
            max((page.generated_at for page in pages), default=""),
            max((page.attempt for page in pages), default=0),
        )

    def unit_json(self, name: str) -> Mapping[str, Any]:
        """Return whether a type is a root."""
        type_ = self.store.ir.type_named(name)
        return {"is_root": type_ is not None and type_.is_root}

    def has_old_prompt(self, name: str) -> bool:
        """Return whether a type is stale."""
        return self.store.is_stale(name)

    @property
    def text(self) -> str:
        """The source."""
        return self.store.source

    def resolve(self, name: str) -> str:
        """Return a type's declared name, given that or its schema's; raises UnknownTypeError."""
        return self.store.resolve_type(name)

    def issues(self, name: str) -> tuple[Issue, ...]:
        """Return what is wrong with a type."""
        result = self.results.get(name)
        return result.issues if result else ()

    def line(self, name: str) -> int | None:
        """Return the line of the source on which a type's block begins, from 1."""
        line = lines_of(self.store).get(name)
        return None if line is None else line + 1

    def score(self, name: str) -> places.Score:
        """Return the errors of a type, and its pages that cannot be read."""
        return self._scores.get(name, _CLEAN)

    def missing(self, name: str) -> tuple[int, ...]:
        """Return the pages of a type without an output."""
        return tuple(key.page for key in self.store.missing_pages if key.type_name == name)

    def page_count(self, name: str) -> int:
        """Return how many prompts a type has."""
        return len(self.store.prompts_of(name))

    def is_by_template(self, name: str) -> bool:
        """Return whether the template wrote a type."""
        return stores.is_by_template(self.store, name)

    def obstacle(self, name: str) -> str:
        """Return why a type must not be asked for; empty if it may."""
        error = self.hand_edit(name)
        return f"{error.what}; {error.hint}" if error else ""

    @cached_property
    def _edited(self) -> Collection[str]:
        """The types that somebody edited, whether or not the project wants to know.

        To be silent about an edit is no leave to overwrite it.
        """
        return edited_types(self.store)

    @cached_property
    def _broken(self) -> str:
        """Why the blocks of the file cannot be found; empty where they can."""
        store = self.store
        return broken_file(store, split(store.source, store.envelope.language))

    def hand_edit(self, name: str) -> HandEditError | EditedPromptError | None:
        """Return what is raised where a type is named that somebody edited, or a prompt of it."""
        store = self.store
        if self._broken and store.has_source:
            return HandEditError(
                f"{store.source_path}: {self._broken}",
                why="the blocks of the file cannot be found, so no reply could be put into it",
                hint=_command(store, "rebuild"),
            )
        if name in self._edited:
            return edit_error(store, name, "regenerating it would discard the edit")
        if any(key.type_name == name for key in store.plan.edited_prompts):
            return EditedPromptError(
                f"a prompt of {name} in {store.path / 'prompts.json'} was edited",
                why="its answer would pass for one to the prompt of the document",
                hint=f"{stores.update_command(store)}, which writes the prompts anew",
            )
        return None

    def advice(self, issues: Sequence[Issue]) -> places.Advice | None:
        """Return the command for what is wrong; an edit is kept or dropped, not regenerated."""
        store = self.store
        errors = [issue for issue in issues if issue.severity == "error"]
        codes = {issue.code for issue in errors}
        is_old = any(issue.code == "STALE" for issue in issues)
        if is_old and codes != {"DRIFT"}:
            # First, because regenerating refuses the old prompts of a stale type.
            return places.Advice(stores.update_command(store))
        if not errors:
            return None
        drift = [issue for issue in errors if issue.code == "DRIFT"]
        edited = dict.fromkeys(issue.type_name or "" for issue in drift)
        keep, drop = _ways_out(drift)
        if fixable_issues(issue for issue in errors if (issue.type_name or "") not in edited):
            return places.Advice(stores.from_errors_command(store))
        if edited:
            verb, note = drop, places.DROPS_EDIT
            if codes == {"DRIFT"} and not self._broken:
                verb, note = keep, places.KEEPS_EDIT
            return places.Advice(_command(store, verb, *edited), note)
        if codes & {"EDITED_PROMPT", "UNFIXABLE"}:
            return places.Advice(stores.update_command(store))
        if "CONFLICT" in codes:
            return places.Advice(_command(store, "rebuild"), "it writes the source from its pages")
        return places.Advice("correct the file as the lines above say")

    def repairs(
        self, name: str, issues: Sequence[Issue], asking: Sequence[str] = ()
    ) -> tuple[places.Advice, ...]:
        """Return the commands about a type that call for no healing, each with a word for it."""
        del asking  # Updating asks whom the document's own command names.
        codes, drift = {issue.code for issue in issues}, [i for i in issues if i.code == "DRIFT"]
        if drift:
            # Where the block is gone, nothing can be adopted.
            is_there = all(issue.line is not None or issue.file is not None for issue in drift)
            verbs = zip(_ways_out(drift), ("keep", "drop"), strict=True)
            ways = [places.Advice(_command(self.store, verb, name), word) for verb, word in verbs]
            return tuple(ways if is_there else ways[1:])
        if codes & {"STALE", "EDITED_PROMPT"}:
            return (places.Advice(stores.update_command(self.store), "update"),)
        if any(issue.code == "CONFLICT" and issue.file is None for issue in issues):
            return (places.Advice(_command(self.store, "rebuild"), "rebuild"),)
        return ()

    def output(self, name: str, page: int) -> str | None:
        """Return the stored output of a page."""
        outputs = (stored.output for stored in self.store.pages_of(name) if stored.page == page)
        return next(outputs, None)

    def basis(self, name: str) -> str:
        """Return a digest of a type's block, its pages, its prompts, and whether it is stale."""
        store = self.store
        try:
            block = sources.extract_type_block(store.source, name)
        except SourceError:
            block = None
        prompts = [[entry.page, entry.prompt_hash] for entry in store.prompts_of(name)]
        pages = [[page.page, page.output] for page in store.pages_of(name)]
        # Staleness as well, because the same words may be those of an older description by then.
        return canonical_hash([block, prompts, pages, store.is_stale(name)])

    def with_answers(self, answers: Sequence[values.Answer]) -> "StoreView":
        """Return the view with new outputs in place of the stored ones; nothing is written."""
        key = tuple(map(id, answers))
        if key not in self._candidates:
            pages = [page_of(self.store, answer) for answer in answers]
            view = StoreView(with_pages(self.store, pages), self._ignore)
            view._base = self
            view._answered = tuple(dict.fromkeys(page.type_name for page in pages))
            # The answers are kept, because their ids are the key.
            self._candidates[key] = answers, view
        return self._candidates[key][1]

    def _score(self, name: str, result: ValidationResult, *, is_unasked: bool) -> places.Score:
        """Return a type's score; an issue without a page is about all of them."""
        ran = 0 if is_unasked else sum(issue.code in BEHAVIOUR_CODES for issue in result.errors)
        hiding = {issue.page for issue in result.errors if issue.code in _HIDING_CODES}
        unreadable = [
            entry
            for entry in self.store.prompts_of(name)
            # Without a page it may hide any of them, because nobody knows where the fault is.
            if hiding and (None in hiding or entry.page in hiding)
        ]
        reported = {issue.field for issue in result.errors}
        hidden = sum(str(unit) not in reported for entry in unreadable for unit in entry.fields)
        pages = frozenset(entry.page for entry in unreadable)
        return places.Score(len(result.errors) + hidden, pages, ran, is_unasked)

    def _weakened(self, name: str) -> Iterator[Issue]:
        """Yield by what a type is tested less than as it stands.

        Nothing where it was not written, or was written for another description.
        """
        assert self._base is not None  # the view is a candidate
        before, after = self._base.store, self.store
        type_, old = before.ir.type_named(name), before.stitch_type(name)
        if type_ is None or not old or after.stitch_type(name) is None or before.is_stale(name):
            return
        language = find_language(after.ir.language)
        outputs = [page.output for page in after.pages_of(name)]
        new = language.stitch(outputs, name=name, is_enum=type_.kind == "enum")
        # A check that refused what the document allows is dropped with good reason.
        is_wrong = any(issue.code in BEHAVIOUR_CODES for issue in self._base.issues(name))
        for weakness in find_weaknesses(language, type_, old, new.text):
            if is_wrong and weakness.key[0] == "validator":
                continue
            facts: dict[str, Any] = {"detail": weakness.detail, "field": weakness.field}
            if weakness.line is not None and weakness.line <= len(new.line_pages):
                page, line = new.line_pages[weakness.line - 1], new.page_lines[weakness.line - 1]
                excerpt = Excerpt(line, new.text.splitlines()[weakness.line - 1])
                facts |= {"page": page, "excerpt": excerpt}
            yield Issue.of(WEAKENED, weakness.message, type_name=name, **facts)


def _command(store: RegenStore, verb: str, *type_names: str) -> str:
    options = [word for name in type_names for word in ("--type", name)]
    return shlex.join(["pytest-regen", verb, str(store.path), *options])


def _ways_out(drift: Sequence[Issue]) -> tuple[str, str]:
    """Return the commands that keep and that drop what was edited."""
    # The source goes into the pages by the one, the pages into the source by the other, so that it
    # depends on where the edit is.
    in_pages = bool(drift) and all(issue.file for issue in drift)
    return ("rebuild", "adopt") if in_pages else ("adopt", "rebuild")


def edit_error(store: RegenStore, name: str, why: str) -> HandEditError:
    """Return the error for a type that was edited by hand."""
    pieces = split(store.source, store.envelope.language)
    drift = [edit.issue for edit in edits(store, pieces) if edit.type_name == name]
    keep, drop = _ways_out(drift)
    file = next((issue.file for issue in drift if issue.file), store.source_path.name)
    return HandEditError(
        f"{name} in {store.path / file} was edited by hand",
        why=why,
        hint=f"keep it: {_command(store, keep, name)}; or drop it: {_command(store, drop, name)}",
    )


def page_of(store: RegenStore, answer: values.Answer) -> StoredPage:
    """Return an answer as the page of ``store`` that it would become."""
    entry = answer.ask.entry
    ready = answer.ask.known
    return StoredPage.of(
        entry,
        answer.output,
        model=answer.model,
        type_hash=store.prompt_type_hash(entry),
        usage=answer.usage,
        stop_reason=answer.stop_reason or None,
        provider=answer.provider,
        attempt=store.next_attempt(entry.key),
        generated_at=ready.generated_at if ready else None,
        shared_from=ready.shared_from if ready else None,
    )


def keeps_template(
    store: RegenStore | None, entry: PromptEntry, settings: values.TurnSettings
) -> bool:
    """Return whether the template writes a page: it was chosen, or wrote the type before."""
    if store is None or not settings.keeps_template:
        return isinstance(settings.provider, TemplateProvider)
    return stores.is_by_template(store, entry.type_name)


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
            hint=stores.update_command(store),
        )
    mode = output_mode(type_.kind, is_root=type_.is_root, page=entry.page)
    language = find_language(store.ir.language)
    return language.write_page(type_, entry.fields, mode, profile=store.envelope.profile)


def code_in(pieces: Sequence[str], *, entry: PromptEntry, language: Language) -> str:
    """Return the code of a reply that came in pieces."""
    text = join_text(pieces)
    return sources.extract_code(
        text, language=language, type_name=entry.type_name, fields=entry.fields
    )


def model_for(store: RegenStore | None, entry: PromptEntry, settings: values.TurnSettings) -> str:
    """Return the model to ask for a page; what another one has is looked at where it has none."""
    pages = store.pages if store else {}
    return model_to_ask(settings, pages.get(entry.key), pages.values())


def with_pages(store: RegenStore, pages: Sequence[StoredPage]) -> RegenStore:
    """Return ``store`` with ``pages`` in place and the blocks of their types rebuilt.

    Every other byte of the source stays as it is, edits made by hand included.
    """
    merged = {**store.pages, **{page.key: page for page in pages}}
    ordered = [merged[entry.key] for entry in store.prompts if entry.key in merged]
    envelope, source = store.envelope.with_pages(ordered, store.prompts), store.source
    # Of its own, because what is found about it must not be taken for what the folder holds.
    candidate = replace(store, envelope=envelope, pages_data=b"", memo={**store.memo})
    names = dict.fromkeys(page.type_name for page in pages)
    stitched = {name: code for name in names if (code := candidate.stitch_type(name)) is not None}
    # Read once, because it takes as long as the file is, and no block moves another one.
    there = sources.list_type_names(source) if stitched else ()
    comment = find_language(store.ir.language).comment
    for name, code in stitched.items() if source else ():
        if name in there:
            source = sources.replace_type_block(source, name, code)
        else:
            source = sources.boundaries.insert_type_block(
                source, name, code, order=store.type_names, comment=comment
            )
    if stitched and not source:
        source = candidate.assembly()
    return replace(candidate, source=source, has_source=store.has_source or bool(source))


def without_types(source: str, type_names: Sequence[str]) -> str:
    """Return ``source`` without the blocks of types that are gone."""
    stored = sources.list_type_names(source) if type_names else ()
    for name in type_names:
        if name in stored:
            source = sources.boundaries.remove_type_block(source, name)
    return source
