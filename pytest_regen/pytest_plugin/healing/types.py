"""Healing of types: a failing item's types are regenerated, and the item is called again.

The loop sits inside the call phase: fixtures are set up once, there is one report, and async,
parametrized and non-function items heal alike, because pytest's own way of calling them is used.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from pytest_regen.errors import RegenError
from pytest_regen.pytest_plugin.choices import choices_of, regen_mark
from pytest_regen.pytest_plugin.healing.ahead import Asked, asked_by, take_ahead
from pytest_regen.pytest_plugin.healing.feedback import (
    NoTargetError,
    Target,
    targets_of,
)
from pytest_regen.pytest_plugin.healing.outcomes import (
    ItemCalls,
    cost_of,
    heal_report,
    is_chosen,
    next_after,
    tell_failure,
)
from pytest_regen.pytest_plugin.items import TypeItem, findings_json
from pytest_regen.pytest_plugin.names import (
    cassette_of_test,
    cassette_of_type,
    heal_command,
    is_edited,
    is_stale,
    other_model_command,
    regenerate_command,
    repair_command,
    rerun_command,
    template_writes,
)
from pytest_regen.pytest_plugin.providers import provider_of, turn_settings
from pytest_regen.pytest_plugin.stores import StoreCheck, check_of, forget
from pytest_regen.pytest_plugin.summary import HealReport, add_heal
from pytest_regen.regeneration import (
    HealResult,
    fixable,
    heal_type,
    heal_type_steps,
    pages_at_fault,
)
from pytest_regen.regeneration.prompt_faults import SPELLING_ADVICE
from pytest_regen.regeneration.queue import Flow
from pytest_regen.regeneration.store_view import StoreView
from pytest_regen.turns.providers import TemplateProvider
from pytest_regen.turns.values import estimate_tokens
from pytest_regen.validation.issues import Feedback
from pytest_regen.validation.stores import update_command

_BAD_DOCUMENT = "correct the API description, then pytest-regen generate on it"


def plan_record(nodeid: str, check: StoreCheck, target: "Target", cassette: Path) -> HealReport:
    """Return the record of a dry run: the pages that would be asked, and their estimate.

    Args:
        nodeid: the item that asks.
        check: the store.
        target: the type, and what is wrong with it.
        cassette: where it would be recorded.
    """
    by_template = template_writes(check, target.type_name, target.feedback)
    prompts = check.store.prompts_of(target.type_name)
    issues = check.result(target.type_name)
    errors = StoreView(check.store, check.ignored).correctable(target.type_name)
    found = (*errors, *target.feedback)
    pages = [page for page in pages_at_fault(found, len(prompts)) if found]
    asked = [prompt for prompt in prompts if prompt.page in pages]
    following = heal_command(check.config, nodeid, cassette, by_template=by_template)
    if is_edited(issues.errors):
        # As without the dry run: an edit is kept or dropped, not regenerated.
        pages, asked = [], []
        following = repair_command(check, target.type_name, issues.errors)
    elif not pages:
        ordered = len(errors) < len(fixable(issues))
        repair = repair_command(check, target.type_name, issues.issues)
        following = SPELLING_ADVICE if ordered else repair or _BAD_DOCUMENT
    return HealReport(
        f"{check.place}::{target.type_name}",
        "planned",
        pages=pages,
        estimate=0
        if by_template
        else sum(estimate_tokens(prompt.system + prompt.user) for prompt in asked),
        next=following,
        by_template=by_template,
    )


def _next(nodeid: str, check: StoreCheck, result: HealResult, cassette: Path) -> str:
    """Return what to run or do; never what would end where this run did."""
    config, name = check.config, result.type_name
    page = next((issue.page for issue in result.issues_after if issue.page), None)
    if result.ordered and result.stop_reason == "unfixable":
        return SPELLING_ADVICE
    if result.by_template and result.stop_reason not in {None, "clean"}:
        return other_model_command(config, nodeid, cassette)
    is_unfixable = result.stop_reason == "unfixable"
    mend = _BAD_DOCUMENT if is_unfixable else repair_command(check, name, result.issues_after)
    correct = regenerate_command(check, name, page, "--correction 'what is wrong'")
    return next_after(result, nodeid, config, cassette, correct=correct, mend=mend)


def flow_of_type(item: pytest.Item, failure: BaseException) -> Flow[Asked] | None:
    """Return the work on the type of an item that fails; ``None`` where nothing is asked for it.

    Raises:
        RegenError: the item's turn tells why.
    """
    return _Healing(item, failure).flow()


def heal_types(item: pytest.Item, failure: BaseException) -> BaseException | None:
    """Regenerate what a failing item is about, call it again, and return the failure that is left.

    ``None`` means that it passes now.
    """
    return _Healing(item, failure).run()


@dataclass(frozen=True, slots=True)
class _Attempt:
    """The result of regenerating one type."""

    result: HealResult
    failure: BaseException | None
    """What the item fails with now."""
    cost: str
    """US dollars; empty where nothing was paid, or no price is known."""


class _Healing:
    """The healing of one item."""

    def __init__(self, item: pytest.Item, failure: BaseException) -> None:
        self._item = item
        self._choices = choices_of(item.config)
        self._rounds = self._choices.attempts(regen_mark(item).attempts) - 1
        self._failure: BaseException | None = failure
        """What is left of it, with candidates that wait for review."""
        self._stored_failure: BaseException | None = None
        """The failure itself, where such candidates are not in the files."""
        self._keys_tried: set[tuple[str, str]] = set()

    def run(self) -> BaseException | None:
        """Heal one type after the other, until the item passes or nothing is left to try."""
        while self._rounds and self._failure is not None:
            target = self._next_target(self._failure)
            if target is None:
                break
            self._keys_tried.add(target.key)
            if is_chosen(self._unit(target), self._item.config):
                self._heal(target)
        return self._stored_failure or self._failure

    def _unit(self, target: Target) -> str:
        return f"{self._check(target).place}::{target.type_name}"

    def flow(self) -> Flow[Asked] | None:
        """Return the work on the item's type as steps; ``None`` where nothing is to be asked."""
        target = self._next_target(self._failure) if self._rounds and self._failure else None
        if target is None or not is_chosen(self._unit(target), self._item.config):
            return None
        wrote = self._template_writes(target)
        provider = provider_of(self._item, of_types=True, by_template=wrote)
        is_template = isinstance(provider, TemplateProvider)
        is_asked = not is_template and self._is_fixable(target) and not self._is_too_old(target)
        return self._steps(target) if is_asked else None

    def _steps(self, target: Target) -> Flow[Asked]:
        item, jobs = self._item, self._choices.jobs
        cassette = _cassette(item, target)
        calls = ItemCalls(item, target.type_name, lambda: None, self._failure)
        with turn_settings(item, cassette, item.nodeid, of_types=True, jobs=jobs) as turns:
            steps = heal_type_steps(
                target.store,
                target.type_name,
                settings=turns.settings,
                rounds=self._rounds,
                feedback=target.feedback,
                check=self._checker(target, calls),
                ignore=self._check(target).ignored,
            )
            work = yield from asked_by(steps, turns.settings.provider)
            (result,) = work.results
            result = replace(result, emulated=result.emulated or turns.is_emulated)
            is_live = turns.is_live
        if result.regenerated:
            # What is looked at next may not be at fault any more.
            forget(item.config, target.store)
        return Asked(
            target.store, work.before.store.source_path.name, work, result, target.feedback, is_live
        )

    def _template_writes(self, target: Target) -> bool:
        return template_writes(self._check(target), target.type_name, target.feedback)

    def _next_target(self, failure: BaseException) -> Target | None:
        try:
            targets = targets_of(self._item, failure)
        except (NoTargetError, RegenError, pytest.UsageError) as error:
            self._record(HealReport(self._item.nodeid, "skipped", why=str(error)))
            return None
        return next((target for target in targets if target.key not in self._keys_tried), None)

    def _check(self, target: Target) -> StoreCheck:
        return check_of(self._item.config, target.store)

    def _heal(self, target: Target) -> None:
        check = self._check(target)
        nodeid, unit = self._item.nodeid, self._unit(target)
        try:
            asked = take_ahead(self._item)
            if asked is not None:
                self._conclude(replace(target, feedback=asked.feedback), self._taken(target, asked))
            elif self._is_too_old(target):
                why = "its stored prompts were made for another version of the document (STALE)"
                cassette, more = _cassette(self._item, target), ("--regen-ignore-stale",)
                again = rerun_command(self._item.config, nodeid, cassette, *more)
                command = again if self._is_fixable(target) else update_command(check.store)
                self._record(HealReport(unit, "skipped", why=why, next=command))
            elif self._choices.dry_run:
                self._record(plan_record(nodeid, check, target, _cassette(self._item, target)))
            else:
                self._conclude(target, self._ask(target))
        except RegenError as error:
            why = "\n".join(filter(None, (error.what, error.why)))
            self._record(HealReport(unit, "skipped", why=why, next=error.hint))

    def _is_too_old(self, target: Target) -> bool:
        """Return whether a type is stale, and not to be asked again with its old prompt."""
        found = self._check(target).result(target.type_name).issues
        is_asked = self._choices.ignore_stale and self._is_fixable(target)
        return is_stale(found) and not is_asked

    def _is_fixable(self, target: Target) -> bool:
        """Return whether anything is wrong with a type that a reply could repair."""
        return bool(target.feedback or fixable(self._check(target).result(target.type_name)))

    def _taken(self, target: Target, asked: Asked) -> _Attempt:
        """Return what came of the type ahead of the item's turn; the item is called again."""
        item, result = self._item, asked.result
        cost = cost_of(result) if asked.is_live else ""
        calls = ItemCalls(
            item, target.type_name, lambda: forget(item.config, target.store), self._failure
        )
        calls()
        return _Attempt(result, calls.failure, cost)

    def _ask(self, target: Target) -> _Attempt:
        item = self._item
        calls = ItemCalls(
            item, target.type_name, lambda: forget(item.config, target.store), self._failure
        )
        with turn_settings(
            item,
            _cassette(item, target),
            item.nodeid,
            of_types=True,
            by_template=self._template_writes(target),
        ) as turns:
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
        cost = cost_of(result) if is_live else ""
        forget(item.config, target.store)
        if not (result.regenerated or result.pending):
            # The failure of a rejected candidate says nothing about the files on disk.
            return _Attempt(result, self._failure, cost)
        if isinstance(item, TypeItem):
            calls()
        return _Attempt(result, calls.failure, cost)

    def _checker(self, target: Target, calls: ItemCalls) -> Callable[[], Sequence[Feedback]] | None:
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

    def _conclude(self, target: Target, attempt: _Attempt) -> None:
        item = self._item
        if attempt.result.pending:
            self._stored_failure = self._stored_failure or self._failure
        self._failure = attempt.failure
        item.config.hook.pytest_regen_after_heal(item=item, result=attempt.result)
        check, result = self._check(target), attempt.result
        name, cassette = result.type_name, _cassette(item, target)
        heal = heal_report(
            f"{check.place}::{name}",
            result,
            item.config,
            passed=attempt.failure is None,
            following=_next(item.nodeid, check, result, cassette),
            where="the pages of the type",
            cassette=cassette,
            findings=findings_json((*result.issues_before, *target.feedback), check),
            pages=sorted(page for type_name, page in result.regenerated if type_name == name),
            cost=attempt.cost,
        )
        self._record(heal)

    def _record(self, heal: HealReport) -> None:
        add_heal(self._item, heal)
        tell_failure(self._stored_failure or self._failure, heal)


def _cassette(item: pytest.Item, target: Target) -> Path:
    """Return the file in which the regeneration of a type is recorded."""
    if not isinstance(item, TypeItem):
        return cassette_of_test(item)
    return cassette_of_type(item.config, target.store, target.type_name)
