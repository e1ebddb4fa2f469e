"""Feedback as the text of a message, and what of it was said before."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar, get_args

from pytest_regen.canonical import canonical_hash
from pytest_regen.quoting import flatten, quote
from pytest_regen.sessions.values import (
    ActualDecision,
    DiscardedScenario,
    ScenarioCorrection,
    ScenarioFeedback,
    Value,
)

__all__ = ["Said", "format_feedback_message"]

V = TypeVar("V", bound=Value | str | tuple[str, str])

_KINDS = ("corrected", "discarded")

_OPENING = "Some of your scenarios were wrong. Here is what verification found."


def format_feedback_message(feedback: ScenarioFeedback) -> str:
    """Return ``feedback`` as the user message of the next turn.

    - An opening sentence says what the sections are, unless there are none.
    - A correction tells the old decision and the request beside the right decision: a title and a
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
            (f"{one.request} -> {one.expected_decision}" for one in feedback.probe_scenarios),
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
    said = [section for section in sections if section]
    opening = [_OPENING] if said else []
    return "\n\n".join([*opening, *said, _closing(feedback)])


def _section(title: str, explanation: str, lines: Iterable[str]) -> str:
    found = [f"- {line}" for line in lines]
    return f"## {title}\n\n{explanation}\n\n" + "\n".join(found) if found else ""


def _correction(correction: ScenarioCorrection) -> str:
    said = f"you said '{correction.original_decision}', " if correction.original_decision else ""
    request = f" [{correction.request}]" if correction.request else ""
    reasons = [f"reason: {quote(text)}"] if (text := correction.corrected_reasoning.strip()) else []
    if correction.rule:
        reasons.append(f"the rule that decides is {flatten(correction.rule)}")
    return (
        f"{quote(correction.scenario_description)}{request}: {said}correct decision is "
        f"'{correction.corrected_decision}'" + (f" ({'; '.join(reasons)})" if reasons else "")
    )


def _discard(discarded: DiscardedScenario) -> str:
    scenario = discarded.scenario
    return (
        f"{quote(scenario.description)} [{scenario.request}]: {flatten(discarded.rule)} always "
        f"returns {discarded.actual}, you expected {scenario.expected_decision}"
    )


def _closing(feedback: ScenarioFeedback) -> str:
    """Return what is to be written, and how many of each."""
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
class Said:
    """What each conversation was told in committed turns, so that it is told once.

    Only what is new is sent, and not all discards and all probes so far: those stand in the
    history, and turns that repeat it would grow without bound. Of corrections the last one of a
    scenario counts: what is right now may be what was right before.
    """

    keys: frozenset[str] = field(default_factory=frozenset)

    def unsaid(self, feedback: ScenarioFeedback, to: str = "") -> ScenarioFeedback:
        """Return what of ``feedback`` is new to the conversation ``to``, each thing once."""

        def new(things: Sequence[V]) -> tuple[V, ...]:
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

    def plus(self, feedback: ScenarioFeedback, to: str = "") -> Self:
        """Return this and what ``feedback`` says to the conversation ``to``."""
        left = self.minus(feedback.corrections, to).keys
        return type(self)(left | {_key(one, to) for one in _everything(feedback)})

    def minus(self, corrections: Iterable[ScenarioCorrection], to: str = "") -> Self:
        """Return this without what was said of these scenarios, whatever was called right."""
        outdated = {
            _key(one.model_copy(update={"corrected_decision": decision}), to)
            for one in corrections
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
            said: list[Any] = ["correction", who, thing.corrected_decision]
        case DiscardedScenario():
            scenario = thing.scenario
            said = ["discard", scenario.id, scenario.expected_decision, thing.rule]
        case str():
            said = ["words", thing]
        case tuple():
            said = ["untested", *thing]
        case _:
            said = ["value", type(thing).__name__, thing.to_json()]
    return canonical_hash([to, *said])
