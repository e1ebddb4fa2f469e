"""The whole flow, offline: what the model answers is recorded, and what it is told is checked.

Each test has a cassette (what was sent and answered) and a transcript (what each turn meant) of its
own, which ``record.py`` makes.
"""

from pytest_regen.context import Ask, ClarifyingAgent, Generate
from pytest_regen.testing import check_stateless_agent, verify_transcript

RENT = "rent is out of control in my city"


def test_questions_are_answered(clarification_flow):
    """Turn 1 asks for the city; turn 2 knows issue, question, inferences and answer."""
    flow = clarification_flow(ClarifyingAgent)

    turn = flow.start(RENT)
    written = flow.answer({"location": "San Francisco, CA"})

    assert isinstance(turn, Ask)
    assert turn.questions[0].location_level == "city"
    assert isinstance(written, Generate)
    assert written.inferred_context.detected_location == "San Francisco, CA"
    prompt = flow.transcript.turns[1].calls[0].prompt
    for part in (RENT, turn.questions[0].question, "San Francisco, CA", "No city is named"):
        assert part in prompt


def test_questions_are_skipped(clarification_flow):
    """Whoever skips gets a text all the same: the issue and the inferences are still there."""
    flow = clarification_flow(ClarifyingAgent)

    flow.start(RENT)
    written = flow.skip()

    assert isinstance(written, Generate)
    assert "(User skipped clarification)" in flow.transcript.turns[1].calls[0].prompt


def test_one_of_two_questions_is_answered(clarification_flow):
    """A choice with words of one's own; the other question is shown as skipped."""
    flow = clarification_flow(ClarifyingAgent)

    turn = flow.start("tuition goes up again and nobody explains why")
    written = flow.answer({"framing": {"kind": "choice", "selected": ["no_reason"]}})

    assert isinstance(turn, Ask)
    assert [question.type for question in turn.questions] == ["multiple_choice", "open_text"]
    assert isinstance(written, Generate)
    assert "(skipped)" in flow.transcript.turns[1].calls[0].prompt


def test_a_description_may_say_enough(clarification_flow):
    """The target is named, and the level of power with it: no question is asked."""
    flow = clarification_flow(ClarifyingAgent)

    written = flow.start("Amazon workers are pushed past what a body can take")

    assert isinstance(written, Generate)
    assert written.inferred_context.detected_target_type == "corporate"


def test_state_law_asks_for_a_state(clarification_flow):
    """What a legislature decides is asked at the level of the state."""
    flow = clarification_flow(ClarifyingAgent)

    turn = flow.start("rent control laws have no teeth")

    assert isinstance(turn, Ask)
    assert turn.questions[0].location_level == "state"


def test_a_model_that_asks_again_is_told_to_write(clarification_flow):
    """Turn 2 asks; asked once more, with everything it was told before, the model writes."""
    flow = clarification_flow(ClarifyingAgent)

    flow.start("6th street is insane")
    written = flow.answer({"location": "Austin, TX"})

    assert isinstance(written, Generate)
    first, again = (call.prompt for call in flow.transcript.turns[1].calls)
    assert first in again


def test_the_agent_keeps_nothing():
    """No leaf is lost, nothing leaks, in the same process, a fresh one, and among others."""
    check_stateless_agent(ClarifyingAgent)


def test_prompts_are_those_of_the_transcripts(request):
    """Every prompt is made again from its transcript: no model, no cassette, no luck."""
    transcripts = sorted((request.path.parent / "transcripts").rglob("*.yaml"))

    assert transcripts
    for transcript in transcripts:
        verify_transcript(transcript, ClarifyingAgent)
