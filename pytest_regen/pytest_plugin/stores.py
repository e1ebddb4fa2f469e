"""Stores as a run looks at them, and the fixture ``regen_store``."""

import gc
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest

from pytest_regen.documents.ir import TypeIR
from pytest_regen.errors import MissingBlockError, RegenError, StoreError
from pytest_regen.pytest_plugin import names as words
from pytest_regen.pytest_plugin.choices import choices_of
from pytest_regen.pytest_plugin.looks import Look, Target
from pytest_regen.pytest_plugin.selection import store_path
from pytest_regen.regeneration.flow import Check
from pytest_regen.regeneration.policies import fixable_issues, pages_at_fault
from pytest_regen.regeneration.prompt_faults import SPELLING_ADVICE
from pytest_regen.regeneration.store_place import StorePlace
from pytest_regen.regeneration.store_view import StoreView
from pytest_regen.sources import extract_type_block
from pytest_regen.stores import RegenStore, StoredPage
from pytest_regen.text import excerpt
from pytest_regen.turns.values import estimate_tokens
from pytest_regen.validation import store_cache
from pytest_regen.validation.issues import Feedback, Issue, ValidationResult, without_ignored
from pytest_regen.validation.stores import Origin, is_by_template, runs_any, update_command

_HELD: Final = 4
"""Stores that stay open, so that none is read twice in a row."""


_OPEN: "pytest.StashKey[Any]" = pytest.StashKey()
_CACHE: pytest.StashKey[store_cache.StoreCache] = pytest.StashKey()


class StoreLook(Look):
    """One store as it stood when it was first looked at; its units are types.

    Where nothing changed since the last run neither the store is opened nor its types validated:
    its facts and findings come out of the cache, which workers of one run share.
    """

    DAMAGED: ClassVar = "store"
    has_pages: ClassVar = True
    at_fault: ClassVar = "the pages of the type"
    unfixable: ClassVar = "correct the API description, then pytest-regen generate on it"
    asks_stale: ClassVar = False

    def __init__(self, config: pytest.Config, path: Path) -> None:
        super().__init__(config, path)
        run = getattr(config, "workerinput", {}).get("testrunuid", "")
        self._cache = config.stash.setdefault(_CACHE, store_cache.StoreCache(run))
        # Not all of them stay open: those of a large project take more memory than a machine has.
        self._open = config.stash.setdefault(_OPEN, lru_cache(_HELD)(RegenStore.open))
        self._user_issues: dict[str, tuple[Issue, ...]] = {}

    def forget(self) -> None:
        """Drop what is known of the store, because it was written."""
        super().forget()
        self._open.cache_clear()

    # What there is

    @property
    def store(self) -> RegenStore:
        """The artifacts.

        Raises:
            StoreError: they are missing, unreadable or contradict one another.
        """
        store: RegenStore = self._open(self.path)
        return store

    @cached_property
    def home(self) -> StorePlace:
        """The place of the main flow."""
        return StorePlace(self.path, self._ignored)

    @property
    def view(self) -> StoreView:
        """The store, validated where that is looked at."""
        return StoreView(self.store, self._ignored)

    @cached_property
    def _facts(self) -> store_cache.StoreFacts:
        return self._cache.facts(self.path, lambda: self.store)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The types, in the order of their prompts; none where the store cannot be opened."""
        try:
            return self._facts.type_names
        except StoreError:
            return ()

    @property
    def item_names(self) -> Sequence[str]:
        """The types; one name where the store cannot be opened."""
        return self.names or (self.DAMAGED,)

    @property
    def lost(self) -> Mapping[str, Issue]:
        """Nothing: what stands beside the types fails the first of them."""
        return {}

    def heading(self, name: str) -> str:
        """Return the id."""
        return self.id_of(name)

    def kind_of(self, name: str) -> tuple[str, str]:
        """Return how reports name a type, or the store itself."""
        return ("store", "types") if name == self.DAMAGED else super().kind_of(name)

    # What is wrong

    @cached_property
    def _results(self) -> dict[str, ValidationResult]:
        """What validation found, type by type, codes that the project ignores left out."""
        results = without_ignored(self._findings.results, self._ignored)
        # It stays until the end of the run. Searching it for garbage while a thousand items are
        # run costs as much as validating it.
        gc.freeze()
        return results

    @cached_property
    def _findings(self) -> store_cache.StoreFindings:
        return self._known_findings or self._cache.findings(
            self.path, self._facts, lambda: self.store, behaviour=self._wants_behaviour
        )

    @cached_property
    def _known_findings(self) -> store_cache.StoreFindings | None:
        return self._cache.known_findings(self.path, self._facts, behaviour=self._wants_behaviour)

    @property
    def _wants_behaviour(self) -> bool:
        return runs_any(self.names, self._ignored)

    def _ignored(self, name: str) -> frozenset[str]:
        """Return the codes that the project ignores in one type."""
        return choices_of(self.config).settings.ignored_codes(self.id_of(name))

    def issues(self, name: str) -> tuple[Issue, ...]:
        """Return what was found in a type, by validation and by validators of the user's."""
        issues = self._results.get(name, ValidationResult()).issues
        if name == self._facts.type_names[0]:
            # Blocks that no type asked for have no item; their errors must fail one all the same.
            strays = [stray for stray in self._results if stray not in self.names]
            issues += tuple(issue for stray in strays for issue in self._results[stray].issues)
        return (*issues, *self._issues_of_hook(name))

    def gate(self, name: str) -> tuple[tuple[Issue, ...], tuple[Issue, ...]]:
        """Return the issues that fail a type, and those that only warn."""
        return choices_of(self.config).gate(ValidationResult(self.issues(name)))

    def _issues_of_hook(self, name: str) -> tuple[Issue, ...]:
        hook = self.config.hook.pytest_regen_validators
        # Without a hook the store need not be opened.
        if hook.get_hookimpls() and name not in self._user_issues:
            answers = hook(config=self.config, store=self.store, type_name=name)
            issues = tuple(issue for answer in answers for issue in answer or ())
            self._user_issues[name] = issues
        return self._user_issues.get(name, ())

    def user_errors(self, name: str) -> tuple[Issue, ...]:
        """Return what fails a type because a hook of the user's says so."""
        return tuple(issue for issue in self._issues_of_hook(name) if issue.severity == "error")

    # Where it stands

    @property
    def source_path(self) -> Path:
        """The assembled source; the folder, where the store cannot be opened."""
        try:
            return self.path / self._facts.source_file
        except StoreError:
            return self.path

    def line_of(self, name: str) -> int | None:
        """Return the line on which the block of a type begins."""
        try:
            return self._lines.get(name)
        except StoreError:
            return None

    @cached_property
    def _lines(self) -> Mapping[str, int]:
        findings = self._known_findings
        return store_cache.lines_of(self.store) if findings is None else findings.lines

    def location_of(self, issue: Issue) -> tuple[str, int | None]:
        """Return the file that an issue is about, and the line in it."""
        if issue.file is not None:
            return f"{self.place}/{issue.file}", issue.line
        begins = self.line_of(issue.type_name or "")
        # What is missing has no line; it is missing from where the type begins.
        line = issue.line or (begins + 1 if begins is not None else None)
        return f"{self.place}/{self.source_path.name}", line

    def excerpt_of(self, issue: Issue) -> list[str]:
        """Return the lines around an issue of the source, with carets below what it is about."""
        if not issue.line or issue.file is not None:
            return []

        def mark(text: str) -> tuple[int, int]:
            if issue.field and (start := text.find(issue.field)) >= 0:
                return start, len(issue.field)
            return len(text) - len(text.lstrip()), len(text.strip())

        return excerpt(self.store.source.splitlines(), issue.line, mark=mark)

    # What may be done

    def origin(self, name: str, page: int | None) -> Iterator[str]:
        """Yield from which stored prompts a page, or the type, was written."""
        prompts = self.store.prompts_of(name)
        sources = [prompt for prompt in prompts if page is None or prompt.page == page]
        if sources:
            numbers = [self.store.prompts.index(prompt) + 1 for prompt in sources]
            entries = f"entry {numbers[0]}"
            pages = f"page {sources[0].page} of {sources[0].total_pages}"
            if len(sources) > 1:
                entries, pages = f"entries {', '.join(map(str, numbers))}", f"{len(sources)} pages"
            yield f"  stored prompt: {self.here}/prompts.json, {entries} ({pages})"

    def may_heal(self, _name: str, issues: Sequence[Issue]) -> bool:
        """Return whether another reply could correct what is wrong with a type."""
        # Without validating the store again: an obstacle has a code of its own.
        return bool(fixable_issues(issues))

    def remarks(self, _name: str, issues: Sequence[Issue]) -> Mapping[str, Any]:
        """Return what the end of a run says of the store."""
        is_stale = _has(issues, "STALE")
        note, not_run = self._facts.format_note, self._findings.not_run
        return {
            # Said once per run, because what is read of all stores of a document is the same.
            "note": f"note: {note}" if note else "",
            "not_run": (self.place, not_run) if not_run else None,
            "command": update_command(self.store) if is_stale else "",
            "outdated": self.place if is_stale else "",
        }

    def rescue(self, error: RegenError) -> str:
        """Return the command that makes anew what git could not merge."""
        return error.hint if Origin.of_conflict(self.path) else ""

    # Healing

    def checker(self, name: str) -> Check | None:
        """Return what calls validators of the user's about a candidate; ``None`` without any."""
        if not self.config.hook.pytest_regen_validators.get_hookimpls():
            return None

        def check() -> Sequence[Feedback]:
            self.forget()  # The store holds a candidate now.
            return self.again().user_errors(name)

        return check

    def obstacle(self, target: Target) -> tuple[str, str]:
        """Return why a stale type must not be asked for with its old prompt."""
        issues = self.issues(target.name)
        is_fixable = bool(target.feedback or fixable_issues(issues))
        ignores = choices_of(self.config).ignore_stale and is_fixable
        if ignores or not _has(issues, "STALE"):
            return "", ""
        why = "its stored prompts were made for another version of the document (STALE)"
        option = "--regen-ignore-stale"
        again = words.rerun_command(self.config, target.nodeid, target.cassette, option)
        return why, again if is_fixable else update_command(self.store)

    def by_template(self, name: str, feedback: Sequence[Feedback] = ()) -> bool:
        """Return whether the template writes a type: it is chosen, or wrote it before.

        What a test says in words it does not read.
        """
        is_told = any(isinstance(note, str) for note in feedback)
        wrote = not is_told and is_by_template(self.store, name)
        return choices_of(self.config).writes_types or (wrote and words.keeps_template(self.config))

    def plan(self, target: Target) -> tuple[list[int], int, str]:
        """Return the pages that would be asked for, about how many tokens that takes, what to run.

        The last one is empty where healing is next.
        """
        name, issues = target.name, self.issues(target.name)
        errors = fixable_issues(issues)
        if _has((note for note in issues if note.severity == "error"), "DRIFT"):
            # As without the dry run: an edit is kept or dropped, not regenerated.
            return [], 0, self.command(name, issues)
        correctable = self.view.correctable(name)
        findings = (*correctable, *target.feedback)
        prompts = self.store.prompts_of(name)
        pages = pages_at_fault(findings, len(prompts)) if findings else {}
        if not pages:
            repair = self.command(name, issues) or self.unfixable
            return [], 0, SPELLING_ADVICE if len(correctable) < len(errors) else repair
        sent = [prompt.system + prompt.user for prompt in prompts if prompt.page in pages]
        by_template = self.by_template(name, target.feedback)
        return list(pages), 0 if by_template else sum(map(estimate_tokens, sent)), ""


def _has(issues: "Iterator[Issue] | Sequence[Issue]", *codes: str) -> bool:
    return any(issue.code in codes for issue in issues)


class StoreOpener:
    """Opens stores for one test."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item

    def __repr__(self) -> str:
        return "regen_store"

    def __call__(self, path: str | os.PathLike[str] | None = None) -> "StoreHandle":
        """Return a store: the one at ``path`` (from the rootdir), the marker's, or the only one.

        Raises:
            pytest.UsageError: none is named, and there is not just one.
        """
        return StoreHandle(self._item.config, store_path(self._item, path))


class StoreHandle:
    """A store as it stands whenever it is looked at.

    Nothing is remembered between two looks: when a test is called again after a regeneration, its
    fixtures are those of the first call, and must show what is there now.
    """

    def __init__(self, config: pytest.Config, path: Path) -> None:
        self._config = config
        self.path = path

    def __repr__(self) -> str:
        return f"regen_store({self.path.name!r})"

    @property
    def store(self) -> RegenStore:
        """The artifacts as they are now.

        Raises:
            StoreError: they are missing or do not hold together.
        """
        return RegenStore.open(self.path)

    def __getitem__(self, type_name: str) -> "TypeHandle":
        """Return one type, by its declared name or its schema's.

        Raises:
            UnknownTypeError: the store has no type of that name; the message lists its types.
        """
        return TypeHandle(self._config, self.path, self.store.resolve_type(type_name))

    def __iter__(self) -> Iterator["TypeHandle"]:
        """Yield the types, in the order of the source."""
        return (TypeHandle(self._config, self.path, name) for name in self.store.type_names)


class TypeHandle:
    """One type of a store, read anew on each access."""

    def __init__(self, config: pytest.Config, path: Path, name: str) -> None:
        self._config = config
        self.store_path = path
        """The store's folder."""
        self.name = name
        """As the source declares it."""

    def __repr__(self) -> str:
        # Without an address: an assertion that shows it becomes part of a recorded correction.
        return f"{self.store_path.name}[{self.name!r}]"

    @property
    def source(self) -> str:
        """The type's block of the source file, hand edits included.

        Raises:
            MissingBlockError: the file has no block of that name.
        """
        store = RegenStore.open(self.store_path)
        block = extract_type_block(store.source, self.name)
        if block is None:
            raise MissingBlockError(
                f"{store.source_path} has no block {self.name}",
                hint=f"pytest-regen regenerate {self.store_path} --type {self.name}",
            )
        return block

    @property
    def pages(self) -> tuple[StoredPage, ...]:
        """The stored outputs, by page."""
        return RegenStore.open(self.store_path).pages_of(self.name)

    @property
    def ir(self) -> TypeIR | None:
        """What the type must be."""
        return RegenStore.open(self.store_path).ir.type_named(self.name)

    def issues(self) -> tuple[Issue, ...]:
        """Return what is wrong with the type, warnings included; none if it is as it must be."""
        return StoreLook(self._config, self.store_path).issues(self.name)
