"""Scenarios turn by turn: what is sent, what is returned, what is never lost."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from scenario_doubles import (
    READ,
    TOOLS,
    WRITE,
    correction,
    discard,
    handwritten,
    named,
    said,
    scenario,
)

from pytest_regen.errors import (
    BudgetError,
    ReplyFormatError,
    TransportError,
    UsageError,
)
from pytest_regen.sessions import (
    ScenarioFeedback,
    ScenarioGeneratorSession,
    TestScenario,
    ToolAnnotation,
    generate_scenarios,
)
from pytest_regen.turns import Provider, Reply, ScriptedProvider, Usage

A, B, C = scenario("/a"), scenario("/b", "deny"), scenario("/c")
FIXED = scenario("/b", "escalate")
CORRECTED = ScenarioFeedback(corrections=(correction("/b", "escalate"),))


def session(
    provider: Provider, own: Iterable[TestScenario] = (), **settings: Any
) -> ScenarioGeneratorSession:
    return ScenarioGeneratorSession(
        "Be exact.", TOOLS[:1], tuple(own), provider=provider, **settings
    )


def told(provider: ScriptedProvider, number: int = -1) -> str:
    return provider.requests[number].messages[-1].content


# Turn by turn.


def test_handwritten_come_first_then_what_is_new() -> None:
    """Generated scenarios are tagged; one that asks what a person asked is left out.

    Requirement 1, generate: handwritten, then what is unlike them.
    """
    own = handwritten("/a")
    talk = session(ScriptedProvider([said([A, B])]), [own])

    assert talk.generate() == [own, B]
    assert talk.turn_count == 1
    assert "left out" in talk.reports[-1].notes[0]


def test_regenerate_returns_replacements_only() -> None:
    """The caller merges; turns are counted.

    Requirement 1, decision 6: replacement, not accumulation.
    """
    talk = session(ScriptedProvider([said([A, B]), said([FIXED])]), [handwritten("/h")])
    counts = [talk.turn_count]
    talk.generate()
    counts.append(talk.turn_count)

    assert talk.regenerate(CORRECTED) == [FIXED]
    assert [*counts, talk.turn_count] == [0, 1, 2]


def test_messages_grow_and_the_system_prompt_stays() -> None:
    """One message, then three; the last one carries the correction; the schema stands once.

    Requirement 1, decisions 1 and 2: the system prompt is set once, feedback is a message.
    """
    provider = ScriptedProvider([said([A, B]), said([FIXED])])
    talk = session(provider)
    talk.generate()
    talk.regenerate(CORRECTED)

    roles = [[message.role for message in one.messages] for one in provider.requests]
    assert roles == [["user"], ["user", "assistant", "user"]]
    assert {one.system for one in provider.requests} == {"Be exact."}
    assert "correct decision is 'escalate'" in told(provider)
    assert ["JSON Schema" in told(provider, number) for number in (0, 1)] == [True, False]


def test_the_first_message_asks_for_scenarios_and_tells_the_handwritten() -> None:
    """So that the model neither repeats nor contradicts them.

    Requirement 1, turn 1: the first message.
    """
    provider = ScriptedProvider([said([A])])
    session(provider, [handwritten("/h")]).generate()

    assert told(provider).startswith("Generate test scenarios following the instructions above.")
    assert '- files/read {"path":"/h"} -> not-allow' in told(provider)


def test_single_shot_generation_is_a_session_of_one_turn() -> None:
    """For callers that need no memory.

    Requirement 1, backward compatibility: generateScenarios.
    """
    own = handwritten("/h")

    assert generate_scenarios(
        "Be exact.", TOOLS[:1], [own], provider=ScriptedProvider([said([A])])
    ) == [own, A]


def test_without_tools_nobody_is_asked() -> None:
    provider = ScriptedProvider([])
    own = handwritten("/h")

    assert ScenarioGeneratorSession("x", [], [own], provider=provider).generate() == [own]
    assert not provider.requests


# What must not happen to a session.


def test_a_correction_tells_the_old_decision_and_the_request() -> None:
    provider = ScriptedProvider([said([A, B]), said([FIXED])])
    talk = session(provider)
    talk.generate()
    rule = correction("/b", "escalate", rule="ask-outside")
    talk.regenerate(ScenarioFeedback(corrections=(rule,)))

    assert '"read /b" [files/read {"path":"/b"}]: you said \'deny\', correct' in told(provider)
    assert "ask-outside" in told(provider)


def test_feedback_is_told_once() -> None:
    """Discards and probes of earlier turns are in the history; only what is new is sent."""
    provider = ScriptedProvider([said([A, B]), said([C]), said([FIXED])])
    talk = session(provider)
    talk.generate()
    first = ScenarioFeedback(
        discarded_scenarios=(discard("/d"),), probe_scenarios=(scenario("/p"),)
    )
    talk.regenerate(first)
    talk.regenerate(first.model_copy(update={"corrections": CORRECTED.corrections}))

    assert "/d" in told(provider, 1)
    assert "/p" in told(provider, 1)
    assert "/d" not in told(provider, 2)
    assert "/p" not in told(provider, 2)


def test_turns_and_tokens_are_limited() -> None:
    """A loop cannot run away.

    Requirement 1, extension points: a limit of turns.
    """
    reply = Reply(said([A, B]), usage=Usage(500, 100))
    talk = session(ScriptedProvider([reply]), max_turns=1)
    talk.generate()
    with pytest.raises(BudgetError, match="turn"):
        talk.regenerate(CORRECTED)
    spent = session(ScriptedProvider([reply, reply]), token_budget=2_000)
    spent.generate()
    with pytest.raises(BudgetError, match="token"):
        spent.regenerate(CORRECTED)


def test_servers_go_with_their_own_tools() -> None:
    """A tool of another server is repaired: that item alone is asked for again."""
    wrong = scenario("/x", request={"server_name": "web", "tool_name": "read", "arguments": {}})
    provider = ScriptedProvider([said([A, wrong]), said([C])])
    talk = session(provider)

    assert talk.generate() == [A, C]
    assert "there is no tool web/read" in told(provider)
    assert "The other 1 are kept." in told(provider)


def test_duplicates_in_one_answer_are_left_out() -> None:
    """The first one of a request stays, whatever the order of its arguments."""
    twin = scenario("/a", description="twin")
    talk = session(ScriptedProvider([said([A, twin])]))

    assert talk.generate() == [A]
    assert "'twin' asks what 'read /a' asks" in talk.reports[-1].notes[0]


def test_an_empty_list_is_no_set() -> None:
    """The model is asked again; in the end it is an error, not an empty success."""
    provider = ScriptedProvider([said([])] * 3)

    with pytest.raises(ReplyFormatError, match="the reply holds no scenario"):
        session(provider).generate()

    assert "the list is empty\nno scenario tests files/read" in told(provider)
    assert "of your 0" not in told(provider)


def test_what_cannot_be_mended_is_left_out_and_told() -> None:
    wrong = scenario("/x", tool="unknown")
    talk = session(ScriptedProvider([said([A, wrong]), said([wrong]), said([wrong])]))

    assert talk.generate() == [A]
    assert any("left out after repairs" in note for note in talk.reports[-1].notes)
    assert json.loads(talk.history[1].content)["scenarios"][0]["description"] == "read /a"


# Feedback that cannot be.


@pytest.mark.parametrize(("path", "problem"), [("/nowhere", "no scenario"), ("/h", "handwritten")])
def test_a_correction_of_nothing_or_of_a_person_is_refused(path: str, problem: str) -> None:
    talk = session(ScriptedProvider([said([A])]), [handwritten("/h")])
    talk.generate()

    with pytest.raises(UsageError, match=problem):
        talk.regenerate(ScenarioFeedback(corrections=(correction(path, "deny"),)))


def test_a_correction_by_an_ambiguous_name_is_refused() -> None:
    twin = scenario("/z", description="read /a")
    talk = session(
        ScriptedProvider(
            [said([A, twin]), said([twin.model_copy(update={"expected_decision": "deny"})])]
        )
    )
    talk.generate()

    with pytest.raises(UsageError, match="2 scenarios"):
        talk.regenerate(ScenarioFeedback(corrections=(correction("/a", "deny"),)))
    by_id = correction("/a", "deny", scenario_id=twin.id)
    assert [one.id for one in talk.regenerate(ScenarioFeedback(corrections=(by_id,)))] == [twin.id]


def test_contradictory_handwritten_scenarios_are_refused() -> None:
    """One request cannot be allowed and not; what is compatible may stand twice."""
    with pytest.raises(UsageError, match="contradict"):
        session(ScriptedProvider([]), [handwritten("/a", "allow"), handwritten("/a", "deny")])

    session(ScriptedProvider([]), [handwritten("/a", "deny"), handwritten("/a")])


def test_a_tool_annotated_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="twice"):
        ScenarioGeneratorSession("x", [READ, READ], provider=ScriptedProvider([]))


def test_a_second_first_turn_is_refused() -> None:
    talk = session(ScriptedProvider([said([A])]))
    talk.generate()

    with pytest.raises(UsageError, match="regenerate"):
        talk.generate()


def test_a_replacement_with_the_old_mistake_is_repaired() -> None:
    provider = ScriptedProvider([said([A, B]), said([B]), said([scenario("/b", "escalate")])])
    talk = session(provider)
    talk.generate()

    assert named(talk.regenerate(CORRECTED)) == [("read /b", "escalate")]
    assert "was corrected before: the right decision is escalate" in told(provider)


def test_a_replacement_that_contradicts_a_person_is_left_out() -> None:
    own = handwritten("/h")
    provider = ScriptedProvider(
        [said([A, B]), said([scenario("/h"), scenario("/a", "deny"), FIXED])]
    )
    talk = session(provider, [own])
    talk.generate()

    assert talk.regenerate(CORRECTED) == [FIXED]


def test_progress_is_told() -> None:
    told_first: list[str] = []
    told_next: list[str] = []
    talk = session(ScriptedProvider([said([A, B]), said([FIXED])]), on_progress=told_first.append)
    talk.generate()
    talk.regenerate(CORRECTED, told_next.append)

    assert told_first == ["Generating scenarios..."]
    assert told_next == ["Regenerating scenarios (turn 2)..."]


def test_a_discarded_request_that_comes_again_is_called_discarded() -> None:
    """And told the rule that no expectation gets past; also after a session was restored."""
    gone = ScenarioFeedback(discarded_scenarios=(discard("/a"),))
    provider = ScriptedProvider([said([A, B])])
    talk = session(provider)
    talk.generate()
    again = ScriptedProvider([said([A]), said([C]), said([A]), said([])])
    talk = ScenarioGeneratorSession.from_json(talk.to_json(), provider=again)
    talk.regenerate(gone)
    talk = ScenarioGeneratorSession.from_json(talk.to_json(), provider=again)
    talk.regenerate(ScenarioFeedback(notes=("more",)))

    for number in (1, 3):
        assert "was discarded: structural-protected-path always returns deny" in told(again, number)
        assert "was corrected" not in told(again, number)


def test_a_missing_member_is_named_as_the_schema_shows_it() -> None:
    item = {k: v for k, v in json.loads(said([A]))["scenarios"][0].items() if k[0] != "e"}
    provider = ScriptedProvider([json.dumps({"scenarios": [item]}), said([A])])
    session(provider).generate()

    assert "expected_decision: Field required" in told(provider)


def test_a_probe_that_the_model_wrote_itself_is_no_gap() -> None:
    provider = ScriptedProvider([said([A, B]), said([FIXED])])
    talk = session(provider)
    talk.generate()
    talk.regenerate(CORRECTED.model_copy(update={"probe_scenarios": (A, C)}))

    assert '"/c"} -> allow' in told(provider)
    assert '"/a"} -> allow' not in told(provider)


# What contradicts itself, and what is forgotten.


def test_two_expectations_of_one_request_are_asked_about() -> None:
    """Neither is taken for what was meant before the model has said which is."""
    provider = ScriptedProvider([said([A, B, scenario("/a", "deny")]), said([A])])
    talk = session(provider)

    assert [(one.id, one.expected_decision) for one in talk.generate()] == [
        (B.id, B.expected_decision),
        (A.id, "allow"),
    ]
    assert "is the same as scenario 1 ('read /a') and says something else" in told(provider)


def asked_about(*tools: ToolAnnotation, lines: list[str | Exception]) -> tuple[Any, Any]:
    """Return a session about these tools and who answers it."""
    provider = ScriptedProvider(lines)
    return provider, ScenarioGeneratorSession("x", tools, provider=provider)


def test_a_forgotten_tool_is_asked_for_once() -> None:
    """Within the turn; the history holds the set as if it had been there at once."""
    wrote = scenario("/w", tool="write")
    provider, talk = asked_about(READ, WRITE, lines=[said([A]), said([wrote])])

    assert talk.generate() == [A, wrote]
    assert "- no scenario tests files/write" in told(provider)
    assert "The other 1 are kept" in told(provider)
    assert len(json.loads(talk.history[1].content)["scenarios"]) == 2
    assert talk.reports[-1].notes == ()


@pytest.mark.parametrize("second", [said([A]), "No.", TransportError("down", hint="x")])
def test_a_tool_that_stays_untested_is_noted(second: str | Exception) -> None:
    provider, talk = asked_about(READ, WRITE, lines=[said([A]), second, second, second])

    assert talk.generate() == [A]
    assert "no scenario tests files/write" in talk.reports[-1].notes
    assert len(provider.requests) <= 3


def test_a_tool_that_a_person_tests_is_not_forgotten() -> None:
    provider = ScriptedProvider([said([A])])
    own = [handwritten("/w", tool="write")]
    talk = ScenarioGeneratorSession("x", (READ, WRITE), own, provider=provider)

    assert talk.generate()[1:] == [A]
    assert len(provider.requests) == 1


def test_a_contradiction_that_stays_leaves_both_out() -> None:
    both = said([A, scenario("/a", "deny")])
    talk = session(ScriptedProvider([said([A, B, scenario("/a", "deny")]), both, both]))

    assert talk.generate() == [B]
    assert "left out after repairs" in talk.reports[-1].notes[-1]
