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

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

import pytest

from pytest_regen.cassettes.run import CassetteRun
from pytest_regen.errors import RegenError
from pytest_regen.pytest_plugin.healing.feedback import failure_of
from pytest_regen.pytest_plugin.looks import Look
from pytest_regen.regeneration.flow import Work
from pytest_regen.regeneration.queue import Flow, drive_flows
from pytest_regen.regeneration.values import HealResult, TurnSettings
from pytest_regen.text import source_diff
from pytest_regen.validation.issues import Feedback


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of the work on one item's unit."""

    look: Look
    work: Work[Any]
    result: HealResult
    feedback: tuple[Feedback, ...]
    """What the item had to say before, beyond the issues."""
    run: CassetteRun | None
    """The cassette that its turns went through; ``None`` where no turn was taken."""

    @classmethod
    def of(
        cls, look: Look, work: Work[Any], feedback: tuple[Feedback, ...], run: CassetteRun | None
    ) -> Self:
        """Return what came of work on one unit."""
        (result,) = work.results
        # Of this work alone, because others may have written in the same file meanwhile.
        after = work.before.with_answers(work.kept) if work.kept else work.before
        diff = source_diff(work.before.text, after.text, look.home.file_name)
        # Whoever plays a recording of the emulator asks the emulator.
        emulated = run is not None and run.emulated and run.played + run.recorded > 0
        result = replace(result, diff=diff, emulated=result.emulated or emulated)
        return cls(look, work, result, feedback, run)

    @property
    def is_live(self) -> bool:
        """Whether an answer was given just now, and so may have cost something."""
        run = self.run
        if run is None or run.is_replay_only:
            return False
        # A provider that uses no HTTP is asked although nothing is recorded of it.
        return run.recorded > 0 or run.played == 0

    @property
    def is_something(self) -> bool:
        """Whether anything was asked or written."""
        return bool(self.result.regenerated or self.result.pending or self.result.calls)


FlowOf = Callable[[pytest.Item, BaseException], Flow[Asked] | None]
"""Returns the work on an item that fails; ``None`` where its turn has to say what becomes of it."""


class Ahead:
    """Items of this process, and the work on those that fail; a plugin from then on.

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
        self._driven = self._drive(settings)

    def knows(self, item: pytest.Item) -> bool:
        """Return whether an item is one of these."""
        return item in self._items

    def _drive(
        self, settings: TurnSettings
    ) -> Generator[tuple[str, Asked | RegenError], None, None]:
        for wave in self._waves:
            refused: dict[str, Asked] = {}
            for nodeid, asked in drive_flows(self._flows(wave), settings):
                if isinstance(asked, Asked) and asked.work.is_refused:
                    refused[nodeid] = asked
                else:
                    yield nodeid, asked
            # What was refused may be right now, because what it uses may have been healed.
            while any(asked.work.look_again() for asked in refused.values()):
                pass
            for nodeid, was in refused.items():
                was.look.forget()
                yield nodeid, Asked.of(was.look, was.work, was.feedback, was.run)

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
        return outcome

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        """Wait until nothing is under way before a test of the user's own."""
        if not self.knows(item):
            self.finish()
        return (yield)

    def finish(self) -> None:
        """Wait until nothing is under way."""
        while self._go_on():
            pass

    # First: what is under way would go on paying while others report.
    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """End what is under way for items whose turn will not come; what has arrived is stored."""
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
