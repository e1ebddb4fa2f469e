"""A session that writes test scenarios, and better ones once it is sent what was wrong."""

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Self, Unpack

from pydantic import BeforeValidator, TypeAdapter

from pytest_regen.errors import StoreWriteError
from pytest_regen.sessions import state
from pytest_regen.sessions.arguments import argument_problems
from pytest_regen.sessions.conversation import SessionOptions, Turn
from pytest_regen.sessions.feedback import (
    UNTESTED,
    check_feedback,
    check_handwritten,
    check_spares_people,
    check_tools,
    findings_of,
    message_of,
)
from pytest_regen.sessions.item_session import Feedback, ItemFeedback, ItemSession
from pytest_regen.sessions.items import Finding, Memory, Task
from pytest_regen.sessions.prompts import PROMPT_FORMAT, first_message, response_hint
from pytest_regen.sessions.scenarios import TestScenario, ToolAnnotation, untested_tools
from pytest_regen.text import flatten
from pytest_regen.turns.steps import Steps
from pytest_regen.turns.values import Provider


def _as_generated(data: Any) -> Any:
    """Return a scenario of a reply without what only people may say: whose it is."""
    if not isinstance(data, dict):
        return data
    # An empty one tells nothing in a list of failures, and a type would refuse people's as well.
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

    STATE: ClassVar[type[state.SessionState]] = state.ScenarioState

    def __init__(
        self,
        system: str,
        annotations: Sequence[ToolAnnotation],
        handwritten: Sequence[TestScenario] = (),
        *,
        provider: Provider,
        **options: Unpack[SessionOptions],
    ) -> None:
        self._tools = check_tools(annotations)
        self.annotations = tuple(annotations)
        self.handwritten = check_handwritten(handwritten)
        key = attrgetter("id")
        super().__init__(
            system,
            _ADAPTER,
            key=key,
            problems=self._problems,
            lacks=self._untested_by(self._tools, self.handwritten),
            name="scenarios",
            provider=provider,
            **options,
        )
        self._kind = replace(
            self._kind,
            key=key,
            verdict=attrgetter("expected_decision"),
            # By description, because a model has never seen the hash that identifies a request.
            label=lambda scenario: repr(scenario.description),
            to_json=lambda scenario: {name: scenario.to_json()[name] for name in _MEMBERS},
        )
        self._opening = first_message(self.handwritten)
        self._hint = response_hint(self.annotations)
        self._inputs = (PROMPT_FORMAT, self._hint, self.annotations, self.handwritten)
        self._memory = Memory({scenario.id: scenario for scenario in self.handwritten})

    def to_json(self) -> dict[str, Any]:
        """Return the session as plain JSON, for ``from_json``."""
        return {
            **super().to_json(),
            "annotations": [annotation.to_json() for annotation in self.annotations],
            "handwritten": [scenario.to_json() for scenario in self.handwritten],
        }

    @classmethod
    def from_json(  # type: ignore[override] # the type of an item is not a choice here
        cls, data: Mapping[str, Any], *, provider: Provider, **settings: Any
    ) -> Self:
        """Return the session that ``to_json`` wrote; it continues where that one stopped.

        Raises:
            UsageError: ``data`` is no scenario session, or does not hold together.
        """
        return cls._restored(data, provider=provider, **settings)

    def _problems(self, scenario: TestScenario) -> tuple[str, ...]:
        annotation = self._tools.get(scenario.request.tool)
        if annotation is None:
            name = flatten("/".join(scenario.request.tool))
            return (f"there is no tool {name} to be tested here",)
        return argument_problems(scenario.request, annotation)

    def _first_steps(self, turn: Turn) -> Steps[list[TestScenario]]:
        # Without tools there is nothing to test but what people wrote.
        generated = (yield from super()._first_steps(turn)) if self.annotations else []
        return [*copy.deepcopy(self.handwritten), *generated]

    @staticmethod
    def _untested_by(
        tools: Iterable[tuple[str, str]], before: Sequence[TestScenario] = ()
    ) -> Callable[[Sequence[TestScenario]], list[str]]:
        """Return what says which of ``tools`` neither a reply nor the scenarios before it test."""
        return lambda scenarios: [
            f"no scenario tests {'/'.join(tool)}"
            for tool in untested_tools(tools, [*before, *scenarios])
        ]

    def _task(self, feedback: Feedback) -> Task[TestScenario]:
        task = super()._task(feedback)
        # Of this feedback alone, because tools of an earlier one were asked for by then.
        tools: list[Any] = [f.facts for f in task.findings if f.section == UNTESTED]
        # An oracle's words about items stay, because no verdict of a scenario says them.
        is_of_items = isinstance(feedback, ItemFeedback)
        text = task.message if is_of_items else message_of(task.findings)
        return replace(task, message=text, lacks=self._untested_by(tools))

    def _findings(self, feedback: Any) -> Iterator[Finding[TestScenario]]:
        by_id = self._memory.by_key
        if isinstance(feedback, ItemFeedback):
            for fault in (*feedback.corrections, *feedback.discarded):
                check_spares_people(fault.item, by_id, "replaced")
            return super()._findings(feedback)
        return findings_of(check_feedback(feedback, by_id, self._tools, self._memory.wrong), by_id)


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

    A set that failed its verification is made anew, too.

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
    session = ScenarioGeneratorSession(
        system, annotations, handwritten, provider=provider, **settings
    )
    input_hash = session.fingerprint
    path = None if artifact is None else state.check_path(artifact)
    stored = state.read_artifact(path) if path else None
    # A set that failed its verification is no success to start from.
    if stored and (stored.input_hash != input_hash or stored.status == "failed"):
        stored = None
    scenarios = stored.scenarios if stored else tuple(session.generate())
    untested = untested_tools([tool.tool for tool in session.annotations], scenarios)
    result = ScenarioGenerationResult(scenarios, input_hash, None if stored else session, untested)
    if path and not stored:
        try:
            state.write_artifact(path, state.Artifact(input_hash, "generated", scenarios))
        except StoreWriteError as error:
            error.unkept = result  # Because it was paid for.
            raise
    return result
