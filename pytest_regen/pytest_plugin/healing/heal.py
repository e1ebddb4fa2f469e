"""Healing: a failing item's units are asked for again, and the item is called again.

The loop sits inside the call phase: fixtures are set up once, there is one report, and async,
parametrized and non-function items heal alike, because pytest's own way of calling them is used.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase

import pytest

from pytest_regen.errors import RegenError, UsageError
from pytest_regen.pytest_plugin import providers
from pytest_regen.pytest_plugin.choices import choices_of, regen_mark
from pytest_regen.pytest_plugin.healing import outcomes
from pytest_regen.pytest_plugin.healing.ahead import Ahead, Asked
from pytest_regen.pytest_plugin.healing.feedback import feedback_about, feedback_of, is_feedback
from pytest_regen.pytest_plugin.healing.trials import FreshCalls, missing_trials
from pytest_regen.pytest_plugin.items import UnitError, UnitItem
from pytest_regen.pytest_plugin.loaded import loaded_modules
from pytest_regen.pytest_plugin.looks import Look, Target
from pytest_regen.pytest_plugin.names import cassette_of_test
from pytest_regen.pytest_plugin.places import look_at, marked_units
from pytest_regen.pytest_plugin.project import id_from_here, store_path
from pytest_regen.pytest_plugin.stash import AHEAD
from pytest_regen.pytest_plugin.summary import HealReport, add_heal, record_of
from pytest_regen.regeneration import policies
from pytest_regen.regeneration.costs import AskSize
from pytest_regen.regeneration.flow import Check, Job, stages, work_steps
from pytest_regen.regeneration.queue import Flow, drive_flow
from pytest_regen.regeneration.values import TurnSettings
from pytest_regen.turns.providers import DryRunProvider
from pytest_regen.validation.issues import Feedback, Issue


def heal_units(item: pytest.Item, failure: BaseException) -> BaseException | None:
    """Ask for what an item is about, call it again, and return the failure that is left.

    ``None`` means that it passes now.
    """
    if isinstance(item, UnitItem) and not choices_of(item.config).dry_run:
        _begin_ahead(item)
    return _Healing(item, failure).run()


def _begin_ahead(item: UnitItem) -> None:
    """Begin the work on this item and on those to come that fail as well.

    With one job these are the units of its file, where they use one another. Nothing is begun where
    the run may end before their turn: what may not be needed is not paid for.
    """
    config, jobs = item.config, choices_of(item.config).jobs
    may_end = config.getvalue("maxfail") or getattr(config.option, "stepwise", False)
    if may_end or (jobs == 1 and not item.look.home.has_users):
        return
    ahead = config.stash.get(AHEAD, None)
    if ahead is not None:
        if ahead.knows(item):
            return
        ahead.finish()  # A worker of pytest-xdist was given more.
        config.pluginmanager.unregister(ahead)
    # A worker of pytest-xdist cannot tell which it will be given: it asks for this one alone.
    upcoming = item.session.items[item.session.items.index(item) :]
    items = [
        other
        for other in ([item] if hasattr(config, "workerinput") else upcoming)
        if isinstance(other, UnitItem)
        and (jobs > 1 or other.path == item.path)
        and not any(map(other.get_closest_marker, ("skip", "skipif", "xfail")))
    ]
    with suppress(UsageError):  # The item's own turn tells who is not there.
        provider = providers.provider_of(item, of_types=item.look.home.has_pages)
        settings = providers.settings_of_run(item, provider, jobs)
        ahead = config.stash[AHEAD] = Ahead(_waves_of(items), _flow_of, settings)
        config.pluginmanager.register(ahead, "regen-ahead")


def _waves_of(items: Sequence[UnitItem]) -> Sequence[Sequence[pytest.Item]]:
    """Return items in groups: the units that one uses stand in groups before it."""
    waves: dict[int, list[pytest.Item]] = {}
    by_place: dict[Look, dict[str, pytest.Item]] = {}
    for item in items:
        by_place.setdefault(item.look, {})[item.unit] = item
    for look, units in by_place.items():
        groups = stages(look.view, list(units)) if look.home.has_users else [list(units)]
        for number, names in enumerate(groups):
            waves.setdefault(number, []).extend(units[name] for name in names)
    return [wave for _, wave in sorted(waves.items())]


def _flow_of(item: pytest.Item, failure: BaseException) -> Flow[Asked] | None:
    """Return the work on the unit of an item that fails; ``None`` where nothing is asked for it.

    Raises:
        RegenError: the item's turn tells why.
    """
    healing = _Healing(item, failure)
    target = healing.next_target()
    if target is None or target.obstacle()[0]:
        return None
    return healing.steps(target)


class _Healing:
    """The healing of one item."""

    def __init__(self, item: pytest.Item, failure: BaseException) -> None:
        self._item = item
        self._config = item.config
        self._choices = choices_of(item.config)
        self._rounds = self._choices.attempts(regen_mark(item).attempts) - 1
        self._failure: BaseException | None = failure
        """What the item fails with, with candidates that wait for review in place."""
        self._stored_failure: BaseException | None = None
        """What it fails with without them, where there are some."""
        self._tried: set[str] = set()

    def run(self) -> BaseException | None:
        """Heal one unit after the other, until the item passes or nothing is left to try."""
        while (target := self.next_target()) is not None:
            try:
                self._heal(target)
            except RegenError as error:
                # Nothing else is to be run before this is mended.
                record_of(self._item).next = ""
                why = "\n".join(filter(None, (error.what, error.why)))
                self._skip(target, why, error.hint)
        return self._stored_failure or self._failure

    def next_target(self) -> Target | None:
        """Return the next unit to ask for; ``None`` where nothing is left to try."""
        while self._rounds and self._failure is not None:
            try:
                targets = _targets_of(self._item, self._failure)
            except (RegenError, pytest.UsageError) as error:
                self._record(HealReport(self._item.nodeid, "skipped", why=str(error)))
                return None
            target = next((target for target in targets if target.id not in self._tried), None)
            if target is None:
                return None
            self._tried.add(target.id)
            ids, only = {target.id, id_from_here(target.id, self._config)}, self._choices.only
            if not only or any(fnmatchcase(id_, one) or id_ == one for id_ in ids for one in only):
                return target
        return None

    def _heal(self, target: Target) -> None:
        item, look = self._item, target.look
        ahead = self._config.stash.get(AHEAD, None)
        outcome = ahead.take(item) if isinstance(ahead, Ahead) else None
        calls = outcomes.ItemCalls(item, target, self._failure)
        if outcome is None and look_at(self._config, look.path) is not look:
            # Something that it uses was healed meanwhile: it may be right.
            calls()
            self._failure = calls.failure
            target = replace(target, look=look_at(self._config, look.path))
            if self._failure is None:
                return
        if outcome is not None:
            self._conclude(replace(target, feedback=outcome.feedback), calls, outcome)
            return
        why, command = target.obstacle()
        if why:
            self._skip(target, why, command)
        elif self._choices.dry_run:
            self._record(self._plan(target))
        elif isinstance(item, UnitItem) or not look.home.is_imported:
            self._ask(target, calls)
        else:
            self._ask_apart(target)

    def _ask_apart(self, target: Target) -> None:
        """Ask for a unit that tests import, once the test fails in a fresh process as well."""
        obstacle = missing_trials()
        if obstacle:
            self._skip(target, obstacle)
            return
        calls = FreshCalls(self._item, target, self._failure, _others_about(target, self._item))
        is_old = bool(loaded_modules(self._config).changed())
        trial = calls.try_now()
        if trial.passed and is_old:
            # It failed with the code that this process imported before another test healed it.
            loaded_modules(self._config).note(self._item, passed_apart=True)
            self._failure = None
        elif trial.passed or trial.obstacle:
            why = trial.obstacle or "it passes in a process of its own: the unit is not at fault"
            self._skip(target, why)
        else:
            self._ask(replace(target, feedback=feedback_about(trial.feedback, target.name)), calls)

    def _ask(self, target: Target, calls: outcomes.ItemCalls | FreshCalls) -> None:
        """Ask for a unit in the item's turn: the queue has this work alone."""
        of_types, by_template = target.look.home.has_pages, target.is_by_template
        provider = providers.provider_of(self._item, of_types=of_types, by_template=by_template)
        settings = providers.settings_of_run(self._item, provider, self._jobs)
        self._conclude(target, calls, drive_flow(self.steps(target, calls), settings))

    def steps(
        self, target: Target, calls: outcomes.ItemCalls | FreshCalls | None = None
    ) -> Flow[Asked]:
        """Return the work on a unit as steps, to be driven alone or beside others."""
        item, look, name = self._item, target.look, target.name
        check: Check | None = calls
        if isinstance(item, UnitItem):
            # Validation alone decides, and validators of the user's where there are some.
            check = look.checker(name)
        with providers.turn_settings(item, target, self._jobs) as (settings, run):
            job = Job(
                self._policy(target),
                [name],
                self._rounds,
                target.feedback,
                check,
                provider=settings.provider,
            )
            work = yield from work_steps(look.home, job, settings)
            asked = Asked.of(look, work, target.feedback, run)
        if asked.result.regenerated:
            # What is looked at next may not be at fault any more.
            look.forget()
        return asked

    @property
    def _jobs(self) -> int:
        # A test of the user's own is called about one candidate at a time.
        return self._choices.jobs if isinstance(self._item, UnitItem) else 1

    def _conclude(
        self, target: Target, calls: outcomes.ItemCalls | FreshCalls, outcome: Asked
    ) -> None:
        """Note what came of asking; the item is called again where validation alone decided."""
        item, result = self._item, outcome.result
        target.look.forget()
        if result.pending:
            self._stored_failure = self._stored_failure or self._failure
        if isinstance(item, UnitItem):
            calls()
        if isinstance(item, UnitItem) or result.regenerated or result.pending:
            # The failure of a rejected candidate says nothing about the files on disk.
            self._failure = calls.failure
        self._config.hook.pytest_regen_after_heal(item=item, result=result)
        target = replace(target, look=look_at(self._config, target.look.path))
        passed = self._failure is None
        self._record(outcomes.heal_report(target, result, passed=passed, is_live=outcome.is_live))

    def _policy(self, target: Target) -> policies.Policy:
        name, view = target.name, target.look.view
        issues = self._failure.issues if isinstance(self._failure, UnitError) else ()
        if view.has_old_prompt(name) or all(issue.code != "STALE" for issue in issues):
            return policies.Policy()
        # Any text that is no worse replaces one that was made for something else.
        findings = (*policies.fixable_issues(view.issues(name)), *target.feedback)
        return policies.Policy({name: {1: findings}})

    def _skip(self, target: Target, why: str, command: str | None = None) -> None:
        look, name = target.look, target.name
        if command is None:
            command = look.command(name, look.issues(name))
        has_pages = look.home.has_pages
        self._record(HealReport(target.id, "skipped", why=why, next=command, has_pages=has_pages))

    def _plan(self, target: Target) -> HealReport:
        """Return what a dry run says: what would be asked, and about how large it is."""
        look, name, view = target.look, target.name, target.look.view
        findings = (*policies.fixable_issues(view.issues(name)), *target.feedback)
        pages = self._policy(target).pages_to_ask(view, name, findings)
        by_template = target.is_by_template
        if pages:
            following = target.heal_command
        else:
            following = look.command(name, look.issues(name)) or outcomes.unfixable_advice(look)
        nobody = TurnSettings(DryRunProvider())
        asks = look.home.asks(view, name, pages, nobody) if pages and not by_template else ()
        return HealReport(
            target.id,
            "planned",
            pages=list(pages),
            estimate=sum(AskSize.of(ask).input_tokens for ask in asks),
            next=following,
            by_template=by_template,
            has_pages=look.home.has_pages,
        )

    def _record(self, heal: HealReport) -> None:
        add_heal(self._item, heal)
        outcomes.tell_failure(self._stored_failure or self._failure, heal)


def _targets_of(item: pytest.Item, failure: BaseException) -> list[Target]:
    """Return the units that a failure is about, those that it names itself first.

    Raises:
        UsageError: the failure does not say which.
        UnknownTypeError: the marker or an issue names a type that the store does not have.
    """
    if isinstance(item, UnitItem):
        look, name = item.look, item.unit
        # What a kind raised has to be corrected by a person, and so has a file without names.
        if not isinstance(failure, UnitError) or name not in look.names:
            return []
        return [Target(look, name, look.user_errors(name), item.nodeid, look.cassette_of(name))]
    mark = regen_mark(item)
    if mark.units:
        units = marked_units(item)
        if not (is_feedback(failure) or any(look.home.is_imported for look, _ in units)):
            return []
        feedback = feedback_of(item, failure)
        # A failure that names units of the mark is about those.
        names = _named_in(feedback)
        units = [unit for unit in units if unit[1] in names] or units
    elif is_feedback(failure) and (feedback := feedback_of(item, failure)):
        look = look_at(item.config, store_path(item))
        is_loose = any(isinstance(note, str) or not note.type_name for note in feedback)
        marked = list(map(look.view.resolve, mark.types))
        names = [*map(look.view.resolve, _named_in(feedback)), *(marked if is_loose else [])]
        if not names:
            hint = "give the marker types=[…], or the issue a type_name"
            raise UsageError("the failure names no type of the store", hint=hint)
        units = [(look, name) for name in dict.fromkeys(names) if not marked or name in marked]
    else:
        return []
    cassette = cassette_of_test(item)
    return [
        Target(look, name, feedback_about(feedback, name), item.nodeid, cassette)
        for look, name in units
    ]


def _others_about(target: Target, item: pytest.Item) -> list[str]:
    """Return the other tests of this run that are marked for a unit."""
    others, unit = [], (target.look.path, target.name)
    for other in item.session.items:
        # What is wrong with its mark, the turn of a test tells.
        with suppress(RegenError, pytest.UsageError):
            units = [(look.path, name) for look, name in marked_units(other)]
            if other is not item and unit in units:
                others.append(other.nodeid)
    return others


def _named_in(feedback: Iterable[Feedback]) -> list[str]:
    return [note.type_name for note in feedback if isinstance(note, Issue) and note.type_name]
