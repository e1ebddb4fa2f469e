"""A failing item, regenerated and called again.

The loop sits inside the call phase: fixtures are set up once, there is one report, and async,
parametrized and non-function items heal alike, because pytest's own way of calling them is used.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

import pytest

from pytest_regen.errors import RegenError
from pytest_regen.pytest_plugin.checks import StoreCheck, check_of, forget
from pytest_regen.pytest_plugin.choices import choices_of
from pytest_regen.pytest_plugin.failures import UnitError
from pytest_regen.pytest_plugin.feedback import Target, Unclear, feedback_of, targets_of
from pytest_regen.pytest_plugin.marks import regen_mark
from pytest_regen.pytest_plugin.nodes import TypeItem
from pytest_regen.pytest_plugin.places import heal_cassette
from pytest_regen.pytest_plugin.providers import turn_settings
from pytest_regen.pytest_plugin.records import Heal, add_heal
from pytest_regen.pytest_plugin.stories import heal_of, planned, skipped
from pytest_regen.regeneration import HealResult, heal_type
from pytest_regen.regeneration.values import Feedback

__all__ = ["call_again", "may_heal", "may_talk"]


def may_talk(item: pytest.Item) -> bool:
    """Return whether a failing item may be called again at all."""
    # pytest-rerunfailures starts the whole item again; healing it twice would pay twice.
    return getattr(item, "execution_count", 1) <= 1 and not item.get_closest_marker("xfail")


def may_heal(item: pytest.Item) -> bool:
    """Return whether a failure of this item is to be healed at all."""
    choices = choices_of(item.config)
    return may_talk(item) and (choices.heal or choices.dry_run)


def call_again(item: pytest.Item, failure: BaseException) -> BaseException | None:
    """Regenerate what a failing item is about, call it again, and return the failure that is left.

    ``None`` means that it passes now.
    """
    return _Work(item, failure).run()


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
        while self._failure is not None and self._rounds > 0:
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
        except (Unclear, RegenError) as error:
            self._record(Heal(self._item.nodeid, "skipped", why=str(error)))
            return None
        return next((one for one in targets if one.key not in self._tried), None)

    def _is_chosen(self, target: Target) -> bool:
        unit = f"{self._check(target).place}::{target.type_name}"
        only = self._choices.only
        return not only or any(one == unit or fnmatchcase(unit, one) for one in only)

    def _check(self, target: Target) -> StoreCheck:
        return check_of(self._item.config, target.store)

    def _heal(self, target: Target) -> None:
        check = self._check(target)
        nodeid, unit = self._item.nodeid, f"{check.place}::{target.type_name}"
        try:
            if check.store.is_stale(target.type_name) and not self._choices.ignore_stale:
                why = "its pages were written for another IR (STALE)"
                self._record(skipped(nodeid, unit, why, "--regen-ignore-stale"))
            elif self._choices.dry_run:
                self._record(planned(nodeid, check, target))
            else:
                self._conclude(target, self._ask(target))
        except RegenError as error:
            self._record(skipped(nodeid, unit, str(error)))

    def _ask(self, target: Target) -> HealResult:
        before = self._failure
        cassette = heal_cassette(self._item, target)
        with turn_settings(self._item, cassette, self._item.nodeid) as asking:
            result = heal_type(
                target.store,
                target.type_name,
                settings=asking.settings,
                rounds=self._rounds,
                feedback=target.feedback,
                check=self._checker(target),
                ignore=self._check(target).ignored,
            )
            result = replace(result, emulated=result.emulated or asking.is_emulated())
        forget(self._item.config, target.store)
        if not result.regenerated:
            # What the rejected candidate said is not what the files on disk deserve.
            self._failure = before
        return result

    def _checker(self, target: Target) -> Callable[[], Sequence[Feedback]] | None:
        """Return how the item is asked about a candidate; validation alone needs no asking."""
        item = self._item
        if not isinstance(item, TypeItem):
            return lambda: target.relevant(self._call(target))
        if not item.config.hook.pytest_regen_validators.get_hookimpls():
            return None
        forget(item.config, target.store)
        return lambda: self._validators(target)

    def _validators(self, target: Target) -> Sequence[Feedback]:
        forget(self._item.config, target.store)
        return self._check(target).user_errors(target.type_name)

    def _call(self, target: Target) -> Sequence[Feedback]:
        """Call the item and return what it has to say."""
        forget(self._item.config, target.store)
        self._failure = None
        try:
            self._item.runtest()
        except (Exception, pytest.fail.Exception) as error:
            if isinstance(error, pytest.xfail.Exception):
                raise
            self._failure = error
            return feedback_of(self._item, error)
        return ()

    def _conclude(self, target: Target, result: HealResult) -> None:
        item = self._item
        if isinstance(item, TypeItem) and result.regenerated:
            self._call(target)
        item.config.hook.pytest_regen_after_heal(item=item, result=result)
        passed = self._failure is None
        self._record(heal_of(item.nodeid, self._check(target), result, passed=passed))

    def _record(self, heal: Heal) -> None:
        add_heal(self._item, heal)
        if isinstance(self._failure, UnitError) and heal.why:
            self._failure.healing = f"Not regenerated: {heal.why}"
