"""A session that writes test scenarios, and better ones when told what was wrong."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

from pytest_regen.errors import StoreWriteError, UsageError
from pytest_regen.sessions.conversation import (
    Conversation,
    SessionBase,
    SessionSettings,
    Turn,
    check_limits,
)
from pytest_regen.sessions.groups import (
    Branch,
    BranchAnswer,
    FirstTurn,
    Part,
    Waves,
    branch_steps,
    route,
    run_wave,
)
from pytest_regen.sessions.memory import (
    Memory,
    checked_handwritten,
    checked_tools,
    format_feedback_message,
)
from pytest_regen.sessions.prompts import PROMPT_FORMAT
from pytest_regen.sessions.replies import Expectations, response_hint
from pytest_regen.sessions.scenarios import ScenarioFeedback, TestScenario, ToolAnnotation
from pytest_regen.sessions.state import (
    VERSION,
    Artifact,
    ScenarioState,
    checked_path,
    content_hash,
    messages_to_json,
    opened,
    read_artifact,
    write_artifact,
)
from pytest_regen.sessions.transcript import usage_to_json
from pytest_regen.text import plural
from pytest_regen.turns.budget import TokenBudget
from pytest_regen.turns.steps import Parallel, Progress, adrive, drive, tell
from pytest_regen.turns.values import DEFAULT_MODEL, SESSION_MAX_TOKENS, CacheTtl, Message, Provider

__all__ = [
    "ScenarioGenerationResult",
    "ScenarioGeneratorSession",
    "generate_scenarios",
    "generate_test_scenarios",
    "scenario_input_hash",
]


class ScenarioGeneratorSession(SessionBase):
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
        cache: lifetime of the cache breakpoints on the system prompt and the last message, the
            same in every request; ``None`` sets none.
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
        max_tokens: int = SESSION_MAX_TOKENS,
        batch_size: int | None = None,
        parallel: int = 4,
        max_repairs: int = 2,
        max_turns: int | None = None,
        token_budget: int | None = None,
        shared_budget: TokenBudget | None = None,
        cache: CacheTtl | None = "5m",
        on_progress: Progress | None = None,
    ) -> None:
        check_limits(batch_size=(batch_size, 1), parallel=(parallel, 1))
        super().__init__(
            SessionSettings(
                provider=provider,
                model=model,
                max_tokens=max_tokens,
                max_repairs=max_repairs,
                max_turns=max_turns,
                token_budget=token_budget,
                shared_budget=shared_budget,
                cache=cache,
                on_progress=self._tell,
            )
        )
        self._progress = self._watcher = on_progress
        self.system = system
        self.annotations = checked_tools(annotations)
        self.handwritten = checked_handwritten(handwritten)
        self._batch_size = batch_size
        self._side_by_side = Parallel[BranchAnswer](self._account.exchange.wire, parallel)
        self._branches: tuple[Branch, ...] = ()
        self._memory = Memory.of(self.handwritten)
        self._first = FirstTurn(
            self.annotations, self.handwritten, self._settings, batch_size=batch_size
        )

    @property
    def history(self) -> tuple[Message, ...]:
        """The committed messages; of several groups, one conversation after the other."""
        return tuple(message for one in self._branches for message in one.conversation.history)

    @property
    def fingerprint(self) -> str:
        """Hash of what its scenarios depend on: prompt, model, tools, ground truth, limits."""
        settings = self._settings
        return scenario_input_hash(
            self.system,
            self.annotations,
            self.handwritten,
            model=settings.model,
            max_tokens=settings.max_tokens,
            batch_size=self._batch_size,
            max_repairs=settings.max_repairs,
        )

    @property
    def answered(self) -> tuple[TestScenario, ...]:
        """Scenarios of a first turn that did not end: of the groups that were answered."""
        return tuple(_copies(self._first.scenarios))

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
            waves = self._first_waves(turn)
            answers = drive(waves, self._side_by_side)
            return self._commit_first(turn, answers)

    async def agenerate(self, on_progress: Progress | None = None) -> list[TestScenario]:
        """Take the first turn without blocking the event loop; as ``generate``."""
        with self._turn(on_progress) as turn:
            self._check_first()
            waves = self._first_waves(turn)
            answers = await adrive(waves, self._side_by_side)
            return self._commit_first(turn, answers)

    def regenerate(
        self, feedback: ScenarioFeedback, on_progress: Progress | None = None
    ) -> list[TestScenario]:
        """Tell what was wrong and return replacements, and only these.

        What was told in an earlier turn is not told again, unless something else was told or said
        of it since. Feedback goes to the group that has the tool; probes and changed rules for a
        group without anything to replace wait for its next turn.

        Raises:
            UsageError: there was no first turn; the feedback has nothing to replace (probes alone
                are no reason for a turn), names a scenario or a tool that this session does not
                know, contradicts a handwritten scenario or itself, or calls right what was said.
            NoProgressError: all of the feedback was told before.
            ReplyFormatError: no reply could be used, repairs included.
            RefusedError: the model declined.
            BudgetError: the turns or the tokens are spent.
            ProviderError: there was no reply.
        """
        with self._turn(on_progress) as turn:
            parts = self._parts(feedback)
            waves = self._next_waves(parts, turn)
            answers = drive(waves, self._side_by_side)
            return self._commit_next(turn, answers, parts, feedback)

    async def aregenerate(
        self, feedback: ScenarioFeedback, on_progress: Progress | None = None
    ) -> list[TestScenario]:
        """Tell and return without blocking the event loop; as ``regenerate``."""
        with self._turn(on_progress) as turn:
            parts = self._parts(feedback)
            waves = self._next_waves(parts, turn)
            answers = await adrive(waves, self._side_by_side)
            return self._commit_next(turn, answers, parts, feedback)

    def to_json(self) -> dict[str, Any]:
        """Return the session as plain JSON, for ``from_json``."""
        return {
            "version": VERSION,
            "kind": ScenarioState.KIND,
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
            "turns": self._log.count,
            "usage": usage_to_json(self.usage),
        }

    @classmethod
    def from_json(
        cls,
        data: Mapping[str, Any],
        *,
        provider: Provider,
        **settings: Any,
    ) -> Self:
        """Return the session that ``to_json`` wrote; it goes on where that one stood.

        Raises:
            UsageError: ``data`` is no scenario session, or does not hold together.
        """
        state = opened(data, ScenarioState)
        branches = state.branches()
        session = cls(
            state.system,
            state.annotations,
            state.handwritten,
            provider=provider,
            **{"model": state.model, **settings},
        )
        session._branches = tuple(session._branch(tools) for tools, _ in branches)
        for branch, (_, history) in zip(session._branches, branches, strict=True):
            branch.conversation.restore(history)
        session._memory = Memory.restored(state.memory)
        session._account.restore(state.usage.restored())
        session._log.restore(state.turns)
        return session

    @contextmanager
    def _turn(self, on_progress: Progress | None) -> Iterator[Turn]:
        with self._log.turn() as turn:
            self._progress = on_progress or self._watcher
            yield turn

    def _tell(self, message: str) -> None:
        tell(self._progress, message)

    def _check_first(self) -> None:
        if self.turn_count:
            raise UsageError(
                "the scenarios of this session were generated",
                why=f"its history holds {plural(self.turn_count, 'turn')}",
                hint="call regenerate(feedback) for replacements, or start a new session",
            )

    def _first_waves(self, turn: Turn) -> Waves:
        self._tell("Generating scenarios...")
        return self._first.waves(turn.number, self._branch)

    def _branch(self, tools: Iterable[ToolAnnotation]) -> Branch:
        group = tuple(tools)
        name = "" if len(group) == len(self.annotations) else "/".join(group[0].tool)
        conversation = Conversation(self.system, self._settings, self._account, branch=name)
        return Branch(group, conversation)

    def _commit_first(self, turn: Turn, answers: Sequence[BranchAnswer]) -> list[TestScenario]:
        if not answers:
            return _copies(self.handwritten)
        self._branches = tuple(answer.reached for answer in answers)
        self._first.forget()
        found = self._committed(turn, answers)
        self._memory = self._memory.knowing(found)
        return _copies([*self.handwritten, *found])

    def _committed(self, turn: Turn, answers: Sequence[BranchAnswer]) -> list[TestScenario]:
        """Let the answers of a turn enter the histories, all at once; return their scenarios."""
        for answer in answers:
            answer.branch.conversation.commit(answer.draft)
            turn.notes += answer.notes
        turn.is_committed = True
        found = {one.id: one for answer in answers for one in answer.scenarios}
        return list(found.values())

    def _parts(self, feedback: ScenarioFeedback) -> tuple[Part, ...]:
        """Return what each conversation is to be told."""
        tools = {one.tool for one in self.annotations}
        asked = self._memory.checked(feedback, self.turn_count, tools)
        return route(asked, self._branches, self._memory)

    def _next_waves(self, parts: Sequence[Part], turn: Turn) -> Waves:
        self._tell(f"Regenerating scenarios (turn {turn.number})...")
        after = self._memory.after(parts)
        handwritten = {one.id: one for one in self.handwritten}
        wave = []
        for branch, part in parts:
            tools = {one.tool: one for one in branch.tools}
            expected = Expectations(
                tools,
                handwritten,
                after.wrong,
                after.discarded,
                untested=frozenset(part.untested_tools),
                may_be_empty=True,
            )
            wave.append(branch_steps(branch, format_feedback_message(part), expected, turn.number))
        return run_wave(wave)

    def _commit_next(
        self,
        turn: Turn,
        answers: Sequence[BranchAnswer],
        parts: Sequence[Part],
        hints: ScenarioFeedback,
    ) -> list[TestScenario]:
        standing = self._memory.standing(part for _, part in parts)
        found = self._committed(turn, answers)
        fresh = [one for one in found if one.id not in standing]
        self._memory = self._memory.after(parts).hinted(hints).knowing(fresh)
        turn.notes += [
            f"{one.description!r} asks what {standing[one.id].description!r} asks; left out"
            for one in found
            if one.id in standing
        ]
        return _copies(fresh)


def _copies(scenarios: Iterable[TestScenario]) -> list[TestScenario]:
    """Return scenarios that the caller may change without changing what the session knows."""
    return [one.model_copy(deep=True) for one in scenarios]


def scenario_input_hash(
    system: str,
    annotations: Sequence[ToolAnnotation],
    handwritten: Sequence[TestScenario] = (),
    *,
    model: str = DEFAULT_MODEL,
    max_tokens: int = SESSION_MAX_TOKENS,
    batch_size: int | None = None,
    max_repairs: int = 2,
    **_: object,
) -> str:
    """Return the hash of everything a generated set depends on.

    Prompts, model, schema, limits and the number of our prompt format are in it; budgets, progress
    and the version of this package are not: they change no scenario.
    """
    return content_hash(
        "scenarios",
        PROMPT_FORMAT,
        system,
        annotations,
        handwritten,
        model,
        response_hint(annotations),
        max_tokens,
        batch_size,
        max_repairs,
    )


@dataclass(frozen=True, slots=True)
class ScenarioGenerationResult:
    """What ``generate_test_scenarios`` returns."""

    scenarios: tuple[TestScenario, ...]
    input_hash: str
    session: ScenarioGeneratorSession | None = None
    """To regenerate with; ``None`` where the artifact was used and nobody was asked."""
    untested_tools: tuple[tuple[str, str], ...] = ()
    """Tools that were asked for twice, and that no scenario tests all the same."""


def generate_scenarios(
    system: str,
    annotations: Sequence[ToolAnnotation],
    handwritten: Sequence[TestScenario] = (),
    *,
    provider: Provider,
    **settings: Any,
) -> list[TestScenario]:
    """Return handwritten and generated scenarios, in one go and without a session to go on with.

    Args:
        system: the system prompt.
        annotations: the tools.
        handwritten: scenarios of people; returned first.
        provider: who answers.
        **settings: the other arguments of ``ScenarioGeneratorSession``, which lists the errors.
    """
    session = ScenarioGeneratorSession(
        system, annotations, handwritten, provider=provider, **settings
    )
    return session.generate()


def generate_test_scenarios(
    system: str,
    annotations: Sequence[ToolAnnotation],
    handwritten: Sequence[TestScenario] = (),
    *,
    provider: Provider,
    artifact: str | os.PathLike[str] | None = None,
    **settings: Any,
) -> ScenarioGenerationResult:
    """Return the scenarios of ``artifact`` if nothing they depend on has changed, else new ones.

    A session exists only on a miss. A set that failed its verification is a miss, too.

    Args:
        system: the system prompt.
        annotations: the tools.
        handwritten: scenarios of people; returned first.
        provider: who answers.
        artifact: where the scenarios are kept; ``None`` keeps nothing.
        **settings: the other arguments of ``ScenarioGeneratorSession``, which lists the errors.

    Raises:
        StoreWriteError: the artifact cannot be written, which is looked at first; scenarios that
            were generated are in the result that is its attribute ``unkept``.
    """
    tools, own = checked_tools(annotations), checked_handwritten(handwritten)
    input_hash = scenario_input_hash(system, tools, own, **settings)
    path = None if artifact is None else checked_path(artifact)
    stored = read_artifact(path) if path else None
    if stored and stored.input_hash == input_hash and stored.status != "failed":
        untested = _untested(tools, stored.scenarios)
        return ScenarioGenerationResult(stored.scenarios, input_hash, untested_tools=untested)
    session = ScenarioGeneratorSession(system, tools, own, provider=provider, **settings)
    scenarios = tuple(session.generate())
    result = ScenarioGenerationResult(scenarios, input_hash, session, _untested(tools, scenarios))
    if path:
        try:
            write_artifact(path, Artifact(input_hash, "generated", scenarios))
        except StoreWriteError as error:
            error.unkept = result
            raise
    return result


def _untested(
    tools: Sequence[ToolAnnotation], scenarios: Sequence[TestScenario]
) -> tuple[tuple[str, str], ...]:
    tested = {one.request.tool for one in scenarios}
    return tuple(one.tool for one in tools if one.tool not in tested)
