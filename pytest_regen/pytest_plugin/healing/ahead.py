"""Failing types and units that are asked for ahead of their turn, several at the same time.

With ``--regen-jobs N`` the first failing type or unit begins the work on all that are known to
fail: they were collected, and validation alone says so. They are driven together, N requests under
way over all stores and files, and each item takes what came of it when its turn comes. What nothing
has come of, since the run ran out of budget for one, is healed in its turn as without the option.
Without the option this holds for the units of one file that use one another: those that others use
are healed first, whatever their turns.

All is validated and written in this thread, while an item of these has its turn; a test of the
user's own that comes in between waits until nothing is under way, for it may change what requests
depend on: the environment, the network, the files.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from pytest_regen.errors import RegenError
from pytest_regen.pytest_plugin.healing.feedback import failure_of
from pytest_regen.pytest_plugin.looks import Look
from pytest_regen.regeneration.flow import Work, source_diff
from pytest_regen.regeneration.policies import Heal
from pytest_regen.regeneration.queue import Flow, drive_flows
from pytest_regen.regeneration.values import Answer, HealResult, TurnSettings
from pytest_regen.turns.values import Provider
from pytest_regen.validation.issues import Feedback


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of the work on one item's unit."""

    look: Look
    work: Work[Any]
    result: HealResult
    """Without the diff, until the item has its turn."""
    feedback: tuple[Feedback, ...]
    """What the item had to say before, beyond the issues."""
    is_live: bool
    """Whether an answer was given just now, and so may have cost something."""

    @property
    def is_something(self) -> bool:
        """Whether anything was asked or written."""
        return bool(self.result.regenerated or self.result.pending or self.result.calls)

    @property
    def with_diff(self) -> "Asked":
        """The same with what this work alone has changed."""
        return replace(self, result=replace(self.result, diff=self.work.diff))


FlowOf = Callable[[pytest.Item, BaseException], Flow[Asked] | None]
"""Returns the work on an item that fails; ``None`` where its turn has to say what becomes of it."""


class Ahead:
    """Items of this process, and the work on those that fail.

    Args:
        waves: items that may be worked on, in groups that follow one another.
        flow_of: returns the work on an item.
        settings: with what, and within which limits, all of them are asked for.
    """

    def __init__(
        self,
        waves: Sequence[Sequence[pytest.Item]],
        flow_of: FlowOf,
        settings: TurnSettings,
    ) -> None:
        self._waves = waves
        self._items = {item for wave in waves for item in wave}
        self._flow_of = flow_of
        self._looked_at: set[pytest.Item] = set()
        self._failures: dict[pytest.Item, BaseException] = {}
        """What items failed with that were begun, until their turn has come."""
        self._asked: dict[str, Asked | RegenError] = {}
        """What came of them, by node id."""
        self._shown: dict[Path, Any] = {}
        """The view of a place as if only those items were healed whose turn has come."""
        self._driven = self._drive(settings)

    def knows(self, item: pytest.Item) -> bool:
        """Return whether an item is one of these."""
        return item in self._items

    def _drive(
        self, settings: TurnSettings
    ) -> Generator[tuple[str, Asked | RegenError], None, None]:
        for wave in self._waves:
            held: dict[str, Asked] = {}
            changed: dict[Path, list[str]] = {}
            for nodeid, asked in drive_flows(self._flows(wave), settings):
                if isinstance(asked, Asked):
                    self._shown.setdefault(asked.look.path, asked.work.before)
                    names = [answer.ask.name for answer in asked.work.kept]
                    changed.setdefault(asked.look.path, []).extend(names)
                    if asked.work.may_be_right:
                        held[nodeid] = asked
                        continue
                yield nodeid, asked
            yield from self._looked_at_again(held, changed)

    def _looked_at_again(
        self, refused: Mapping[str, Asked], changed: Mapping[Path, list[str]]
    ) -> Iterator[tuple[str, Asked]]:
        """Yield work of which an answer was refused, once what it uses may have been healed."""
        waiting = dict(refused)
        while right := [
            nodeid
            for nodeid, asked in waiting.items()
            if asked.work.look_again(Heal(), changed[asked.look.path])
        ]:
            for nodeid in right:
                asked = waiting.pop(nodeid)
                (result,) = asked.work.results
                changed[asked.look.path].append(result.name)
                asked.look.forget()
                yield nodeid, replace(asked, result=replace(result, emulated=asked.result.emulated))
        yield from waiting.items()

    def _flows(self, items: Iterable[pytest.Item]) -> Iterator[tuple[str, Flow[Asked]]]:
        """Yield the work on those of several items that fail, in their order.

        Each is looked at when it begins: a store is validated when its first type is looked at.
        """
        for item in items:
            self._looked_at.add(item)
            failure, flow = failure_of(item), None
            with suppress(RegenError):  # Its turn tells why.
                flow = self._flow_of(item, failure) if failure else None
            if failure and flow:
                self._failures[item] = failure
                yield item.nodeid, flow

    def failure(self, item: pytest.Item) -> BaseException | None:
        """Return what an item has failed with, if it was asked for; wait until that has ended.

        Where nothing was asked, or nothing came of it, its turn has to tell.
        """
        if item not in self._failures:
            return None
        self._wait_for(item)
        outcome = self._asked.get(item.nodeid)
        if isinstance(outcome, RegenError) or (outcome and outcome.is_something):
            return self._failures[item]
        self._asked.pop(item.nodeid, None)
        del self._failures[item]
        return None

    def take(self, item: pytest.Item) -> Asked | None:
        """Return what came of the work on an item, and forget it."""
        self._wait_for(item)
        self._failures.pop(item, None)
        outcome = self._asked.pop(item.nodeid, None)
        if isinstance(outcome, RegenError):
            raise outcome
        return None if outcome is None else self._with_diff(outcome)

    def finish(self) -> None:
        """Wait until nothing is under way."""
        while self._go_on():
            pass

    def close(self) -> None:
        """End what is under way; what has arrived is stored."""
        self._driven.close()

    def _wait_for(self, item: pytest.Item) -> None:
        is_coming = item in self._items
        while is_coming and item.nodeid not in self._asked:
            is_coming = (item in self._failures or item not in self._looked_at) and self._go_on()

    def _go_on(self) -> bool:
        """Wait for the next one that ends; return whether there was one."""
        try:
            name, outcome = next(self._driven)
        except StopIteration:
            return False
        except Exception:  # noqa: BLE001 - raised again where its own item has its turn
            # A hook of the user's, for one. It may be about any of the items.
            return False
        self._asked[name] = outcome
        return True

    def _with_diff(self, outcome: Asked) -> Asked:
        """Return the result with what it changes beside those whose turn has come before.

        The others may have been written by now, or not: the diff is the same in every run.
        """
        answers: dict[tuple[str, int], Answer] = {
            (answer.ask.name, answer.ask.page): answer for answer in outcome.work.kept
        }
        if outcome.result.pending:  # Nothing of it is in the file.
            return outcome.with_diff
        before = self._shown[outcome.look.path]
        after = before.with_answers(list(answers.values())) if answers else before
        self._shown[outcome.look.path] = after
        diff = source_diff(before.text, after.text, outcome.look.home.file_name)
        return replace(outcome, result=replace(outcome.result, diff=diff))


def asked_by(flow: Flow[Work[Any]], provider: Provider) -> Flow[Work[Any]]:
    """Return a flow whose pages are asked of a provider of its own."""
    try:
        batches = next(flow)
        while True:
            try:
                arrived = yield [
                    [replace(ask, provider=provider) for ask in batch] for batch in batches
                ]
            except GeneratorExit:
                flow.close()
                raise
            except BaseException as error:  # noqa: BLE001 - for the flow to decide
                batches = flow.throw(error)
            else:
                batches = flow.send(arrived)
    except StopIteration as end:
        work: Work[Any] = end.value
        return work


def upcoming_items(item: pytest.Item) -> Sequence[pytest.Item]:
    """Return an item and those that this process runs after it, as far as it knows them.

    A worker of pytest-xdist knows the few that it was given.
    """
    items = item.session.items
    numbers = _given_to_worker(item.config)
    if numbers is not None:
        return [item, *(items[number] for number in numbers if number < len(items))]
    try:
        return items[items.index(item) :]
    except ValueError:
        return [item]


def _given_to_worker(config: pytest.Config) -> list[int] | None:
    """Return the positions of the items that this worker was given; ``None`` in other processes.

    pytest-xdist has no name for that: where it is not as it was when this was written, none are
    known, and items are asked for in their turn.
    """
    if not hasattr(config, "workerinput"):
        return None
    for plugin in config.pluginmanager.get_plugins():
        queue = getattr(plugin, "torun", None)
        if queue is not None and isinstance(getattr(plugin, "nextitem_index", None), int):
            try:
                with queue.lock() as waiting:
                    numbers = [plugin.nextitem_index, *waiting]
            except (AttributeError, TypeError):
                return []
            return [number for number in numbers if isinstance(number, int)]
    return []
