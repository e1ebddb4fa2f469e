"""What a scenario session knows, what it has sent, and how feedback reads as a message."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self, TypeVar, get_args

from pytest_regen.canonical import canonical_hash
from pytest_regen.errors import UsageError
from pytest_regen.sessions.scenarios import (
    ActualDecision,
    DiscardedScenario,
    ExpectedDecision,
    ScenarioCorrection,
    ScenarioFeedback,
    ScenarioIndex,
    TestScenario,
    ToolAnnotation,
    Value,
)
from pytest_regen.sessions.state import StoredMemory
from pytest_regen.text import flatten, quoted

V = TypeVar("V", bound=Value | str | tuple[str, str])

_KINDS = ("corrected", "discarded")

_OPENING = "Some of your scenarios were wrong. Here is what verification found."


def format_feedback_message(feedback: ScenarioFeedback) -> str:
    """Return ``feedback`` as the user message of the next turn.

    - An opening sentence says what the sections are, unless there are none.
    - A correction gives the old decision and the request beside the right decision: a title and a
      verdict alone do not say what was wrong.
    - The closing asks for replacements of the discarded scenarios as well as of the corrected
      ones, and says how many and of which requests. A corrected one gives way only to the same
      request; a discarded one is gone, so that another request has to take its place.
    - What people, models and servers wrote cannot leave its line: texts are quoted, names and
      rules written on one line, later lines of a note indented.
    - The schema is not repeated: it stands in the first message.
    """
    sections = [
        _section(
            "Corrected Scenarios",
            "These scenarios had wrong expected decisions. The verifier determined the correct "
            "decisions:",
            map(_correction, feedback.corrections),
        ),
        _section(
            "Discarded Scenarios (Structural Conflicts)",
            "These scenarios conflict with hardcoded structural invariants and were removed. Do "
            "NOT regenerate them:",
            map(_discard, feedback.discarded_scenarios),
        ),
        _section(
            "Coverage Gaps Found by Verifier",
            "The verifier generated probe scenarios that found gaps. They are in the set now: "
            "consider the areas around them, and do not repeat them:",
            (f"{probe.request} -> {probe.expected_decision}" for probe in feedback.probe_scenarios),
        ),
        _section(
            "Changed Rules",
            "The rules were changed since your last answer:",
            map(flatten, feedback.rule_changes),
        ),
        _section(
            "Other Findings",
            "These faults were found in your scenarios:",
            (_note(note) for note in feedback.notes if note.strip()),
        ),
        _section(
            "Untested Tools",
            "No scenario is left for these tools. Write at least one for each:",
            (flatten("/".join(tool)) for tool in feedback.untested_tools),
        ),
    ]
    parts = [section for section in sections if section]
    opening = [_OPENING] if parts else []
    return "\n\n".join([*opening, *parts, _request(feedback)])


def _section(title: str, explanation: str, lines: Iterable[str]) -> str:
    found = [f"- {line}" for line in lines]
    return f"## {title}\n\n{explanation}\n\n" + "\n".join(found) if found else ""


def _correction(correction: ScenarioCorrection) -> str:
    earlier = f"you said '{correction.original_decision}', " if correction.original_decision else ""
    request = f" [{correction.request}]" if correction.request else ""
    reasons = (
        [f"reason: {quoted(text)}"] if (text := correction.corrected_reasoning.strip()) else []
    )
    if correction.rule:
        reasons.append(f"the rule that decides is {flatten(correction.rule)}")
    return (
        f"{quoted(correction.scenario_description)}{request}: {earlier}correct decision is "
        f"'{correction.corrected_decision}'" + (f" ({'; '.join(reasons)})" if reasons else "")
    )


def _discard(discarded: DiscardedScenario) -> str:
    scenario = discarded.scenario
    return (
        f"{quoted(scenario.description)} [{scenario.request}]: {flatten(discarded.rule)} always "
        f"returns {discarded.actual}, you expected {scenario.expected_decision}"
    )


def _request(feedback: ScenarioFeedback) -> str:
    """Return what the model is to write, and how many of each."""
    wrong, gone = len(feedback.corrections), len(feedback.discarded_scenarios)
    tools = len(feedback.untested_tools)
    kinds = [kind for kind, count in zip(_KINDS, (wrong, gone), strict=True) if count]
    asked = []
    if wrong:
        asked.append(
            f"- {wrong} for the corrected ones: the same request each, to the letter (only the "
            "same request takes its place), with the correct decision and its reason"
        )
    if gone:
        asked.append(f"- {gone} for the discarded ones: another request of the same tool each")
    if tools:
        asked.append(f"- at least {tools} for the untested tools: one for each")
    if kinds or feedback.is_empty:
        what = f"replacement scenarios for the {' and '.join(kinds or _KINDS)} ones above"
    else:
        what = "the scenarios that the findings above ask for"
    lines = [f"Generate {what}{':' if asked else '.'}", *asked]
    rules = ["Keep your new scenarios consistent with the corrections."] if wrong else []
    dont = ["repeat discarded scenarios"] if gone else []
    dont += ["reproduce the original wrong expectations"] if wrong else []
    if feedback.is_empty:
        rules = ["Keep your new scenarios consistent with the corrections."]
        dont = ["repeat discarded scenarios", "reproduce the original wrong expectations"]
    rules += [f"Do not {' or '.join(dont)}."] if dont else []
    rules.append("Answer in the same JSON form as before, with the replacements only.")
    return "\n".join(lines) + ("\n\n" if asked else " ") + " ".join(rules) + "\n"


def _note(text: str) -> str:
    """Return ``text`` as it can stand in a list: later lines indented."""
    return "\n  ".join(text.strip().splitlines())


@dataclass(frozen=True, slots=True)
class SentFeedback:
    """What each conversation was sent in committed turns, so that it is sent once.

    Only what is new is sent, and not all discards and all probes so far: those stand in the
    history, and turns that repeat it would grow without bound. Of corrections the last one of a
    scenario counts: what is right now may be what was right before.
    """

    keys: frozenset[str] = field(default_factory=frozenset)

    def unsent(self, feedback: ScenarioFeedback, to: str = "") -> ScenarioFeedback:
        """Return what of ``feedback`` is new to the conversation ``to``, each thing once."""

        def new(things: Sequence[V]) -> tuple[V, ...]:
            # Reversed twice: of things with one key the first stays, at the place of the last.
            by_key = {_key(thing, to): thing for thing in reversed(things)}
            return tuple(thing for key, thing in reversed(by_key.items()) if key not in self.keys)

        return ScenarioFeedback(
            corrections=new(feedback.corrections),
            discarded_scenarios=new(feedback.discarded_scenarios),
            probe_scenarios=new(feedback.probe_scenarios),
            rule_changes=new(feedback.rule_changes),
            notes=new(feedback.notes),
            untested_tools=new(feedback.untested_tools),
        )

    def with_sent(self, feedback: ScenarioFeedback, to: str = "") -> Self:
        """Return this and ``feedback``, sent to the conversation ``to``."""
        left = self.without(feedback.corrections, to).keys
        return type(self)(left | {_key(thing, to) for thing in _everything(feedback)})

    def without(self, corrections: Iterable[ScenarioCorrection], to: str = "") -> Self:
        """Return this without what was sent to correct these scenarios, in whatever way."""
        outdated = {
            _key(correction.model_copy(update={"corrected_decision": decision}), to)
            for correction in corrections
            for decision in get_args(ActualDecision)
        }
        return type(self)(self.keys - outdated)


def _everything(feedback: ScenarioFeedback) -> tuple[Value | str | tuple[str, str], ...]:
    return (
        *feedback.corrections,
        *feedback.discarded_scenarios,
        *feedback.probe_scenarios,
        *feedback.rule_changes,
        *feedback.notes,
        *feedback.untested_tools,
    )


def _key(thing: Value | str | tuple[str, str], to: str) -> str:
    """Return what makes two things the same to a reader: not their wording."""
    match thing:
        case ScenarioCorrection():
            who = thing.id or thing.scenario_description
            facts: list[Any] = ["correction", who, thing.corrected_decision]
        case DiscardedScenario():
            scenario = thing.scenario
            facts = ["discard", scenario.id, scenario.expected_decision, thing.rule]
        case str():
            facts = ["words", thing]
        case tuple():
            facts = ["untested", *thing]
        case _:
            facts = ["value", type(thing).__name__, thing.to_json()]
    return canonical_hash([to, *facts])


class Addressee(Protocol):
    """A conversation that feedback is sent to."""

    @property
    def address(self) -> str:
        """Its name within the session, the same after it was restored."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Immutable: a turn that fails has changed nothing."""

    known: Mapping[str, TestScenario] = field(default_factory=dict)
    """By id; corrected expectations in place."""
    wrong: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Scenario id to expectations that were corrected or discarded."""
    discarded: Mapping[str, str] = field(default_factory=dict)
    """Scenario id to the rule that no expectation gets past, and what it says."""
    sent: SentFeedback = field(default_factory=SentFeedback)
    hints: ScenarioFeedback = field(default_factory=ScenarioFeedback)
    """Probes and changed rules of all turns. A conversation that had nothing to replace then hears
    of them in its next turn."""

    @classmethod
    def of(cls, handwritten: Sequence[TestScenario]) -> Self:
        """Return what is known before the first turn."""
        return cls({scenario.id: scenario for scenario in handwritten})

    def with_scenarios(self, scenarios: Iterable[TestScenario]) -> Self:
        """Return this and ``scenarios``; handwritten ones stay as they are."""
        added = {scenario.id: scenario for scenario in scenarios}
        kept = {id_: scenario for id_, scenario in self.known.items() if scenario.is_handwritten}
        return replace(self, known={**self.known, **added, **kept})

    def complete(
        self, feedback: ScenarioFeedback, turns: int, tools: Collection[tuple[str, str]]
    ) -> ScenarioFeedback:
        """Return ``feedback`` with its corrections completed, if it can be sent.

        Args:
            feedback: what verification found.
            turns: committed turns.
            tools: those that are annotated.

        Raises:
            UsageError: there was no first turn, or the feedback asks for nothing, or for what
                cannot be.
        """
        if not turns:
            raise UsageError(
                "there is nothing to replace yet",
                why="no turn of this session was committed",
                hint="call generate() first",
            )
        if not feedback.asks_for_replacements:
            raise UsageError(
                "the feedback has nothing to replace",
                why="probes and changed rules are hints; without corrections, discards, untested "
                "tools or notes a turn would be paid for nothing",
                hint="pass corrections, discarded_scenarios, untested_tools or notes",
            )
        for tool in feedback.untested_tools:
            if tool not in tools:
                raise UsageError(
                    f"this session knows no tool {'/'.join(tool)}",
                    why="scenarios of tools that are not annotated are not taken",
                    hint="annotate it, or leave it out of untested_tools",
                )
        for discarded in feedback.discarded_scenarios:
            self._check_spares_people(discarded.scenario, "discarded", None)
        for probe in feedback.probe_scenarios:
            self._check_spares_people(probe, "contradicted by a probe", probe.expected_decision)
        index = ScenarioIndex(self.known.values())
        completed = tuple(_complete(correction, index) for correction in feedback.corrections)
        _check_agree(completed)
        # What the model wrote itself is no gap to it.
        own = {id_ for id_, scenario in self.known.items() if not scenario.is_handwritten}
        gaps = tuple(probe for probe in feedback.probe_scenarios if probe.id not in own)
        return feedback.model_copy(update={"corrections": completed, "probe_scenarios": gaps})

    def _check_spares_people(
        self, scenario: TestScenario, what: str, expected: ExpectedDecision | None
    ) -> None:
        """Check that no handwritten scenario is contradicted."""
        known = scenario if scenario.is_handwritten else self.known.get(scenario.id)
        if known is None or not known.is_handwritten:
            return
        if expected is None or not _compatible(known.expected_decision, expected):
            raise UsageError(
                f"{known.description!r} is handwritten and cannot be {what}",
                why="what a person wrote is never changed, contradicted or dropped",
                hint="take it for a fault of the rules, or change the scenario by hand",
            )

    def unsent(self, feedback: ScenarioFeedback, to: str) -> ScenarioFeedback:
        """Return what of ``feedback``, and of the hints so far, is new to a conversation.

        Raises:
            UsageError: a correction repeats the decision that it is meant to correct.
        """
        contradicted = [
            correction for correction in feedback.corrections if self._contradicts(correction)
        ]
        new = self.sent.without(contradicted, to).unsent(feedback, to)
        for correction in new.corrections:
            if correction.original_decision == correction.corrected_decision:
                raise UsageError(
                    f"{correction.scenario_description!r} is corrected to "
                    f"{correction.corrected_decision!r}, which is what it expects",
                    why="there would be nothing to replace",
                    hint="leave the correction out, or say in notes what else is wrong",
                )
        return new

    def _contradicts(self, correction: ScenarioCorrection) -> bool:
        known = self.known.get(correction.id or "")
        return known is not None and known.expected_decision != correction.corrected_decision

    def unaffected_by(self, sent: Iterable[ScenarioFeedback]) -> dict[str, TestScenario]:
        """Return the known scenarios for which no replacement is asked, by id."""
        asked = set()
        for part in sent:
            asked |= {correction.id for correction in part.corrections}
            asked |= {discard.scenario.id for discard in part.discarded_scenarios}
        return {id_: scenario for id_, scenario in self.known.items() if id_ not in asked}

    def after_sending(self, sent: Iterable[tuple[Addressee, ScenarioFeedback]]) -> Self:
        """Return what is known once each conversation was sent its part."""
        memory = self
        for to, part in sent:
            memory = replace(
                memory._with_corrections(part), sent=memory.sent.with_sent(part, to.address)
            )
        return memory

    def with_hints(self, feedback: ScenarioFeedback) -> Self:
        """Return this and the hints of ``feedback``: also for conversations not asked this time."""
        # Of probes of one request the last one tells what is right.
        probes = {
            probe.id: probe for probe in (*self.hints.probe_scenarios, *feedback.probe_scenarios)
        }
        changes = dict.fromkeys((*self.hints.rule_changes, *feedback.rule_changes))
        hints = ScenarioFeedback(
            probe_scenarios=tuple(probes.values()), rule_changes=tuple(changes)
        )
        return replace(self, hints=hints)

    def _with_corrections(self, feedback: ScenarioFeedback) -> Self:
        known = dict(self.known)
        wrong = {id_: set(decisions) for id_, decisions in self.wrong.items()}
        gone = dict(self.discarded)
        for correction in feedback.corrections:
            if correction.id is None:
                continue
            if (
                correction.original_decision
                and correction.original_decision != correction.corrected_decision
            ):
                wrong.setdefault(correction.id, set()).add(correction.original_decision)
            wrong.get(correction.id, set()).discard(correction.corrected_decision)
            if correction.id in known:
                update = {"expected_decision": correction.corrected_decision}
                known[correction.id] = known[correction.id].model_copy(update=update)
        for discarded in feedback.discarded_scenarios:
            scenario = discarded.scenario
            wrong.setdefault(scenario.id, set()).add(scenario.expected_decision)
            known.pop(scenario.id, None)
            gone[scenario.id] = f"{flatten(discarded.rule)} always returns {discarded.actual}"
        frozen = {id_: frozenset(decisions) for id_, decisions in wrong.items()}
        return replace(self, known=known, wrong=frozen, discarded=gone)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {
            "known": [scenario.to_json() for scenario in self.known.values()],
            "wrong": {id_: sorted(decisions) for id_, decisions in self.wrong.items()},
            "discarded": dict(sorted(self.discarded.items())),
            "said": sorted(self.sent.keys),
            "probes": [probe.to_json() for probe in self.hints.probe_scenarios],
            "rule_changes": list(self.hints.rule_changes),
        }

    @classmethod
    def from_stored(cls, stored: StoredMemory) -> Self:
        """Return the memory that ``to_json`` wrote."""
        return cls(
            {scenario.id: scenario for scenario in stored.known},
            {id_: frozenset(decisions) for id_, decisions in stored.wrong.items()},
            dict(stored.discarded),
            SentFeedback(frozenset(stored.said)),
            ScenarioFeedback(
                probe_scenarios=tuple(stored.probes), rule_changes=tuple(stored.rule_changes)
            ),
        )


def _complete(correction: ScenarioCorrection, known: ScenarioIndex) -> ScenarioCorrection:
    """Return a correction with the old decision and the request."""
    named = known.find(correction)
    if named is None:
        if correction.request is not None:
            return correction
        id_ = correction.scenario_id
        by_id = f" with the id {id_}, called" if id_ else " called"
        raise UsageError(
            f"this session knows no scenario{by_id} {correction.scenario_description!r}",
            why="a correction that names nothing would be lost",
            hint="give it the scenario_id or the request it is about",
        )
    id_, scenario = named
    if scenario.is_handwritten:
        raise UsageError(
            f"{scenario.description!r} is handwritten and cannot be corrected",
            why="what a person wrote is never contradicted",
            hint="take the correction for a fault of the rules, or change the scenario by hand",
        )
    return correction.model_copy(
        update={
            "scenario_id": id_,
            "request": scenario.request,
            "original_decision": correction.original_decision or scenario.expected_decision,
        }
    )


def _check_agree(corrections: Sequence[ScenarioCorrection]) -> None:
    """Check that no scenario is corrected twice in different ways."""
    right: dict[str, ScenarioCorrection] = {}
    for correction in corrections:
        other = right.setdefault(correction.id or correction.scenario_description, correction)
        if other.corrected_decision != correction.corrected_decision:
            raise UsageError(
                f"{correction.scenario_description!r} is corrected to "
                f"{other.corrected_decision!r} and to {correction.corrected_decision!r}",
                why="only one of them can be right",
                hint="pass one correction per scenario",
            )


def _compatible(decision: ExpectedDecision, other: ExpectedDecision) -> bool:
    """Return whether one decision can be what both expect."""
    return decision == other or {decision, other} in (
        {"deny", "not-allow"},
        {"escalate", "not-allow"},
    )


def check_tools(annotations: Sequence[ToolAnnotation]) -> tuple[ToolAnnotation, ...]:
    """Return ``annotations`` if each tool stands there once.

    Raises:
        UsageError: one stands there twice.
    """
    seen: set[tuple[str, str]] = set()
    for annotation in annotations:
        if annotation.tool in seen:
            raise UsageError(
                f"the tool {'/'.join(annotation.tool)} is annotated twice",
                hint="pass one annotation per tool",
            )
        seen.add(annotation.tool)
    return tuple(annotations)


def check_handwritten(scenarios: Sequence[TestScenario]) -> tuple[TestScenario, ...]:
    """Return ``scenarios``, marked as handwritten, if they do not contradict each other.

    They are copies: what the caller does to its own changes nothing here.

    Raises:
        UsageError: some expect of one request what no decision can be.
    """
    marked = [
        scenario.model_copy(update={"source": "handwritten"}, deep=True) for scenario in scenarios
    ]
    strictest: dict[str, TestScenario] = {}
    for scenario in marked:
        other = strictest.setdefault(scenario.id, scenario)
        if other.expected_decision == "not-allow":
            strictest[scenario.id] = scenario
        if not _compatible(scenario.expected_decision, other.expected_decision):
            raise UsageError(
                f"{other.description!r} and {scenario.description!r} contradict each other",
                why=f"both ask {scenario.request}; one expects {other.expected_decision}, "
                f"the other {scenario.expected_decision}",
                hint="keep the one that is right",
            )
    return tuple(marked)
