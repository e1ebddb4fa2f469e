"""What models answer instead of an answer: repaired or refused, never remembered."""

import json
from typing import Any

import pytest
from pydantic import BaseModel
from scenario_doubles import TOOLS, correction, said, scenario

from pytest_regen.errors import ReplyFormatError, UsageError
from pytest_regen.sessions import GeneratorSession, ScenarioFeedback, ScenarioGeneratorSession
from pytest_regen.turns import ScriptedProvider

A, B, C = scenario("/a"), scenario("/b", "deny"), scenario("/c")
FIXED = scenario("/b", "escalate")
CORRECTED = ScenarioFeedback(corrections=(correction("/b", "escalate"),))


class Answer(BaseModel):
    """What replies are to be."""

    n: int


GOOD = '{"n": 1}'


def answering(*replies: str) -> tuple[ScriptedProvider, GeneratorSession[Answer]]:
    """Return a session about numbers and who answers."""
    provider = ScriptedProvider(replies)
    return provider, GeneratorSession("You count.", Answer, provider=provider)


def generating(*replies: str) -> tuple[ScriptedProvider, ScenarioGeneratorSession]:
    """Return a session about scenarios and who answers."""
    provider = ScriptedProvider(replies)
    return provider, ScenarioGeneratorSession("Be exact.", TOOLS[:1], provider=provider)


def reworded(bad: str) -> list[str]:
    """Return three replies that are as bad; the very same one would be sent back once."""
    return [f"So:\n{bad}", f"Then:\n{bad}", bad]


@pytest.mark.parametrize("bad", ["I would say one.", f'{{"answer": {GOOD}}}', " \n "])
def test_bad_answers_to_the_end_are_an_error_and_no_turn(bad: str) -> None:
    provider, talk = answering(GOOD, *reworded(bad), GOOD)
    talk.ask("How many?")

    with pytest.raises(ReplyFormatError) as caught:
        talk.ask("And now?")
    talk.ask("And then?")

    assert caught.value.text == bad
    assert [len(request.messages) for request in provider.requests] == [1, 3, 5, 7, 3]
    assert [message.content for message in talk.history[2:]] == ["And then?", GOOD]


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


def test_whose_scenario_it_is_is_not_for_a_model_to_say() -> None:
    """``source`` and whatever else it adds is left out."""
    (item,) = json.loads(said([A]))["scenarios"]
    _, talk = generating(json.dumps({"scenarios": [item | {"source": "handwritten", "id": 7}]}))

    (found,) = talk.generate()

    assert found == A
    assert not found.is_handwritten


def test_a_list_without_the_object_around_it_is_a_set() -> None:
    provider, talk = generating(json.dumps(json.loads(said([A, B]))["scenarios"]))

    assert talk.generate() == [A, B]
    assert len(provider.requests) == 1


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
