"""Conversations side by side under one system prompt, each about a group of tools.

One call serves all tools while its answer is expected to fit the output limit. Beyond that each
group of tools has a conversation of its own. They share the system prompt, which names all tools:
the first call writes it to the cache, and the others, in parallel, read it.
"""

import itertools
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass

from pytest_regen.errors import BudgetError, NoProgressError, ProviderError, ReplyFormatError
from pytest_regen.sessions.conversation import (
    Conversation,
    PendingTurn,
    SessionSettings,
    check_limits,
)
from pytest_regen.sessions.memory import Memory
from pytest_regen.sessions.prompts import first_message
from pytest_regen.sessions.replies import Expectations, ScenarioReader, response_hint
from pytest_regen.sessions.scenarios import (
    ScenarioFeedback,
    ScenarioRequest,
    TestScenario,
    ToolAnnotation,
)
from pytest_regen.turns.steps import Steps
from pytest_regen.turns.values import Message

TOKENS_PER_TOOL = 350
"""Output expected per tool; measured sets take 170 to 335."""

Tools = tuple[ToolAnnotation, ...]


@dataclass(frozen=True, slots=True)
class ToolGroup:
    """One conversation and the tools it is about."""

    tools: Tools
    conversation: Conversation

    @property
    def key(self) -> tuple[tuple[str, str], ...]:
        """The tools by name: what tells groups apart."""
        return tuple(annotation.tool for annotation in self.tools)

    @property
    def address(self) -> str:
        """The first tool: the name of the group, also in a restored session."""
        return "/".join(self.tools[0].tool)


@dataclass(frozen=True, slots=True)
class GroupAnswer:
    """What one group answered, not in its history yet."""

    group: ToolGroup
    pending: PendingTurn[tuple[TestScenario, ...]]
    notes: tuple[str, ...]
    is_salvaged: bool

    @property
    def scenarios(self) -> tuple[TestScenario, ...]:
        """The scenarios that can be used."""
        return self.pending.value

    @property
    def missing_tools(self) -> Tools:
        """Tools that a reply which was cut did not reach."""
        if not self.is_salvaged:
            return ()
        covered = {scenario.request.tool for scenario in self.scenarios}
        return tuple(tool for tool in self.group.tools if tool.tool not in covered)

    @property
    def answered_group(self) -> ToolGroup:
        """The group with the tools that were answered; the others get groups of their own."""
        missing = self.missing_tools
        tools = tuple(tool for tool in self.group.tools if tool not in missing)
        return ToolGroup(tools, self.group.conversation)


Result = GroupAnswer | Exception
GroupBatches = Generator[list[Steps[GroupAnswer]], list[Result], list[GroupAnswer]]
"""Yields steps that may run at the same time, one batch after the other."""


def plan_groups(
    annotations: Sequence[ToolAnnotation], *, max_tokens: int, batch_size: int | None = None
) -> list[Tools]:
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
    servers = {
        name: number
        for number, name in enumerate(annotation.server_name for annotation in annotations)
    }
    tools = sorted(annotations, key=lambda annotation: servers[annotation.server_name])
    return split_evenly(tools, math.ceil(len(tools) / size))


def split_evenly(tools: Sequence[ToolAnnotation], parts: int) -> list[Tools]:
    """Return ``tools`` in ``parts`` groups whose sizes differ by one at most."""
    bounds = [len(tools) * part // parts for part in range(parts + 1)] if parts else []
    return [tuple(tools[a:b]) for a, b in itertools.pairwise(bounds) if a < b]


def ask_group(
    group: ToolGroup, message: str, expected: Expectations, turn: int
) -> Steps[GroupAnswer]:
    """Ask one group, and keep whatever of its answer can be used.

    Where only scenarios of forgotten tools were still asked for, no failure takes the others away.

    Raises:
        ReplyFormatError: nothing of it can.
    """
    reader = ScenarioReader(expected)
    try:
        answer = yield from group.conversation.ask(
            message, reader.read, turn=turn, salvage=reader.salvage
        )
        text = answer.assistant.content
    except (ProviderError, BudgetError) as error:
        is_enough = isinstance(error, ReplyFormatError) or reader.waits_for_tools_alone
        if not (is_enough and reader.give_up()):
            raise
        text = ""
    assistant = Message("assistant", reader.text_to_commit(text))
    pending = PendingTurn(reader.scenarios, Message("user", message), assistant)
    return GroupAnswer(group, pending, reader.notes, reader.is_salvaged)


def run_batch(batch: list[Steps[GroupAnswer]]) -> GroupBatches:
    """Run one batch, and raise the first failure in it once all have ended."""
    outcomes = yield batch
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
    return [outcome for outcome in outcomes if isinstance(outcome, GroupAnswer)]


class FirstTurn:
    """Asks for scenarios of all tools.

    What a group answered is kept at once, and until the turn is committed, so that a turn which
    failed in one group, or was interrupted, does not pay for the others again.
    """

    def __init__(
        self,
        annotations: Sequence[ToolAnnotation],
        handwritten: Sequence[TestScenario],
        settings: SessionSettings,
        *,
        batch_size: int | None,
    ) -> None:
        self._annotations = tuple(annotations)
        self._handwritten = tuple(handwritten)
        self._settings = settings
        self._batch_size = batch_size
        self._answered: dict[tuple[tuple[str, str], ...], GroupAnswer] = {}

    @property
    def scenarios(self) -> tuple[TestScenario, ...]:
        """What was answered and is not committed yet."""
        return tuple(
            scenario for answer in self._answered.values() for scenario in answer.scenarios
        )

    def forget(self) -> None:
        """Drop what is now in the history."""
        self._answered = {}

    def batches(self, turn: int, group_of: Callable[[Tools], ToolGroup]) -> GroupBatches:
        """Ask the first group alone, so that the others find the system prompt in the cache.

        Returns:
            The answers in the order of their tools.
        """
        pending = plan_groups(
            self._annotations, max_tokens=self._settings.max_tokens, batch_size=self._batch_size
        )
        count = len(pending)
        answers: list[GroupAnswer] = []
        while pending:
            batch = [tools for tools in pending if not self._has(tools)]
            batch = batch if self._answered else batch[:1]
            if batch:
                yield from run_batch([self._steps(group_of(tools), turn, count) for tools in batch])
            fresh = [self._answered[_key(tools)] for tools in pending if self._has(tools)]
            pending = [tools for tools in pending if not self._has(tools)]
            # Tools that a cut reply did not reach are asked for apart, in two smaller groups.
            pending += [tools for answer in fresh for tools in self._split_missing(answer)]
            answers += fresh
        order = {annotation.tool: number for number, annotation in enumerate(self._annotations)}
        return sorted(answers, key=lambda answer: order[answer.group.key[0]])

    def _has(self, tools: Tools) -> bool:
        return _key(tools) in self._answered

    def _split_missing(self, answer: GroupAnswer) -> list[Tools]:
        if answer.missing_tools:
            self._settings.tell(f"Asking for {len(answer.missing_tools)} tools apart...")
        return split_evenly(answer.missing_tools, 2)

    def _steps(self, group: ToolGroup, turn: int, count: int) -> Steps[GroupAnswer]:
        is_all = len(group.tools) == len(self._annotations)
        if not is_all:
            self._settings.tell(f"Asking about {len(group.tools)} tools ({count} groups)...")
        tools = {annotation.tool: annotation for annotation in group.tools}
        own = [
            scenario for scenario in self._handwritten if is_all or scenario.request.tool in tools
        ]
        message = first_message(own, None if is_all else group.tools)
        message += response_hint(group.tools)
        handwritten = {scenario.id: scenario for scenario in self._handwritten}
        expected = Expectations(
            tools,
            handwritten,
            untested=frozenset(tools) - {scenario.request.tool for scenario in self._handwritten},
            asks_for_untested=True,
        )
        return self._keep(ask_group(group, message, expected, turn))

    def _keep(self, steps: Steps[GroupAnswer]) -> Steps[GroupAnswer]:
        answer = yield from steps
        self._answered[answer.group.key] = answer
        return answer


def _key(tools: Tools) -> tuple[tuple[str, str], ...]:
    return tuple(annotation.tool for annotation in tools)


GroupFeedback = tuple[ToolGroup, ScenarioFeedback]
"""A group and its part of the feedback."""


def route_feedback(
    feedback: ScenarioFeedback, groups: Sequence[ToolGroup], memory: Memory
) -> tuple[GroupFeedback, ...]:
    """Return each group that has something to replace, with its part of ``feedback``.

    Notes and changed rules name no tool and go to all. What is about a tool that no group has
    (a discarded call of an unknown tool) goes to the first. A group without anything to replace
    is not asked; it gets the hints in its next turn.

    Raises:
        NoProgressError: all of it was sent before.
        UsageError: a correction repeats the decision that it is meant to correct.
    """
    owners = {tool: owner for owner, group in enumerate(groups) for tool in group.key}
    known = memory.with_hints(feedback).hints
    everything = feedback.model_copy(
        update={"probe_scenarios": known.probe_scenarios, "rule_changes": known.rule_changes}
    )
    unsent = [
        (group, memory.unsent(_part(everything, owners, number), group.address))
        for number, group in enumerate(groups)
    ]
    asked = tuple((group, part) for group, part in unsent if part.asks_for_replacements)
    if not asked:
        raise NoProgressError(
            "everything in this feedback was sent in an earlier turn",
            why="asking again in the same words would be answered as before",
            hint="stop here, or say what else is wrong",
        )
    return asked


def _part(
    feedback: ScenarioFeedback, owners: Mapping[tuple[str, str], int], number: int
) -> ScenarioFeedback:
    def is_own(request: ScenarioRequest | None) -> bool:
        return (owners.get(request.tool, 0) if request else 0) == number

    return feedback.model_copy(
        update={
            "corrections": tuple(
                correction for correction in feedback.corrections if is_own(correction.request)
            ),
            "discarded_scenarios": tuple(
                discard
                for discard in feedback.discarded_scenarios
                if is_own(discard.scenario.request)
            ),
            "probe_scenarios": tuple(
                probe for probe in feedback.probe_scenarios if is_own(probe.request)
            ),
            "untested_tools": tuple(
                tool for tool in feedback.untested_tools if owners.get(tool, 0) == number
            ),
        }
    )
