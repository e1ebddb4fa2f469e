"""Feedback as the text of a message, and what of it was said before."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

from pytest_regen.canonical import canonical_hash
from pytest_regen.sessions.values import (
    DiscardedScenario,
    ScenarioCorrection,
    ScenarioFeedback,
    Value,
)

__all__ = ["Said", "format_feedback_message"]

V = TypeVar("V", bound=Value | str)

_OPENING = "Some of your scenarios were wrong. Here is what verification found."

_CLOSING = (
    "Generate replacement scenarios for the corrected and discarded ones above. Keep your new "
    "scenarios consistent with the corrections. Do not repeat discarded scenarios or reproduce "
    "the original wrong expectations. Answer in the same JSON form as before, with the "
    "replacements only.\n"
)


def format_feedback_message(feedback: ScenarioFeedback) -> str:
    """Return ``feedback`` as the user message of the next turn.

    Where the text of the requirement contradicts itself: there is an opening sentence unless the
    feedback is empty (its example has one, its code has none); corrections tell the old decision
    and the request (its example does, its code does not); the closing asks for replacements of
    corrected and discarded scenarios alike (its code does, its example asks for the corrected
    ones alone). The schema is not repeated: it stands in the first message.
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
            "The verifier generated probe scenarios that found gaps. Consider these areas:",
            (f"{one.request} -> {one.expected_decision}" for one in feedback.probe_scenarios),
        ),
        _section(
            "Changed Rules",
            "The rules were changed since your last answer:",
            feedback.rule_changes,
        ),
        _section(
            "Other Findings",
            "These faults were found in your scenarios:",
            map(_note, feedback.notes),
        ),
    ]
    said = [section for section in sections if section]
    opening = [_OPENING] if said else []
    return "\n\n".join([*opening, *said, _CLOSING])


def _section(title: str, explanation: str, lines: Iterable[str]) -> str:
    found = [f"- {line}" for line in lines]
    return f"## {title}\n\n{explanation}\n\n" + "\n".join(found) if found else ""


def _correction(correction: ScenarioCorrection) -> str:
    said = f"you said '{correction.original_decision}', " if correction.original_decision else ""
    request = f" [{correction.request}]" if correction.request else ""
    rule = f"; the rule that decides is {correction.rule}" if correction.rule else ""
    reason = f" (reason: {_note(correction.corrected_reasoning)}{rule})"
    if not correction.corrected_reasoning:
        reason = f" ({rule[2:]})" if rule else ""
    return (
        f'"{correction.scenario_description}"{request}: {said}correct decision is '
        f"'{correction.corrected_decision}'{reason}"
    )


def _discard(discarded: DiscardedScenario) -> str:
    scenario = discarded.scenario
    return (
        f'"{scenario.description}" [{scenario.request}]: {discarded.rule} always returns '
        f"{discarded.actual}, you expected {scenario.expected_decision}"
    )


def _note(text: str) -> str:
    """Return ``text`` as it can stand in a list: later lines indented."""
    return "\n  ".join(text.strip().splitlines())


@dataclass(frozen=True, slots=True)
class Said:
    """What the model was told in committed turns, so that it is told once.

    The text of the requirement sends all discards and all probes again in every turn, although
    its history holds them; its turns grow without bound.
    """

    keys: frozenset[str] = field(default_factory=frozenset)

    def unsaid(self, feedback: ScenarioFeedback) -> ScenarioFeedback:
        """Return what of ``feedback`` is new, each thing once."""
        return ScenarioFeedback(
            corrections=self._new(feedback.corrections),
            discarded_scenarios=self._new(feedback.discarded_scenarios),
            probe_scenarios=self._new(feedback.probe_scenarios),
            rule_changes=self._new(feedback.rule_changes),
            notes=self._new(feedback.notes),
        )

    def plus(self, feedback: ScenarioFeedback) -> Self:
        """Return this and what ``feedback`` says."""
        return type(self)(self.keys | {_key(one) for one in _everything(feedback)})

    def _new(self, things: Sequence[V]) -> tuple[V, ...]:
        by_key = {_key(thing): thing for thing in reversed(things)}
        return tuple(thing for key, thing in reversed(by_key.items()) if key not in self.keys)


def _everything(feedback: ScenarioFeedback) -> tuple[Value | str, ...]:
    return (
        *feedback.corrections,
        *feedback.discarded_scenarios,
        *feedback.probe_scenarios,
        *feedback.rule_changes,
        *feedback.notes,
    )


def _key(thing: Value | str) -> str:
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
        case _:
            said = ["value", type(thing).__name__, thing.to_json()]
    return canonical_hash(said)
