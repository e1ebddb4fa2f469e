"""What is refused before the model is asked: by status, by code, by name, without loose words."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient
from subject_flow import CHOICE, MESSAGE, PLACE, WORDS, Model, client_of, second_turn

PATH = "/api/agents/generate-subject"
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def model() -> Model:
    """Return a model that remembers what it was asked."""
    return Model(PLACE, CHOICE)


@pytest.fixture(scope="module")
def client(model: Model) -> TestClient:
    """Return a client of one application for all the refusals."""
    return client_of(model)


@pytest.fixture(scope="module")
def first(client: TestClient) -> dict[str, Any]:
    """Return a first turn that asked."""
    answer: dict[str, Any] = client.post(PATH, json={"message": MESSAGE}).json()
    return answer


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"text"',
        b"null",
        b'{"message": NaN}',
        b'{"message": "a", "message": "b"}',
        b'{"message": "\\ud800"}',
        b"\xff\xfe",
        b"[" * 50_000,
        b'{"message": ' + b"9" * 5_000 + b"}",
    ],
)
def test_what_is_no_json_object(client: TestClient, body: bytes) -> None:
    """400 INVALID_JSON: cut, no object, repeated names, no text, nested without end."""
    answer = client.post(PATH, content=body, headers=JSON)

    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_JSON")


@pytest.mark.parametrize("body", [{}, {"message": ""}, {"message": " \u200b\n"}, {"message": 7}])
def test_a_blank_message(client: TestClient, body: dict[str, Any]) -> None:
    """400 MESSAGE_REQUIRED, also where the text holds only what shows nothing."""
    answer = client.post(PATH, json=body)

    assert (answer.status_code, answer.json()["code"]) == (400, "MESSAGE_REQUIRED")


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "application/json; charset=latin-1"},
        {"content-type": "application/json", "content-encoding": "gzip"},
        {},
    ],
)
def test_another_media_type(client: TestClient, headers: dict[str, str]) -> None:
    """415 for anything but JSON in UTF-8, not compressed."""
    answer = client.post(PATH, content=b'{"message": "a"}', headers=headers)

    assert (answer.status_code, answer.json()["code"]) == (415, "UNSUPPORTED_MEDIA_TYPE")


def test_a_body_that_is_too_long(client: TestClient, model: Model) -> None:
    """413 by its announced length, and the model is not asked."""
    asked = len(model.prompts)

    answer = client.post(PATH, json={"message": "x" * 1_000_000})

    assert (answer.status_code, answer.json()["code"]) == (413, "BODY_TOO_LARGE")
    assert len(model.prompts) == asked


OVERSIZE: dict[str, tuple[list[str | int], Any]] = {
    "message": (["message"], "x" * 4_001),
    "originalDescription": (["conversationContext", "originalDescription"], "x" * 4_001),
    "question": (["conversationContext", "questionsAsked", 0, "question"], "x" * 301),
    "reasoning": (["conversationContext", "inferredContext", "reasoning"], "x" * 1_001),
    "text": (["conversationContext", "answers", "framing"], "x" * 1_001),
    "label": (["conversationContext", "answers", "location"], "x" * 1_001),
    "seal": (["seal"], "x" * 9_000),
}


def put(body: Any, path: list[str | int], value: Any) -> None:
    """Put a value at its place."""
    for step in path[:-1]:
        body = body[step]
    body[path[-1]] = value


@pytest.mark.parametrize("name", OVERSIZE)
def test_an_oversize_value_is_refused_by_name(
    client: TestClient, first: dict[str, Any], name: str
) -> None:
    """422, and `where` ends at the value that is too long."""
    body = second_turn(first, {"location": "Austin, TX"})
    path, value = OVERSIZE[name]
    put(body, path, value)

    answer = client.post(PATH, json=body)

    assert answer.status_code == 422
    assert str(path[-1]) in answer.json()["where"]
    assert "x" * 100 not in answer.text


MALFORMED: dict[str, tuple[list[str | int], Any]] = {
    "answers are a string": (["conversationContext", "answers"], "hi"),
    "answers are null": (["conversationContext", "answers"], None),
    "an unknown question is answered": (["conversationContext", "answers", "other"], "x"),
    "an answer is a number": (["conversationContext", "answers", "location"], 5),
    "an option is invented": (
        ["conversationContext", "answers", "framing"],
        {"kind": "choice", "selected": ["invented"]},
    ),
    "the questions are null": (["conversationContext", "questionsAsked"], None),
    "three questions": (["conversationContext", "questionsAsked"], [PLACE, CHOICE, WORDS]),
    "a question of no type": (["conversationContext", "questionsAsked", 0, "type"], "chips"),
    "the inferences are null": (["conversationContext", "inferredContext"], None),
    "a confidence of two": (
        ["conversationContext", "inferredContext", "scope_confidence"],
        2,
    ),
    "another version": (["conversationContext", "schemaVersion"], 9),
    "an unknown field": (["conversationContext", "system"], "obey"),
    "the context is empty": (["conversationContext"], {}),
    "the context is a list": (["conversationContext"], []),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_context(client: TestClient, first: dict[str, Any], name: str) -> None:
    """422 INVALID_CONTEXT that says where, where others answer 500 or guess."""
    body = second_turn(first, {"location": "Austin, TX"})
    put(body, *MALFORMED[name])

    answer = client.post(PATH, json=body)

    assert (answer.status_code, answer.json()["code"]) == (422, "INVALID_CONTEXT")
    assert answer.json()["where"].startswith("conversationContext")
    assert answer.json()["problems"]


def test_an_unknown_member_of_the_request(client: TestClient) -> None:
    """422 INVALID_REQUEST: a misspelt name is not passed over."""
    answer = client.post(PATH, json={"message": MESSAGE, "conversation_contxt": {}})

    assert (answer.status_code, answer.json()["code"]) == (422, "INVALID_REQUEST")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", PATH, 405), ("GET", "/nope", 404), ("POST", "/", 405), ("DELETE", "/subject", 405)],
)
def test_paths_and_methods(client: TestClient, method: str, path: str, status: int) -> None:
    """404 and 405 come in the same envelope."""
    answer = client.request(method, path)

    assert answer.status_code == status
    assert set(answer.json()) == {"error", "code", "request_id"}


def test_every_answer_carries_an_id(client: TestClient) -> None:
    """The id of the header is the one of the body; a harmless one that was sent is kept."""
    made = client.post(PATH, content=b"{", headers=JSON)
    kept = client.post(PATH, content=b"{", headers={**JSON, "x-request-id": "trace-12345"})
    refused = client.post(PATH, content=b"{", headers={**JSON, "x-request-id": "a b\x7f<script>"})

    assert made.json()["request_id"] == made.headers["x-request-id"]
    assert kept.headers["x-request-id"] == "trace-12345"
    assert refused.headers["x-request-id"].startswith("req_")


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:80", "", "127.0.0.2"])
def test_a_foreign_name_is_refused(client: TestClient, host: str) -> None:
    """403 where the server is addressed by a name that is not its own."""
    answer = client.get("/", headers={"host": host})

    assert (answer.status_code, answer.json()["code"]) == (403, "FORBIDDEN_HOST")


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost", "LOCALHOST:80", "[::1]:8000"])
def test_loopback_is_at_home(client: TestClient, host: str) -> None:
    """Every name of this machine is answered."""
    assert client.get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
    ],
)
def test_another_site_may_not_post(client: TestClient, headers: dict[str, str]) -> None:
    """403 where a browser says that a foreign page sends the form."""
    answer = client.post("/subject", data={"message": MESSAGE}, headers=headers)

    assert (answer.status_code, answer.json()["code"]) == (403, "CROSS_SITE")


def test_answers_are_not_stored_and_not_framed(client: TestClient) -> None:
    """Every answer forbids caches to keep it and pages to frame it or run foreign scripts."""
    answer = client.post(PATH, json={"message": MESSAGE})

    assert answer.headers["cache-control"] == "no-store"
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(
    ["message", "conversationContext", "seal", "interactionId", "clarificationAnswers", "x"]
)


@given(body=st.dictionaries(NAMES, JUNK, max_size=4))
@pytest.mark.filterwarnings("ignore:clarification_answers without:DeprecationWarning")
def test_junk_is_answered_never_dropped(client: TestClient, body: dict[str, Any]) -> None:
    """Whatever JSON arrives, the answer is one of the documented ones and valid JSON."""
    answer = client.post(PATH, content=json.dumps(body), headers=JSON)

    # 502: legacy answers make it a second turn, and this model only asks.
    assert answer.status_code in {200, 400, 403, 422, 502}
    assert answer.json()
