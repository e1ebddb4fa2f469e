"""Scenarios turn by turn: what is sent, what is returned, what bad replies cost."""

import json
import re
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
    NoProgressError,
    ReplyFormatError,
    TransportError,
    UsageError,
)
from pytest_regen.sessions import (
    ItemSession,
    ScenarioFeedback,
    ScenarioGeneratorSession,
    TestScenario,
    generate_scenarios,
    generate_verify_repair,
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


def test_handwritten_come_first_then_what_is_new() -> None:
    """Generated scenarios are tagged; one that asks what another one asks is left out.

    Requirement 1, generate: handwritten, then what is unlike them.
    """
    own, twin = handwritten("/a"), scenario("/b", "deny", description="twin")
    talk = session(ScriptedProvider([said([A, B, twin])]), [own])

    assert talk.generate() == [own, B]
    assert [note.endswith("left out") for note in talk.reports[-1].notes] == [True, True]
    assert "'twin' asks what 'read /b' asks" in talk.reports[-1].notes[1]


def test_messages_grow_and_the_system_prompt_stays() -> None:
    """One message, then three; the last one carries the correction; the schema stands once.

    Requirement 1, decisions 1 and 2: the system prompt is set once, feedback is a message.
    Requirement 1, decision 6: replacement, not accumulation; the caller merges.
    """
    steps: list[str] = []
    provider = ScriptedProvider([said([A, B]), said([FIXED])])
    talk = session(provider, [handwritten("/h")], on_progress=steps.append)
    counts = [talk.turn_count]
    talk.generate()
    counts.append(talk.turn_count)

    assert talk.regenerate(CORRECTED) == [FIXED]
    assert [*counts, talk.turn_count] == [0, 1, 2]
    assert steps == ["Generating scenarios...", "Regenerating scenarios (turn 2)..."]
    roles = [[message.role for message in one.messages] for one in provider.requests]
    assert roles == [["user"], ["user", "assistant", "user"]]
    assert {one.system for one in provider.requests} == {"Be exact."}
    line = '"read /b" [files/read {"path":"/b"}]: you said \'deny\', correct decision is \'escalate'
    assert line in told(provider)
    assert ["JSON Schema" in told(provider, number) for number in (0, 1)] == [True, False]
    with pytest.raises(UsageError, match="regenerate"):
        talk.generate()


def test_an_oracle_has_a_wrong_scenario_replaced_as_any_item() -> None:
    """What is right stays, and its words go to the model."""
    provider = ScriptedProvider([said([A, B]), said([FIXED])])

    report = generate_verify_repair(
        session(provider), lambda one: "ask for approval" if one == B else None
    )

    assert (report.passed, report.items, report.repairs) == (True, (A, FIXED), 1)
    assert "ask for approval" in told(provider)


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
    """What cannot be is refused at once: a tool twice, people who contradict each other."""
    provider, own = ScriptedProvider([]), handwritten("/h")

    assert ScenarioGeneratorSession("x", [], [own], provider=provider).generate() == [own]
    with pytest.raises(UsageError, match="twice"):
        ScenarioGeneratorSession("x", [READ, READ], provider=provider)
    with pytest.raises(UsageError, match="contradict"):
        session(provider, [own, handwritten("/h", "allow")])


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


def test_an_empty_list_is_no_set() -> None:
    """The model is asked again; in the end it is an error, not an empty success."""
    provider = ScriptedProvider([said([])] * 3)

    with pytest.raises(ReplyFormatError, match="the reply holds no scenario"):
        session(provider).generate()

    assert "the list is empty\nno scenario tests files/read" in told(provider)
    assert "of your 0" not in told(provider)


def test_a_replacement_with_the_old_mistake_is_repaired() -> None:
    provider = ScriptedProvider([said([A, B]), said([B]), said([scenario("/b", "escalate")])])
    talk = session(provider)
    talk.generate()

    assert named(talk.regenerate(CORRECTED)) == [("read /b", "escalate")]
    assert "was corrected before: the right decision is escalate" in told(provider)


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


@pytest.mark.parametrize("meant", [[A], [A, scenario("/a", "deny")]], ids=len)
def test_two_expectations_of_one_request_are_asked_about(meant: list[TestScenario]) -> None:
    """Neither is taken before the model has said which is meant, or where it never does."""
    first = said([A, B, scenario("/a", "deny")])
    provider = ScriptedProvider([first, said(meant), said(meant)])
    talk = session(provider)

    assert talk.generate() == ([B, A] if len(meant) == 1 else [B])
    assert "is the same as scenario 1 ('read /a') and says something else" in told(provider)
    assert any("left out after repairs" in one for one in talk.reports[-1].notes) == (meant != [A])


def test_a_forgotten_tool_is_asked_for_once() -> None:
    """Within the turn; the history holds the set as if it had been there at once."""
    wrote = scenario("/w", tool="write")
    provider = ScriptedProvider([said([A]), said([wrote])])
    talk = ScenarioGeneratorSession("x", (READ, WRITE), provider=provider)

    assert talk.generate() == [A, wrote]
    assert "- no scenario tests files/write" in told(provider)
    assert "The other 1 are kept" in told(provider)
    assert len(json.loads(talk.history[1].content)["scenarios"]) == 2
    assert talk.reports[-1].notes == ()


@pytest.mark.parametrize("second", [said([A]), "No.", TransportError("down", hint="x")])
def test_a_tool_that_stays_untested_is_noted(second: str | Exception) -> None:
    provider = ScriptedProvider([said([A]), second, second, second])
    talk = ScenarioGeneratorSession("x", (READ, WRITE), provider=provider)

    assert talk.generate() == [A]
    assert "no scenario tests files/write" in talk.reports[-1].notes
    assert len(provider.requests) <= 3


def test_a_tool_that_a_person_tests_is_not_forgotten() -> None:
    provider = ScriptedProvider([said([A])])
    own = [handwritten("/w", tool="write")]
    talk = ScenarioGeneratorSession("x", (READ, WRITE), own, provider=provider)

    assert talk.generate()[1:] == [A]
    assert len(provider.requests) == 1


def generating(*replies: str) -> tuple[ScriptedProvider, ScenarioGeneratorSession]:
    """Return a session about scenarios and who answers."""
    provider = ScriptedProvider(replies)
    return provider, ScenarioGeneratorSession("Be exact.", TOOLS[:1], provider=provider)


def reworded(bad: str) -> list[str]:
    """Return three replies that are as bad; the very same one would be sent back once."""
    return [f"So:\n{bad}", f"Then:\n{bad}", bad]


@pytest.mark.parametrize("bad", ["Here are some.", '{"scenarios": {"read": "allow"}}'])
def test_no_correction_is_lost_in_a_turn_that_failed(bad: str) -> None:
    """It is told again in the next turn, whole: the failed one has told nothing."""
    provider, talk = generating(said([A, B]), *reworded(bad), said([FIXED]))
    talk.generate()
    with pytest.raises(ReplyFormatError):
        talk.regenerate(CORRECTED)

    assert talk.regenerate(CORRECTED) == [FIXED]
    assert provider.requests[1].messages == provider.requests[4].messages
    assert talk.turn_count == 2


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ({"description": ""}, "description: it is empty"),
        ({"request": {"serverName": "web", "toolName": "read"}}, "there is no tool web/read"),
        ({"request": {"serverName": "files", "toolName": "read"}}, "'path' is a required property"),
        ({"expectedDecision": None}, "expected_decision: Field required"),
        ({"expectedDecision": "not-allow"}, "'not-allow' is an expectation of handwritten"),
    ],
    ids=str,
)
def test_one_bad_scenario_costs_one_scenario(fault: dict[str, Any], problem: str) -> None:
    """It alone is asked for again; ``None`` stands for a field that is missing."""
    (item,) = json.loads(said([scenario("/x")]))["scenarios"]
    changed = {key: value for key, value in (item | fault).items() if value is not None}
    first = json.dumps({"scenarios": [*json.loads(said([A]))["scenarios"], changed]})
    provider, talk = generating(first, said([C]))

    assert talk.generate() == [A, C]
    asked = provider.requests[1].messages[-1].content
    assert "1 of your 2 scenarios cannot be used" in asked
    assert problem in asked
    assert json.loads(talk.history[1].content)["scenarios"][1]["description"] == "read /c"


def test_a_draft_is_no_part_of_the_answer() -> None:
    draft = [scenario("/a", "deny"), scenario("/x", tool="unknown")]
    provider, talk = generating(
        f'The form is {{"scenarios": []}}.\nFirst: {said(draft[:1])}\n{said(draft[1:])}\n'
        f"Better: {said([A, B, C])}"
    )

    assert talk.generate() == [A, B, C]
    assert len(provider.requests) == 1


def test_a_correction_of_what_does_not_exist_is_an_error() -> None:
    """It would be lost. With its request it says what it is about."""
    _, talk = generating(said([A, B]), said([scenario("/nowhere", "deny")]))
    talk.generate()
    lost = correction("/nowhere", "deny", scenario_id="sha256:0")

    with pytest.raises(UsageError, match="no scenario"):
        talk.regenerate(ScenarioFeedback(corrections=(lost,)))
    told = lost.model_copy(update={"request": scenario("/nowhere").request, "scenario_id": None})
    talk.regenerate(ScenarioFeedback(corrections=(told,)))

    assert talk.turn_count == 2


def test_a_list_without_the_object_around_it_is_a_set() -> None:
    """Whose scenario it is is not for a model to say: ``source`` is left out."""
    (item,) = json.loads(said([A]))["scenarios"]
    _, talk = generating(json.dumps([item | {"source": "handwritten", "id": 7}]))

    assert talk.generate() == [A]


def correcting(*corrected: tuple[str, str]) -> ScenarioFeedback:
    """Return corrections, each of a path to a decision."""
    return ScenarioFeedback(corrections=tuple(correction(*one) for one in corrected))


def after_the_first_turn(
    *later: str, own: Iterable[TestScenario] = ()
) -> tuple[ScriptedProvider, ScenarioGeneratorSession]:
    """Return a session that gave A and B, and who answers."""
    provider = ScriptedProvider([said([A, scenario("/b")]), *later])
    session = ScenarioGeneratorSession("Be exact.", TOOLS[:1], tuple(own), provider=provider)
    session.generate()
    return provider, session


def last(provider: ScriptedProvider) -> str:
    return provider.requests[-1].messages[-1].content


def test_a_correction_that_goes_back_is_told() -> None:
    """Rules change; the last word about a scenario counts, also for what is taken of a reply."""
    back = scenario("/a", "deny")
    other = scenario("/b", "deny")
    provider, session = after_the_first_turn(
        said([back]), said([scenario("/a", "escalate")]), said([back, other])
    )

    session.regenerate(correcting(("/a", "deny")))
    session.regenerate(correcting(("/a", "escalate")))
    found = session.regenerate(correcting(("/a", "deny"), ("/b", "deny")))

    assert found == [back, other]
    assert "you said 'escalate', correct decision is 'deny'" in last(provider)
    assert '"/b"' in last(provider)


def test_a_correction_that_stands_is_not_told_again() -> None:
    """Neither alone nor beside another one, nor after the session was carried away."""
    right, other = scenario("/a", "deny"), scenario("/b", "deny")
    provider, session = after_the_first_turn(said([right]), said([other]))
    session.regenerate(correcting(("/a", "deny")))
    restored = ScenarioGeneratorSession.from_json(
        json.loads(json.dumps(session.to_json())), provider=provider
    )

    with pytest.raises(NoProgressError):
        restored.regenerate(correcting(("/a", "deny")))
    session.regenerate(correcting(("/a", "deny"), ("/b", "deny")))

    assert '"/a"' not in last(provider)


OWN = handwritten("/h", "deny")


@pytest.mark.parametrize(
    ("feedback", "problem"),
    [
        ({"untested_tools": (("nope", "read"),)}, "knows no tool nope/read"),
        (
            {"corrections": (correction("/a", "deny"), correction("/a", "escalate"))},
            "is corrected to 'deny' and to 'escalate'",
        ),
        ({"corrections": (correction("/a", "allow"),)}, "to 'allow', which is what it expects"),
        ({"discarded_scenarios": (discard("/h"),)}, "handwritten and cannot be discarded"),
        ({"corrections": (correction("/h", "allow"),)}, "handwritten and cannot be corrected"),
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
    """Nor is it a reason for a turn; a probe that agrees with a person is a hint."""
    provider, session = after_the_first_turn(said([]), own=[handwritten("/h")])

    with pytest.raises(UsageError, match="nothing to replace"):
        session.regenerate(ScenarioFeedback(notes=("", " \n")))
    probes = (scenario("/h", "deny"),)
    session.regenerate(ScenarioFeedback(notes=(" ", "too few edges"), probe_scenarios=probes))

    assert '"/h"} -> deny' in last(provider)
    assert "found about your scenarios:\n\n- too few edges\n\n" in last(provider)


def test_what_a_caller_does_to_scenarios_changes_nothing_in_the_session() -> None:
    own = handwritten("/h")
    provider = ScriptedProvider([said([A, scenario("/b")]), said([scenario("/a", "deny")])])
    session = ScenarioGeneratorSession("x", [READ], [own], provider=provider)
    found = session.generate()
    before = session.to_json()

    for one in (own, *found):
        one.request.arguments.clear()

    assert session.to_json() == before
    (fresh,) = session.regenerate(correcting(("/a", "deny")))
    fresh.request.arguments.clear()
    assert '[files/read {"path":"/a"}]' in last(provider)
    assert "/a" in json.dumps(session.to_json()["memory"]["items"])


ONE, NEXT, OTHER = scenario("/a"), scenario("/b", tool="write"), scenario("/c", tool="write")
TWO = TOOLS[:2]
CUT = said([ONE, NEXT])[:-2] + ", "
"""Two scenarios whole, and the list open."""


def generated(*replies: Any) -> tuple[ScenarioGeneratorSession, ScriptedProvider]:
    """Return a session that has generated from ``replies``, the first of which was cut."""
    first, *rest = replies
    provider = ScriptedProvider([Reply(first, "max_tokens"), *rest])
    session = ScenarioGeneratorSession("Be exact.", TWO, provider=provider)
    session.generate()
    return session, provider


def known(session: ScenarioGeneratorSession) -> list[str]:
    return [one["description"] for one in json.loads(session.history[1].content)["scenarios"]]


REST = said([OTHER])


@pytest.mark.parametrize(
    ("cut", "rest"),
    [(CUT, REST), (CUT + '{"descri', f"Here are the others:\n```json\n{REST}\n```")],
    ids=["between items", "within one"],
)
def test_a_rest_in_a_set_of_its_own_is_put_to_what_stood_before(cut: str, rest: str) -> None:
    """Nothing before the cut is lost, nothing is paid twice, and a note says what happened."""
    session, provider = generated(cut, rest)

    assert known(session) == [one.description for one in (ONE, NEXT, OTHER)]
    assert len(provider.requests) == 2
    assert session.reports[-1].notes == ("the reply was cut off: 3 whole scenarios were kept",)


def test_a_set_begun_again_is_taken_as_it_is() -> None:
    """It holds what stood before the cut; the history has it as it was written."""
    whole = said([ONE, NEXT, OTHER])
    session, _ = generated(whole[:200], whole)

    assert session.history[1].content == whole
    assert not session.reports[-1].notes


@pytest.mark.parametrize("stop", ["max_tokens", "model_context_window_exceeded"])
def test_the_complete_items_of_a_reply_that_ends_nowhere_are_kept(stop: str) -> None:
    lists = [Reply(CUT, stop), *[Reply(REST[:-2] + ", ", stop)] * 3]
    provider = ScriptedProvider(lists)
    session = ScenarioGeneratorSession("Be exact.", TWO, provider=provider)
    session.generate()

    assert known(session)[:2] == ["read /a", "write /b"]
    assert len(known(session)) == (3 if stop == "max_tokens" else 2)
    assert session.turn_count == 1


def test_a_cut_reply_without_a_complete_item_is_an_error() -> None:
    provider = ScriptedProvider([Reply(CUT[:60], "model_context_window_exceeded")])
    session = ScenarioGeneratorSession("Be exact.", TWO, provider=provider)

    with pytest.raises(ReplyFormatError):
        session.generate()
    assert not session.history


def test_what_a_cut_reply_still_lacks_is_asked_for() -> None:
    """In the caller's words; of any items."""
    cut = Reply('{"items": [{"n": 0}, {"n": 1}, ', "model_context_window_exceeded")
    provider = ScriptedProvider([cut, '{"items": [{"n": 2}]}'])
    session = ItemSession(
        "Count.",
        dict[str, int],
        key=lambda one: one["n"],
        provider=provider,
        lacks=lambda items: [f"no {n}" for n in range(3) if {"n": n} not in items],
    )

    assert session.generate() == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert "- no 2" in provider.requests[-1].messages[-1].content
