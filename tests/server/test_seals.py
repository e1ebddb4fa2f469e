"""Seals at the endpoint: what a first turn said comes back unchanged, in time, in its place."""

import threading
import time
from typing import Any

import httpx2
import pytest
from serving_http import served
from starlette.testclient import TestClient
from subject_flow import CHOICE, KEY, MESSAGE, PLACE, Model, app_of, client_of, second_turn

from pytest_regen.context import ClarifyingAgent, Sealer
from pytest_regen.errors import RefusedError, TransportError, UsageError
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


class Once:
    """A store of seals that count once."""

    def __init__(self) -> None:
        self.states: dict[str, str] = {}

    def reserve(self, seal_id: str, expires_at: float) -> bool:
        """Hold a seal, unless it is held."""
        del expires_at
        return self.states.setdefault(seal_id, "new") == "new" and self._now(seal_id, "reserved")

    def confirm(self, seal_id: str) -> None:
        """Note that it is used for good."""
        assert self._now(seal_id, "used")

    def release(self, seal_id: str) -> None:
        """Let it be used again."""
        assert self._now(seal_id, "new")

    def _now(self, seal_id: str, state: str) -> bool:
        self.states[seal_id] = state
        return True


class Moody(Model):
    """A model that fails on a second turn as often as it is told."""

    fails: Exception | str | None = None

    def __call__(self, messages: Any) -> str:
        """Reply, or fail."""
        reply = super().__call__(messages)
        if self.fails is None or "## My Previous Analysis" not in str(messages):
            return reply
        if isinstance(self.fails, str):
            return self.fails
        raise self.fails


@pytest.mark.parametrize(
    ("fails", "status"),
    [
        (TransportError("down", hint="wait"), 503),
        (RefusedError("no", hint="ask another"), 502),
        ("no JSON", 502),
        (ZeroDivisionError("nobody thought of it"), 503),
    ],
    ids=["503", "refused", "unusable", "broken"],
)
def test_a_turn_that_fails_uses_no_seal_up(fails: Exception | str, status: int) -> None:
    """Where seals count once, the same one may come again after a failure, and after that not."""
    once, model = Once(), Moody(PLACE)
    client = client_of(model, seal=Sealer({"test": KEY}, spent=once))
    first = client.post(PATH, json={"message": MESSAGE}).json()
    body = second_turn(first, {"location": "Austin, TX"})

    model.fails = fails
    failed = client.post(PATH, json=body).status_code
    left = {*once.states.values()}
    model.fails = None
    again, more = client.post(PATH, json=body), client.post(PATH, json=body)

    assert (failed, left) == (status, {"new"})
    assert (again.status_code, {*once.states.values()}) == (200, {"used"})
    assert more.json()["code"] == "CONTEXT_SPENT"


@pytest.mark.parametrize("verdict", [False, None], ids=["refused", "fails"])
def test_a_screen_that_says_no_uses_no_seal_up(verdict: bool | None) -> None:  # noqa: FBT001
    """Nothing was asked: the seal is as good as before."""

    def screen(texts: object) -> bool:
        if verdict is None and "## second" in str(texts):
            raise ValueError
        return "## second" not in str(texts)

    once = Once()
    client = client_of(Model(PLACE), seal=Sealer({"test": KEY}, spent=once), screen=screen)
    first = client.post(PATH, json={"message": MESSAGE}).json()

    refused = client.post(PATH, json=second_turn(first, {"location": "## second"}))

    assert refused.status_code in {403, 503}
    assert {*once.states.values()} == {"new"}


def test_a_stream_whose_client_leaves_uses_no_seal_up() -> None:
    """Also one that leaves before the model has answered."""
    once, release = Once(), threading.Event()
    model = Model(PLACE)

    def slow(messages: Any) -> str:
        if len(model.prompts):
            release.wait(10)
        return model(messages)

    app = app_of(slow, seal=Sealer({"test": KEY}, spent=once))
    with served(app) as address, httpx2.Client(base_url=address, timeout=10) as client:
        first = client.post(PATH, json={"message": MESSAGE}).json()
        for path in ("/api/agents/stream-subject", PATH):
            with pytest.raises(httpx2.ReadTimeout):
                client.post(path, json=second_turn(first, {}), timeout=0.2)
            deadline = time.monotonic() + 5
            while {*once.states.values()} != {"new"} and time.monotonic() < deadline:
                time.sleep(0.01)
            assert {*once.states.values()} == {"new"}
        release.set()
        assert client.post(PATH, json=second_turn(first, {})).status_code == 200


@pytest.mark.parametrize("seal", ["", "on", b"key"])
def test_there_is_no_server_without_a_choice(seal: Any) -> None:
    """What is no key and not "off" makes no application; the error says what to do."""
    with pytest.raises(UsageError, match="Sealer"):
        create_app(ClarifyingAgent(CallableProvider(str)), seal=seal)
