"""A store and its validation, read once per process however many of its types are tested."""

import gc
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import pytest

from pytest_regen.modes import stale_outcome
from pytest_regen.pytest_plugin.choices import choices_of
from pytest_regen.pytest_plugin.locate import from_here, from_rootdir
from pytest_regen.sources import blocks
from pytest_regen.stores import RegenStore
from pytest_regen.validation import validate_store
from pytest_regen.validation.freshness import format_note
from pytest_regen.validation.issues import Issue, ValidationResult

__all__ = ["StoreCheck", "check_of", "forget"]

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
        return choices_of(self.config).settings.ignored(f"{self.place}::{type_name}")

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
        """Return the issues that fail a type, and those that are only told, as the project wants.

        Where the project has not chosen, the warning that a type is stale says what CI makes of it.
        """
        result, policy = self.result(type_name), choices_of(self.config).stale
        outcome = stale_outcome(policy)
        stale = tuple(issue for issue in result.warnings if issue.code == "STALE")
        told = tuple(issue for issue in result.warnings if issue.code != "STALE")
        if outcome == "fail":
            return (*result.errors, *stale), told
        if outcome == "ignore":
            return result.errors, told
        note = " (fails in CI)" if policy == "auto" else ""
        warned = tuple(replace(issue, message=issue.message + note) for issue in stale)
        return result.errors, (*warned, *told)

    @property
    def format_note(self) -> str:
        """That another version of the package made the store; empty where this one did."""
        note = format_note(self.store)
        return f"note: {self.place}: {note}" if note else ""

    def _is_stray(self, name: str) -> bool:
        return name not in self.type_names

    def user_issues(self, type_name: str) -> tuple[Issue, ...]:
        """Return what the hook ``pytest_regen_validators`` finds in one type."""
        if type_name not in self._user_issues:
            answers = self.config.hook.pytest_regen_validators(
                config=self.config, store=self.store, type_name=type_name
            )
            self._user_issues[type_name] = tuple(issue for one in answers for issue in one or ())
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
        return {block.name: block.first_line - 1 for block in blocks(self.store.source)}
