"""A store and its validation, read once per process however many of its types are tested."""

import gc
import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import pytest

from pytest_regen.documents.ir import TypeIR
from pytest_regen.errors import BoundaryError, MissingBlockError
from pytest_regen.pytest_plugin.choices import choices_of
from pytest_regen.pytest_plugin.selection import from_here, from_rootdir, store_path
from pytest_regen.sources import blocks, extract_type_block
from pytest_regen.stores import RegenStore, StoredPage
from pytest_regen.validation import validate_store
from pytest_regen.validation.behaviour import StoreBehaviour
from pytest_regen.validation.issues import Issue, ValidationResult
from pytest_regen.validation.stores import behaviour_of_store, format_note, wants_behaviour

__all__ = ["StoreCheck", "StoreHandle", "StoreOpener", "TypeHandle", "check_of", "forget"]


_CHECKS: pytest.StashKey[dict[Path, "StoreCheck"]] = pytest.StashKey()


def check_of(config: pytest.Config, path: Path) -> "StoreCheck":
    """Return what is known of the store at ``path``; read on first use."""
    checks = config.stash.setdefault(_CHECKS, {})
    if path not in checks:
        checks[path] = StoreCheck(config, path)
    return checks[path]


def forget(config: pytest.Config, path: Path) -> None:
    """Drop what is known of a store, because it was written."""
    config.stash.setdefault(_CHECKS, {}).pop(path, None)


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

    @cached_property
    def store(self) -> RegenStore:
        """The artifacts.

        Raises:
            StoreError: they are missing, unreadable or contradict one another.
        """
        return RegenStore.open(self.path)

    @cached_property
    def type_names(self) -> tuple[str, ...]:
        """The types that have an item, in the order of their prompts.

        Raises:
            StoreError: an artifact is missing or unreadable, or they contradict one another.
        """
        _ = self.store.ir  # Read on first use, and no item can do without it.
        return self.store.type_names

    @cached_property
    def results(self) -> dict[str, ValidationResult]:
        """What validation found, type by type, codes that the project ignores left out."""
        found = validate_store(self.store, ignore=self.ignored)
        # It stays until the end of the run. Searching it for garbage while a thousand items are
        # run costs as much as validating it.
        gc.freeze()
        return found

    def ignored(self, type_name: str) -> frozenset[str]:
        """Return the codes that the project ignores in one type."""
        return choices_of(self.config).settings.ignored_codes(f"{self.place}::{type_name}")

    @property
    def source_path(self) -> Path:
        """The assembled source."""
        return self.store.source_path

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
        note = format_note(self.store)
        return f"note: {self.place}: {note}" if note else ""

    @cached_property
    def behaviour(self) -> StoreBehaviour:
        """What running the types showed, unless the project ignores that."""
        if wants_behaviour(self.store, self.ignored):
            return behaviour_of_store(self.store)
        return StoreBehaviour()

    @property
    def not_run(self) -> str:
        """Why the types were not run, where that is worth saying."""
        found = self.behaviour
        return "" if found.is_expected else found.why_not

    def _is_stray(self, name: str) -> bool:
        return name not in self.type_names

    def user_issues(self, type_name: str) -> tuple[Issue, ...]:
        """Return what the hook ``pytest_regen_validators`` finds in one type."""
        if type_name not in self._user_issues:
            answers = self.config.hook.pytest_regen_validators(
                config=self.config, store=self.store, type_name=type_name
            )
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
    def _lines(self) -> dict[str, int]:
        try:
            found = blocks(self.store.source)
        except BoundaryError:
            return {}  # The types fail with it; to be shown, none of them needs a line.
        return {block.name: block.first_line - 1 for block in found}


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
