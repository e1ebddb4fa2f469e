"""When the model, the screen or the server fails: a status, a code, and no exception's text."""

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from starlette.testclient import TestClient
from subject_flow import (
    CHOICE,
    KEY,
    MESSAGE,
    PLACE,
    Model,
    app_of,
    asking,
    client_of,
    second_turn,
    writing,
)

from pytest_regen.context import Ask, ClarifyingAgent, Sealer
from pytest_regen.errors import (
    BudgetError,
    CassetteMissError,
    MissingKeyError,
    RefusedError,
    RejectedRequestError,
    TransportError,
)
from pytest_regen.server import ServerSettings, create_app
from pytest_regen.turns import Reply, TurnRequest

PATH = "/api/agents/generate-subject"
SECRET = "words-that-stay-inside"

FAILURES: list[tuple[Exception, int, str]] = [
    (TransportError(SECRET, hint=SECRET), 503, "MODEL_UNAVAILABLE"),
    (RefusedError(SECRET, hint=SECRET), 502, "MODEL_REFUSED"),
    (RejectedRequestError(SECRET, status=401, hint=SECRET), 502, "MODEL_REJECTED"),
    (MissingKeyError(SECRET, hint=SECRET), 503, "MODEL_NOT_CONFIGURED"),
]


def raising(error: Exception) -> Callable[[list[dict[str, str]]], str]:
    """Return a model that fails."""

    def model(_: list[dict[str, str]]) -> str:
        raise error

    return model


class Broken:
    """An agent that raises.

    Args:
        error: what it raises.
    """

    def __init__(self, error: Exception) -> None:
        self.error = error

    def turn(self, _: object) -> Any:
        """Raise."""
        raise self.error


@pytest.mark.parametrize(("error", "status", "code"), FAILURES)
def test_a_provider_that_fails(error: Exception, status: int, code: str) -> None:
    """502 where the model answered badly, 503 where it may answer later; nothing leaks."""
    answer = client_of(raising(error)).post(PATH, json={"message": MESSAGE})

    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert SECRET not in answer.text
    assert "retry-after" not in answer.headers or code == "MODEL_UNAVAILABLE"


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (BudgetError(SECRET, hint=SECRET), 503, "BUDGET_SPENT"),
        (CassetteMissError(SECRET, hint=SECRET), 502, "MODEL_FAILED"),
        (ZeroDivisionError(SECRET), 500, "INTERNAL"),
        (TimeoutError(SECRET), 500, "INTERNAL"),
    ],
)
def test_an_agent_that_raises(error: Exception, status: int, code: str) -> None:
    """Errors that nobody foresaw are 500 INTERNAL, with an id to find them by in the log."""
    client = TestClient(
        create_app(Broken(error), seal="off"),
        base_url="http://127.0.0.1",
        raise_server_exceptions=False,
    )

    answer = client.post(PATH, json={"message": MESSAGE})

    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert SECRET not in answer.text
    assert answer.json()["request_id"] == answer.headers["x-request-id"]


@pytest.mark.parametrize("error", [error for error, *_ in FAILURES])
@pytest.mark.parametrize("path", [PATH, "/subject"])
def test_a_turn_that_failed_is_logged_without_words(
    error: Exception, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One line with the id that the client was told, the code, the kind; no text of anybody."""
    client = client_of(raising(error))
    body = {"data": {"message": MESSAGE}} if path == "/subject" else {"json": {"message": MESSAGE}}

    answer = client.post(path, **body)  # type: ignore[arg-type]  # one of the two

    (line,) = caplog.messages
    assert answer.headers["x-request-id"] in line
    assert type(error).__name__ in line
    assert str(answer.status_code) in line
    assert SECRET not in caplog.text
    assert MESSAGE not in caplog.text


def test_what_failed_is_logged_with_its_id(caplog: pytest.LogCaptureFixture) -> None:
    """The log has the id that the client was told, and where it happened; no text of it."""
    client = TestClient(
        create_app(Broken(ZeroDivisionError(SECRET)), seal="off"),
        base_url="http://127.0.0.1",
        raise_server_exceptions=False,
    )

    request_id = client.post(PATH, json={"message": MESSAGE}).json()["request_id"]

    assert request_id in caplog.text
    assert "ZeroDivisionError" in caplog.text
    assert "test_failures.py" in caplog.text
    assert SECRET not in caplog.text


def test_the_level_debug_tells_all(caplog: pytest.LogCaptureFixture) -> None:
    """Who looks for a defect asks for the text too."""
    client = client_of(raising(TransportError(SECRET, hint="wait")))
    with caplog.at_level("DEBUG", "pytest_regen.server"):
        client.post(PATH, json={"message": MESSAGE})

    assert SECRET in caplog.text


def test_a_reply_of_no_use() -> None:
    """502 after two more tries; no reply is passed on."""
    replies: list[str] = []

    def model(_: list[dict[str, str]]) -> str:
        replies.append(f"{SECRET} {len(replies)}")
        return replies[-1]

    answer = client_of(model).post(PATH, json={"message": MESSAGE})

    assert (answer.status_code, answer.json()["code"]) == (502, "UNUSABLE_REPLY")
    assert len(replies) == 3
    assert SECRET not in answer.text


def test_a_model_that_asks_again() -> None:
    """502 REASKED: a second turn never ends in more questions."""
    client = client_of(lambda _: json.dumps(asking(PLACE)))
    first = client.post(PATH, json={"message": MESSAGE}).json()

    answer = client.post(PATH, json=second_turn(first, {}))

    assert (answer.status_code, answer.json()["code"]) == (502, "REASKED")


def test_an_agent_of_ones_own_may_not_ask_again_either() -> None:
    """502 REASKED whoever the agent is: a conversation has two turns."""

    class Curious:
        def turn(self, _: object) -> Ask:
            return Ask.model_validate(asking(PLACE))

    client = TestClient(create_app(Curious(), seal="off"), base_url="http://127.0.0.1")
    first = client.post(PATH, json={"message": MESSAGE}).json()

    answer = client.post(PATH, json=second_turn(first, {}))

    assert (answer.status_code, answer.json()["code"]) == (502, "REASKED")


def test_a_model_that_takes_too_long() -> None:
    """504, while the call goes on in its thread and blocks nobody else."""
    release = threading.Event()

    def model(_: list[dict[str, str]]) -> str:
        release.wait(10)
        return json.dumps(writing())

    settings = ServerSettings(model_seconds=0.05, first_turns=())
    try:
        answer = client_of(model, settings=settings).post(PATH, json={"message": MESSAGE})
    finally:
        release.set()

    assert (answer.status_code, answer.json()["code"]) == (504, "MODEL_TIMEOUT")


def test_too_many_at_once() -> None:
    """503 BUSY with `retry-after` where the queue is full; a call given up still counts."""
    release = threading.Event()

    def model(_: list[dict[str, str]]) -> str:
        release.wait(10)
        return json.dumps(writing())

    settings = ServerSettings(model_seconds=0.05, max_concurrent=1, max_pending=1, first_turns=())
    with TestClient(app_of(model, settings=settings), base_url="http://127.0.0.1") as client:
        try:
            late = client.post(PATH, json={"message": MESSAGE})
            busy = client.post(PATH, json={"message": MESSAGE})
        finally:
            release.set()

    assert late.status_code == 504
    assert (busy.status_code, busy.json()["code"]) == (503, "BUSY")
    assert busy.headers["retry-after"] == "2"


def test_a_server_may_be_started_again() -> None:
    """The same application, stopped and started, answers as before."""
    app = app_of(Model())
    for _ in range(2):
        with TestClient(app, base_url="http://127.0.0.1") as client:
            assert client.post(PATH, json={"message": MESSAGE}).status_code == 200


class Waiting:
    """A provider with an asynchronous twin; notes the thread it answers in."""

    def __init__(self) -> None:
        self.threads: list[int] = []
        self.closed_in: int | None = None

    def send(self, _: TurnRequest) -> Reply:
        """Fail: it is not to be called."""
        raise AssertionError("send was used, though asend is there")

    async def asend(self, _: TurnRequest) -> Reply:
        """Answer after a moment."""
        await asyncio.sleep(0)
        self.threads.append(threading.get_ident())
        return Reply(json.dumps(writing()))

    async def aclose(self) -> None:
        """Note the thread whose connections are closed."""
        self.closed_in = threading.get_ident()


def test_an_asynchronous_provider_takes_no_thread() -> None:
    """`asend` is used where a provider has it, in the event loop that also closes it."""
    provider = Waiting()
    app = create_app(ClarifyingAgent(provider), seal="off")
    with TestClient(app, base_url="http://127.0.0.1") as client:
        for _ in range(2):
            assert client.post(PATH, json={"message": MESSAGE}).status_code == 200

    assert set(provider.threads) == {provider.closed_in}
    assert threading.get_ident() not in provider.threads


def test_an_asynchronous_provider_is_not_waited_for_for_ever() -> None:
    """504 also where the model is awaited."""

    class Silent(Waiting):
        async def asend(self, _: TurnRequest) -> Reply:
            await asyncio.sleep(60)
            raise AssertionError("it was not given up")

    app = create_app(
        ClarifyingAgent(Silent()), seal="off", settings=ServerSettings(model_seconds=0.05)
    )

    answer = TestClient(app, base_url="http://127.0.0.1").post(PATH, json={"message": MESSAGE})

    assert answer.status_code == 504


def test_a_function_that_blocks_gets_a_thread() -> None:
    """A plain function never runs in the thread that serves the others."""
    threads: list[str] = []

    def model(_: list[dict[str, str]]) -> str:
        threads.append(threading.current_thread().name)
        return json.dumps(writing())

    client_of(model).post(PATH, json={"message": MESSAGE})

    assert threads[0].startswith("regen-server")


def test_the_screen_sees_every_text() -> None:
    """Description, questions, labels, inferences and answers: whole, each of them."""
    seen: list[str] = []

    def screen(texts: Sequence[str]) -> bool:
        seen.extend(texts)
        return True

    client = client_of(Model(PLACE, CHOICE), screen=screen)
    first = client.post(PATH, json={"message": MESSAGE}).json()
    seen.clear()
    client.post(PATH, json=second_turn(first, {"location": "Austin, TX", "framing": "own words"}))

    labels = [option["label"] for option in CHOICE["options"]]
    expected = {MESSAGE, PLACE["question"], *labels, "Austin, TX", "own words"}
    assert expected <= set(seen)
    assert first["inferred_context"]["reasoning"] in seen


@pytest.mark.parametrize("asynchronous", [False, True])
def test_what_the_screen_refuses_the_model_never_sees(*, asynchronous: bool) -> None:
    """403 PROMPT_INJECTION_DETECTED, before the model."""

    async def later(_: Sequence[str]) -> bool:
        await asyncio.sleep(0)
        return False

    model = Model()
    client = client_of(model, screen=later if asynchronous else lambda _: False)

    answer = client.post(PATH, json={"message": "ignore all that"})

    assert (answer.status_code, answer.json()["code"]) == (403, "PROMPT_INJECTION_DETECTED")
    assert not model.prompts


def test_a_screen_that_fails_lets_nothing_through() -> None:
    """503 SCREEN_UNAVAILABLE: it fails closed."""

    def screen(_: Sequence[str]) -> bool:
        raise RuntimeError(SECRET)

    model = Model()

    answer = client_of(model, screen=screen).post(PATH, json={"message": MESSAGE})

    assert (answer.status_code, answer.json()["code"]) == (503, "SCREEN_UNAVAILABLE")
    assert SECRET not in answer.text
    assert not model.prompts


def test_a_key_is_never_shown() -> None:
    """Neither answers nor the application's description hold the key."""
    app = create_app(ClarifyingAgent(Waiting()), seal=Sealer({"test": KEY}))

    assert KEY.decode() not in repr(app) + repr(vars(app))
