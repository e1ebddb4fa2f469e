"""Conversations side by side under one system prompt: a group of tools each.

One call serves all tools while its answer is expected to fit the output limit. Beyond that each
group of tools has a conversation of its own. They share the system prompt, which names all tools:
the first call writes it to the cache, and the others, in parallel, read it.
"""

import asyncio
import contextvars
import itertools
import math
import threading
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import cast

from pytest_regen.errors import BudgetError, ProviderError, ReplyFormatError
from pytest_regen.sessions.conversation import Conversation, Draft, check_limits
from pytest_regen.sessions.reading import Expectations, ScenarioReader
from pytest_regen.sessions.values import TestScenario, ToolAnnotation
from pytest_regen.turns.driving import Steps, adrive, drive
from pytest_regen.turns.values import Message, Provider, Reply, TurnRequest

__all__ = [
    "Branch",
    "BranchAnswer",
    "Group",
    "Waves",
    "adrive_waves",
    "branch_steps",
    "drive_waves",
    "plan_groups",
    "run_wave",
    "split",
]

TOKENS_PER_TOOL = 350
"""Output expected per tool; measured sets take 170 to 335."""

Group = tuple[ToolAnnotation, ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """One conversation and the tools it is about."""

    tools: Group
    conversation: Conversation

    @property
    def key(self) -> tuple[tuple[str, str], ...]:
        """The tools, as what tells branches apart."""
        return tuple(one.tool for one in self.tools)

    @property
    def address(self) -> str:
        """The first tool: a name that a restored session gives the branch as well."""
        return "/".join(self.tools[0].tool)


@dataclass(frozen=True, slots=True)
class BranchAnswer:
    """What one branch answered, not in its history yet."""

    branch: Branch
    draft: Draft[tuple[TestScenario, ...]]
    notes: tuple[str, ...]
    is_salvaged: bool

    @property
    def scenarios(self) -> tuple[TestScenario, ...]:
        """The scenarios that can be used."""
        return self.draft.value

    @property
    def missed(self) -> Group:
        """Tools that a reply which was cut did not reach."""
        covered = {one.request.tool for one in self.scenarios}
        if not self.is_salvaged:
            return ()
        return tuple(one for one in self.branch.tools if one.tool not in covered)

    @property
    def reached(self) -> Branch:
        """The branch with the tools it keeps; those missed get branches of their own."""
        missed = self.missed
        tools = tuple(one for one in self.branch.tools if one not in missed)
        return Branch(tools, self.branch.conversation)


Result = BranchAnswer | Exception
Waves = Generator[list[Steps[BranchAnswer]], list[Result], list[BranchAnswer]]
"""Steps that may run at the same time, wave by wave."""


def plan_groups(
    annotations: Sequence[ToolAnnotation], *, max_tokens: int, batch_size: int | None = None
) -> list[Group]:
    """Return the tools in groups whose answers are expected to fit ``max_tokens``.

    The tools of a server stay together as far as they fit; groups are of about the same size.

    Args:
        annotations: the tools; one annotation per tool.
        max_tokens: upper limit of one reply.
        batch_size: tools per group, where the expectation is known to be wrong.

    Raises:
        UsageError: a limit allows nothing.
    """
    check_limits(max_tokens=(max_tokens, 1), batch_size=(batch_size, 1))
    size = batch_size or max(1, int(max_tokens * 0.9) // TOKENS_PER_TOOL)
    servers = {name: number for number, name in enumerate(one.server_name for one in annotations)}
    tools = sorted(annotations, key=lambda one: servers[one.server_name])
    return split(tools, math.ceil(len(tools) / size))


def split(tools: Sequence[ToolAnnotation], parts: int) -> list[Group]:
    """Return ``tools`` in ``parts`` groups whose sizes differ by one at most."""
    bounds = [len(tools) * part // parts for part in range(parts + 1)] if parts else []
    return [tuple(tools[a:b]) for a, b in itertools.pairwise(bounds) if a < b]


def branch_steps(
    branch: Branch, message: str, expected: Expectations, turn: int
) -> Steps[BranchAnswer]:
    """Ask one branch, and keep whatever of its answer can be used.

    Where only scenarios of forgotten tools were still asked for, no failure takes the others away.

    Raises:
        ReplyFormatError: nothing of it can.
    """
    reader = ScenarioReader(expected)
    try:
        answered = yield from branch.conversation.ask(
            message, reader.read, turn=turn, salvage=reader.salvage
        )
        said = answered.assistant.content
    except (ProviderError, BudgetError) as error:
        is_enough = isinstance(error, ReplyFormatError) or reader.waits_for_tools_alone
        if not (is_enough and reader.give_up()):
            raise
        said = ""
    assistant = Message("assistant", reader.committed_text(said))
    draft = Draft(reader.scenarios, Message("user", message), assistant)
    return BranchAnswer(branch, draft, reader.notes, reader.is_salvaged)


def run_wave(wave: list[Steps[BranchAnswer]]) -> Waves:
    """Run one wave, and raise the first failure in it once all have ended."""
    done = yield wave
    for one in done:
        if isinstance(one, Exception):
            raise one
    return [one for one in done if isinstance(one, BranchAnswer)]


def drive_waves(waves: Waves, provider: Provider, parallel: int) -> list[BranchAnswer]:
    """Run each wave, ``parallel`` groups at a time, and return the answers.

    An interruption ends it at once. What was not asked yet never is; of what is under way nobody
    waits for the answer: it counts with what was sent.
    """
    try:
        wave = next(waves)
        while True:
            if min(parallel, len(wave)) <= 1:
                done: list[Result] = [_result(_outcome(steps, provider)) for steps in wave]
            else:
                done = [_result(one) for one in _in_threads(wave, provider, parallel)]
            wave = waves.send(done)
    except StopIteration as end:
        return cast("list[BranchAnswer]", end.value)


class _Stopped(Exception):  # noqa: N818 - not raised past this module
    """A call is not made any more."""


@dataclass(frozen=True, slots=True)
class _Stoppable:
    """A provider that is asked nothing after a turn was interrupted."""

    provider: Provider
    stop: threading.Event

    def send(self, request: TurnRequest) -> Reply:
        if self.stop.is_set():
            raise _Stopped("the turn was interrupted before this call")
        return self.provider.send(request)


def _in_threads(
    wave: list[Steps[BranchAnswer]], provider: Provider, parallel: int
) -> list[BranchAnswer | BaseException]:
    """Drive steps in threads for which neither an interruption nor the end of the process waits.

    A pool of ``concurrent.futures`` would: its threads are joined at exit.
    """
    stop = threading.Event()
    waiting = deque(enumerate(wave))
    ended: SimpleQueue[tuple[int, BranchAnswer | BaseException]] = SimpleQueue()
    asked = _Stoppable(provider, stop)

    def work() -> None:
        while not stop.is_set():
            try:
                number, steps = waiting.popleft()
            except IndexError:
                return
            ended.put((number, _outcome(steps, asked)))

    for _ in range(min(parallel, len(wave))):
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(work,), daemon=True).start()
    try:
        found = dict(ended.get() for _ in wave)
    except BaseException:
        stop.set()
        for steps in wave:
            with suppress(ValueError):  # It reads an answer just now, and will ask nothing more.
                steps.close()
        raise
    return [found[number] for number in range(len(wave))]


def _outcome(steps: Steps[BranchAnswer], provider: Provider) -> BranchAnswer | BaseException:
    try:
        return drive(steps, provider)
    except BaseException as error:  # noqa: BLE001 - raised where the wave ends
        return error


def _result(outcome: BranchAnswer | BaseException) -> Result:
    if isinstance(outcome, BranchAnswer | Exception):
        return outcome
    raise outcome


async def adrive_waves(waves: Waves, provider: Provider, parallel: int) -> list[BranchAnswer]:
    """Run each wave in the event loop, ``parallel`` at a time, and return the answers."""
    gate = asyncio.Semaphore(max(1, parallel))

    async def run(steps: Steps[BranchAnswer]) -> BranchAnswer:
        async with gate:
            return await adrive(steps, provider)

    try:
        wave = next(waves)
        while True:
            done = await asyncio.gather(*map(run, wave), return_exceptions=True)
            stopped = next(
                (one for one in done if not isinstance(one, BranchAnswer | Exception)), None
            )
            if isinstance(stopped, BaseException):
                raise stopped
            wave = waves.send(cast("list[Result]", list(done)))
    except StopIteration as end:
        return cast("list[BranchAnswer]", end.value)
