"""A session that writes test scenarios, and better ones once it is sent what was wrong."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self, Unpack

from pytest_regen.errors import StoreWriteError, UsageError
from pytest_regen.sessions.conversation import (
    Conversation,
    SessionBase,
    SessionOptions,
    SessionSettings,
    Turn,
    check_limits,
)
from pytest_regen.sessions.groups import (
    FirstTurn,
    GroupAnswer,
    GroupBatches,
    GroupFeedback,
    ToolGroup,
    ask_group,
    route_feedback,
    run_batch,
)
from pytest_regen.sessions.memory import (
    Memory,
    check_handwritten,
    check_tools,
    format_feedback_message,
)
from pytest_regen.sessions.prompts import PROMPT_FORMAT
from pytest_regen.sessions.replies import Expectations, response_hint
from pytest_regen.sessions.scenarios import ScenarioFeedback, TestScenario, ToolAnnotation
from pytest_regen.sessions.state import (
    VERSION,
    Artifact,
    ScenarioState,
    check_path,
    content_hash,
    load_state,
    messages_to_json,
    read_artifact,
    write_artifact,
)
from pytest_regen.sessions.transcript import usage_to_json
from pytest_regen.text import plural
from pytest_regen.turns.steps import OnProgress, Parallel, adrive, drive, tell
from pytest_regen.turns.values import DEFAULT_MODEL, SESSION_MAX_TOKENS, Message, Provider


class ScenarioGeneratorSession(SessionBase):
    """Writes test scenarios in one conversation, turn by turn.

    ``generate()`` is the first turn; each ``regenerate(feedback)`` sends what verification found
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
        batch_size: int | None = None,
        parallel: int = 4,
        **options: Unpack[SessionOptions],
    ) -> None:
        check_limits(batch_size=(batch_size, 1), parallel=(parallel, 1))
        self._progress = self._watcher = options.get("on_progress")
        options["on_progress"] = self._tell
        super().__init__(SessionSettings(provider, **options))
        self.system = system
        self.annotations = check_tools(annotations)
        self.handwritten = check_handwritten(handwritten)
        self._batch_size = batch_size
        self._side_by_side = Parallel[GroupAnswer](self._account.exchange.wire, parallel)
        self._groups: tuple[ToolGroup, ...] = ()
        self._memory = Memory.of(self.handwritten)
        self._first = FirstTurn(
            self.annotations, self.handwritten, self._settings, batch_size=batch_size
        )

    @property
    def history(self) -> tuple[Message, ...]:
        """The committed messages; of several groups, one conversation after the other."""
        return tuple(message for group in self._groups for message in group.conversation.history)

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
    def answered_scenarios(self) -> tuple[TestScenario, ...]:
        """Scenarios of a first turn that did not end: of the groups that were answered."""
        return tuple(_copies(self._first.scenarios))

    def generate(self, on_progress: OnProgress | None = None) -> list[TestScenario]:
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
            batches = self._first_batches(turn)
            answers = drive(batches, self._side_by_side)
            return self._commit_first(turn, answers)

    async def agenerate(self, on_progress: OnProgress | None = None) -> list[TestScenario]:
        """Take the first turn without blocking the event loop; as ``generate``."""
        with self._turn(on_progress) as turn:
            self._check_first()
            batches = self._first_batches(turn)
            answers = await adrive(batches, self._side_by_side)
            return self._commit_first(turn, answers)

    def regenerate(
        self, feedback: ScenarioFeedback, on_progress: OnProgress | None = None
    ) -> list[TestScenario]:
        """Send what was wrong and return the replacements, and only these.

        What was sent in an earlier turn is not sent again, unless something else was sent about it
        since. Feedback goes to the group that has the tool; probes and changed rules for a
        group without anything to replace wait for its next turn.

        Raises:
            UsageError: there was no first turn; the feedback has nothing to replace (probes alone
                are no reason for a turn), names a scenario or a tool that this session does not
                know, contradicts a handwritten scenario or itself, or repeats a decision as its
                correction.
            NoProgressError: all of the feedback was sent before.
            ReplyFormatError: no reply could be used, repairs included.
            RefusedError: the model declined.
            BudgetError: the turns or the tokens are spent.
            ProviderError: there was no reply.
        """
        with self._turn(on_progress) as turn:
            parts = self._feedback_parts(feedback)
            batches = self._next_batches(parts, turn)
            answers = drive(batches, self._side_by_side)
            return self._commit_replacements(turn, answers, parts, feedback)

    async def aregenerate(
        self, feedback: ScenarioFeedback, on_progress: OnProgress | None = None
    ) -> list[TestScenario]:
        """Send and return without blocking the event loop; as ``regenerate``."""
        with self._turn(on_progress) as turn:
            parts = self._feedback_parts(feedback)
            batches = self._next_batches(parts, turn)
            answers = await adrive(batches, self._side_by_side)
            return self._commit_replacements(turn, answers, parts, feedback)

    def to_json(self) -> dict[str, Any]:
        """Return the session as plain JSON, for ``from_json``."""
        return {
            "version": VERSION,
            "kind": ScenarioState.KIND,
            "system": self.system,
            "model": self._settings.model,
            "annotations": [annotation.to_json() for annotation in self.annotations],
            "handwritten": [scenario.to_json() for scenario in self.handwritten],
            "history": [
                {
                    "tools": [list(tool) for tool in group.key],
                    "messages": messages_to_json(group.conversation.history),
                }
                for group in self._groups
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
        """Return the session that ``to_json`` wrote; it continues where that one stopped.

        Raises:
            UsageError: ``data`` is no scenario session, or does not hold together.
        """
        state = load_state(data, ScenarioState)
        conversations = state.conversations()
        session = cls(
            state.system,
            state.annotations,
            state.handwritten,
            provider=provider,
            **{"model": state.model, **settings},
        )
        session._groups = tuple(session._new_group(tools) for tools, _ in conversations)
        for group, (_, history) in zip(session._groups, conversations, strict=True):
            group.conversation.restore(history)
        session._memory = Memory.from_stored(state.memory)
        session._account.restore(state.usage.to_usage())
        session._log.restore(state.turns)
        return session

    @contextmanager
    def _turn(self, on_progress: OnProgress | None) -> Iterator[Turn]:
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

    def _first_batches(self, turn: Turn) -> GroupBatches:
        self._tell("Generating scenarios...")
        return self._first.batches(turn.number, self._new_group)

    def _new_group(self, tools: Iterable[ToolAnnotation]) -> ToolGroup:
        annotations = tuple(tools)
        is_all = len(annotations) == len(self.annotations)
        name = "" if is_all else "/".join(annotations[0].tool)
        conversation = Conversation(self.system, self._settings, self._account, name=name)
        return ToolGroup(annotations, conversation)

    def _commit_first(self, turn: Turn, answers: Sequence[GroupAnswer]) -> list[TestScenario]:
        if not answers:
            return _copies(self.handwritten)
        self._groups = tuple(answer.answered_group for answer in answers)
        self._first.forget()
        found = self._commit(turn, answers)
        self._memory = self._memory.with_scenarios(found)
        return _copies([*self.handwritten, *found])

    def _commit(self, turn: Turn, answers: Sequence[GroupAnswer]) -> list[TestScenario]:
        """Let the answers of a turn enter the histories, all at once; return their scenarios."""
        for answer in answers:
            answer.group.conversation.commit(answer.pending)
            turn.notes += answer.notes
        turn.is_committed = True
        found = {scenario.id: scenario for answer in answers for scenario in answer.scenarios}
        return list(found.values())

    def _feedback_parts(self, feedback: ScenarioFeedback) -> tuple[GroupFeedback, ...]:
        """Return what each group is to be sent."""
        tools = {annotation.tool for annotation in self.annotations}
        complete = self._memory.complete(feedback, self.turn_count, tools)
        return route_feedback(complete, self._groups, self._memory)

    def _next_batches(self, parts: Sequence[GroupFeedback], turn: Turn) -> GroupBatches:
        self._tell(f"Regenerating scenarios (turn {turn.number})...")
        after = self._memory.after_sending(parts)
        handwritten = {scenario.id: scenario for scenario in self.handwritten}
        batch = []
        for group, part in parts:
            tools = {annotation.tool: annotation for annotation in group.tools}
            expected = Expectations(
                tools,
                handwritten,
                after.wrong,
                after.discarded,
                untested=frozenset(part.untested_tools),
                may_be_empty=True,
            )
            batch.append(ask_group(group, format_feedback_message(part), expected, turn.number))
        return run_batch(batch)

    def _commit_replacements(
        self,
        turn: Turn,
        answers: Sequence[GroupAnswer],
        parts: Sequence[GroupFeedback],
        hints: ScenarioFeedback,
    ) -> list[TestScenario]:
        kept = self._memory.unaffected_by(part for _, part in parts)
        found = self._commit(turn, answers)
        fresh = [scenario for scenario in found if scenario.id not in kept]
        self._memory = self._memory.after_sending(parts).with_hints(hints).with_scenarios(fresh)
        turn.notes += [
            f"{scenario.description!r} asks what {kept[scenario.id].description!r} asks; left out"
            for scenario in found
            if scenario.id in kept
        ]
        return _copies(fresh)


def _copies(scenarios: Iterable[TestScenario]) -> list[TestScenario]:
    """Return scenarios that the caller may change without changing what the session knows."""
    return [scenario.model_copy(deep=True) for scenario in scenarios]


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

    Prompts, model, schema, limits and the number of the prompt format are in it; budgets, progress
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
    """To regenerate with; ``None`` where the artifact was used and no model was asked."""
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
    """Return handwritten and generated scenarios in one call, without keeping the session.

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
    tools, own = check_tools(annotations), check_handwritten(handwritten)
    input_hash = scenario_input_hash(system, tools, own, **settings)
    path = None if artifact is None else check_path(artifact)
    stored = read_artifact(path) if path else None
    if stored and stored.input_hash == input_hash and stored.status != "failed":
        untested = _untested_tools(tools, stored.scenarios)
        return ScenarioGenerationResult(stored.scenarios, input_hash, untested_tools=untested)
    session = ScenarioGeneratorSession(system, tools, own, provider=provider, **settings)
    scenarios = tuple(session.generate())
    result = ScenarioGenerationResult(
        scenarios, input_hash, session, _untested_tools(tools, scenarios)
    )
    if path:
        try:
            write_artifact(path, Artifact(input_hash, "generated", scenarios))
        except StoreWriteError as error:
            error.unkept = result
            raise
    return result


def _untested_tools(
    tools: Sequence[ToolAnnotation], scenarios: Sequence[TestScenario]
) -> tuple[tuple[str, str], ...]:
    tested = {scenario.request.tool for scenario in scenarios}
    return tuple(annotation.tool for annotation in tools if annotation.tool not in tested)
