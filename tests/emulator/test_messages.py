"""A message follows from the request and the reply, and from nothing else."""

import json
from dataclasses import replace
from typing import Any

import pytest
from emulator_requests import api, ask, assistant, body, said, send, text, user
from hypothesis import given
from hypothesis import strategies as st
from tables import each

from pytest_regen.emulator.values import EmulatedReply, Fault, HttpResponse

TOOLS = [{"name": "look", "input_schema": {"type": "object"}}]
ENDED = ("end_turn", None)
SCHEMA = {"type": "object", "properties": {}, "additionalProperties": False}
PARTS: list[dict[str, Any]] = [
    {"system": [text("x" * 2_000, "1h")]},
    {"cache_control": {"type": "ephemeral"}},
    {"tools": TOOLS, "tool_choice": {"type": "auto"}},
    {"thinking": {"type": "adaptive"}},
    {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
    {"messages": [user([{"type": "image", "source": {"type": "url", "url": "x"}}, text("What?")])]},
    {"messages": [user("Hi."), assistant("Hi."), user("Go on. \U0001f600")]},
]


def events(response: HttpResponse) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for part in response.parts or ():
        name, data = part.data.decode().rstrip("\n").split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def test_an_id_follows_from_request_and_reply() -> None:
    """Signatures and counts as well: whatever was asked before, by whichever worker."""
    one, other = api(), api()
    ask(other, messages=[user("Something else.")])
    ask(other)

    assert ask(one) == ask(other)
    assert len({ask(one)["id"], ask(api("Bye."))["id"], ask(one, system="Be brief.")["id"]}) == 3


@each(
    ("reply", "fields", "text", "tokens", "stop"),
    [
        ("x" * 1_000, {"max_tokens": 41}, "x" * 100, 41, ("max_tokens", None)),
        (EmulatedReply("x" * 99, output_tokens=7), {"max_tokens": 10}, "x" * 99, 7, ENDED),
        (
            "one two three",
            {"stop_sequences": ["three", " two"]},
            "one",
            2,
            ("stop_sequence", " two"),
        ),
    ],
)
def test_a_reply_ends_at_the_limits_of_the_request(
    reply: EmulatedReply | str, fields: Any, text: str, tokens: int, stop: tuple[str, str | None]
) -> None:
    """A script may say what a reply costs; it is then not cut."""
    message = ask(api(reply), **fields)

    assert message["content"][-1]["text"] == text
    assert message["usage"]["output_tokens"] == tokens
    assert (message["stop_reason"], message["stop_sequence"]) == stop


def test_warming_answers_with_nothing() -> None:
    core = api()
    system = [text("x" * 2_000, "5m")]

    warmed = ask(core, max_tokens=0, system=system)

    assert (warmed["content"], warmed["stop_reason"]) == ([], "max_tokens")
    assert warmed["usage"]["output_tokens"] == 0
    assert ask(core, system=system)["usage"]["cache_read_input_tokens"] == 820


@pytest.mark.parametrize(
    ("thinking", "shown"),
    [
        (None, ""),
        ({"type": "adaptive"}, ""),
        ({"type": "adaptive", "display": "summarized"}, "Hm."),
        ({"type": "disabled"}, None),
    ],
)
def test_thinking_is_shown_as_asked(thinking: dict[str, str] | None, shown: str | None) -> None:
    """Omitted by default, summarized on request, absent where it is off; it costs either way."""
    message = ask(api(EmulatedReply("Hi.", thinking="Hm.")), thinking=thinking)

    blocks = [block for block in message["content"] if block["type"] == "thinking"]
    assert [block["thinking"] for block in blocks] == ([] if shown is None else [shown])


@given(parts=st.lists(st.sampled_from(PARTS)))
def test_counted_tokens_are_those_of_usage(parts: list[dict[str, Any]]) -> None:
    """Whatever a request is made of, cached or not: the count is the sum of its input."""
    fields = body()
    for part in parts:
        fields.update(part)
    core = api("{}")
    counting = {name: value for name, value in fields.items() if name != "max_tokens"}

    counted = said(send(core, counting, path="/v1/messages/count_tokens"))["input_tokens"]

    for _ in ("cold", "warm"):
        usage = said(send(core, fields))["usage"]
        read, written = usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]
        assert counted == usage["input_tokens"] + read + written
        assert written == sum(usage["cache_creation"].values())


@each(
    ("error", "message"),
    [
        (KeyError("lost"), "KeyError: 'lost'"),
        # What pytest.fail() raises is no Exception.
        (pytest.fail.Exception("asked too often"), "asked too often"),
    ],
)
def test_a_responder_that_fails_is_not_asked_again(error: BaseException, message: str) -> None:
    """It is given a copy of the body: what it changes is asked all the same."""
    core = api()

    def fails(fields: dict[str, Any]) -> str:
        fields.clear()
        raise error

    core.responder = fails
    response = send(core, body())

    assert response.status == 500
    assert response.headers["x-should-retry"] == "false"
    assert message in said(response)["error"]["message"]
    assert core.failures == [error]
    assert core.requests[0].body == body()


def test_a_fault_has_its_headers_and_its_own_body() -> None:
    """As a proxy answers, in plain text, and as the API tells when to come back."""
    fault = Fault(429, body="slow", retry_after="Sat, 21 Nov 2026 10:00:00 GMT", retry_after_ms=1.5)

    response = send(api(replace(fault, should_retry=True)), body())

    assert (response.status, response.body) == (429, b"slow")
    assert response.headers["content-type"] == "text/plain"
    assert response.headers["retry-after"] == "Sat, 21 Nov 2026 10:00:00 GMT"
    assert response.headers["retry-after-ms"] == "1.5"
    assert response.headers["x-should-retry"] == "true"


def test_a_message_has_the_fields_of_recorded_ones() -> None:
    """In the order in which the API sends them, plain and in the events of a stream."""
    plain = said(send(api(), body()))
    streamed = events(send(api(), body(stream=True)))
    started, ended = streamed[0], streamed[-2]

    assert list(plain) == [
        *("model", "id", "type", "role", "content", "stop_reason", "stop_sequence", "stop_details"),
        "usage",
    ]
    assert list(plain["usage"]) == [
        *("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
        *("cache_creation", "output_tokens", "output_tokens_details", "service_tier"),
        "inference_geo",
    ]
    names = [name for name, _ in streamed]
    assert names[:3] == ["message_start", "content_block_start", "ping"]
    assert names[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    assert started[1]["message"].keys() == plain.keys()
    assert list(ended[1]["usage"]) == [
        *("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
        *("output_tokens", "output_tokens_details"),
    ]
