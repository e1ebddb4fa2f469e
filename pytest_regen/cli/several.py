"""A command that works on several places at once: stores, files with units."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pytest_regen.cli.output import (
    InOrder,
    describe_failure,
    fact,
    fail,
    hold_back,
    say,
    usage_line,
)
from pytest_regen.errors import MissingExtraError, MissingKeyError, RegenError, UsageError
from pytest_regen.regeneration.queue import Flow, drive_flows
from pytest_regen.regeneration.values import RunState, TurnSettings
from pytest_regen.text import plural

Emit = Callable[[Any], None]
"""Takes what a command says of one place as JSON."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a command does with one place."""

    name: str
    """As it was named, or found: no two have the same."""
    steps: Callable[[TurnSettings], Flow[Any]]
    finish: Callable[[Any, Emit], int]
    """Tells what came of it, or emits it as JSON; returns the exit code."""


@dataclass(slots=True)
class Outcome:
    """What came of several places."""

    noun: str
    """What they are, in the singular."""
    total: int
    reports: dict[int, Any] = field(default_factory=dict)
    """As JSON, by the number of the place, from 1."""
    codes: list[int] = field(default_factory=list)
    failed: list[tuple[str, RegenError]] = field(default_factory=list)
    """Places that could not be worked on, and why."""
    changed: int = 0

    @property
    def exit_code(self) -> int:
        """The worst of all; 1 where some were not started."""
        codes = [*self.codes, *(error.exit_code for _, error in self.failed)]
        return max([*codes, int(self.not_started > 0)])

    @property
    def not_started(self) -> int:
        """Places that nothing was asked for."""
        return self.total - len(self.codes) - len(self.failed)

    @property
    def in_order(self) -> list[Any]:
        """The reports, in the order of the places."""
        return [self.reports[number] for number in sorted(self.reports)]

    @property
    def failures(self) -> list[dict[str, Any]]:
        """Places that could not be worked on, as JSON."""
        return [{"path": name, **describe_failure(error)} for name, error in self.failed]

    def fail(self, name: str, error: RegenError) -> None:
        """Tell that a place cannot be worked on, and count it."""
        fail(error.what, why=error.why, hint=error.hint)
        self.failed.append((name, error))

    def show(self, state: RunState) -> None:
        """Tell the sum; ``state`` is that in which the run ended."""
        if state.calls:
            fact("spent", usage_line(state.calls, state.usage))
        failing = sum(code > 0 for code in self.codes)
        others = {
            "changed": self.changed,
            "with errors": failing,
            "failed": len(self.failed),
            "not started": self.not_started,
        }
        parts = [plural(self.total, self.noun)]
        parts += [f"{number:,} {what}" for what, number in others.items() if number]
        say(", ".join(parts))


def run_tasks(tasks: Sequence[Task], settings: TurnSettings, noun: str) -> Outcome:
    """Drive all tasks through one queue; tell of each in its order, when those before it ended.

    A place that cannot be worked on leaves the others to be.

    Args:
        tasks: one per place.
        settings: with what, and within which limits, pages are asked.
        noun: what the places are, in the singular.

    Raises:
        UsageError, MissingKeyError, MissingExtraError: what concerns all of them.
    """
    outcome = Outcome(noun, len(tasks))
    numbers = {task.name: number for number, task in enumerate(tasks, 1)}

    def flows() -> Iterator[tuple[str, Flow[Any]]]:
        for number, task in enumerate(tasks, 1):
            say(f"{number}/{len(tasks)} {task.name}")
            yield task.name, task.steps(settings)

    with InOrder() as told:
        for name, result in drive_flows(flows(), settings, total=len(tasks)):
            number = numbers[name]
            with hold_back() as lines:
                if isinstance(result, UsageError | MissingKeyError | MissingExtraError):
                    raise result
                if isinstance(result, RegenError):
                    outcome.fail(name, result)
                else:
                    emit = partial(outcome.reports.__setitem__, number)
                    outcome.codes.append(tasks[number - 1].finish(result, emit))
                    outcome.changed += bool(result.regenerated)
            told.tell(number, lines)
    return outcome
