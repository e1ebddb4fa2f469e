"""Conversations side by side under one system prompt: a group of tools each.

One call serves all tools while its answer is expected to fit the output limit. Beyond that each
group of tools has a conversation of its own. They share the system prompt, which names all tools:
the first call writes it to the cache, and the others, in parallel, read it.
"""

import itertools
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass

from pytest_regen.errors import BudgetError, NoProgressError, ProviderError, ReplyFormatError
from pytest_regen.sessions.conversation import Conversation, Draft, SessionSettings, check_limits
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

__all__ = [
    "Branch",
    "BranchAnswer",
    "FirstTurn",
    "Group",
    "Part",
    "Waves",
    "branch_steps",
    "plan_groups",
    "route",
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
        self._answered: dict[tuple[tuple[str, str], ...], BranchAnswer] = {}

    @property
    def scenarios(self) -> tuple[TestScenario, ...]:
        """What was answered and is not committed yet."""
        return tuple(one for answer in self._answered.values() for one in answer.scenarios)

    def forget(self) -> None:
        """Drop what is now in the history."""
        self._answered = {}

    def waves(self, turn: int, branch_of: Callable[[Group], Branch]) -> Waves:
        """Ask the first group alone, so that the others find the system prompt in the cache.

        Returns:
            The answers in the order of their tools.
        """
        pending = plan_groups(
            self._annotations, max_tokens=self._settings.max_tokens, batch_size=self._batch_size
        )
        groups = len(pending)
        answers: list[BranchAnswer] = []
        while pending:
            wave = [group for group in pending if not self._has(group)]
            wave = wave if self._answered else wave[:1]
            if wave:
                yield from run_wave([self._steps(branch_of(g), turn, groups) for g in wave])
            fresh = [self._answered[_key(group)] for group in pending if self._has(group)]
            pending = [group for group in pending if not self._has(group)]
            pending += [group for answer in fresh for group in self._missed(answer)]
            answers += fresh
        order = {one.tool: number for number, one in enumerate(self._annotations)}
        return sorted(answers, key=lambda one: order[one.branch.key[0]])

    def _has(self, group: Group) -> bool:
        return _key(group) in self._answered

    def _missed(self, answer: BranchAnswer) -> list[Group]:
        """Return the tools that a cut reply did not reach, in two smaller groups."""
        if answer.missed:
            self._settings.tell(f"Asking for {len(answer.missed)} tools apart...")
        return split(answer.missed, 2)

    def _steps(self, branch: Branch, turn: int, groups: int) -> Steps[BranchAnswer]:
        is_all = len(branch.tools) == len(self._annotations)
        if not is_all:
            self._settings.tell(f"Asking about {len(branch.tools)} tools ({groups} groups)...")
        tools = {one.tool: one for one in branch.tools}
        mine = [one for one in self._handwritten if is_all or one.request.tool in tools]
        message = first_message(mine, None if is_all else branch.tools)
        message += response_hint(branch.tools)
        handwritten = {one.id: one for one in self._handwritten}
        expected = Expectations(
            tools,
            handwritten,
            untested=frozenset(tools) - {one.request.tool for one in self._handwritten},
            asks_for_untested=True,
        )
        return self._kept(branch_steps(branch, message, expected, turn))

    def _kept(self, steps: Steps[BranchAnswer]) -> Steps[BranchAnswer]:
        answer = yield from steps
        self._answered[answer.branch.key] = answer
        return answer


def _key(group: Group) -> tuple[tuple[str, str], ...]:
    return tuple(one.tool for one in group)


Part = tuple[Branch, ScenarioFeedback]
"""A conversation and what it is told."""


def route(
    feedback: ScenarioFeedback, branches: Sequence[Branch], memory: Memory
) -> tuple[Part, ...]:
    """Return each branch that has something to replace, with its part of ``feedback``.

    Notes and changed rules name no tool and go to all. What is about a tool that no branch has
    (a call of an unknown tool, discarded) goes to the first. A branch without anything to replace
    is not asked; the hints it would have got are part of its next turn.

    Raises:
        NoProgressError: all of it was told before.
        UsageError: a correction calls right what was said.
    """
    owners = {tool: owner for owner, branch in enumerate(branches) for tool in branch.key}
    known = memory.hinted(feedback).hints
    everything = feedback.model_copy(
        update={"probe_scenarios": known.probe_scenarios, "rule_changes": known.rule_changes}
    )
    parts = [
        (branch, memory.unsaid(_part(everything, owners, number), branch.address))
        for number, branch in enumerate(branches)
    ]
    asked = tuple((branch, part) for branch, part in parts if part.asks_for_replacements)
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
            "corrections": tuple(one for one in feedback.corrections if is_own(one.request)),
            "discarded_scenarios": tuple(
                one for one in feedback.discarded_scenarios if is_own(one.scenario.request)
            ),
            "probe_scenarios": tuple(
                one for one in feedback.probe_scenarios if is_own(one.request)
            ),
            "untested_tools": tuple(
                tool for tool in feedback.untested_tools if owners.get(tool, 0) == number
            ),
        }
    )
