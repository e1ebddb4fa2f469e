"""The endpoint by what it answers: a first turn, a second one, and what a client may send."""

import json
from typing import Any

import pytest
from starlette.testclient import TestClient
from subject_flow import (
    CHOICE,
    MESSAGE,
    PLACE,
    WORDS,
    Model,
    app_of,
    asking,
    client_of,
    second_turn,
    writing,
)

PATH = "/api/agents/generate-subject"


def snake(value: Any) -> Any:
    """Return a body with every name in snake_case."""
    if isinstance(value, dict):
        return {
            "".join(f"_{c.lower()}" if c.isupper() else c for c in key): snake(inner)
            for key, inner in value.items()
        }
    return [snake(inner) for inner in value] if isinstance(value, list) else value


def test_a_first_turn_asks() -> None:
    """It answers the questions, the inferences, a conversation and a seal."""
    answer = client_of(Model(PLACE)).post(PATH, json={"message": MESSAGE})

    body = answer.json()
    assert answer.status_code == 200
    assert body["needs_clarification"] is True
    assert body["clarification_questions"] == [PLACE]
    assert body["inferred_context"]["detected_scope"] == "local"
    assert body["interactionId"].startswith("conv_")
    assert body["seal"]


def test_a_plain_description_is_answered_at_once() -> None:
    """Where nothing has to be asked, the outputs come on the first turn, without a seal."""
    body = client_of(Model()).post(PATH, json={"message": "Congress needs to act"}).json()

    assert body["needs_clarification"] is False
    assert body["clarification_questions"] == []
    assert body["subject_line"] == writing()["subject_line"]
    assert body["topics"] == writing()["topics"]
    assert "seal" not in body


def test_a_second_turn_reaches_the_model_with_everything() -> None:
    """The prompt of the second turn holds description, question, inference and answer."""
    model = Model(PLACE)
    client = client_of(model)
    first = client.post(PATH, json={"message": MESSAGE}).json()

    answer = client.post(PATH, json=second_turn(first, {"location": "San Francisco, CA"}))

    assert answer.json()["subject_line"] == writing()["subject_line"]
    assert answer.json()["interactionId"] == first["interactionId"]
    for said in (MESSAGE, PLACE["question"], "San Francisco, CA", "Rent is decided"):
        assert said in model.prompts[-1]


@pytest.mark.parametrize("spelled", [lambda body: body, snake], ids=["camelCase", "snake_case"])
def test_names_are_read_in_either_case(spelled: Any) -> None:
    """A body in snake_case means what the same in camelCase means."""
    client = client_of(Model(PLACE, CHOICE))
    first = client.post(PATH, json={"message": MESSAGE}).json()
    body = spelled(second_turn(first, {"location": "Austin, TX", "framing": "no_cap"}))

    assert client.post(PATH, json=body).status_code == 200


def test_the_older_name_of_the_context_is_read() -> None:
    """`clarificationContext` may leave the description to `message`."""
    client = client_of(Model(PLACE))
    first = client.post(PATH, json={"message": MESSAGE}).json()
    body = second_turn(first, {"location": "Austin, TX"})
    context = body.pop("conversationContext")
    del context["originalDescription"]

    assert client.post(PATH, json={**body, "clarificationContext": context}).status_code == 200


def test_skipping_everything_still_writes() -> None:
    """No answers at all, and the model is told that the questions were skipped."""
    model = Model(PLACE, WORDS)
    client = client_of(model)
    first = client.post(PATH, json={"message": MESSAGE}).json()

    answer = client.post(PATH, json=second_turn(first, {}))

    assert answer.status_code == 200
    assert "(User skipped clarification)" in model.prompts[-1]
    assert MESSAGE in model.prompts[-1]


@pytest.mark.filterwarnings("ignore:clarification_answers without:DeprecationWarning")
def test_legacy_answers_work_and_are_called_deprecated() -> None:
    """Answers without a context are taken; the answer says that they are on their way out."""
    answer = client_of(lambda _: json.dumps(writing())).post(
        PATH, json={"message": MESSAGE, "interactionId": "x", "clarificationAnswers": {"a": "b"}}
    )

    assert answer.status_code == 200
    assert answer.headers["deprecation"] == "true"


def test_the_context_makes_legacy_answers_void() -> None:
    """With both, the model is sent what it would be sent with the context alone."""
    model = Model(PLACE)
    client = client_of(model)
    first = client.post(PATH, json={"message": MESSAGE}).json()
    body = second_turn(first, {"location": "Austin, TX"})

    client.post(PATH, json=body)
    answer = client.post(PATH, json={**body, "clarificationAnswers": {"location": "Boston, MA"}})

    assert model.prompts[-1] == model.prompts[-2]
    assert "deprecation" not in answer.headers


def test_the_same_second_turn_may_be_sent_again() -> None:
    """Whoever lost the connection sends the same once more and is answered."""
    client = client_of(Model(PLACE))
    first = client.post(PATH, json={"message": MESSAGE}).json()
    body = second_turn(first, {"location": "Austin, TX"})

    assert [client.post(PATH, json=body).status_code for _ in range(3)] == [200] * 3


def test_a_caller_cannot_name_a_conversation_before_it_starts() -> None:
    """The first turn makes the name, whatever was sent as one."""
    sent = {"message": MESSAGE, "interactionId": "mine"}

    body = client_of(Model(PLACE)).post(PATH, json=sent).json()

    assert body["interactionId"] != "mine"


def test_two_servers_with_one_key_share_a_conversation() -> None:
    """Nothing is kept in the process: another one answers the second turn."""
    first = client_of(Model(PLACE)).post(PATH, json={"message": MESSAGE}).json()

    answer = client_of(Model(PLACE)).post(PATH, json=second_turn(first, {"location": "Austin, TX"}))

    assert answer.status_code == 200


def test_an_agent_of_ones_own_is_enough() -> None:
    """Whatever has `turn` can be served."""
    from pytest_regen.context import ClarificationRequest, Generate
    from pytest_regen.server import create_app

    class Echo:
        def turn(self, request: ClarificationRequest) -> Generate:
            return Generate(subject_line=request.message)

    client = TestClient(create_app(Echo(), seal="off"), base_url="http://localhost:8000")

    assert client.post(PATH, json={"message": "as said"}).json()["subject_line"] == "as said"


def test_the_application_holds_nothing_between_turns() -> None:
    """A thousand flows leave no more than one: no state grows with them."""
    app = app_of(lambda _: json.dumps(asking(PLACE)))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        ids = {
            client.post(PATH, json={"message": f"issue {n}"}).json()["interactionId"]
            for n in range(50)
        }

    assert len(ids) == 50
    assert not vars(app.state)["_state"]
