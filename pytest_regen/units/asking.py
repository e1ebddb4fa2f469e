"""Asking for units: generate what is missing or stale, regenerate by name, heal."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pytest_regen.errors import HandEditError, RegenError
from pytest_regen.regeneration.asking import ends_the_run
from pytest_regen.regeneration.flow import Check, Work, source_diff, work_steps
from pytest_regen.regeneration.policies import Generate, Heal, Policy, Regenerate, fixable_issues
from pytest_regen.regeneration.queue import Flow
from pytest_regen.regeneration.values import HealResult, TurnSettings
from pytest_regen.turns.values import Usage
from pytest_regen.units.naming import adopt_command, rebuild_command
from pytest_regen.units.place import UnitFile
from pytest_regen.units.view import FileUnits
from pytest_regen.units.work import rebuild_units, refuse_unknown
from pytest_regen.validation.issues import Feedback


@dataclass(frozen=True)
class UnitsResult:
    """What was asked of a file's units, and what came of it."""

    units: FileUnits
    """What the file holds now."""
    results: tuple[HealResult, ...] = ()
    """How the work on each unit ended; those that were not reached are left out."""
    diff: str = ""
    """Unified diff of the file."""
    kept: tuple[str, ...] = field(default=())
    """Units that were not asked for, since nothing is wrong with them."""

    @property
    def regenerated(self) -> tuple[str, ...]:
        """The units that have another text now."""
        return tuple(result.name for result in self.results if result.regenerated)

    @property
    def pending(self) -> Mapping[str, str]:
        """The units of which a candidate waits for review, and its id."""
        return {result.name: result.pending[0] for result in self.results if result.pending}

    @property
    def skipped(self) -> Mapping[str, str]:
        """The units that must not be asked for, and why."""
        return {result.name: result.skipped for result in self.results if result.skipped}

    @property
    def failures(self) -> tuple[RegenError, ...]:
        """What ended the work on a unit where that was no finding."""
        return tuple(result.failure for result in self.results if result.failure)

    @property
    def usage(self) -> Usage:
        """Tokens of all calls."""
        return sum((result.usage for result in self.results), Usage())

    @property
    def calls(self) -> int:
        """Requests made."""
        return sum(result.calls for result in self.results)


def needs_answer(units: FileUnits, name: str) -> bool:
    """Return whether ``generate`` asks for a unit: it is missing, a stub, or stale."""
    return any(
        issue.code in {"MISSING_UNIT", "STALE"} and not issue.is_by_hand
        for issue in units.all_issues(name)
    )


def generate_steps(
    file: UnitFile,
    names: Sequence[str] | None = None,
    *,
    settings: TurnSettings,
    attempts: int = 2,
    force: bool = False,
) -> Flow[UnitsResult]:
    """Ask for the units of a file that are missing or stale.

    Args:
        file: the file.
        names: the units to look at; by default all.
        settings: with what, and within which limits, units are asked.
        attempts: replies per unit at most, the first included.
        force: ask for all of them, whatever stands there.

    Raises:
        UsageError: the file has no such unit.
        KindError: a method of the kind raised.
    """
    units = file.open()
    chosen = _chosen(units, names)
    asked = [name for name in chosen if force or needs_answer(units, name)]
    blocked = [_skip_unit(units, name) for name in asked if units.obstacle(name)]
    asked = [name for name in asked if not units.obstacle(name)]
    missing = [name for name in asked if units.missing(name)]
    others = [name for name in asked if name not in set(missing)]
    before, results = units.text, list(blocked)
    for policy, group in (
        (Generate(), missing),
        (Regenerate({name: {1: ()} for name in others}), others),
    ):
        if group and not any(map(ends_the_run, results)):
            done = yield from work_steps(
                file, policy, settings, names=group, rounds=attempts, view=units
            )
            results += done.results
            units = done.view
    kept = tuple(name for name in chosen if name not in {result.name for result in results})
    diff = source_diff(before, units.text, file.place)
    stored = units if settings.pending is None else file.open()
    return UnitsResult(stored, tuple(results), diff, kept)


def regenerate_steps(
    file: UnitFile,
    names: Sequence[str] | None = None,
    *,
    settings: TurnSettings,
    corrections: Sequence[Feedback] = (),
    attempts: int = 1,
    accept_any: bool = False,
    discard_edits: bool = False,
) -> Flow[UnitsResult]:
    """Ask for units again, whatever their state.

    Args:
        file: the file.
        names: the units; by default all.
        settings: with what, and within which limits, units are asked.
        corrections: what was wrong.
        attempts: replies per unit at most; those after the first heal what is wrong.
        accept_any: keep new texts even if errors rise.
        discard_edits: replace texts that were edited by hand; they go to the history.

    Raises:
        UsageError: the file has no such unit.
        HandEditError: a unit was edited by hand and ``discard_edits`` is not set.
        KindError: a method of the kind raised.
    """
    units = file.open()
    chosen = _chosen(units, names)
    units = _without_edits(file, units, chosen, discard_edits=discard_edits)
    wanted = {name: {1: tuple(corrections)} for name in chosen}
    policy = Regenerate(wanted, accept_any=accept_any)
    done = yield from work_steps(file, policy, settings, names=chosen, rounds=attempts, view=units)
    return _result(file, units, done)


def heal_steps(
    file: UnitFile,
    names: Sequence[str] | None = None,
    *,
    settings: TurnSettings,
    attempts: int = 2,
    accept_any: bool = False,
    discard_edits: bool = False,
) -> Flow[UnitsResult]:
    """Ask again for the units of a file that have errors.

    Args:
        file: the file.
        names: the units to look at; by default all.
        settings: with what, and within which limits, units are asked.
        attempts: replies per unit at most.
        accept_any: keep new texts even if they are no better.
        discard_edits: put recorded texts back where somebody edited them, then heal those too.

    Raises:
        UsageError: the file has no such unit.
        KindError: a method of the kind raised.
    """
    units = file.open()
    chosen = _chosen(units, names)
    if discard_edits:
        units = _without_edits(file, units, chosen, discard_edits=True)
    failing = [name for name in chosen if units.score(name).errors]
    policy = Heal(accept_any=accept_any)
    done = yield from work_steps(file, policy, settings, names=failing, rounds=attempts, view=units)
    return _result(file, units, done)


def ask_for_unit_steps(
    file: UnitFile,
    name: str,
    *,
    settings: TurnSettings,
    rounds: int = 1,
    feedback: Sequence[Feedback] = (),
    check: Check | None = None,
    is_stale: bool = False,
) -> "Flow[Work[FileUnits]]":
    """Ask for one unit again because a test item fails.

    Args:
        file: the file.
        name: the unit.
        settings: with what, and within which limits, it is asked.
        rounds: how often it may be asked.
        feedback: what the asking test reports, beyond the unit's issues.
        check: calls that test again while the candidate is in place.
        is_stale: whether the item fails because the unit is stale: then any text that is no worse
            replaces it.

    Raises:
        KindError: a method of the kind raised.
    """
    view = file.open()
    policy: Policy = Heal()
    if is_stale:
        policy = Regenerate({name: {1: (*fixable_issues(view.issues(name)), *feedback)}})
    return (
        yield from work_steps(
            file,
            policy,
            settings,
            names=[name],
            rounds=rounds,
            feedback=feedback,
            check=check,
            view=view,
        )
    )


def _chosen(units: FileUnits, names: Sequence[str] | None) -> tuple[str, ...]:
    for name in names or ():
        refuse_unknown(units, name, units.names)
    return tuple(dict.fromkeys(units.names if names is None else names))


def _skip_unit(units: FileUnits, name: str) -> HealResult:
    issues = units.issues(name)
    return HealResult(
        name, None, issues_before=issues, issues_after=issues, skipped=units.obstacle(name)
    )


def _without_edits(
    file: UnitFile, units: FileUnits, names: Iterable[str], *, discard_edits: bool
) -> FileUnits:
    """Return the units with recorded texts in the place of edits, if those may be discarded."""
    edited = [
        name for name in names if any(issue.code == "DRIFT" for issue in units.all_issues(name))
    ]
    if not edited:
        return units
    if not discard_edits:
        raise HandEditError(
            f"{edited[0]} in {file.place} was edited by hand",
            why="regenerating it would discard the edit",
            hint=f"keep it: {adopt_command(file.here, edited[0])}; "
            f"or drop it: {rebuild_command(file.here, edited[0])}",
        )
    rebuild_units(file, edited)
    return file.open()


def _result(file: UnitFile, before: FileUnits, done: Work[FileUnits]) -> UnitsResult:
    diff = source_diff(before.text, done.view.text, file.place)
    return UnitsResult(done.stored, tuple(done.results), diff)
