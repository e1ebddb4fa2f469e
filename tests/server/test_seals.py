"""Seals at the endpoint: what a first turn said comes back unchanged, in time, in its place."""

from typing import Any

import pytest
from starlette.testclient import TestClient
from subject_flow import CHOICE, KEY, MESSAGE, PLACE, Model, client_of, second_turn

from pytest_regen.context import ClarifyingAgent, Sealer
from pytest_regen.errors import UsageError
from pytest_regen.server import create_app
from pytest_regen.turns import CallableProvider

PATH = "/api/agents/generate-subject"


@pytest.fixture(scope="module")
def client() -> TestClient:
    """Return a client of an application that seals."""
    return client_of(Model(PLACE, CHOICE))


@pytest.fixture
def body(client: TestClient) -> dict[str, Any]:
    """Return a good second turn."""
    first = client.post(PATH, json={"message": MESSAGE}).json()
    return second_turn(first, {"location": "Austin, TX"})


FORGED: dict[str, Any] = {
    "description": lambda c: c.update(originalDescription="free Wi-Fi"),
    "question": lambda c: c["questionsAsked"][0].update(question="Which planet?"),
    "level": lambda c: c["questionsAsked"][0].update(location_level="country"),
    "option": lambda c: c["questionsAsked"][1]["options"][0].update(label="obey"),
    "dropped question": lambda c: c["questionsAsked"].pop(),
    "order": lambda c: c["questionsAsked"].reverse(),
    "reasoning": lambda c: c["inferredContext"].update(reasoning="## System"),
    "confidence": lambda c: c["inferredContext"].update(scope_confidence=0.81),
    "scope": lambda c: c["inferredContext"].update(detected_scope=None),
}


@pytest.mark.parametrize("leaf", FORGED)
def test_a_forged_context(client: TestClient, body: dict[str, Any], leaf: str) -> None:
    """403 CONTEXT_TAMPERED, whichever leaf of the first turn was changed."""
    FORGED[leaf](body["conversationContext"])

    answer = client.post(PATH, json=body)

    assert (answer.status_code, answer.json()["code"]) == (403, "CONTEXT_TAMPERED")


def test_answers_may_change(client: TestClient, body: dict[str, Any]) -> None:
    """Between the turns the answers are the caller's."""
    body["conversationContext"]["answers"] = {"framing": "no_cap"}

    assert client.post(PATH, json=body).status_code == 200


@pytest.mark.parametrize("seal", [None, ""])
def test_no_seal(client: TestClient, body: dict[str, Any], seal: str | None) -> None:
    """403 CONTEXT_UNSEALED: a first turn that never happened cannot be invented."""
    answer = client.post(PATH, json={**body, "seal": seal})

    assert (answer.status_code, answer.json()["code"]) == (403, "CONTEXT_UNSEALED")


def test_a_seal_of_another_conversation(client: TestClient, body: dict[str, Any]) -> None:
    """403 CONTEXT_MOVED where the seal is good but belongs elsewhere."""
    other = client.post(PATH, json={"message": MESSAGE}).json()

    answer = client.post(PATH, json={**body, "interactionId": other["interactionId"]})

    assert (answer.status_code, answer.json()["code"]) == (403, "CONTEXT_MOVED")


def test_a_foreign_key(body: dict[str, Any]) -> None:
    """403 CONTEXT_FOREIGN_KEY from a server that does not know the key."""
    client = client_of(Model(PLACE), seal=Sealer({"other": b"a key that this server never saw"}))

    answer = client.post(PATH, json=body)

    assert (answer.status_code, answer.json()["code"]) == (403, "CONTEXT_FOREIGN_KEY")


def test_an_old_seal() -> None:
    """403 CONTEXT_EXPIRED once the time is over."""
    now = [1_700_000_000.0]
    sealer = Sealer({"test": KEY}, max_age=60, clock=lambda: now[0])
    client = client_of(Model(PLACE), seal=sealer)
    first = client.post(PATH, json={"message": MESSAGE}).json()
    now[0] += 62

    answer = client.post(PATH, json=second_turn(first, {}))

    assert (answer.status_code, answer.json()["code"]) == (403, "CONTEXT_EXPIRED")


def test_without_seals_everything_is_believed() -> None:
    """`seal="off"` is a choice: a context that nobody made is taken."""
    client = client_of(Model(PLACE), seal="off")
    first = client.post(PATH, json={"message": MESSAGE}).json()
    body = second_turn(first, {"location": "Austin, TX"})
    body["conversationContext"]["inferredContext"]["reasoning"] = "mine"

    assert "seal" not in first
    assert client.post(PATH, json=body).status_code == 200


REQUIREMENT: dict[str, Any] = {
    "message": "rent is out of control in my city",
    "interactionId": "xxx",
    "clarificationContext": {
        "questionsAsked": [PLACE],
        "inferredContext": {"detected_scope": "local", "reasoning": "No city is named."},
        "answers": {"location": "San Francisco, CA"},
    },
}


def test_without_a_key_the_body_of_the_requirement_is_taken(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A second turn as it stands there needs no seal; the log warns that nobody vouches for it."""
    model = Model(PLACE)
    agent = ClarifyingAgent(CallableProvider(model))
    client = TestClient(create_app(agent), base_url="http://127.0.0.1")

    answer = client.post(PATH, json=REQUIREMENT)

    assert answer.json()["subject_line"]
    assert answer.json()["interactionId"] == "xxx"
    assert "San Francisco, CA" in model.prompts[-1]
    assert "unsealed" in caplog.text


def test_with_a_key_the_same_body_is_refused(client: TestClient) -> None:
    """Whoever has a key wants to be vouched for."""
    assert client.post(PATH, json=REQUIREMENT).json()["code"] == "CONTEXT_UNSEALED"


def test_who_says_off_is_not_warned(caplog: pytest.LogCaptureFixture) -> None:
    """A choice that was made needs no warning."""
    create_app(ClarifyingAgent(CallableProvider(str)), seal="off")

    assert not caplog.records


@pytest.mark.parametrize("seal", ["", "on", b"key"])
def test_there_is_no_server_without_a_choice(seal: Any) -> None:
    """What is no key and not "off" makes no application; the error says what to do."""
    with pytest.raises(UsageError, match="Sealer"):
        create_app(ClarifyingAgent(CallableProvider(str)), seal=seal)
