"""Scenarios read out of replies, item by item: one bad item costs one item, not a reply."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import (
    BaseModel,
    Field,
    JsonValue,
    TypeAdapter,
    ValidationError,
    create_model,
)

from pytest_regen.errors import ReplyFormatError
from pytest_regen.sessions.arguments import argument_problems
from pytest_regen.sessions.prompts import scenarios_as_json
from pytest_regen.sessions.values import (
    ActualDecision,
    ScenarioRequest,
    TestScenario,
    ToolAnnotation,
    Value,
)
from pytest_regen.turns.json_text import complete_items, json_texts
from pytest_regen.turns.structured import parse_json_with_schema

__all__ = ["Expectations", "ScenarioReader", "response_adapter"]

_LIST = "scenarios"
_MOST_PROBLEMS = 20
_BEGUN_LIST = re.compile(
    rf'(?P<list>\{{\s*"{_LIST}"\s*:)|\A[^\[{{"]*(?P<bare>\[)(?=\s*\{{\s*"description")'
)


class _Envelope(Value):
    scenarios: list[JsonValue]


class _Item(Value):
    description: str = Field(min_length=1)
    request: ScenarioRequest
    expected_decision: ActualDecision
    reasoning: str = ""


def response_adapter(annotations: Sequence[ToolAnnotation]) -> TypeAdapter[Any]:
    """Return the type of a reply about these tools, for the hint in the prompt.

    Each server goes with its own tools: with two independent lists of names a tool of another
    server would fit.
    """
    by_server: dict[str, list[str]] = {}
    for annotation in annotations:
        by_server.setdefault(annotation.server_name, []).append(annotation.tool_name)
    requests = _union(_request_type(*one) for one in sorted(by_server.items()))
    decisions: Any = ActualDecision
    item: Any = create_model(
        "Scenario",
        description=(str, ...),
        request=(requests, ...),
        expected_decision=(decisions, ...),
        reasoning=(str, ...),
    )
    return TypeAdapter(create_model("Scenarios", scenarios=(list[item], ...)))


def _request_type(server: str, tools: Sequence[str]) -> Any:  # noqa: ANN401 - made at run time
    servers: Any = Literal[server]
    names: Any = Literal[tuple(dict.fromkeys(tools))]
    arguments: Any = dict[str, Any]
    return create_model(
        f"RequestTo_{server}",
        server_name=(servers, ...),
        tool_name=(names, ...),
        arguments=(arguments, ...),
    )


def _union(models: Any) -> Any:  # noqa: ANN401 - types made at run time
    found: Any = None
    for model in models:
        found = model if found is None else found | model
    return found if found is not None else BaseModel


@dataclass(frozen=True, slots=True)
class Expectations:
    """What a reply must respect."""

    tools: Mapping[tuple[str, str], ToolAnnotation]
    """The tools asked about."""
    handwritten: Mapping[str, TestScenario] = field(default_factory=dict)
    """By id."""
    wrong: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Scenario id to expectations that were corrected or discarded."""
    may_be_empty: bool = False


class ScenarioReader:
    """Collects the scenarios of one turn over its replies.

    Args:
        expected: what the scenarios must respect.

    Attributes:
        notes: what was left out and why.
    """

    def __init__(self, expected: Expectations) -> None:
        self._expected = expected
        self._good: dict[str, TestScenario] = {}
        self._texts: list[str] = []
        self._problems: list[str] = []
        self._is_one_of_several = False
        self.notes: list[str] = []
        self.is_salvaged = False

    @property
    def scenarios(self) -> tuple[TestScenario, ...]:
        """The scenarios that can be used, each request once."""
        return tuple(self._good.values())

    def read(self, text: str) -> tuple[TestScenario, ...]:
        """Take what can be used of a reply.

        Raises:
            ReplyFormatError: the reply is no list of scenarios, or some of them cannot be used;
                then only those are asked for again.
        """
        envelope = parse_json_with_schema(text, _Envelope)
        self._texts.append(text)
        lists = sum(_is_envelope(found.value) for found in json_texts(text))
        if lists > 1:
            self._is_one_of_several = True
            self.notes.append(f"the reply holds {lists} lists of scenarios; one was taken")
        problems = self._take(envelope.scenarios)
        self._problems = problems
        if not (envelope.scenarios or self._good or self._expected.may_be_empty):
            raise _empty(text)
        if problems:
            raise self._unusable(text, problems, len(envelope.scenarios))
        return self.scenarios

    def salvage(self, pieces: Sequence[str]) -> tuple[TestScenario, ...] | None:
        """Take the complete items of a reply that was cut, also of lists that it began again.

        Returns:
            The scenarios; ``None`` where there are none.

        Raises:
            ReplyFormatError: some of them cannot be used; only those are asked for again.
        """
        items = [item for text in _lists(pieces) for item in complete_items(text, _LIST)]
        self._problems = problems = self._take(items)
        if not self._good:
            return None
        self.is_salvaged = True
        self.notes.append(f"the reply was cut off: {len(self._good)} complete scenarios were kept")
        if problems:
            raise self._unusable("".join(pieces), problems, len(items))
        return self.scenarios

    def give_up(self) -> bool:
        """Leave out what could not be mended; return whether anything is left."""
        self.notes += [f"left out after repairs: {problem}" for problem in self._problems]
        return bool(self._good)

    def committed_text(self, text: str) -> str:
        """Return what enters the history: the reply itself if all scenarios are from it."""
        is_taken_whole = not (self._problems or self.is_salvaged or self._is_one_of_several)
        if self._texts == [text] and is_taken_whole:
            return text
        return scenarios_as_json(self.scenarios)

    def _take(self, items: Sequence[JsonValue]) -> list[str]:
        found = []
        for number, item in enumerate(items, start=1):
            try:
                problem = self._take_one(_Item.model_validate(item))
            except ValidationError as error:
                problem = "; ".join(
                    f"{'.'.join(map(str, one['loc'])) or 'it'}: {one['msg']}"
                    for one in error.errors(include_url=False, include_context=False)
                )
            if problem:
                found.append(f"scenario {number}{_named(item)}: {problem}")
        return found

    def _take_one(self, item: _Item) -> str:
        """Take one scenario, and return what is wrong with it, if anything is."""
        expected = self._expected
        annotation = expected.tools.get(item.request.tool)
        if annotation is None:
            return f"there is no tool {'/'.join(item.request.tool)} to be tested here"
        problems = argument_problems(item.request, annotation)
        if problems:
            return "; ".join(problems)
        scenario = TestScenario(
            description=item.description,
            request=item.request,
            expected_decision=item.expected_decision,
            reasoning=item.reasoning,
        )
        if item.expected_decision in expected.wrong.get(scenario.id, ()):
            return f"expecting {item.expected_decision} for this request was corrected before"
        known = expected.handwritten.get(scenario.id) or self._good.get(scenario.id)
        if known is None:
            self._good[scenario.id] = scenario
        else:
            kind = "handwritten" if known.is_handwritten else "an earlier one"
            self.notes.append(
                f"{scenario.description!r} asks what {known.description!r} asks ({kind}); left out"
            )
        return ""

    def _unusable(self, text: str, problems: list[str], count: int) -> ReplyFormatError:
        told = problems[:_MOST_PROBLEMS]
        if len(problems) > len(told):
            told.append(f"and {len(problems) - len(told)} more")
        listed = "\n".join(f"- {problem}" for problem in told)
        kept = len(self._good)
        return ReplyFormatError(
            f"{len(problems)} of {count} scenarios cannot be used",
            text=text,
            problem=f"{len(problems)} of your {count} scenarios cannot be used:\n{listed}",
            asks=(
                f"The other {kept} are kept. Answer in the same JSON form with corrected versions "
                "of these only."
                if kept
                else ""
            ),
            why=listed,
            hint="say in the system prompt what is wanted; the tools and their arguments stand in "
            "the annotations",
        )


def _lists(pieces: Sequence[str]) -> list[str]:
    """Return the text of each list that the pieces begin."""
    texts = [pieces[0]]
    for piece in pieces[1:]:
        begun = _BEGUN_LIST.search(piece)
        start = begun.start(begun.lastgroup or 0) if begun else len(piece)
        texts[-1] += piece[:start]
        texts += [piece[start:]] if begun else []
    return texts


def _empty(text: str) -> ReplyFormatError:
    return ReplyFormatError(
        "the reply holds no scenario",
        text=text,
        problem="the list is empty; every tool needs at least one scenario",
        why="its list is empty, and a set without scenarios would pass whatever the rules say",
        hint="say in the system prompt what is wanted of each tool",
    )


def _is_envelope(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get(_LIST), list)


def _named(item: JsonValue) -> str:
    description = item.get("description") if isinstance(item, dict) else None
    return f" ({description!r})" if isinstance(description, str) else ""
