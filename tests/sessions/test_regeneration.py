"""What a scenario session is told in later turns: to whom, once, and nothing that cannot be."""

import json
import re
from collections.abc import Iterable
from typing import Any

import pytest
from scenario_doubles import READ, TOOLS, correction, discard, handwritten, said, scenario

from pytest_regen.errors import NoProgressError, UsageError
from pytest_regen.sessions import (
    ScenarioFeedback,
    ScenarioGeneratorSession,
    TestScenario,
    ToolAnnotation,
)
from pytest_regen.turns import ScriptedProvider, TurnRequest

A, B = scenario("/a"), scenario("/b")


def correcting(*corrected: tuple[str, str]) -> ScenarioFeedback:
    """Return corrections, each of a path to a decision."""
    return ScenarioFeedback(corrections=tuple(correction(*one) for one in corrected))


def after_the_first_turn(
    *later: str, own: Iterable[TestScenario] = ()
) -> tuple[ScriptedProvider, ScenarioGeneratorSession]:
    """Return a session that gave A and B, and who answers."""
    provider = ScriptedProvider([said([A, B]), *later])
    session = ScenarioGeneratorSession("Be exact.", TOOLS[:1], tuple(own), provider=provider)
    session.generate()
    return provider, session


def last(provider: ScriptedProvider) -> str:
    """Return the last message that was sent."""
    return provider.requests[-1].messages[-1].content


# What was right, is wrong, and is right again.


def test_a_correction_that_goes_back_is_told() -> None:
    """Rules change; the last word about a scenario counts, also for what is taken of a reply."""
    back = scenario("/a", "deny", description="again")
    provider, session = after_the_first_turn(said([]), said([]), said([back]))

    session.regenerate(correcting(("/a", "deny")))
    session.regenerate(correcting(("/a", "escalate")))
    found = session.regenerate(correcting(("/a", "deny"), ("/b", "deny")))

    assert found == [back]
    assert "you said 'escalate', correct decision is 'deny'" in last(provider)
    assert '"/b"' in last(provider)


def test_a_correction_is_told_again_where_the_replacement_went_wrong() -> None:
    """The model was told it, and said something else since."""
    worse = scenario("/a", "escalate")
    provider, session = after_the_first_turn(said([worse]), said([]))

    assert session.regenerate(correcting(("/a", "deny"))) == [worse]
    session.regenerate(correcting(("/a", "deny")))

    assert "you said 'escalate', correct decision is 'deny'" in last(provider)


def test_a_correction_that_stands_is_not_told_again() -> None:
    """Neither alone nor beside another one, nor after the session was carried away."""
    provider, session = after_the_first_turn(said([]), said([]))
    session.regenerate(correcting(("/a", "deny")))
    restored = ScenarioGeneratorSession.from_json(
        json.loads(json.dumps(session.to_json())), provider=provider
    )

    with pytest.raises(NoProgressError):
        restored.regenerate(correcting(("/a", "deny")))
    session.regenerate(correcting(("/a", "deny"), ("/b", "deny")))

    assert '"/a"' not in last(provider)


# Several conversations.


NUMBERED = [ToolAnnotation(server_name="files", tool_name=f"t{number}") for number in range(4)]


def about(tool: str, path: str = "/x") -> TestScenario:
    """Return a scenario about one of the numbered tools."""
    return scenario(path, tool=tool)


def each_tool_once(asked: TurnRequest) -> str:
    """Answer a first turn with one scenario per tool asked about, a later one with none."""
    if len(asked.messages) > 1:
        return said([])
    return said(
        about(name)
        for name in re.findall(r"^- files/(t\d)$", asked.messages[0].content, re.MULTILINE)
    )


def in_two_groups() -> tuple[ScriptedProvider, ScenarioGeneratorSession]:
    """Return a session of two conversations about two tools each, and who answers."""
    provider = ScriptedProvider(each_tool_once)
    session = ScenarioGeneratorSession("x", NUMBERED, provider=provider, batch_size=2)
    session.generate()
    provider.requests.clear()
    return provider, session


def wrong(tool: str) -> ScenarioFeedback:
    """Return a correction of the scenario of a tool."""
    told = correction("/x", "deny", scenario_description=f"{tool} /x")
    return ScenarioFeedback(corrections=(told,))


@pytest.mark.parametrize("is_restored", [False, True])
def test_hints_wait_for_a_conversation_that_had_nothing_to_replace(*, is_restored: bool) -> None:
    """They were sent to nobody who needs them; its next turn tells them, and tells them once."""
    provider, session = in_two_groups()
    hints = {"rule_changes": ("new rule",), "probe_scenarios": (about("t0", "/probe"),)}
    session.regenerate(wrong("t3").model_copy(update=hints))
    assert ["new rule" in last(provider), "/probe" in last(provider)] == [True, False]
    if is_restored:
        data = json.loads(json.dumps(session.to_json()))
        session = ScenarioGeneratorSession.from_json(data, provider=provider)

    session.regenerate(wrong("t0"))
    first = last(provider)
    session.regenerate(wrong("t1").model_copy(update=hints))

    assert ["new rule" in first, "/probe" in first] == [True, True]
    assert ["new rule" in last(provider), "/probe" in last(provider)] == [False, False]


def test_of_a_probe_that_waits_the_last_word_is_told() -> None:
    """What is right changed before anybody was told."""
    provider, session = in_two_groups()
    probe = about("t0", "/probe")
    later = probe.model_copy(update={"expected_decision": "escalate"})
    session.regenerate(wrong("t3").model_copy(update={"probe_scenarios": (probe,)}))
    session.regenerate(wrong("t2").model_copy(update={"probe_scenarios": (later,)}))
    session.regenerate(wrong("t0"))

    assert '"/probe"} -> escalate' in last(provider)
    assert '"/probe"} -> allow' not in last(provider)


# Feedback that cannot be.


OWN = handwritten("/h", "deny")


@pytest.mark.parametrize(
    ("feedback", "problem"),
    [
        ({"untested_tools": (("nope", "read"),)}, "knows no tool nope/read"),
        (
            {"corrections": (correction("/a", "deny"), correction("/a", "escalate"))},
            "'read /a' is corrected to 'deny' and to 'escalate'",
        ),
        ({"corrections": (correction("/a", "allow"),)}, "to 'allow', which is what it expects"),
        (
            {"discarded_scenarios": (discard("/h").model_copy(update={"scenario": OWN}),)},
            "'read /h' is handwritten and cannot be discarded",
        ),
        ({"discarded_scenarios": (discard("/h"),)}, "'read /h' is handwritten"),
        (
            {"notes": ("n",), "probe_scenarios": (scenario("/h", "allow"),)},
            "'read /h' is handwritten and cannot be contradicted by a probe",
        ),
    ],
)
def test_feedback_that_cannot_be_is_refused(feedback: dict[str, Any], problem: str) -> None:
    """Before anybody is asked; the session goes on as if it had not been said."""
    provider, session = after_the_first_turn(said([]), own=[OWN])
    before = session.to_json()

    with pytest.raises(UsageError, match=re.escape(problem)):
        session.regenerate(ScenarioFeedback(**feedback))

    assert len(provider.requests) == 1
    assert session.to_json() == before


def test_a_note_without_words_says_nothing() -> None:
    """Alone it is no reason for a turn; beside others it is left out."""
    provider, session = after_the_first_turn(said([]))

    with pytest.raises(UsageError, match="nothing to replace"):
        session.regenerate(ScenarioFeedback(notes=("", " \n")))
    session.regenerate(ScenarioFeedback(notes=(" ", "too few edges")))

    assert "found in your scenarios:\n\n- too few edges\n\n" in last(provider)


def test_a_probe_that_agrees_with_a_person_is_a_hint_like_others() -> None:
    """``not-allow`` and ``deny`` are no contradiction."""
    provider, session = after_the_first_turn(said([]), own=[handwritten("/h")])

    session.regenerate(ScenarioFeedback(notes=("n",), probe_scenarios=(scenario("/h", "deny"),)))

    assert '"/h"} -> deny' in last(provider)


# Whose scenarios these are.


def test_what_a_caller_does_to_scenarios_changes_nothing_in_the_session() -> None:
    """Neither to those returned nor to those it passed."""
    own = handwritten("/h")
    provider = ScriptedProvider([said([A, B]), said([scenario("/c")])])
    session = ScenarioGeneratorSession("x", [READ], [own], provider=provider)
    found = session.generate()
    before = session.to_json()

    for one in (own, *found):
        one.request.arguments.clear()

    assert session.to_json() == before
    (fresh,) = session.regenerate(correcting(("/a", "deny")))
    fresh.request.arguments.clear()
    assert '[files/read {"path":"/a"}]' in last(provider)
    assert "/c" in json.dumps(session.to_json()["memory"]["known"])
