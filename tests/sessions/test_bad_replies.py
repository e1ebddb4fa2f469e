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
ANSWERS = {
    "prose": "I would say one.",
    "two that do not fit": '{"m": 1}\n{"k": 2}',
    "another schema": '{"n": "one"}',
    "a wrapper": f'{{"answer": {GOOD}}}',
    "an empty object": "{}",
    "blank": " \n ",
}
SETS = {
    "prose": "Here are the scenarios you asked for.",
    "two that do not fit": '{"tests": []}\n{"scenario": {}}',
    "another schema": '{"scenarios": "none"}',
    "another form of items": '{"scenarios": {"read": "allow"}}',
    "an empty object": "{}",
    "blank": " \n ",
}
any_answer = pytest.mark.parametrize("bad", ANSWERS.values(), ids=ANSWERS)
any_set = pytest.mark.parametrize("bad", SETS.values(), ids=SETS)


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


@any_answer
def test_bad_answers_to_the_end_are_an_error_and_no_turn(bad: str) -> None:
    provider, talk = answering(GOOD, *reworded(bad), GOOD)
    talk.ask("How many?")

    with pytest.raises(ReplyFormatError) as caught:
        talk.ask("And now?")
    talk.ask("And then?")

    assert caught.value.text == bad
    assert [len(request.messages) for request in provider.requests] == [1, 3, 5, 7, 3]
    assert [message.content for message in talk.history[2:]] == ["And then?", GOOD]


@any_set
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
    "fault",
    [
        {"description": ""},
        {"request": {"serverName": "files", "arguments": {"path": "/x"}}},
        {"request": {"serverName": "web", "toolName": "read", "arguments": {"path": "/x"}}},
        {"request": {"serverName": "files", "toolName": "fetch", "arguments": {"path": "/x"}}},
        {"request": {"serverName": "files", "toolName": "read", "arguments": ["/x"]}},
        {
            "request": {
                "serverName": "files",
                "toolName": "read",
                "arguments": {"path": "/x", "mode": "TEXT"},
            }
        },
        {"expectedDecision": None},
        {"expectedDecision": "not-allow"},
    ],
    ids=str,
)
def test_one_bad_scenario_costs_one_scenario(fault: dict[str, Any]) -> None:
    """It alone is asked for again; ``None`` stands for a field that is missing."""
    (item,) = json.loads(said([scenario("/x")]))["scenarios"]
    changed = {key: value for key, value in (item | fault).items() if value is not None}
    first = json.dumps({"scenarios": [*json.loads(said([A]))["scenarios"], changed]})
    provider, talk = generating(first, said([C]))

    assert talk.generate() == [A, C]
    assert "1 of your 2 scenarios cannot be used" in provider.requests[1].messages[-1].content
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


@pytest.mark.parametrize("name", [{"scenario_description": "no such"}, {"scenario_id": "sha256:0"}])
def test_a_correction_of_what_does_not_exist_is_an_error(name: dict[str, str]) -> None:
    """By name or by id: it would be lost. With its request it says what it is about."""
    _, talk = generating(said([A, B]), said([scenario("/nowhere", "deny")]))
    talk.generate()
    lost = correction("/nowhere", "deny", **name)

    with pytest.raises(UsageError, match="no scenario"):
        talk.regenerate(ScenarioFeedback(corrections=(lost,)))
    told = lost.model_copy(update={"request": scenario("/nowhere").request, "scenario_id": None})
    talk.regenerate(ScenarioFeedback(corrections=(told,)))

    assert talk.turn_count == 2
