"""Feedback about scenarios: whether it can be sent, and how it reads as a message."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from pytest_regen.errors import UsageError
from pytest_regen.sessions.items import Finding, Section, counted, listed
from pytest_regen.sessions.prompts import list_item
from pytest_regen.sessions.scenarios import (
    ExpectedDecision,
    ScenarioCorrection,
    ScenarioFeedback,
    ScenarioIndex,
    ScenarioRequest,
    TestScenario,
    ToolAnnotation,
    of_a_person,
)
from pytest_regen.text import flatten, quoted

_CORRECTED = Section(
    "Corrected Scenarios",
    "These scenarios had wrong expected decisions. The verifier determined the correct decisions:",
    "same",
    # A corrected one gives way only to the same request; a discarded one is gone, so that another
    # request has to take its place.
    "{} for the corrected ones: the same request each, to the letter (only the same request takes "
    "its place), with the correct decision and its reason",
)
_DISCARDED = Section(
    "Discarded Scenarios (Structural Conflicts)",
    "These scenarios conflict with hardcoded structural invariants and were removed. Do NOT "
    "regenerate them:",
    "other",
    "{} for the discarded ones: another request of the same tool each",
)
_GAPS = Section(
    "Coverage Gaps Found by Verifier",
    "The verifier generated probe scenarios that found gaps. They are in the set now: consider the "
    "areas around them, and do not repeat them:",
    "",
)
_RULES = Section("Changed Rules", "The rules were changed since your last answer:", "")
_NOTES = Section("Other Findings", "This was found about your scenarios:", "note")
UNTESTED = Section(
    "Untested Tools",
    "No scenario is left for these tools. Write at least one for each:",
    "more",
    "at least {} for the untested tools: one for each",
)
_SECTIONS = (_CORRECTED, _DISCARDED, _GAPS, _RULES, _NOTES, UNTESTED)


def format_feedback_message(feedback: ScenarioFeedback) -> str:
    """Return ``feedback`` as the user message of the next turn."""
    # The schema is not repeated, because it stands in the first message.
    return message_of(list(findings_of(feedback, {})))


def message_of(findings: Sequence[Finding[TestScenario]]) -> str:
    """Return the user message that says ``findings``, and what is to be written."""
    asking = {finding.section.asks for finding in findings}
    kinds = {"same": "corrected", "other": "discarded"}
    # Of no findings at all it speaks as of both, because that is the message that has been agreed.
    about = [word for asks, word in kinds.items() if asks in asking or not findings]
    opening = (
        "Some of your scenarios were wrong. Here is what verification found."
        if about
        else "Here is what was found about your scenarios."
    )
    what = "the scenarios that the findings above ask for"
    rules, prohibited = [], []
    if about:
        what = f"replacement scenarios for the {' and '.join(about)} ones above"
    if "discarded" in about:
        prohibited.append("repeat discarded scenarios")
    if "corrected" in about:
        rules.append("Keep your new scenarios consistent with the corrections.")
        prohibited.append("reproduce the original wrong expectations")
    if prohibited:
        rules.append(f"Do not {' or '.join(prohibited)}.")
    new = "replacements" if about else "new ones"
    rules.append(f"Answer in the same JSON form as before, with the {new} only.")
    counts = counted(findings, _SECTIONS)
    request = "\n".join([f"Generate {what}{':' if counts else '.'}", *counts])
    request += ("\n\n" if counts else " ") + " ".join(rules) + "\n"
    return "\n\n".join([*([opening] if findings else []), *listed(findings, _SECTIONS), request])


def findings_of(
    feedback: ScenarioFeedback, by_id: Mapping[str, TestScenario]
) -> Iterator[Finding[TestScenario]]:
    """Yield what ``feedback`` says, about the scenarios of a session by id."""
    # What people, models and servers wrote cannot leave its line, because it could pose as a
    # section: texts are quoted, names and rules flattened, later lines of a note marked.
    for correction in feedback.corrections:
        right, was = correction.corrected_decision, correction.original_decision
        scenario = by_id.get(correction.id or "") or TestScenario(
            description=correction.scenario_description,
            request=correction.request or ScenarioRequest(server_name="", tool_name=""),
            expected_decision=right,
        )
        yield Finding(
            _CORRECTED,
            _correction_line(correction),
            (right, correction.id),
            scenario.id,
            scenario.model_copy(update={"expected_decision": right}),
            was if was and was != right else "",
            f"expecting {was} for this request was corrected before: the right decision is {right}",
            # The last word counts, because what is right now may be what was right before.
            is_again=correction.id in by_id and scenario.expected_decision != right,
        )
    for discarded in feedback.discarded_scenarios:
        scenario, always = discarded.scenario, f"{flatten(discarded.rule)} always returns"
        expected = scenario.expected_decision
        yield Finding(
            _DISCARDED,
            f"{quoted(scenario.description)} [{scenario.request}]: {always} {discarded.actual}, "
            f"you expected {expected}",
            (scenario.id, expected, discarded.rule),
            scenario.id,
            verdict=expected,
            answer_to_repeat=f"this request was discarded: {always} {discarded.actual}",
        )
    for probe in feedback.probe_scenarios:
        yield Finding(_GAPS, f"{probe.request} -> {probe.expected_decision}", (probe.to_json(),))
    for text in feedback.rule_changes:
        yield Finding(_RULES, flatten(text), (text,))
    for text in filter(str.strip, feedback.notes):
        yield Finding(_NOTES, list_item(text), (text,))
    for tool in feedback.untested_tools:
        yield Finding(UNTESTED, flatten("/".join(tool)), tool)


def _correction_line(correction: ScenarioCorrection) -> str:
    # A title and a verdict alone would not say what was wrong.
    earlier = f"you said '{correction.original_decision}', " if correction.original_decision else ""
    request = f" [{correction.request}]" if correction.request else ""
    reasons = []
    if correction.corrected_reasoning.strip():
        reasons.append(f"reason: {quoted(correction.corrected_reasoning.strip())}")
    if correction.rule:
        reasons.append(f"the rule that decides is {flatten(correction.rule)}")
    return (
        f"{quoted(correction.scenario_description)}{request}: {earlier}correct decision is "
        f"'{correction.corrected_decision}'" + (f" ({'; '.join(reasons)})" if reasons else "")
    )


def check_feedback(
    feedback: ScenarioFeedback,
    by_id: Mapping[str, TestScenario],
    tools: Collection[tuple[str, str]],
    corrected_before: Collection[str] = (),
) -> ScenarioFeedback:
    """Return ``feedback`` with its corrections completed, if it can be sent.

    Args:
        feedback: what verification found.
        by_id: the scenarios of the session, by id.
        tools: those that are annotated.
        corrected_before: ids of those that stand as a correction left them.

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
    # What a person wrote is the ground truth that everything else is measured by.
    for discarded in feedback.discarded_scenarios:
        check_spares_people(discarded.scenario, by_id, "discarded")
    for probe in feedback.probe_scenarios:
        check_spares_people(probe, by_id, "contradicted by a probe", probe.expected_decision)
    index = ScenarioIndex(by_id.values())
    corrections: dict[str, ScenarioCorrection] = {}
    for correction in feedback.corrections:
        right, name = correction.corrected_decision, correction.scenario_description
        completed = correction
        # A request that the session does not know says by itself what it is about.
        if correction.request is None or index.find(correction):
            id_, scenario = index.correctable(correction)
            update = {
                "scenario_id": id_,
                "request": scenario.request,
                "original_decision": correction.original_decision or scenario.expected_decision,
            }
            completed = correction.model_copy(update=update)
        if completed.original_decision == right and completed.id not in corrected_before:
            raise UsageError(
                f"{name!r} is corrected to {right!r}, which is what it expects",
                why="there would be nothing to replace",
                hint="leave the correction out, or say in notes what else is wrong",
            )
        other = corrections.setdefault(completed.id or name, completed)
        if other.corrected_decision != right:
            raise UsageError(
                f"{name!r} is corrected to {other.corrected_decision!r} and to {right!r}",
                why="only one of them can be right",
                hint="pass one correction per scenario",
            )
    return feedback.model_copy(update={"corrections": tuple(corrections.values())})


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
        raise of_a_person(truth, what)


def _compatible(decision: ExpectedDecision, other: ExpectedDecision) -> bool:
    """Return whether one decision can be what both expect."""
    pair = {decision, other}
    return len(pair) == 1 or ("not-allow" in pair and "allow" not in pair)


def check_tools(annotations: Sequence[ToolAnnotation]) -> dict[tuple[str, str], ToolAnnotation]:
    """Return ``annotations`` by tool if each tool stands there once.

    Raises:
        UsageError: one stands there twice.
    """
    by_tool: dict[tuple[str, str], ToolAnnotation] = {}
    for annotation in annotations:
        if annotation.tool in by_tool:
            raise UsageError(
                f"the tool {'/'.join(annotation.tool)} is annotated twice",
                hint="pass one annotation per tool",
            )
        by_tool[annotation.tool] = annotation
    return by_tool


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
        # Compared with the strictest so far, because "not-allow" would agree with two that do not
        # agree with each other.
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
