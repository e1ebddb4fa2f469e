"""A store and its validation, read once per process however many of its types are tested."""

import gc
import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_regen.documents.ir import TypeIR
from pytest_regen.errors import MissingBlockError, RegenError
from pytest_regen.pytest_plugin.choices import choices_of
from pytest_regen.pytest_plugin.selection import from_here, from_rootdir, store_path
from pytest_regen.sources import extract_type_block
from pytest_regen.stores import RegenStore, StoredPage
from pytest_regen.validation.issues import Issue, ValidationResult, without_ignored
from pytest_regen.validation.store_cache import StoreCache, StoreFacts, StoreFindings, lines_of
from pytest_regen.validation.stores import runs_any

_CHECKS: pytest.StashKey[dict[Path, "StoreCheck"]] = pytest.StashKey()


def check_of(config: pytest.Config, path: Path) -> "StoreCheck":
    """Return what is known of the store at ``path``; read on first use."""
    checks = config.stash.setdefault(_CHECKS, {})
    if path not in checks:
        checks[path] = StoreCheck(config, path)
    return checks[path]


class _OpenStores:
    """The stores that were opened last, so that none is read twice in a row.

    All stores of a large project together take more memory than a machine has.
    """

    def __init__(self) -> None:
        self._stores: OrderedDict[Path, tuple[RegenStore, int]] = OrderedDict()
        self._size = 0

    def open(self, path: Path) -> RegenStore:
        """Return the store at ``path`` as it stood when it was opened last.

        Raises:
            StoreError: it is not there, unreadable, or contradicts itself.
        """
        if path in self._stores:
            self._stores.move_to_end(path)
            return self._stores[path][0]
        store = RegenStore.open(path)
        size = sum(map(len, (store.ir_data, store.prompts_data, store.pages_data, store.source)))
        self._stores[path] = store, size
        self._size += size
        while self._size > _HELD and len(self._stores) > 1:
            self.drop(next(iter(self._stores)))
        return store

    def drop(self, path: Path) -> None:
        """Forget a store."""
        if path in self._stores:
            self._size -= self._stores.pop(path)[1]


_HELD: Final = 32 << 20
"""Bytes of the files of stores that stay open; as values they take three to four times as many."""

_OPEN: pytest.StashKey[_OpenStores] = pytest.StashKey()
_CACHE: pytest.StashKey[StoreCache] = pytest.StashKey()


def _open_stores(config: pytest.Config) -> _OpenStores:
    return config.stash.setdefault(_OPEN, _OpenStores())


def _store_cache(config: pytest.Config) -> StoreCache:
    """Return what is known of stores; workers of one run share it."""
    run = getattr(config, "workerinput", {}).get("testrunuid", "")
    return config.stash.setdefault(_CACHE, StoreCache(run))


def forget(config: pytest.Config, path: Path) -> None:
    """Drop what is known of a store, because it was written."""
    config.stash.setdefault(_CHECKS, {}).pop(path, None)
    _open_stores(config).drop(path)


def look_at(config: pytest.Config, paths: Sequence[Path]) -> None:
    """Let workers, which all collect all stores, share the work of opening them.

    Each begins elsewhere and leaves what it saw in the cache, where the others find it.
    """
    worker: Mapping[str, Any] = getattr(config, "workerinput", {})
    name, count = worker.get("workerid", ""), worker.get("workercount", 1)
    if name.removeprefix("gw").isdecimal() and len(paths) > 1:
        first = len(paths) * int(name.removeprefix("gw")) // count
        for path in (*paths[first:], *paths[:first]):
            with suppress(RegenError):  # Its items say why it cannot be opened.
                _ = check_of(config, path).type_names


class StoreCheck:
    """One store as it stood when it was first looked at."""

    def __init__(self, config: pytest.Config, path: Path) -> None:
        self.config = config
        self.path = path
        self.place = from_rootdir(path, config.rootpath)
        """As node ids spell it."""
        self.here = from_here(path, config)
        """As commands spell it."""
        self._user_issues: dict[str, tuple[Issue, ...]] = {}

    @property
    def store(self) -> RegenStore:
        """The artifacts.

        Raises:
            StoreError: they are missing, unreadable or contradict one another.
        """
        return _open_stores(self.config).open(self.path)

    @cached_property
    def _facts(self) -> StoreFacts:
        return _store_cache(self.config).facts(self.path, lambda: self.store)

    @property
    def type_names(self) -> tuple[str, ...]:
        """The types that have an item, in the order of their prompts.

        Raises:
            StoreError: an artifact is missing or unreadable, or they contradict one another.
        """
        return self._facts.type_names

    @cached_property
    def results(self) -> dict[str, ValidationResult]:
        """What validation found, type by type, codes that the project ignores left out."""
        found = without_ignored(self._findings.results, self.ignored)
        # It stays until the end of the run. Searching it for garbage while a thousand items are
        # run costs as much as validating it.
        gc.freeze()
        return found

    @cached_property
    def _findings(self) -> StoreFindings:
        if self._known_findings is not None:
            return self._known_findings
        stores = _store_cache(self.config)
        return stores.findings(
            self.path, self._facts, lambda: self.store, behaviour=self._wants_behaviour
        )

    @cached_property
    def _known_findings(self) -> StoreFindings | None:
        stores = _store_cache(self.config)
        return stores.known_findings(self.path, self._facts, behaviour=self._wants_behaviour)

    @property
    def _wants_behaviour(self) -> bool:
        return runs_any(self.type_names, self.ignored)

    def ignored(self, type_name: str) -> frozenset[str]:
        """Return the codes that the project ignores in one type."""
        return choices_of(self.config).settings.ignored_codes(f"{self.place}::{type_name}")

    @property
    def source_path(self) -> Path:
        """The assembled source."""
        return self.path / self._facts.source_file

    def result(self, type_name: str) -> ValidationResult:
        """Return what was found for one type, by validation and by validators of the user's."""
        found = self.results.get(type_name, ValidationResult()).issues
        if type_name == self.type_names[0]:
            # Blocks that no type asked for have no item; their errors must fail one all the same.
            strays = [self.results[name].issues for name in self.results if self._is_stray(name)]
            found = tuple(issue for issues in (found, *strays) for issue in issues)
        return ValidationResult.of((*found, *self.user_issues(type_name)))

    def gate(self, type_name: str) -> tuple[tuple[Issue, ...], tuple[Issue, ...]]:
        """Return the issues that fail a type, and those that only warn, as the project wants.

        Where the project has not chosen, the warning that a type is stale says what CI makes of it.
        """
        return choices_of(self.config).gate(self.result(type_name))

    @property
    def format_note(self) -> str:
        """That another version of the package made the store; empty where this one did."""
        note = self._facts.format_note
        return f"note: {self.place}: {note}" if note else ""

    @property
    def not_run(self) -> str:
        """Why the types were not run, where that is worth saying."""
        return self._findings.not_run

    def _is_stray(self, name: str) -> bool:
        return name not in self.type_names

    def user_issues(self, type_name: str) -> tuple[Issue, ...]:
        """Return what the hook ``pytest_regen_validators`` finds in one type."""
        hook = self.config.hook.pytest_regen_validators
        if not hook.get_hookimpls():
            return ()  # The store need not be opened for nobody.
        if type_name not in self._user_issues:
            answers = hook(config=self.config, store=self.store, type_name=type_name)
            self._user_issues[type_name] = tuple(
                issue for answer in answers for issue in answer or ()
            )
        return self._user_issues[type_name]

    def user_errors(self, type_name: str) -> tuple[Issue, ...]:
        """Return those of ``user_issues`` that fail the type."""
        found = self.user_issues(type_name)
        return tuple(issue for issue in found if issue.severity == "error")

    def line_of(self, type_name: str) -> int | None:
        """Return the line on which the type's block begins, counted from 0."""
        return self._lines.get(type_name)

    @cached_property
    def _lines(self) -> Mapping[str, int]:
        known = self._known_findings
        return lines_of(self.store) if known is None else known.lines


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
        self._path = path
        self.name = name
        """As the source declares it."""

    @property
    def store_path(self) -> Path:
        """The store's folder."""
        return self._path

    def __repr__(self) -> str:
        # Without an address: an assertion that shows it becomes part of a recorded correction.
        return f"{self._path.name}[{self.name!r}]"

    @property
    def source(self) -> str:
        """The type's block of the source file, hand edits included.

        Raises:
            MissingBlockError: the file has no block of that name.
        """
        store = RegenStore.open(self._path)
        block = extract_type_block(store.source, self.name)
        if block is None:
            raise MissingBlockError(
                f"{store.source_path} has no block {self.name}",
                hint=f"pytest-regen regenerate {self._path} --type {self.name}",
            )
        return block

    @property
    def pages(self) -> tuple[StoredPage, ...]:
        """The stored outputs, by page."""
        return RegenStore.open(self._path).pages_of(self.name)

    @property
    def ir(self) -> TypeIR | None:
        """What the type must be."""
        return RegenStore.open(self._path).ir.type_named(self.name)

    def issues(self) -> tuple[Issue, ...]:
        """Return what is wrong with the type, warnings included; none if it is as it must be."""
        return StoreCheck(self._config, self._path).result(self.name).issues
