"""Scenarios read out of replies, item by item: one bad item costs one item, not a reply."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import Field, JsonValue, ValidationError

from pytest_regen.errors import ReplyFormatError
from pytest_regen.sessions.input_schema import argument_problems
from pytest_regen.sessions.prompts import scenarios_as_json
from pytest_regen.sessions.scenarios import (
    ActualDecision,
    ScenarioRequest,
    TestScenario,
    ToolAnnotation,
    Value,
)
from pytest_regen.text import flatten, plural, quoted
from pytest_regen.turns.reply_text import complete_items, json_texts
from pytest_regen.turns.structured import parse_json_with_schema

_LIST = "scenarios"
_MOST_PROBLEMS = 20
_ABOUT_EQUAL = 0.9
_BEGUN_LIST = re.compile(
    rf'(?P<list>\{{\s*"{_LIST}"\s*:)|\A[^\[{{"]*(?P<bare>\[)(?=\s*\{{\s*"description")'
)


_HINT = """

Respond with one JSON value that matches this JSON Schema, members in its order, and with nothing \
else:

{"type": "object", "required": ["scenarios"], "properties": {"scenarios": {"type": "array", \
"items": {
  "type": "object",
  "required": ["description", "request", "reasoning", "expected_decision"],
  "properties": {
    "description": {"type": "string"},
    "request": {
      "type": "object",
      "required": ["server_name", "tool_name", "arguments"],
      "properties": {"arguments": {"type": "object"}},
      "anyOf": [
CALLS
      ]
    },
    "reasoning": {"type": "string"},
    "expected_decision": {"enum": ["allow", "deny", "escalate"]}
  }
}}}}"""


class _Envelope(Value):
    scenarios: list[JsonValue]


class _Item(Value):
    description: str = Field(min_length=1)
    request: ScenarioRequest
    expected_decision: ActualDecision
    reasoning: str = ""


def response_hint(annotations: Sequence[ToolAnnotation]) -> str:
    """Return what tells a model the form of a reply about these tools, for the end of a message.

    Each server goes with its own tools: with two independent lists of names a tool of another
    server would fit. The reason stands before the decision, for a model writes from left to right
    and would only justify a decision that stands there already.
    """
    by_server: dict[str, list[str]] = {}
    for annotation in annotations:
        by_server.setdefault(annotation.server_name, []).append(annotation.tool_name)
    calls = ",\n".join(
        f'        {{"properties": {{"server_name": {{"const": {quoted(server)}}}, '
        f'"tool_name": {{"enum": {quoted(sorted(set(tools)))}}}}}}}'
        for server, tools in sorted(by_server.items())
    )
    return _HINT.replace("CALLS", calls)


@dataclass(frozen=True, slots=True)
class Expectations:
    """What a reply must respect."""

    tools: Mapping[tuple[str, str], ToolAnnotation]
    """The tools asked about."""
    handwritten: Mapping[str, TestScenario] = field(default_factory=dict)
    """By id."""
    wrong: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Scenario id to expectations that were corrected or discarded."""
    discarded: Mapping[str, str] = field(default_factory=dict)
    """Scenario id to the rule that no expectation gets past, and what it says."""
    untested: frozenset[tuple[str, str]] = frozenset()
    """Tools that are to be tested in the end."""
    asks_for_untested: bool = False
    """Whether a reply that forgets some of them is sent back, once."""
    may_be_empty: bool = False


class ScenarioReader:
    """Collects the scenarios of one turn over its replies.

    Args:
        expected: what the scenarios must respect.
    """

    def __init__(self, expected: Expectations) -> None:
        self._expected = expected
        self._good: dict[str, TestScenario] = {}
        self._texts: list[str] = []
        self._problems: list[str] = []
        self._is_merged = False
        self._asked_for: tuple[tuple[str, str], ...] = ()
        self._notes: list[str] = []
        self.is_salvaged = False

    @property
    def scenarios(self) -> tuple[TestScenario, ...]:
        """The scenarios that can be used, each request once."""
        return tuple(self._good.values())

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out and why, and the tools that no scenario tests."""
        # Of a reply that was cut those are asked for apart.
        forgotten = () if self.is_salvaged else self._forgotten_tools()
        untested = [f"no scenario tests {'/'.join(tool)}" for tool in forgotten]
        return (*self._notes, *untested)

    @property
    def waits_for_tools_alone(self) -> bool:
        """Whether only scenarios of forgotten tools are still asked for."""
        return bool(self._asked_for) and not self._problems

    def read(self, text: str) -> tuple[TestScenario, ...]:
        """Collect the scenarios of a reply that can be used.

        Raises:
            ReplyFormatError: the reply is no list of scenarios, some of them cannot be used, or
                tools were forgotten; then only those are asked for.
        """
        lists = _answer_first(text) or [parse_json_with_schema(text, _Envelope).scenarios]
        self._texts.append(text)
        self._problems = problems = self._take(lists[0])
        if len(lists) > 1:
            self._is_merged = True
            self._notes.append(f"the reply holds {len(lists)} lists of scenarios; all were taken")
            drafts = [problem for items in lists[1:] for problem in self._take(items)]
            self._notes += [f"left out of another list: {problem}" for problem in drafts]
        if not (lists[0] or self._good or self._expected.may_be_empty):
            raise _empty(text)
        forgotten = self._forgotten_tools()
        asks = self._expected.asks_for_untested and not self._asked_for
        if problems or (forgotten and asks):
            self._asked_for = self._asked_for or (forgotten if asks else ())
            raise self._unusable(text, problems, len(lists[0]), forgotten if asks else ())
        return self.scenarios

    def _forgotten_tools(self) -> tuple[tuple[str, str], ...]:
        return tuple(
            sorted(self._expected.untested - {scenario.request.tool for scenario in self.scenarios})
        )

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
        self._notes.append(f"the reply was cut off: {len(self._good)} complete scenarios were kept")
        if problems:
            raise self._unusable("".join(pieces), problems, len(items))
        return self.scenarios

    def give_up(self) -> bool:
        """Leave out what could not be repaired; return whether anything is left."""
        self._notes += [f"left out after repairs: {problem}" for problem in self._problems]
        return bool(self._good)

    def text_to_commit(self, text: str) -> str:
        """Return the text for the history: the reply itself if all scenarios are from it."""
        is_taken_whole = not (self._problems or self.is_salvaged or self._is_merged)
        if self._texts == [text] and is_taken_whole:
            return text
        return scenarios_as_json(self.scenarios)

    def _take(self, items: Sequence[JsonValue]) -> list[str]:
        found = []
        seen: dict[str, tuple[int, TestScenario]] = {}
        for number, item in enumerate(items, start=1):
            try:
                problem = self._take_one(_Item.model_validate(item), number, seen)
            except ValidationError as error:
                problem = "; ".join(
                    f"{'.'.join(map(str, problem['loc'])) or 'it'}: {problem['msg']}"
                    for problem in error.errors(include_url=False, include_context=False)
                )
            if problem:
                found.append(f"scenario {number}{_name(item)}: {problem}")
        return found

    def _take_one(self, item: _Item, number: int, seen: dict[str, tuple[int, TestScenario]]) -> str:
        """Take one scenario, and return what is wrong with it, if anything is.

        Args:
            item: the scenario.
            number: its place in the list.
            seen: those of the same list before it, by id.
        """
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
        id_ = scenario.id
        if item.expected_decision in expected.wrong.get(id_, ()):
            if id_ in expected.discarded:
                return f"this request was discarded: {expected.discarded[id_]}"
            return f"expecting {item.expected_decision} for this request was corrected before"
        first, other = seen.setdefault(id_, (number, scenario))
        known = expected.handwritten.get(id_) or self._good.get(id_)
        if other.expected_decision != scenario.expected_decision and known in (None, other):
            # Neither can be taken for what was meant.
            self._good.pop(id_, None)
            return (
                f"asks what scenario {first} ({other.description!r}) asks, and expects "
                f"{scenario.expected_decision} instead of {other.expected_decision}; give the one "
                "that is right"
            )
        if known is None and first == number:
            self._good[id_] = scenario
        else:
            known = known or other
            kind = "handwritten" if known.is_handwritten else "an earlier one"
            self._notes.append(
                f"{scenario.description!r} asks what {known.description!r} asks ({kind}); left out"
            )
        return ""

    def _unusable(
        self,
        text: str,
        problems: list[str],
        count: int,
        forgotten: Sequence[tuple[str, str]] = (),
    ) -> ReplyFormatError:
        shown = problems[:_MOST_PROBLEMS]
        if len(problems) > len(shown):
            shown.append(f"and {len(problems) - len(shown)} more")
        listed = "\n".join(f"- {problem}" for problem in shown)
        parts, whats, wanted = [], [], []
        if problems:
            parts.append(f"{len(problems)} of your {count} scenarios cannot be used:\n{listed}")
            whats.append(f"{len(problems)} of {count} scenarios cannot be used")
            wanted.append("corrected versions of these")
        if forgotten:
            names = "\n".join(f"- {flatten('/'.join(tool))}" for tool in forgotten)
            parts.append(f"No scenario tests these tools:\n{names}")
            whats.append(f"{plural(len(forgotten), 'tool')} without a scenario")
            wanted.append("scenarios for these tools")
        kept = len(self._good)
        return ReplyFormatError(
            "; ".join(whats),
            text=text,
            problem="\n\n".join(parts),
            asks=(
                f"The other {kept} are kept. Answer in the same JSON form with "
                f"{' and '.join(wanted)} only."
                if kept
                else ""
            ),
            why="\n".join(parts) if forgotten else listed,
            hint="say in the system prompt what is wanted; the tools and their arguments stand in "
            "the annotations",
        )


def _answer_first(text: str) -> list[list[JsonValue]]:
    """Return the lists of scenarios in a reply, the answer first, then drafts and further parts.

    The answer is the longest one, of about equal ones the last: examples and drafts stand before
    it. Lists without the object around them, and scenarios without a list, count as well.
    """
    found: list[tuple[int, list[JsonValue]]] = []
    single: list[JsonValue] = []
    for candidate in json_texts(text):
        items = candidate.value.get(_LIST) if isinstance(candidate.value, dict) else candidate.value
        if isinstance(items, list) and (_is_envelope(candidate.value) or any(map(_is_item, items))):
            found.append((len("".join(candidate.text.split())), items))
        elif _is_item(candidate.value):
            single.append(candidate.value)
    if single:
        found.append((len("".join(json.dumps(single).split())), single))
    if not found:
        return []
    least = max(size for size, _ in found) * _ABOUT_EQUAL
    answer = max(number for number, (size, _) in enumerate(found) if size >= least)
    return [found[answer][1], *(items for n, (_, items) in enumerate(found) if n != answer)]


def _is_item(value: object) -> bool:
    return isinstance(value, dict) and "request" in value and "description" in value


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


def _name(item: JsonValue) -> str:
    description = item.get("description") if isinstance(item, dict) else None
    return f" ({description!r})" if isinstance(description, str) else ""
