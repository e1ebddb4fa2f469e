"""Healing of units: a failing item's units are asked for again, and the item is called again."""

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from pytest_regen.errors import BudgetError, CassetteError, MissingKeyError, RegenError
from pytest_regen.files import safe_file_name
from pytest_regen.pytest_plugin.choices import choices_of, regen_mark
from pytest_regen.pytest_plugin.healing.feedback import (
    failure_of,
    feedback_about,
    feedback_of,
    is_feedback,
)
from pytest_regen.pytest_plugin.names import (
    cassette_of_test,
    heal_command,
    node_command,
    recording_command,
    rerun_command,
)
from pytest_regen.pytest_plugin.providers import cost_in, turn_settings
from pytest_regen.pytest_plugin.selection import from_rootdir, id_from_here
from pytest_regen.pytest_plugin.summary import HealReport, Outcome, add_heal, tokens_in
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
from pytest_regen.regeneration.values import Feedback
from pytest_regen.turns.values import estimate_tokens
from pytest_regen.units.asking import ask_for_unit
from pytest_regen.units.naming import command, unit_id
from pytest_regen.validation.issues import Issue

__all__ = ["heal_units"]

_WHY = {
    "clean": "what fails is not in the unit",
    "attempts": "it still fails after the attempts allowed",
    "no_progress": "the same errors came back; asking again as before would not help",
}


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

    def run(self) -> BaseException | None:
        """Heal one unit after the other, until the item passes or nothing is left to try."""
        for path, name in self._targets():
            if self._failure is None or not self._rounds:
                break
            check = units_of(self._config, path)
            if self._is_chosen(check, name):
                self._heal(check, name)
        return self._failure

    def _targets(self) -> Sequence[tuple[Path, str]]:
        if isinstance(self._item, UnitItem):
            # A kind that raises has to be corrected; no reply can help.
            is_wrong = isinstance(self._failure, WrongUnitError)
            # The one item of a file without names stands for no unit.
            is_unit = is_wrong and self._item.unit in self._item.check.names
            return [(self._item.file, self._item.unit)] if is_unit else []
        if not is_feedback(self._failure):
            return []
        marked = marked_units(self._item)
        named = {
            note.type_name
            for note in feedback_of(self._item, self._failure or AssertionError())
            if isinstance(note, Issue) and note.type_name
        }
        # A failure that names units of the mark is about those.
        return [unit for unit in marked if unit[1] in named] or marked

    def _is_chosen(self, check: FileCheck, name: str) -> bool:
        unit = unit_id(check.place, name)
        names = {unit, id_from_here(unit, self._config)}
        only = self._choices.only
        return not only or any(
            pattern in names or any(fnmatchcase(known, pattern) for known in names)
            for pattern in only
        )

    def _heal(self, check: FileCheck, name: str) -> None:
        feedback = self._feedback(name)
        try:
            obstacle = check.units.obstacle(name)
            if self._choices.dry_run:
                self._record(self._plan_record(check, name, feedback, obstacle))
            elif obstacle:
                self._record(self._skip_record(check, name, obstacle))
            else:
                self._ask(check, name, feedback)
        except RegenError as error:
            why = "\n".join(filter(None, (error.what, error.why)))
            unit = unit_id(check.place, name)
            self._record(HealReport(unit, "skipped", why=why, next=error.hint, has_pages=False))

    def _feedback(self, name: str) -> tuple[Feedback, ...]:
        """Return what the item reports of a unit, beyond the unit's own issues."""
        if isinstance(self._item, UnitItem) or self._failure is None:
            return ()
        return feedback_about(feedback_of(self._item, self._failure), name)

    def _ask(self, check: FileCheck, name: str, feedback: tuple[Feedback, ...]) -> None:
        item, failure = self._item, self._failure
        cassette = self._cassette(check, name)
        calls = _Calls(item, check.path, name, failure)
        is_stale = isinstance(failure, WrongUnitError) and any(
            issue.code == "STALE" for issue in failure.issues
        )
        with turn_settings(item, cassette, item.nodeid) as turns:
            result = ask_for_unit(
                check.file,
                name,
                settings=turns.settings,
                rounds=self._rounds,
                feedback=feedback,
                check=None if isinstance(item, UnitItem) else calls,
                is_stale=is_stale,
            )
            result = replace(result, emulated=result.emulated or turns.is_emulated)
            is_live = turns.is_live
        forget_units(self._config, check.path)
        if result.regenerated:
            if isinstance(item, UnitItem):
                calls()
            self._failure = calls.failure
        item.config.hook.pytest_regen_after_heal(item=item, result=result)
        after = units_of(self._config, check.path)
        cost = self._cost(after, name, result) if is_live else ""
        self._record(self._heal_of(after, name, result, feedback, cost))

    def _cost(self, check: FileCheck, name: str, result: HealResult) -> str:
        """Return what live calls cost; what was emulated cost nothing."""
        if not result.calls or result.emulated:
            return ""
        entry = check.units.entry(name)
        model = self._choices.model or (entry.model if entry else "")
        cost = cost_in(self._config, result.usage, model)
        return "" if cost is None else f"{cost:.4f}"

    def _cassette(self, check: FileCheck, name: str) -> Path:
        """Return the file in which asking for a unit is recorded."""
        if not isinstance(self._item, UnitItem):
            return cassette_of_test(self._item)
        folder = self._config.rootpath / "cassettes" / "regen" / check.place
        return folder / f"{safe_file_name(name)}.yaml"

    def _record(self, heal: HealReport) -> None:
        add_heal(self._item, heal)
        if isinstance(self._failure, WrongUnitError) and heal.why:
            self._failure.healing = f"Not regenerated: {heal.why}"

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
        outcome: Outcome = "regenerated" if passed else "failed"
        if result.stop_reason is None:
            outcome = "skipped"
        following = "" if passed else self._next(check, name, result)
        usage, root = result.usage, self._config.rootpath
        return HealReport(
            unit=unit_id(check.place, name),
            outcome=outcome,
            stop_reason=result.stop_reason or "",
            attempts=1 + result.attempts,
            calls=result.calls,
            tokens_in=tokens_in(usage),
            tokens_out=usage.output_tokens or 0,
            cache_read=usage.cache_read_tokens or 0,
            pages=[page for _, page in result.regenerated],
            changed=[from_rootdir(path, root) for path in result.changed_paths],
            diff=result.diff,
            why="" if passed else _why(result, following),
            next=following,
            emulated=result.emulated,
            cost=cost,
            findings=issues_json((*result.issues_before, *feedback), check),
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
        tokens = estimate_tokens(units.kind.system + units.prompt(name)) if is_asked else 0
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
        """Return what to run or do; never what would end where this run did."""
        config, nodeid = self._config, self._item.nodeid
        cassette = self._cassette(check, name)
        match result.stop_reason:
            case "attempts":
                more = str(result.attempts + 2)
                return recording_command(config, nodeid, cassette, "--regen-attempts", more)
            case "no_progress":
                options = ("--correction", "what is wrong")
                return command("regenerate", check.here, name, *options)
            case "refused":
                return recording_command(config, nodeid, cassette, "--regen-model", "MODEL")
            case None | "clean" | "unfixable":
                return check.command_for(name) or node_command(config, nodeid)
            case _:
                return self._again(result, cassette)

    def _again(self, result: HealResult, cassette: Path) -> str:
        """Return the same run of one item again, once what stood in its way is away."""
        failure, config, nodeid = result.failure, self._config, self._item.nodeid
        if isinstance(failure, CassetteError):
            return failure.hint
        budget = failure.needed * 2 if isinstance(failure, BudgetError) and failure.needed else None
        again = rerun_command(config, nodeid, cassette, budget=budget)
        if isinstance(failure, MissingKeyError):
            return f"set ANTHROPIC_API_KEY, then {again}"
        if self._choices.record_mode() == "none" and cassette.exists():
            # What was recorded is this very failure.
            return recording_command(config, nodeid, cassette)
        return again


class _Calls:
    """Calls an item about candidates, and remembers how the last call ended."""

    def __init__(
        self, item: pytest.Item, path: Path, name: str, failure: BaseException | None
    ) -> None:
        self._item = item
        self._path = path
        self._name = name
        self.failure = failure

    def __call__(self) -> Sequence[Feedback]:
        """Call the item and return what it reports of the unit."""
        forget_units(self._item.config, self._path)
        self.failure = failure_of(self._item)
        if self.failure is None:
            return ()
        return feedback_about(feedback_of(self._item, self.failure), self._name)


def _why(result: HealResult, following: str) -> str:
    """Return what stood in the way, without the hint where that is the command that follows."""
    if result.skipped:
        return result.skipped
    failure = result.failure
    if failure is None:
        return _WHY.get(result.stop_reason or "", result.stop_reason or "")
    is_said = failure.hint == following or isinstance(failure, MissingKeyError | BudgetError)
    return "\n".join(filter(None, (failure.what, failure.why))) if is_said else str(failure)
