"""A session that writes test scenarios, and better ones when told what was wrong."""

import threading
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

from pytest_regen.errors import UsageError
from pytest_regen.sessions.branches import (
    Branch,
    Outcome,
    Waves,
    adrive_waves,
    branch_steps,
    drive_waves,
    run_wave,
)
from pytest_regen.sessions.conversation import (
    Account,
    Conversation,
    SessionSettings,
    TokenBudget,
)
from pytest_regen.sessions.feedback import format_feedback_message
from pytest_regen.sessions.first_turn import FirstTurn
from pytest_regen.sessions.memory import Memory, checked_handwritten, checked_tools
from pytest_regen.sessions.reading import Expectations
from pytest_regen.sessions.routing import route
from pytest_regen.sessions.session import check_turns, exclusive
from pytest_regen.sessions.state import check_state, messages_from_json, messages_to_json
from pytest_regen.sessions.transcript import (
    Transcript,
    TurnReport,
    report_turn,
    usage_from_json,
    usage_to_json,
)
from pytest_regen.sessions.values import ScenarioFeedback, TestScenario, ToolAnnotation
from pytest_regen.turns.defaults import DEFAULT_MODEL
from pytest_regen.turns.steps import Progress
from pytest_regen.turns.values import CacheTtl, Message, Provider, Usage

__all__ = ["ScenarioGeneratorSession"]

_KIND = "scenario-session"


class ScenarioGeneratorSession:
    """Writes test scenarios in one conversation, turn by turn.

    ``generate()`` is the first turn; each ``regenerate(feedback)`` tells what verification found
    and returns replacements. A turn is one committed call of either, however many requests it
    took: repairs, continuations, groups of tools in parallel.

    Args:
        system: the system prompt, the same bytes in every request;
            ``build_generator_system_prompt`` makes one.
        annotations: the tools, one annotation each.
        handwritten: scenarios of people: returned first, never changed, contradicted or dropped.
        provider: who answers.
        model: name of the model.
        max_tokens: upper limit of one reply; where more is expected, tools are asked in groups.
        batch_size: tools per group, instead of what the limit suggests.
        parallel: groups asked at the same time, after the first.
        max_repairs: times per turn and group that wrong scenarios are sent back.
        max_turns: turns after which the session refuses another one.
        token_budget: tokens the session may spend.
        shared_budget: a budget that others spend from as well.
        cache: lifetime of the cache breakpoints.
        on_progress: called with one line per step, possibly from several threads.

    Raises:
        UsageError: a limit allows nothing, a tool is annotated twice, or handwritten scenarios
            contradict each other.
    """

    def __init__(
        self,
        system: str,
        annotations: Sequence[ToolAnnotation],
        handwritten: Sequence[TestScenario] = (),
        *,
        provider: Provider,
        model: str = DEFAULT_MODEL,
        max_tokens: int = 16_384,
        batch_size: int | None = None,
        parallel: int = 4,
        max_repairs: int = 2,
        max_turns: int | None = None,
        token_budget: int | None = None,
        shared_budget: TokenBudget | None = None,
        cache: CacheTtl | None = "5m",
        on_progress: Progress | None = None,
    ) -> None:
        self._settings = SessionSettings(
            provider,
            model,
            max_tokens,
            max_repairs,
            max_turns,
            token_budget,
            shared_budget,
            cache,
            self._tell,
        )
        self._progress = self._watcher = on_progress
        self.system = system
        self.annotations = checked_tools(annotations)
        self.handwritten = checked_handwritten(handwritten)
        self._parallel = parallel
        self._account = Account(self._settings)
        self._branches: tuple[Branch, ...] = ()
        self._memory = Memory.of(self.handwritten)
        self._first = FirstTurn(
            self.annotations, self.handwritten, self._settings, batch_size=batch_size
        )
        self._reports: tuple[TurnReport, ...] = ()
        self._turns = 0
        self._busy = threading.Lock()

    @property
    def turn_count(self) -> int:
        """Committed turns."""
        return self._turns

    @property
    def history(self) -> tuple[Message, ...]:
        """The committed messages; of several groups, one conversation after the other."""
        return tuple(message for one in self._branches for message in one.conversation.history)

    @property
    def transcript(self) -> Transcript:
        """Every call made, failed ones, repairs and continuations included."""
        return self._account.transcript

    @property
    def usage(self) -> Usage:
        """Tokens of all calls, those of failed turns included: they are paid."""
        return self._account.usage

    @property
    def reports(self) -> tuple[TurnReport, ...]:
        """One report per turn tried since the session was made or restored."""
        return self._reports

    def generate(self, on_progress: Progress | None = None) -> list[TestScenario]:
        """Take the first turn; return the handwritten scenarios, then the generated ones.

        After a failure it can be called again; groups that were answered are not paid twice.

        Raises:
            UsageError: the first turn was taken; ask for replacements with ``regenerate``.
            ReplyFormatError: no scenario of a group could be used, repairs included.
            RefusedError: the model declined.
            BudgetError: the turns or the tokens are spent.
            ProviderError: there was no reply.
        """
        with self._turn(on_progress) as turn:
            self._check_first()
            outcomes = drive_waves(self._first_waves(turn), self._settings.provider, self._parallel)
            return self._commit_first(outcomes)

    async def agenerate(self, on_progress: Progress | None = None) -> list[TestScenario]:
        """Take the first turn without blocking the event loop; as ``generate``."""
        with self._turn(on_progress) as turn:
            self._check_first()
            waves = self._first_waves(turn)
            return self._commit_first(
                await adrive_waves(waves, self._settings.provider, self._parallel)
            )

    def regenerate(
        self, feedback: ScenarioFeedback, on_progress: Progress | None = None
    ) -> list[TestScenario]:
        """Tell what was wrong and return replacements, and only these.

        What was told in an earlier turn is not told again. Feedback goes to the group that has the
        tool. A correction or discard of an unchanged kind twice is no progress.

        Raises:
            UsageError: there was no first turn, the feedback has nothing to replace (probes alone
                are no reason for a turn), or names a scenario that this session does not know, or
                contradicts a handwritten one.
            NoProgressError: all of the feedback was told before.
            ReplyFormatError: no reply could be used, repairs included.
            RefusedError: the model declined.
            BudgetError: the turns or the tokens are spent.
            ProviderError: there was no reply.
        """
        with self._turn(on_progress) as turn:
            new = self._memory.to_tell(feedback, self._turns)
            waves = self._next_waves(new, turn)
            outcomes = drive_waves(waves, self._settings.provider, self._parallel)
            return self._commit_next(outcomes, new)

    async def aregenerate(
        self, feedback: ScenarioFeedback, on_progress: Progress | None = None
    ) -> list[TestScenario]:
        """Tell and return without blocking the event loop; as ``regenerate``."""
        with self._turn(on_progress) as turn:
            new = self._memory.to_tell(feedback, self._turns)
            waves = self._next_waves(new, turn)
            outcomes = await adrive_waves(waves, self._settings.provider, self._parallel)
            return self._commit_next(outcomes, new)

    def to_json(self) -> dict[str, Any]:
        """Return the session as plain JSON, for ``from_json``."""
        return {
            "version": 1,
            "kind": _KIND,
            "system": self.system,
            "model": self._settings.model,
            "annotations": [one.to_json() for one in self.annotations],
            "handwritten": [one.to_json() for one in self.handwritten],
            "history": [
                {
                    "tools": [list(tool) for tool in one.key],
                    "messages": messages_to_json(one.conversation.history),
                }
                for one in self._branches
            ],
            "memory": self._memory.to_json(),
            "turns": self._turns,
            "usage": usage_to_json(self.usage),
        }

    @classmethod
    def from_json(
        cls,
        data: Mapping[str, Any],
        *,
        provider: Provider,
        **settings: Any,  # noqa: ANN401 - as the constructor takes them
    ) -> Self:
        """Return the session that ``to_json`` wrote; it goes on where that one stood.

        Raises:
            UsageError: ``data`` is no scenario session, or does not hold together.
        """
        check_state(data, _KIND)
        session = cls(
            str(data["system"]),
            [ToolAnnotation.model_validate(one) for one in data["annotations"]],
            [TestScenario.model_validate(one) for one in data["handwritten"]],
            provider=provider,
            **{"model": str(data["model"]), **settings},
        )
        tools = {one.tool: one for one in session.annotations}
        session._branches = tuple(
            session._branch(
                tuple(tools[tuple(tool)] for tool in one["tools"]),
                messages_from_json(one["messages"]),
            )
            for one in data["history"]
        )
        session._memory = Memory.from_json(data["memory"])
        session._turns = int(data["turns"])
        session._account.usage = usage_from_json(data["usage"])
        return session

    @contextmanager
    def _turn(self, on_progress: Progress | None) -> Generator[int, None, None]:
        with exclusive(self._busy):
            check_turns(self._turns, self._settings.max_turns)
            since, turn = len(self.transcript), self._turns + 1
            self._progress = on_progress or self._watcher
            self._notes: list[str] = []
            failure = ""
            try:
                yield turn
            except BaseException as error:
                failure = str(error) or type(error).__name__
                raise
            finally:
                report = report_turn(
                    self.transcript,
                    turn,
                    since=since,
                    committed=not failure,
                    notes=self._notes,
                    failure=failure,
                )
                self._reports = (*self._reports, report)

    def _tell(self, message: str) -> None:
        if self._progress:
            self._progress(message)

    def _check_first(self) -> None:
        if self._turns:
            raise UsageError(
                "the scenarios of this session were generated",
                why=f"{self._turns} turn(s) are in its history",
                hint="call regenerate(feedback) for replacements, or start a new session",
            )

    def _first_waves(self, turn: int) -> Waves:
        self._tell("Generating scenarios...")
        return self._first.waves(turn, self._branch)

    def _branch(self, tools: Iterable[ToolAnnotation], history: Sequence[Message] = ()) -> Branch:
        group = tuple(tools)
        name = "" if len(group) == len(self.annotations) else "/".join(group[0].tool)
        conversation = Conversation(
            self.system, self._settings, self._account, branch=name, history=history
        )
        return Branch(group, conversation)

    def _commit_first(self, outcomes: Sequence[Outcome]) -> list[TestScenario]:
        if not outcomes:
            return list(self.handwritten)
        self._branches = tuple(outcome.reached for outcome in outcomes)
        self._first.forget()
        found = self._committed(outcomes)
        self._memory = self._memory.knowing(found)
        return [*self.handwritten, *found]

    def _committed(self, outcomes: Sequence[Outcome]) -> list[TestScenario]:
        """Let the outcomes of a turn enter the histories, all at once; return their scenarios."""
        for outcome in outcomes:
            conversation = outcome.branch.conversation
            conversation.history = (*conversation.history, outcome.user, outcome.assistant)
            self._notes += outcome.notes
        self._turns += 1
        found = {one.id: one for outcome in outcomes for one in outcome.scenarios}
        return list(found.values())

    def _next_waves(self, feedback: ScenarioFeedback, turn: int) -> Waves:
        self._tell(f"Regenerating scenarios (turn {turn})...")
        memory = self._memory.after(feedback)
        handwritten = {one.id: one for one in self.handwritten}
        wave = []
        for branch, part in route(feedback, self._branches):
            tools = {one.tool: one for one in branch.tools}
            expected = Expectations(tools, handwritten, memory.wrong, may_be_empty=True)
            wave.append(branch_steps(branch, format_feedback_message(part), expected, turn))
        return run_wave(wave)

    def _commit_next(
        self, outcomes: Sequence[Outcome], feedback: ScenarioFeedback
    ) -> list[TestScenario]:
        standing = self._memory.standing(feedback)
        found = self._committed(outcomes)
        fresh = [one for one in found if one.id not in standing]
        self._memory = self._memory.after(feedback).knowing(fresh)
        self._notes += [
            f"{one.description!r} asks what {standing[one.id].description!r} asks; left out"
            for one in found
            if one.id in standing
        ]
        return fresh
