"""A failing item, regenerated and called again.

The loop sits inside the call phase: fixtures are set up once, there is one report, and async,
parametrized and non-function items heal alike, because pytest's own way of calling them is used.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from pytest_regen.errors import RegenError
from pytest_regen.pytest_plugin.cassettes.names import cassette_of_test, cassette_of_type
from pytest_regen.pytest_plugin.checks import StoreCheck, check_of, forget
from pytest_regen.pytest_plugin.choices import choices_of
from pytest_regen.pytest_plugin.commands import again_command, is_stale
from pytest_regen.pytest_plugin.costs import cost_in
from pytest_regen.pytest_plugin.failures import UnitError
from pytest_regen.pytest_plugin.healing.feedback import (
    Target,
    Unclear,
    failure_of,
    feedback_of,
    relevant,
    targets_of,
)
from pytest_regen.pytest_plugin.healing.records import Heal, add_heal
from pytest_regen.pytest_plugin.healing.stories import heal_of, planned, skipped
from pytest_regen.pytest_plugin.locate import id_from_here
from pytest_regen.pytest_plugin.marks import regen_mark
from pytest_regen.pytest_plugin.nodes import TypeItem
from pytest_regen.pytest_plugin.providers import turn_settings
from pytest_regen.regeneration import HealResult, fixable, heal_type
from pytest_regen.regeneration.values import Feedback
from pytest_regen.validation.freshness import update_command

__all__ = ["call_again"]


def call_again(item: pytest.Item, failure: BaseException) -> BaseException | None:
    """Regenerate what a failing item is about, call it again, and return the failure that is left.

    ``None`` means that it passes now.
    """
    return _Work(item, failure).run()


@dataclass(frozen=True, slots=True)
class _Asked:
    """What came of asking for one type."""

    result: HealResult
    left: BaseException | None
    """What the item fails with now."""
    cost: str
    """US dollars; empty where nothing was paid, or nobody knows the price."""


class _Calls:
    """Calls an item about candidates, and remembers how the last call ended."""

    def __init__(self, item: pytest.Item, target: Target, left: BaseException | None) -> None:
        self._item = item
        self._target = target
        self.left = left

    def __call__(self) -> Sequence[Feedback]:
        """Call the item and return what it has to say about the type."""
        forget(self._item.config, self._target.store)
        self.left = failure_of(self._item)
        if self.left is None:
            return ()
        return relevant(feedback_of(self._item, self.left), self._target.type_name)


class _Work:
    """The healing of one item."""

    def __init__(self, item: pytest.Item, failure: BaseException) -> None:
        self._item = item
        self._choices = choices_of(item.config)
        self._rounds = self._choices.attempts(regen_mark(item).attempts) - 1
        self._failure: BaseException | None = failure
        self._tried: set[tuple[str, str]] = set()

    def run(self) -> BaseException | None:
        """Heal one type after the other, until the item passes or nothing is left to try."""
        while self._rounds and self._failure is not None:
            target = self._next_target(self._failure)
            if target is None:
                break
            self._tried.add(target.key)
            if self._is_chosen(target):
                self._heal(target)
        return self._failure

    def _next_target(self, failure: BaseException) -> Target | None:
        try:
            targets = targets_of(self._item, failure)
        except (Unclear, RegenError, pytest.UsageError) as error:
            self._record(Heal(self._item.nodeid, "skipped", why=str(error)))
            return None
        return next((one for one in targets if one.key not in self._tried), None)

    def _is_chosen(self, target: Target) -> bool:
        unit = f"{self._check(target).place}::{target.type_name}"
        names = {unit, id_from_here(unit, self._item.config)}
        only = self._choices.only
        return not only or any(one in names or _matches(names, one) for one in only)

    def _check(self, target: Target) -> StoreCheck:
        return check_of(self._item.config, target.store)

    def _heal(self, target: Target) -> None:
        check = self._check(target)
        nodeid, unit = self._item.nodeid, f"{check.place}::{target.type_name}"
        try:
            if is_stale(check.result(target.type_name).issues) and not self._goes_on(target):
                why = "its stored prompts were made for another version of the document (STALE)"
                cassette, more = _cassette(self._item, target), ("--regen-ignore-stale",)
                again = again_command(self._item.config, nodeid, cassette, *more)
                command = again if self._can_be_mended(target) else update_command(check.store)
                self._record(skipped(unit, why, command))
            elif self._choices.dry_run:
                self._record(planned(nodeid, check, target, _cassette(self._item, target)))
            else:
                self._conclude(target, self._ask(target))
        except RegenError as error:
            why = "\n".join(filter(None, (error.what, error.why)))
            self._record(skipped(unit, why, error.hint))

    def _goes_on(self, target: Target) -> bool:
        """Return whether a stale type is asked again with its old prompt."""
        return self._choices.ignore_stale and self._can_be_mended(target)

    def _can_be_mended(self, target: Target) -> bool:
        """Return whether anything is wrong with a type that a reply could mend."""
        return bool(target.feedback or fixable(self._check(target).result(target.type_name)))

    def _ask(self, target: Target) -> _Asked:
        item, calls = self._item, _Calls(self._item, target, self._failure)
        with turn_settings(item, _cassette(item, target), item.nodeid) as turns:
            result = heal_type(
                target.store,
                target.type_name,
                settings=turns.settings,
                rounds=self._rounds,
                feedback=target.feedback,
                check=self._checker(target, calls),
                ignore=self._check(target).ignored,
            )
            result = replace(result, emulated=result.emulated or turns.is_emulated)
            is_live = turns.is_live
        cost = self._cost(target, result) if is_live else ""
        forget(item.config, target.store)
        if not result.regenerated:
            # What the rejected candidate said is not what the files on disk deserve.
            return _Asked(result, self._failure, cost)
        if isinstance(item, TypeItem):
            calls()
        return _Asked(result, calls.left, cost)

    def _checker(self, target: Target, calls: _Calls) -> Callable[[], Sequence[Feedback]] | None:
        """Return how the item is asked about a candidate; validation alone needs no asking."""
        item = self._item
        if not isinstance(item, TypeItem):
            return calls
        if not item.config.hook.pytest_regen_validators.get_hookimpls():
            return None
        forget(item.config, target.store)
        return lambda: self._validators(target)

    def _validators(self, target: Target) -> Sequence[Feedback]:
        forget(self._item.config, target.store)
        return self._check(target).user_errors(target.type_name)

    def _conclude(self, target: Target, asked: _Asked) -> None:
        item, self._failure = self._item, asked.left
        item.config.hook.pytest_regen_after_heal(item=item, result=asked.result)
        heal = heal_of(
            item.nodeid,
            self._check(target),
            asked.result,
            cassette=_cassette(item, target),
            feedback=target.feedback,
            passed=asked.left is None,
            cost=asked.cost,
        )
        self._record(heal)

    def _cost(self, target: Target, result: HealResult) -> str:
        """Return what live calls cost; what was emulated cost nothing."""
        if not result.calls or result.emulated:
            return ""
        model = self._choices.model or self._check(target).store.envelope.model
        cost = cost_in(self._item.config, result.usage, model)
        return "" if cost is None else f"{cost:.4f}"

    def _record(self, heal: Heal) -> None:
        add_heal(self._item, heal)
        if isinstance(self._failure, UnitError) and heal.why:
            self._failure.healing = f"Not regenerated: {heal.why}"


def _matches(names: Iterable[str], pattern: str) -> bool:
    return any(fnmatchcase(name, pattern) for name in names)


def _cassette(item: pytest.Item, target: Target) -> Path:
    """Return the file in which the regeneration of a type is recorded."""
    if not isinstance(item, TypeItem):
        return cassette_of_test(item)
    return cassette_of_type(item.config, target.store, target.type_name)
