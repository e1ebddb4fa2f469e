"""What can be done with the units of a place, whatever place it is: one function for each verb.

``generate_steps``, ``regenerate_steps`` and ``heal_steps`` ask a model; they are flows, to be
driven alone or beside others (``queue.py``). The others ask nobody.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_regen.errors import RegenError, UnknownPageError
from pytest_regen.regeneration.asking import meets_all
from pytest_regen.regeneration.flow import Job, work_steps
from pytest_regen.regeneration.places import Changes, Place, View
from pytest_regen.regeneration.policies import Policy
from pytest_regen.regeneration.queue import Flow
from pytest_regen.regeneration.values import HealResult, StopReason, TurnSettings
from pytest_regen.text import source_diff
from pytest_regen.turns.values import Usage
from pytest_regen.validation.issues import Feedback

Pages = Mapping[str, Sequence[int] | None]
"""Names of units, each with the pages that are meant; ``None`` for all."""


@dataclass(frozen=True)
class Result:
    """What was asked of a place, and what came of it."""

    place: Place[Any]
    view: Any
    """What the place holds now, without what waits for review."""
    results: tuple[HealResult, ...] = ()
    """How the work on each unit ended; those that were not reached are left out."""
    diff: str = ""
    """Unified diff of the file that people read, or of what it would be with what waits."""

    @property
    def regenerated(self) -> list[tuple[str, int]]:
        """(name, page) pairs that were asked and whose output was kept."""
        return [pair for result in self.results for pair in result.regenerated]

    @property
    def pending(self) -> Mapping[str, str]:
        """The units of which a candidate waits for review, and its id."""
        return {result.name: result.pending[0] for result in self.results if result.pending}

    @property
    def rejected(self) -> tuple[str, ...]:
        """History ids of the outputs that were not kept."""
        return tuple(id_ for result in self.results for id_ in result.rejected)

    @property
    def stop_reasons(self) -> Mapping[str, StopReason]:
        """The units that were worked on, and why that ended."""
        return {result.name: result.stop_reason for result in self.results if result.stop_reason}

    @property
    def skipped(self) -> Mapping[str, str]:
        """The units that must not be asked for, and why: one was edited by hand, say."""
        return {result.name: result.skipped for result in self.results if result.skipped}

    @property
    def failures(self) -> tuple[RegenError, ...]:
        """What ended work early: refusals, transport, budget, cassette misses."""
        return tuple(result.failure for result in self.results if result.failure)

    @property
    def by_template(self) -> bool:
        """Whether the template wrote all that was asked for, so that no model was asked."""
        return bool(self.results) and all(result.by_template for result in self.results)

    @property
    def usage(self) -> Usage:
        """Tokens of all calls."""
        return sum((result.usage for result in self.results), Usage())

    @property
    def calls(self) -> int:
        """Requests made."""
        return sum(result.calls for result in self.results)


def generate_steps(
    place: Place[Any],
    names: Iterable[str] | None = None,
    *,
    settings: TurnSettings,
    attempts: int = 2,
    force: bool = False,
) -> Flow[Result]:
    """Ask for the units of a place that are missing or out of date.

    Args:
        place: the store or file.
        names: the units to look at; by default all.
        settings: with what, and within which limits, units are asked.
        attempts: replies per page at most, the first included.
        force: ask for all of them, whatever stands there.

    Raises:
        UsageError: the place has no such unit.
        KindError: a method of the kind raised.
    """
    before = view = place.open()
    chosen = [name for name in _named(view, names) if force or view.needs_answer(name)]
    missing = [name for name in chosen if view.missing(name) and not view.obstacle(name)]
    # Also what is missing and has an obstacle, because only their policy says why it is skipped.
    again = [name for name in chosen if name not in set(missing)]
    anew = {name: dict.fromkeys(range(1, view.page_count(name) + 1), ()) for name in again}
    results: list[HealResult] = []
    # Apart, because a missing unit has no findings to correct, and a stale one keeps its text
    # unless the new one is as good.
    for policy, group in ((Policy(is_draft=True), missing), (Policy(anew), again)):
        if group and not any(meets_all(result.failure) for result in results):
            work = yield from work_steps(place, Job(policy, group, attempts), settings, view)
            results += work.results
            view = work.view
    return _result(place, before, view, results)


def regenerate_steps(
    place: Place[Any],
    units: Pages | Iterable[str] | None = None,
    *,
    settings: TurnSettings,
    corrections: Mapping[str, Sequence[Feedback]] | None = None,
    attempts: int = 1,
    accept_any: bool = False,
    discard_edits: bool = False,
) -> Flow[Result]:
    """Ask for units again, whatever their state.

    Args:
        place: the store or file.
        units: the units, or their pages; by default all.
        settings: with what, and within which limits, pages are asked.
        corrections: by unit, what was wrong; see ``targets``.
        attempts: replies per page at most; those after the first heal what is wrong.
        accept_any: keep new outputs even if errors rise.
        discard_edits: replace what was edited by hand; it goes to the history.

    Raises:
        UsageError: the place has no such unit or page.
        HandEditError: a unit was edited by hand and ``discard_edits`` is not set.
        KindError: a method of the kind raised.
    """
    before = view = place.open()
    pages = targets(view, units, corrections)
    if discard_edits:
        view = _without_edits(place, pages)
    for name in pages:
        if error := view.hand_edit(name):
            raise error
    policy = Policy(pages, accept_any=accept_any)
    work = yield from work_steps(place, Job(policy, pages, attempts), settings, view)
    return _result(place, before, work.view, work.results)


def heal_steps(
    place: Place[Any],
    names: Iterable[str] | None = None,
    *,
    settings: TurnSettings,
    attempts: int = 2,
    accept_any: bool = False,
    discard_edits: bool = False,
) -> Flow[Result]:
    """Ask again for the units of a place that have errors.

    Args:
        place: the store or file.
        names: the units to look at; by default all.
        settings: with what, and within which limits, pages are asked.
        attempts: replies per page at most.
        accept_any: keep new outputs even if they are no better.
        discard_edits: put recorded outputs back where somebody edited them, then heal those too.

    Raises:
        UsageError: the place has no such unit.
        KindError: a method of the kind raised.
    """
    before = view = place.open()
    chosen = _named(view, names)
    if discard_edits:
        view = _without_edits(place, chosen)
    failing = [name for name in chosen if view.score(name).errors]
    job = Job(Policy(accept_any=accept_any), failing, attempts)
    work = yield from work_steps(place, job, settings, view)
    return _result(place, before, work.view, work.results)


def targets(
    view: View,
    units: Pages | Iterable[str] | None = None,
    corrections: Mapping[str, Sequence[Feedback]] | None = None,
) -> dict[str, dict[int, list[Feedback]]]:
    """Return unit to page number to corrections, for all that is to be asked.

    An ``Issue`` goes to its page, a text to the pages that are named, else to page 1.

    Raises:
        UsageError: the place has no such unit or page.
    """
    pages = units if isinstance(units, Mapping) else dict.fromkeys(_named(view, units))
    notes = {view.resolve(name): listed for name, listed in (corrections or {}).items()}
    by_name: dict[str, dict[int, list[Feedback]]] = {}
    for word, numbers in pages.items():
        name = view.resolve(word)
        count = view.page_count(name)
        for number in numbers or ():
            if not 1 <= number <= count:
                raise UnknownPageError(
                    f"{name} has no page {number}",
                    hint=f"its pages are 1 to {count}" if count > 1 else "it has one page, 1",
                )
        noted: dict[int, list[Feedback]] = {
            page: [] for page in sorted(set(numbers or range(1, count + 1)))
        }
        for note in notes.get(name, ()):
            if isinstance(note, str):
                # A text cannot say where it belongs: the pages named get it, else the first.
                for page in noted if numbers else (1,):
                    noted[page].append(note)
            else:
                noted[note.page if note.page in noted else min(noted)].append(note)
        by_name[name] = noted
    return by_name


def adopt(
    place: Place[Any], names: Sequence[str] | None = None, *, with_stale: bool = False
) -> Changes:
    """Record units as they stand: as a person's, but for those that are as a model wrote them.

    Args:
        place: the store or file.
        names: the units, whatever their state; by default those that are not as they were recorded.
        with_stale: also those that were made from something else than there is now.

    Raises:
        UsageError: there is no such unit, or nothing of it to record.
        SourceError: the file cannot be read, or an edit cannot be split into pages.
        KindError: a method of the kind raised.
    """
    with place.update() as update:
        return update.adopt(names, with_stale=with_stale)


def rebuild(place: Place[Any], names: Sequence[str] | None = None) -> Changes:
    """Put recorded outputs back; what stands there goes to the history. No model is asked.

    What git could not join is written as our side has it; theirs goes to the history.

    Args:
        place: the store or file.
        names: the units; by default all that are recorded.

    Raises:
        UsageError: there is no such unit, or no record of it.
        HandEditError: nothing holds what was recorded.
        SourceError: the file cannot be read, or has no place for a unit.
    """
    # A place that git tore may not be readable, so that it cannot be locked as what it holds.
    if (joined := place.join()) is not None:
        return joined
    with place.update() as update:
        return update.rebuild(names)


def restore(
    place: Place[Any], name: str, *, page: int | None = None, to: str | None = None
) -> Changes:
    """Make outputs from the history the recorded ones; what they replace goes to the history.

    Args:
        place: the store or file.
        name: the unit.
        page: the page to restore; by default every page that has a replaced output.
        to: id of a past output; by default the last one that differs from what is there.

    Raises:
        UsageError: no such unit, page or past output.
        HandEditError: the unit was edited by hand, and restoring would discard the edit.
        SourceError: the file cannot be read, or has no place for the unit.
    """
    with place.update() as update:
        return update.restore(name, page, to)


def forget(place: Place[Any], names: Sequence[str] | None = None) -> Changes:
    """Drop what nothing asks for: what is recorded, and what stands there where that can be.

    Of a unit that is still asked for only the record is dropped.

    Args:
        place: the store or file.
        names: the units; by default all that nothing asks for.

    Raises:
        UsageError: there is neither a text nor a record of such a unit.
        SourceError: the file cannot be read.
    """
    with place.update() as update:
        return update.forget(names)


def history(place: Place[Any], names: Sequence[str] | None = None) -> tuple[Any, ...]:
    """Return the past outputs of a place's units, oldest first.

    Raises:
        UsageError: a name is neither that of a unit nor that of one that was there.
        StoreCorruptError: one cannot be read.
    """
    past = place.past()
    if names is None:
        return tuple(past)
    # Units that are gone, too, because their past outputs are all that is left of them.
    gone = {entry.name for entry in past}
    chosen = {name if name in gone else place.open().resolve(name) for name in names}
    return tuple(entry for entry in past if entry.name in chosen)


def _named(view: View, names: Iterable[str] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(view.names if names is None else map(view.resolve, names)))


def _without_edits(place: Place[Any], names: Collection[str]) -> Any:
    """Put recorded outputs in the place of edits; return what the place holds then."""
    with place.update() as update:
        # By what is read under the lock, because a unit may have been edited or mended since.
        update.rebuild([name for name in names if update.view.hand_edit(name)])
    return place.open()


def _result(place: Place[Any], before: View, view: View, results: Sequence[HealResult]) -> Result:
    # What waits for review is in the view of the work, and not in the files.
    stored = place.open() if any(result.pending for result in results) else view
    diff = source_diff(before.text, view.text, place.file_name)
    return Result(place, stored, tuple(results), diff)
