"""Healing of units: a failing item's units are asked for again, and the item is called again."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from pytest_regen.errors import RegenError
from pytest_regen.pytest_plugin.choices import choices_of, regen_mark
from pytest_regen.pytest_plugin.healing.ahead import Asked, asked_by, take_ahead
from pytest_regen.pytest_plugin.healing.feedback import (
    feedback_about,
    feedback_of,
    is_feedback,
)
from pytest_regen.pytest_plugin.healing.outcomes import (
    ItemCalls,
    cost_of,
    heal_report,
    is_chosen,
    next_after,
    tell_failure,
)
from pytest_regen.pytest_plugin.healing.trials import FreshCalls, missing_trials
from pytest_regen.pytest_plugin.loaded import loaded_modules
from pytest_regen.pytest_plugin.names import (
    asking_options,
    cassette_of_test,
    cassette_of_unit,
    heal_command,
)
from pytest_regen.pytest_plugin.providers import may_get_answer, turn_settings
from pytest_regen.pytest_plugin.summary import HealReport, add_heal
from pytest_regen.pytest_plugin.units import (
    FileCheck,
    UnitItem,
    WrongUnitError,
    forget_units,
    issues_json,
    marked_units,
    units_of,
)
from pytest_regen.regeneration import HealResult
from pytest_regen.regeneration.policies import fixable_issues
from pytest_regen.regeneration.queue import Flow, drive_flow
from pytest_regen.turns.values import estimate_tokens
from pytest_regen.units.asking import ask_for_unit_steps
from pytest_regen.units.naming import command, unit_id
from pytest_regen.validation.issues import Feedback, Issue


def flow_of_unit(item: pytest.Item, failure: BaseException) -> Flow[Asked] | None:
    """Return the work on the unit of an item that fails; ``None`` where nothing is asked for it.

    Raises:
        RegenError: the item's turn tells why.
    """
    return _Healing(item, failure).flow()


def heal_units(item: pytest.Item, failure: BaseException) -> BaseException | None:
    """Ask for the units that an item is about, call it again, and return the failure that is left.

    ``None`` means that it passes now.
    """
    return _Healing(item, failure).run()


class _Healing:
    """The healing of one item."""

    def __init__(self, item: pytest.Item, failure: BaseException) -> None:
        self._item = item
        self._config = item.config
        self._choices = choices_of(item.config)
        self._rounds = self._choices.attempts(regen_mark(item).attempts) - 1
        self._failure: BaseException | None = failure
        """What is left of it, with candidates that wait for review."""
        self._stored_failure: BaseException | None = None
        """The failure itself, where such candidates are not in the files."""

    def run(self) -> BaseException | None:
        """Heal one unit after the other, until the item passes or nothing is left to try."""
        for path, name in self._targets():
            if self._failure is None or not self._rounds:
                break
            check = units_of(self._config, path)
            if is_chosen(unit_id(check.place, name), self._config):
                self._heal(check, name)
        return self._stored_failure or self._failure

    def flow(self) -> Flow[Asked] | None:
        """Return the work on the item's unit as steps; ``None`` where nothing is to be asked."""
        for path, name in self._targets() if self._rounds else ():
            check = units_of(self._config, path)
            is_asked = is_chosen(unit_id(check.place, name), self._config)
            if is_asked and not check.units.obstacle(name):
                return self._steps(check, name)
        return None

    def _steps(self, check: FileCheck, name: str) -> Flow[Asked]:
        item, jobs = self._item, self._choices.jobs
        cassette, is_stale = self._cassette(check, name), self._is_stale
        with turn_settings(item, cassette, item.nodeid, of_types=False, jobs=jobs) as turns:
            steps = ask_for_unit_steps(
                check.file, name, settings=turns.settings, rounds=self._rounds, is_stale=is_stale
            )
            work = yield from asked_by(steps, turns.settings.provider)
            (result,) = work.results
            result = replace(result, emulated=result.emulated or turns.is_emulated)
            is_live = turns.is_live
        if result.regenerated:
            # What is looked at next may not be at fault any more.
            forget_units(self._config, check.path)
        return Asked(check.path, check.place, work, result, (), is_live)

    @property
    def _is_stale(self) -> bool:
        """Whether the item fails because its unit is stale."""
        issues = self._failure.issues if isinstance(self._failure, WrongUnitError) else ()
        return any(issue.code == "STALE" for issue in issues)

    def _targets(self) -> Sequence[tuple[Path, str]]:
        if isinstance(self._item, UnitItem):
            # A kind that raises has to be corrected; no reply can help.
            is_wrong = isinstance(self._failure, WrongUnitError)
            # The one item of a file without names stands for no unit.
            is_unit = is_wrong and self._item.unit in self._item.check.names
            return [(self._item.file, self._item.unit)] if is_unit else []
        marked = marked_units(self._item)
        if not (is_feedback(self._failure) or any(self._is_imported(path) for path, _ in marked)):
            return []
        named = {
            note.type_name
            for note in feedback_of(self._item, self._failure or AssertionError())
            if isinstance(note, Issue) and note.type_name
        }
        # A failure that names units of the mark is about those.
        return [unit for unit in marked if unit[1] in named] or marked

    def _is_imported(self, path: Path) -> bool:
        return units_of(self._config, path).file.kind.is_imported

    def _heal(self, check: FileCheck, name: str) -> None:
        feedback = self._feedback(name)
        try:
            asked = take_ahead(self._item)
            forget = partial(forget_units, self._config, check.path)
            if asked is None and units_of(self._config, check.path) is not check:
                # What it uses was healed meanwhile: it may be right.
                calls = ItemCalls(self._item, name, forget, self._failure)
                calls()
                self._failure, check = calls.failure, units_of(self._config, check.path)
                if self._failure is None:
                    return
            obstacle = check.units.obstacle(name)
            if asked is not None:
                calls = ItemCalls(self._item, name, forget, self._failure)
                calls()
                self._failure = calls.failure
                self._conclude(check, name, feedback, calls, asked.result, is_live=asked.is_live)
            elif self._choices.dry_run:
                self._record(self._plan_record(check, name, feedback, obstacle))
            elif obstacle:
                self._record(self._skip_record(check, name, obstacle))
            elif isinstance(self._item, UnitItem) or not check.file.kind.is_imported:
                self._ask(check, name, feedback)
            else:
                self._ask_apart(check, name)
        except RegenError as error:
            why = "\n".join(filter(None, (error.what, error.why)))
            unit = unit_id(check.place, name)
            self._record(HealReport(unit, "skipped", why=why, next=error.hint, has_pages=False))

    def _feedback(self, name: str) -> tuple[Feedback, ...]:
        """Return what the item reports of a unit, beyond the unit's own issues."""
        if isinstance(self._item, UnitItem) or self._failure is None:
            return ()
        return feedback_about(feedback_of(self._item, self._failure), name)

    def _ask_apart(self, check: FileCheck, name: str) -> None:
        """Ask for a unit that tests import, once the test fails in a fresh process as well."""
        obstacle = missing_trials()
        if obstacle:
            self._record(self._skip_record(check, name, obstacle))
            return
        seconds = check.file.kind.trial_seconds
        calls = FreshCalls(self._item, name, check.path, self._failure, seconds)
        is_old = bool(loaded_modules(self._config).changed())
        if not (is_old or may_get_answer(self._item, self._cassette(check, name))):
            # Nothing is tried for nothing: the first turn tells what is missing.
            self._ask(check, name, self._feedback(name), calls)
            return
        trial = calls.try_now()
        if trial.passed and is_old:
            # It failed with the code that this process imported before another test healed it.
            loaded_modules(self._config).note_passed(self._item)
            self._failure = None
        elif trial.passed or trial.obstacle:
            why = trial.obstacle or "it passes in a process of its own: the unit is not at fault"
            self._record(self._skip_record(check, name, why))
        else:
            self._ask(check, name, feedback_about(trial.feedback, name), calls)

    def _ask(
        self,
        check: FileCheck,
        name: str,
        feedback: tuple[Feedback, ...],
        calls: ItemCalls | FreshCalls | None = None,
    ) -> None:
        item, failure = self._item, self._failure
        cassette = self._cassette(check, name)
        if calls is None:
            calls = ItemCalls(item, name, lambda: forget_units(self._config, check.path), failure)
        with turn_settings(item, cassette, item.nodeid, of_types=False) as turns:
            steps = ask_for_unit_steps(
                check.file,
                name,
                settings=turns.settings,
                rounds=self._rounds,
                feedback=feedback,
                check=None if isinstance(item, UnitItem) else calls,
                is_stale=self._is_stale,
            )
            work = drive_flow(steps, turns.settings)
            (result,) = work.results
            emulated = result.emulated or turns.is_emulated
            result = replace(result, diff=work.diff, emulated=emulated)
            is_live = turns.is_live
        self._conclude(check, name, feedback, calls, result, is_live=is_live)

    def _conclude(
        self,
        check: FileCheck,
        name: str,
        feedback: tuple[Feedback, ...],
        calls: ItemCalls | FreshCalls,
        result: HealResult,
        *,
        is_live: bool,
    ) -> None:
        """Note what came of asking; the item is called again where validation alone decided."""
        item = self._item
        forget_units(self._config, check.path)
        if result.pending:
            self._stored_failure = self._stored_failure or self._failure
        if result.regenerated or result.pending:
            if isinstance(item, UnitItem):
                calls()
            self._failure = calls.failure
        item.config.hook.pytest_regen_after_heal(item=item, result=result)
        after = units_of(self._config, check.path)
        entry = after.units.entry(name)
        stored_model = entry.model if entry else ""
        cost = cost_of(self._config, result, stored_model) if is_live else ""
        self._record(self._heal_of(after, name, result, feedback, cost))

    def _cassette(self, check: FileCheck, name: str) -> Path:
        """Return the file in which asking for a unit is recorded."""
        if not isinstance(self._item, UnitItem):
            return cassette_of_test(self._item)
        return cassette_of_unit(self._config, check.place, name)

    def _record(self, heal: HealReport) -> None:
        add_heal(self._item, heal)
        tell_failure(self._stored_failure or self._failure, heal)

    # What the summary says

    def _heal_of(
        self,
        check: FileCheck,
        name: str,
        result: HealResult,
        feedback: Sequence[Feedback],
        cost: str,
    ) -> HealReport:
        passed = self._failure is None
        return heal_report(
            unit_id(check.place, name),
            result,
            self._config,
            passed=passed,
            following="" if passed else self._next(check, name, result),
            where="the unit",
            cassette=self._cassette(check, name),
            findings=issues_json((*result.issues_before, *feedback), check),
            pages=[page for _, page in result.regenerated],
            cost=cost,
            has_pages=False,
        )

    def _skip_record(self, check: FileCheck, name: str, why: str) -> HealReport:
        unit = unit_id(check.place, name)
        return HealReport(unit, "skipped", why=why, next=check.command_for(name), has_pages=False)

    def _plan_record(
        self, check: FileCheck, name: str, feedback: Sequence[Feedback], obstacle: str
    ) -> HealReport:
        """Return what a dry run says: what would be asked, and about how large it is."""
        issues = check.units.issues(name)
        is_asked = not obstacle and bool(fixable_issues(issues) or feedback or self._failure)
        units = check.units
        tokens = estimate_tokens(units.system + units.prompt(name)) if is_asked else 0
        cassette = self._cassette(check, name)
        following = heal_command(self._config, self._item.nodeid, cassette)
        return HealReport(
            unit_id(check.place, name),
            "planned",
            pages=[1] if is_asked else [],
            estimate=tokens,
            next=following if is_asked else check.command_for(name),
            has_pages=False,
        )

    def _next(self, check: FileCheck, name: str, result: HealResult) -> str:
        asking = asking_options(self._config)
        correct = command("regenerate", check.here, name, "--correction", "what is wrong", *asking)
        return next_after(
            result,
            self._item.nodeid,
            self._config,
            self._cassette(check, name),
            correct=correct,
            mend=check.command_for(name),
        )
