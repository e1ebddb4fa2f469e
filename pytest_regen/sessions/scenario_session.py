"""A session that writes test scenarios, and better ones once it is sent what was wrong."""

import copy
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self, Unpack

from pydantic import BeforeValidator, TypeAdapter

from pytest_regen.errors import StoreWriteError, UsageError
from pytest_regen.sessions.arguments import argument_problems
from pytest_regen.sessions.conversation import SessionOptions, Turn
from pytest_regen.sessions.feedback import (
    check_feedback,
    check_handwritten,
    check_spares_people,
    check_tools,
    format_feedback_message,
)
from pytest_regen.sessions.item_session import (
    ItemFeedback,
    ItemSession,
    Unsent,
    check_asks,
    check_news,
)
from pytest_regen.sessions.items import MOST_PER_WISH, ItemKind, Memory, Task
from pytest_regen.sessions.prompts import PROMPT_FORMAT, first_message, response_hint
from pytest_regen.sessions.scenarios import (
    ScenarioFeedback,
    ScenarioRequest,
    TestScenario,
    ToolAnnotation,
)
from pytest_regen.sessions.state import (
    Artifact,
    ScenarioState,
    check_path,
    content_hash,
    load_state,
    read_artifact,
    write_artifact,
)
from pytest_regen.text import flatten
from pytest_regen.turns.steps import OnProgress, Steps, adrive, drive
from pytest_regen.turns.values import DEFAULT_MODEL, SESSION_MAX_TOKENS, Provider


def _as_generated(data: Any) -> Any:
    """Return a scenario of a reply without what only people may say: whose it is."""
    if not isinstance(data, dict):
        return data
    if not str(data.get("description", "x")).strip():
        raise ValueError("description: it is empty")
    return {key: value for key, value in data.items() if key != "source"}


_ADAPTER: TypeAdapter[TestScenario] = TypeAdapter(
    Annotated[TestScenario, BeforeValidator(_as_generated)]
)
_MEMBERS = ("description", "request", "reasoning", "expected_decision")
"""In the order in which they are asked for: the reason before the decision."""


class ScenarioGeneratorSession(ItemSession[TestScenario]):
    """Writes test scenarios in one conversation, turn by turn.

    ``generate()`` is the first turn; each ``regenerate(feedback)`` sends what verification found
    and returns replacements. A turn is one committed call of either, however many requests it
    took: repairs, continuations, what a reply that was cut did not reach.

    Args:
        system: the system prompt, the same bytes in every request;
            ``build_generator_system_prompt`` makes one.
        annotations: the tools, one annotation each.
        handwritten: scenarios of people: returned first, never changed, contradicted or dropped.
        provider: who answers.
        options: limits, model and cache, as of ``GeneratorSession``.

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
        **options: Unpack[SessionOptions],
    ) -> None:
        self.annotations = check_tools(annotations)
        self.handwritten = check_handwritten(handwritten)
        self._tools = {annotation.tool: annotation for annotation in self.annotations}
        kind = ItemKind(
            _ADAPTER,
            "scenarios",
            key=lambda scenario: scenario.id,
            verdict=lambda scenario: scenario.expected_decision,
            label=lambda scenario: repr(scenario.description),
            problems=self._problems,
            to_json=lambda scenario: {name: scenario.to_json()[name] for name in _MEMBERS},
            members=frozenset({"description", "request"}),
        )
        self._start(system, kind, provider, options)
        self._memory = Memory({scenario.id: scenario for scenario in self.handwritten})

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
            max_repairs=settings.max_repairs,
        )

    def generate(self, on_progress: OnProgress | None = None) -> list[TestScenario]:
        """Take the first turn; return the handwritten scenarios, then the generated ones.

        Raises and does what ``ItemSession.generate`` does.
        """
        return self._with_handwritten(super().generate(on_progress))

    async def agenerate(self, on_progress: OnProgress | None = None) -> list[TestScenario]:
        """Take the first turn without blocking the event loop; as ``generate``."""
        return self._with_handwritten(await super().agenerate(on_progress))

    def regenerate(
        self,
        feedback: ScenarioFeedback | ItemFeedback[TestScenario],
        on_progress: OnProgress | None = None,
    ) -> list[TestScenario]:
        """Send what was wrong and return the replacements, and only these.

        Beside what ``ItemSession.regenerate`` raises it refuses feedback that names a tool it does
        not know, contradicts a handwritten scenario or itself, or repeats a decision as its
        correction.
        """
        with self._watched_turn(on_progress) as turn:
            return drive(self._next_steps(self._task(feedback), turn), self._account.exchange.wire)

    async def aregenerate(
        self,
        feedback: ScenarioFeedback | ItemFeedback[TestScenario],
        on_progress: OnProgress | None = None,
    ) -> list[TestScenario]:
        """Send and return without blocking the event loop; as ``regenerate``."""
        with self._watched_turn(on_progress) as turn:
            steps = self._next_steps(self._task(feedback), turn)
            return await adrive(steps, self._account.exchange.wire)

    def to_json(self) -> dict[str, Any]:
        """Return the session as plain JSON, for ``from_json``."""
        data = self._items_json(ScenarioState.KIND)
        data["memory"]["items"] = [
            scenario.to_json()
            for scenario in self._memory.by_key.values()
            if not scenario.is_handwritten
        ]
        return {
            **data,
            "annotations": [annotation.to_json() for annotation in self.annotations],
            "handwritten": [scenario.to_json() for scenario in self.handwritten],
        }

    @classmethod
    def from_json(  # type: ignore[override] # the type of an item is not a choice here
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
        session = cls(
            state.system,
            state.annotations,
            state.handwritten,
            provider=provider,
            **{"model": state.model, **settings},
        )
        session._restore(state)
        handwritten = session._memory.by_key
        session._restore_memory(state.memory)
        by_key = {**session._memory.by_key, **handwritten}
        session._memory = replace(session._memory, by_key=by_key)
        return session

    def _with_handwritten(self, generated: Sequence[TestScenario]) -> list[TestScenario]:
        return [*copy.deepcopy(self.handwritten), *generated]

    def _problems(self, scenario: TestScenario) -> tuple[str, ...]:
        annotation = self._tools.get(scenario.request.tool)
        if annotation is None:
            name = flatten("/".join(scenario.request.tool))
            return (f"there is no tool {name} to be tested here",)
        return argument_problems(scenario.request, annotation)

    def _first_steps(self, turn: Turn) -> Steps[list[TestScenario]]:
        # Without tools there is nothing to test but what people wrote.
        return (yield from super()._first_steps(turn)) if self.annotations else []

    def _first_task(self) -> Task[TestScenario]:
        return Task(
            first_message(self.handwritten) + response_hint(self.annotations),
            is_first=True,
            lacks=self._untested_by(self._tools, self.handwritten),
        )

    @staticmethod
    def _untested_by(
        tools: Iterable[tuple[str, str]], before: Sequence[TestScenario] = ()
    ) -> Callable[[Sequence[TestScenario]], list[str]]:
        """Return what says which of ``tools`` neither a reply nor the scenarios before it test."""

        def lacks(scenarios: Sequence[TestScenario]) -> list[str]:
            tested = {scenario.request.tool for scenario in (*before, *scenarios)}
            return [f"no scenario tests {'/'.join(tool)}" for tool in tools if tool not in tested]

        return lacks

    def _task(self, feedback: ScenarioFeedback | ItemFeedback[TestScenario]) -> Task[TestScenario]:
        by_id = self._memory.by_key
        if isinstance(feedback, ItemFeedback):
            for fault in (*feedback.corrections, *feedback.discarded):
                check_spares_people(fault.item, by_id, "replaced")
            return super()._task(feedback)
        check_asks(self.turn_count, asks=feedback.asks_for_replacements)
        sent: dict[str, str] = {}
        new = self._unsent(check_feedback(feedback, by_id, self._tools), sent)
        check_news(is_new=new.asks_for_replacements)
        wrong = {key: dict(verdicts) for key, verdicts in self._memory.wrong.items()}
        corrected = {}
        for correction in new.corrections:
            scenario = by_id.get(correction.id or "") or TestScenario(
                description=correction.scenario_description,
                request=correction.request or ScenarioRequest(server_name="", tool_name=""),
                expected_decision=correction.corrected_decision,
            )
            right = correction.corrected_decision
            corrected[scenario.id] = scenario.model_copy(update={"expected_decision": right})
            verdicts = wrong.setdefault(scenario.id, {})
            verdicts.pop(right, None)
            if correction.original_decision and correction.original_decision != right:
                verdicts[correction.original_decision] = (
                    f"expecting {correction.original_decision} for this request was corrected "
                    f"before: the right decision is {right}"
                )
        for discarded in new.discarded_scenarios:
            wrong.setdefault(discarded.scenario.id, {})[discarded.scenario.expected_decision] = (
                f"this request was discarded: {flatten(discarded.rule)} always returns "
                f"{discarded.actual}"
            )
        gone = len(new.discarded_scenarios)
        most = gone + MOST_PER_WISH * len(new.untested_tools)
        return Task(
            format_feedback_message(new),
            corrected=corrected,
            wrong=wrong,
            discarded=frozenset(discarded.scenario.id for discarded in new.discarded_scenarios),
            other_items=gone + len(new.untested_tools),
            most_others=most + (max(len(by_id), 1) if new.notes else 0),
            sent=sent,
            lacks=self._untested_by(new.untested_tools),
        )

    def _unsent(self, feedback: ScenarioFeedback, sent: dict[str, str]) -> ScenarioFeedback:
        """Return what of ``feedback`` is new, and enter it in ``sent``.

        Of corrections the last one of a scenario counts: what is right now may be what was right
        before.

        Raises:
            UsageError: a correction repeats the decision that it is meant to correct.
        """
        unsent, by_id = Unsent(self._memory.sent, sent), self._memory.by_key
        corrections = []
        for correction in feedback.corrections:
            id_, right = correction.id or "", correction.corrected_decision
            goes_back = id_ in by_id and by_id[id_].expected_decision != right
            if not unsent.is_new("correction", right, key=id_, again=goes_back):
                continue
            if correction.original_decision == right:
                raise UsageError(
                    f"{correction.scenario_description!r} is corrected to {right!r}, which is what "
                    "it expects",
                    why="there would be nothing to replace",
                    hint="leave the correction out, or say in notes what else is wrong",
                )
            corrections.append(correction)
        discarded = [
            item
            for item in feedback.discarded_scenarios
            if unsent.is_new(
                "discard", item.scenario.id, item.scenario.expected_decision, item.rule
            )
        ]
        probes = [
            probe for probe in feedback.probe_scenarios if unsent.is_new("p", probe.to_json())
        ]
        return ScenarioFeedback(
            corrections=tuple(corrections),
            discarded_scenarios=tuple(discarded),
            probe_scenarios=tuple(probes),
            rule_changes=tuple(text for text in feedback.rule_changes if unsent.is_new("r", text)),
            notes=tuple(text for text in feedback.notes if unsent.is_new("n", text)),
            untested_tools=tuple(
                tool for tool in feedback.untested_tools if unsent.is_new("tool", *tool)
            ),
        )


def scenario_input_hash(
    system: str,
    annotations: Sequence[ToolAnnotation],
    handwritten: Sequence[TestScenario] = (),
    *,
    model: str = DEFAULT_MODEL,
    max_tokens: int = SESSION_MAX_TOKENS,
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
    tools, truth = check_tools(annotations), check_handwritten(handwritten)
    input_hash = scenario_input_hash(system, tools, truth, **settings)
    path = None if artifact is None else check_path(artifact)
    stored = read_artifact(path) if path else None
    if stored and stored.input_hash == input_hash and stored.status != "failed":
        untested = _untested_tools(tools, stored.scenarios)
        return ScenarioGenerationResult(stored.scenarios, input_hash, untested_tools=untested)
    session = ScenarioGeneratorSession(system, tools, truth, provider=provider, **settings)
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
