"""Feedback about scenarios: whether it can be sent, and how it reads as a message."""

from collections.abc import Collection, Mapping, Sequence

from pytest_regen.errors import UsageError
from pytest_regen.sessions.prompts import list_item, section
from pytest_regen.sessions.scenarios import (
    DiscardedScenario,
    ExpectedDecision,
    ScenarioCorrection,
    ScenarioFeedback,
    ScenarioIndex,
    TestScenario,
    ToolAnnotation,
)
from pytest_regen.text import flatten, quoted

_KINDS = ("corrected", "discarded")

_OPENING = "Some of your scenarios were wrong. Here is what verification found."
_OPENING_OF_NOTES = "Here is what was found about your scenarios."


def format_feedback_message(feedback: ScenarioFeedback) -> str:
    """Return ``feedback`` as the user message of the next turn.

    - An opening sentence says what the sections are, unless there are none.
    - A correction gives the old decision and the request beside the right decision: a title and a
      verdict alone do not say what was wrong.
    - The closing asks for replacements of the discarded scenarios as well as of the corrected
      ones, and says how many and of which requests. A corrected one gives way only to the same
      request; a discarded one is gone, so that another request has to take its place.
    - What people, models and servers wrote cannot leave its line: texts are quoted, names and
      rules written on one line, later lines of a note marked.
    - The schema is not repeated: it stands in the first message.
    """
    sections = [
        section(
            "Corrected Scenarios",
            "These scenarios had wrong expected decisions. The verifier determined the correct "
            "decisions:",
            map(_correction, feedback.corrections),
        ),
        section(
            "Discarded Scenarios (Structural Conflicts)",
            "These scenarios conflict with hardcoded structural invariants and were removed. Do "
            "NOT regenerate them:",
            map(_discard, feedback.discarded_scenarios),
        ),
        section(
            "Coverage Gaps Found by Verifier",
            "The verifier generated probe scenarios that found gaps. They are in the set now: "
            "consider the areas around them, and do not repeat them:",
            (f"{probe.request} -> {probe.expected_decision}" for probe in feedback.probe_scenarios),
        ),
        section(
            "Changed Rules",
            "The rules were changed since your last answer:",
            map(flatten, feedback.rule_changes),
        ),
        section(
            "Other Findings",
            "This was found about your scenarios:",
            [list_item(note) for note in feedback.notes if note.strip()],
        ),
        section(
            "Untested Tools",
            "No scenario is left for these tools. Write at least one for each:",
            (flatten("/".join(tool)) for tool in feedback.untested_tools),
        ),
    ]
    parts = [section for section in sections if section]
    has_wrong = feedback.corrections or feedback.discarded_scenarios
    opening = [_OPENING if has_wrong else _OPENING_OF_NOTES] if parts else []
    return "\n\n".join([*opening, *parts, _request(feedback)])


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
    counts = []
    if wrong:
        counts.append(
            f"- {wrong} for the corrected ones: the same request each, to the letter (only the "
            "same request takes its place), with the correct decision and its reason"
        )
    if gone:
        counts.append(f"- {gone} for the discarded ones: another request of the same tool each")
    if tools:
        counts.append(f"- at least {tools} for the untested tools: one for each")
    if kinds or feedback.is_empty:
        what = f"replacement scenarios for the {' and '.join(kinds or _KINDS)} ones above"
    else:
        what = "the scenarios that the findings above ask for"
    lines = [f"Generate {what}{':' if counts else '.'}", *counts]
    rules = ["Keep your new scenarios consistent with the corrections."] if wrong else []
    dont = ["repeat discarded scenarios"] if gone else []
    dont += ["reproduce the original wrong expectations"] if wrong else []
    if feedback.is_empty:
        rules = ["Keep your new scenarios consistent with the corrections."]
        dont = ["repeat discarded scenarios", "reproduce the original wrong expectations"]
    rules += [f"Do not {' or '.join(dont)}."] if dont else []
    new = "replacements" if kinds or feedback.is_empty else "new ones"
    rules.append(f"Answer in the same JSON form as before, with the {new} only.")
    return "\n".join(lines) + ("\n\n" if counts else " ") + " ".join(rules) + "\n"


def check_feedback(
    feedback: ScenarioFeedback,
    by_id: Mapping[str, TestScenario],
    tools: Collection[tuple[str, str]],
) -> ScenarioFeedback:
    """Return ``feedback`` with its corrections completed, if it can be sent.

    Args:
        feedback: what verification found.
        by_id: the scenarios of the session, by id.
        tools: those that are annotated.

    Raises:
        UsageError: it asks for what cannot be.
    """
    for tool in feedback.untested_tools:
        if tool not in tools:
            raise UsageError(
                f"this session knows no tool {'/'.join(tool)}",
                why="scenarios of tools that are not annotated are not taken",
                hint="annotate it, or leave it out of untested_tools",
            )
    for discarded in feedback.discarded_scenarios:
        check_spares_people(discarded.scenario, by_id, "discarded")
    for probe in feedback.probe_scenarios:
        check_spares_people(probe, by_id, "contradicted by a probe", probe.expected_decision)
    index = ScenarioIndex(by_id.values())
    completed = tuple(_complete(correction, index) for correction in feedback.corrections)
    right: dict[str, ScenarioCorrection] = {}
    for correction in completed:
        other = right.setdefault(correction.id or correction.scenario_description, correction)
        if other.corrected_decision != correction.corrected_decision:
            raise UsageError(
                f"{correction.scenario_description!r} is corrected to "
                f"{other.corrected_decision!r} and to {correction.corrected_decision!r}",
                why="only one of them can be right",
                hint="pass one correction per scenario",
            )
    # What the model wrote itself is no gap to it.
    gaps = tuple(
        probe
        for probe in feedback.probe_scenarios
        if probe.id not in by_id or by_id[probe.id].is_handwritten
    )
    return feedback.model_copy(update={"corrections": completed, "probe_scenarios": gaps})


def check_spares_people(
    scenario: TestScenario,
    by_id: Mapping[str, TestScenario],
    what: str,
    expected: ExpectedDecision | None = None,
) -> None:
    """Check that no handwritten scenario is contradicted, or replaced by another.

    Raises:
        UsageError: one is.
    """
    truth = scenario if scenario.is_handwritten else by_id.get(scenario.id)
    if truth is None or not truth.is_handwritten:
        return
    if expected is None or not _compatible(truth.expected_decision, expected):
        raise UsageError(
            f"{truth.description!r} is handwritten and cannot be {what}",
            why="what a person wrote is never changed, contradicted or dropped",
            hint="take it for a fault of the rules, or change the scenario by hand",
        )


def _complete(correction: ScenarioCorrection, index: ScenarioIndex) -> ScenarioCorrection:
    """Return a correction with the old decision and the request."""
    match = index.find(correction)
    if match is None:
        if correction.request is not None:
            return correction
        id_ = correction.scenario_id
        by_id = f" with the id {id_}, called" if id_ else " called"
        raise UsageError(
            f"this session knows no scenario{by_id} {correction.scenario_description!r}",
            why="a correction that names nothing would be lost",
            hint="give it the scenario_id or the request it is about",
        )
    id_, scenario = match
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
