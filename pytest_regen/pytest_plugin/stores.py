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
from pytest_regen.pytest_plugin.choices import choices_of
from pytest_regen.pytest_plugin.looks import Look
from pytest_regen.pytest_plugin.project import store_path
from pytest_regen.regeneration.flow import Check
from pytest_regen.regeneration.policies import fixable_issues
from pytest_regen.regeneration.store_view import StoreView
from pytest_regen.sources import extract_type_block
from pytest_regen.stores import RegenStore, StoredPage
from pytest_regen.validation import store_cache
from pytest_regen.validation.issues import Feedback, Issue, ValidationResult, without_ignored
from pytest_regen.validation.stores import Origin, runs_any

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
    lost: Mapping[str, Issue] = {}
    """Nothing, because what stands beside the types fails the first of them."""

    def __init__(self, config: pytest.Config, path: Path) -> None:
        super().__init__(config, path)
        cache = store_cache.StoreCache(is_shared=hasattr(config, "workerinput"))
        self._cache = config.stash.setdefault(_CACHE, cache)
        # Not all of them stay open, because those of a large project take too much memory.
        self._open = config.stash.setdefault(_OPEN, lru_cache(_HELD)(RegenStore.open))
        self._user_issues: dict[str, tuple[Issue, ...]] = {}

    def forget(self) -> None:
        """Drop what is known of the store, because it was written."""
        super().forget()
        self._open.cache_clear()

    def _ignored(self, name: str) -> frozenset[str]:
        """Return the codes that the project ignores in one type."""
        return choices_of(self.config).settings.ignored_codes(self.id_of(name))

    # What there is

    @property
    def store(self) -> RegenStore:
        """The artifacts.

        Raises:
            StoreError: they are missing, unreadable or contradict one another.
        """
        store: RegenStore = self._open(self.path)
        return store

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
        behaviour = runs_any(self.names, self._ignored)
        return self._known_findings or self._cache.findings(
            self.path, self._facts, lambda: self.store, behaviour=behaviour
        )

    @cached_property
    def _known_findings(self) -> store_cache.StoreFindings | None:
        behaviour = runs_any(self.names, self._ignored)
        return self._cache.known_findings(self.path, self._facts, behaviour=behaviour)

    def issues(self, name: str) -> tuple[Issue, ...]:
        """Return what was found in a type, by validation and by validators of the user's."""
        issues = self._results.get(name, ValidationResult()).issues
        if name == self._facts.type_names[0]:
            # Blocks that no type asked for have no item; their errors must fail one all the same.
            strays = [stray for stray in self._results if stray not in self.names]
            issues += tuple(issue for stray in strays for issue in self._results[stray].issues)
        return (*issues, *self._issues_of_hook(name))

    unasked = ()
    """Nothing more than ``issues`` has."""

    def _issues_of_hook(self, name: str) -> tuple[Issue, ...]:
        hook = self.config.hook.pytest_regen_validators
        # Without a hook the store need not be opened.
        if hook.get_hookimpls() and name not in self._user_issues:
            answers = hook(config=self.config, store=self.store, type_name=name)
            issues = tuple(issue for answer in answers for issue in answer or ())
            self._user_issues[name] = issues
        return self._user_issues.get(name, ())

    def is_only_read(self, _name: str) -> bool:
        """Return False, because ``not_run`` says of all types whether they were run."""
        return False

    def user_errors(self, name: str) -> tuple[Issue, ...]:
        """Return what fails a type because a hook of the user's says so."""
        return tuple(issue for issue in self._issues_of_hook(name) if issue.severity == "error")

    @property
    def format_note(self) -> str:
        """That another version of the package made the store; empty where this one did."""
        return self._facts.format_note

    @property
    def not_run(self) -> str:
        """Why the types were not run, where that is worth saying."""
        return self._findings.not_run

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

    # What may be done

    def may_heal(self, _name: str, issues: Sequence[Issue]) -> bool:
        """Return whether another reply could correct what is wrong with a type."""
        # Without validating the store again: an obstacle has a code of its own.
        return bool(fixable_issues(issues))

    def ending(self, name: str, issues: Sequence[Issue]) -> str:
        """Return the command that updates a store that is older than its document."""
        is_stale = any(issue.code == "STALE" for issue in issues)
        return super().ending(name, issues) if is_stale else ""

    def rescue(self, error: RegenError) -> str:
        """Return the command that makes anew what git could not merge."""
        return error.hint if Origin.of_conflict(self.path) else ""

    def checker(self, name: str) -> Check | None:
        """Return what calls validators of the user's about a candidate; ``None`` without any."""
        if not self.config.hook.pytest_regen_validators.get_hookimpls():
            return None

        def check() -> Sequence[Feedback]:
            self.forget()  # The store holds a candidate now.
            return StoreLook(self.config, self.path).user_errors(name)

        return check


class StoreHandle:
    """A store as it stands whenever it is looked at.

    Nothing is remembered between two looks: when a test is called again after a regeneration, its
    fixtures are those of the first call, and must show what is there now.

    Args:
        item: the test that looks.
        path: the store, from the rootdir; by default the marker's, or the only one.

    Raises:
        pytest.UsageError: none is named, and there is not just one.
    """

    def __init__(self, item: pytest.Item, path: str | os.PathLike[str] | None = None) -> None:
        self._config = item.config
        self.path = store_path(item, path)

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
