"""The first turn of a scenario session: each group of tools asked, and what was cut asked apart."""

from collections.abc import Callable, Sequence

from pytest_regen.sessions.branches import (
    Branch,
    BranchAnswer,
    Group,
    Waves,
    branch_steps,
    plan_groups,
    run_wave,
    split,
)
from pytest_regen.sessions.conversation import SessionSettings
from pytest_regen.sessions.prompts import first_message
from pytest_regen.sessions.reading import Expectations, response_hint
from pytest_regen.sessions.values import TestScenario, ToolAnnotation
from pytest_regen.turns.driving import Steps

__all__ = ["FirstTurn"]


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
