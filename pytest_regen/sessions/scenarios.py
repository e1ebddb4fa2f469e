"""Scenarios, feedback and tool annotations as values, and the merging of scenarios.

All are frozen pydantic models: they come out of replies and files. Fields are in snake_case; the
camelCase of files and replies is read as well.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AliasGenerator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    model_validator,
)
from pydantic.alias_generators import to_camel

from pytest_regen.canonical import canonical_hash, canonical_json
from pytest_regen.errors import UsageError
from pytest_regen.text import flatten

ActualDecision = Literal["allow", "deny", "escalate"]
ExpectedDecision = Literal["allow", "deny", "escalate", "not-allow"]
"""``not-allow`` stands in handwritten scenarios only: deny and escalate both pass."""


class Value(BaseModel):
    """Base of the values here: frozen, snake_case, camelCase read as well."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True,
        # No request can carry them.
        allow_inf_nan=False,
        # Written in snake_case: an alias for reading must not become the name in a file.
        alias_generator=AliasGenerator(validation_alias=to_camel),
        validate_by_name=True,
        validate_by_alias=True,
        # Problems name a field as the schema shows it, not by the alias.
        loc_by_alias=False,
    )

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON, in snake_case, without what is not set."""
        return self.model_dump(mode="json", exclude_none=True)


class OfTool(Value):
    """What is about one tool."""

    server_name: str
    tool_name: str

    @property
    def tool(self) -> tuple[str, str]:
        """Server and tool: a tool's name alone may exist on several servers."""
        return self.server_name, self.tool_name


class ScenarioRequest(OfTool):
    """One call of a tool."""

    arguments: dict[str, JsonValue] = Field(default_factory=dict)

    def __str__(self) -> str:
        # Each part may come from a model or a server: it stands in lists, and stays on its line.
        return flatten(f"{self.server_name}/{self.tool_name} {canonical_json(self.arguments)}")


class TestScenario(Value):
    """A request and the decision expected for it."""

    __test__: ClassVar[bool] = False  # The name is what it is; pytest must not collect it.

    description: str
    request: ScenarioRequest
    expected_decision: ExpectedDecision
    reasoning: str = ""
    source: Literal["generated", "handwritten"] = "generated"

    @model_validator(mode="after")
    def _only_people_say_not_allow(self) -> Self:
        if self.expected_decision == "not-allow" and self.source != "handwritten":
            raise ValueError("'not-allow' is an expectation of handwritten scenarios only")
        return self

    @property
    def id(self) -> str:
        """``sha256:`` and the hash of server, tool and canonical arguments."""
        # Of the request alone, because a description is prose, and two scenarios may share one.
        return scenario_id(self.request)

    @property
    def is_handwritten(self) -> bool:
        """Whether a person wrote it: never changed, contradicted or dropped."""
        return self.source == "handwritten"


def scenario_id(request: ScenarioRequest) -> str:
    """Return the identity of a request; the order of its arguments' keys does not matter."""
    arguments = plain_numbers(request.arguments)
    return canonical_hash([request.server_name, request.tool_name, arguments])


def plain_numbers(value: Any) -> Any:
    """Return ``value`` with ``1.0`` as ``1``: JSON knows one kind of number."""
    if isinstance(value, dict):
        return {key: plain_numbers(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain_numbers(inner) for inner in value]
    # Not of a bool, which is no float, because ``true`` and ``1`` are two arguments.
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def expectation_holds(expected: ExpectedDecision, actual: ActualDecision) -> bool:
    """Return whether ``actual`` is what was expected."""
    return actual != "allow" if expected == "not-allow" else expected == actual


class ScenarioCorrection(Value):
    """One fact for the generator: you said X, right is Y."""

    scenario_description: str
    corrected_decision: ActualDecision
    corrected_reasoning: str = ""
    # These may be left out, and should not be, because without them the model sees a title and a
    # verdict, and cannot know what it had said, about which request, and which rule decided.
    scenario_id: str | None = None
    original_decision: ExpectedDecision | None = None
    request: ScenarioRequest | None = None
    rule: str | None = None

    @property
    def id(self) -> str | None:
        """Identity of the scenario meant, where it is known."""
        if self.scenario_id is not None or self.request is None:
            return self.scenario_id
        return scenario_id(self.request)


class DiscardedScenario(Value):
    """A scenario that no policy can satisfy, and the rule that says so."""

    scenario: TestScenario
    actual: ActualDecision
    rule: str


def _tool_by_name(value: object) -> object:
    """Return ``server/tool``, as the prompt writes it, as server and tool."""
    if isinstance(value, str):
        server, slash, tool = value.rpartition("/")
        if not slash:
            raise ValueError(f"{value!r} names no server: write it as server/{value}")
        return server, tool
    return value


Tool = Annotated[tuple[str, str], BeforeValidator(_tool_by_name)]


class ScenarioFeedback(Value):
    """What verification found, for the generator's next turn. Any sequence is taken."""

    # Every field defaults to empty, because a new kind of feedback is to break no caller.
    corrections: tuple[ScenarioCorrection, ...] = ()
    discarded_scenarios: tuple[DiscardedScenario, ...] = ()
    probe_scenarios: tuple[TestScenario, ...] = ()
    """Requests that were not tested before; hints only, never a reason for a turn."""
    rule_changes: tuple[str, ...] = ()
    """What changed in the rules since the last turn, in words."""
    notes: tuple[str, ...] = ()
    """Anything else that was wrong, in words: the failure of a test, say."""
    untested_tools: tuple[Tool, ...] = ()
    """Server and name of tools for which there is no scenario; ``"server/name"`` is one, too."""

    @property
    def asks_for_replacements(self) -> bool:
        """Whether there is something to write, so that a turn is worth its tokens.

        Probes alone are not: they are executed already, and name nothing to be replaced.
        """
        wishes = (*self.corrections, *self.discarded_scenarios, *self.untested_tools)
        return bool(wishes or any(note.strip() for note in self.notes))

    def with_notes(self, notes: Iterable[str]) -> Self:
        """Return this and further notes."""
        return self.model_copy(update={"notes": (*self.notes, *notes)})

    def lines(self) -> Iterator[str]:
        """Yield it as a reader of a failure sees it."""
        for correction in self.corrections:
            was = f" is {correction.original_decision}, and" if correction.original_decision else ""
            right = correction.corrected_decision
            yield f"{correction.scenario_description!r}{was} should be {right}"
        for discarded in self.discarded_scenarios:
            yield f"{discarded.scenario.description!r} can never pass: {discarded.rule}"
        yield from (f"not tested: {probe.request}" for probe in self.probe_scenarios)
        yield from (f"no scenario tests {'/'.join(tool)}" for tool in self.untested_tools)
        yield from (*self.rule_changes, *self.notes)


class RoleChoice(Value):
    """Roles that an argument has while a condition on the call's arguments holds."""

    condition: Mapping[str, JsonValue]
    """``arg`` and exactly one of ``equals``, ``in`` and ``is``."""
    roles: tuple[str, ...]


class ConditionalRoles(Value):
    """Roles of an argument that depend on the other arguments."""

    default: tuple[str, ...]
    when: tuple[RoleChoice, ...] = ()


class ToolAnnotation(OfTool):
    """A tool, what it does, and what its arguments mean."""

    comment: str = ""
    args: dict[str, tuple[str, ...] | ConditionalRoles] = Field(default_factory=dict)
    """Argument name to its roles."""
    input_schema: dict[str, JsonValue] | None = None
    """JSON Schema of the arguments, as the tool's server publishes it."""


def untested_tools(
    tools: Iterable[tuple[str, str]], scenarios: Iterable[TestScenario]
) -> tuple[tuple[str, str], ...]:
    """Return those of ``tools`` (server and name) that no scenario tests."""
    tested = {scenario.request.tool for scenario in scenarios}
    return tuple(tool for tool in tools if tool not in tested)


def of_a_person(scenario: TestScenario, what: str) -> UsageError:
    """Return the error of what would change or contradict a handwritten scenario."""
    return UsageError(
        f"{scenario.description!r} is handwritten and cannot be {what}",
        why="what a person wrote is never changed, contradicted or dropped",
        hint="take it for a fault of the rules, or change the scenario by hand",
    )


class ScenarioIndex:
    """Scenarios by request and by description, so that each is hashed once.

    Args:
        scenarios: a set; of several with one request the last one counts.
    """

    def __init__(self, scenarios: Iterable[TestScenario]) -> None:
        self.ids: list[str] = []
        """Of each scenario, in order."""
        self.by_id: dict[str, TestScenario] = {}
        self._by_description: dict[str, dict[str, TestScenario]] = defaultdict(dict)
        for scenario in scenarios:
            id_ = scenario.id
            self.ids.append(id_)
            self.by_id[id_] = scenario
            self._by_description[scenario.description].setdefault(id_, scenario)

    def find(self, correction: ScenarioCorrection) -> tuple[str, TestScenario] | None:
        """Return the scenario that a correction is about and its id; ``None`` if it names none.

        Raises:
            UsageError: a description is that of several scenarios and no id tells them apart.
        """
        id_ = correction.id
        if id_ is not None:
            return (id_, self.by_id[id_]) if id_ in self.by_id else None
        matches = self._by_description.get(correction.scenario_description, {})
        if len(matches) > 1:
            raise UsageError(
                f"{len(matches)} scenarios are called {correction.scenario_description!r}",
                why="correcting them together would break the right ones",
                hint="give the correction the scenario_id of the one it is about",
            )
        return next(iter(matches.items()), None)

    def correctable(self, correction: ScenarioCorrection) -> tuple[str, TestScenario]:
        """Return the scenario that a correction is about and its id.

        Raises:
            UsageError: it names no scenario, several of them, or a handwritten one.
        """
        match = self.find(correction)
        if match is None:
            by_id = f" with the id {correction.scenario_id}" if correction.scenario_id else ""
            raise UsageError(
                f"no scenario{by_id} is called {correction.scenario_description!r}",
                why="a correction that names nothing would be lost",
                hint="give it the scenario_id or the request of the scenario it is about",
            )
        if match[1].is_handwritten:
            raise of_a_person(match[1], "corrected")
        return match


def merge_replacements(
    scenarios: Sequence[TestScenario],
    replacements: Sequence[TestScenario],
    corrections: Sequence[ScenarioCorrection],
    discarded: Sequence[DiscardedScenario],
) -> list[TestScenario]:
    """Return ``scenarios`` with the corrected and discarded ones replaced.

    What was corrected or discarded goes, and replacements are appended. A handwritten scenario
    stays, whatever a correction or a discard says of it: that a person is wrong is for a person to
    say, and a namesake may have been meant.

    Args:
        scenarios: the set as it stands.
        replacements: what ``regenerate`` returned.
        corrections: of what is wrong; by id where they carry one, else by description.
        discarded: what no policy can satisfy.

    Returns:
        Those kept in their order, then the replacements, except those that repeat the description
        of one that is kept.

    Raises:
        UsageError: a correction's description is that of several scenarios and it has no id.
    """
    index = ScenarioIndex(scenarios)
    matches = [index.find(correction) for correction in corrections]
    # A correction that names nothing takes nothing out, because the set may be a part of what the
    # session knows.
    gone = {match[0] for match in matches if match is not None}
    gone |= {discard.scenario.id for discard in discarded}
    # A list and not a mapping by id, because a set of the caller's may hold a request twice.
    staying = [
        scenario
        for id_, scenario in zip(index.ids, scenarios, strict=True)
        if scenario.is_handwritten or id_ not in gone
    ]
    names = {scenario.description for scenario in staying}
    return [*staying, *(one for one in replacements if one.description not in names)]


def apply_corrections(
    scenarios: Sequence[TestScenario], corrections: Sequence[ScenarioCorrection]
) -> list[TestScenario]:
    """Return ``scenarios`` with corrected expectations in place; handwritten ones stay.

    Raises:
        UsageError: a correction names no scenario, several of them, or a handwritten one.
    """
    index = ScenarioIndex(scenarios)
    changed = {}
    for correction in corrections:
        id_, scenario = index.correctable(correction)
        changed[id_] = scenario.model_copy(
            update={
                "expected_decision": correction.corrected_decision,
                "reasoning": correction.corrected_reasoning or scenario.reasoning,
            }
        )
    return [changed.get(id_, scenario) for id_, scenario in zip(index.ids, scenarios, strict=True)]
