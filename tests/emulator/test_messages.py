"""A message follows from the request and the reply, and from nothing else."""

import json
from typing import Any

import pytest
from emulator_requests import api, ask, assistant, body, said, send, text, user
from hypothesis import given
from hypothesis import strategies as st

from pytest_regen.emulator.messages import split_text
from pytest_regen.emulator.values import EmulatedReply, Fault, HttpResponse, ToolUse

TOOLS = [{"name": "look", "input_schema": {"type": "object"}}]
SCHEMA = {"type": "object", "properties": {}, "additionalProperties": False}
PARTS: list[dict[str, Any]] = [
    {"system": "Be brief."},
    {"system": [text("x" * 2_000, "1h")]},
    {"cache_control": {"type": "ephemeral"}},
    {"tools": TOOLS},
    {"tools": TOOLS, "tool_choice": {"type": "auto"}},
    {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
    {"thinking": {"type": "adaptive"}},
    {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
    {"output_config": {"effort": "low"}},
    {"messages": [user([{"type": "image", "source": {"type": "url", "url": "x"}}, text("What?")])]},
    {
        "messages": [
            user(
                [
                    {
                        "type": "document",
                        "source": {"type": "text", "media_type": "text/plain", "data": "x" * 99},
                    }
                ]
            )
        ]
    },
    {"messages": [user("Hi."), {"role": "assistant", "content": "Hi."}, user("Go on. \U0001f600")]},
    {
        "messages": [
            user("Hi."),
            assistant([{"type": "tool_use", "id": "t", "name": "look", "input": {}}]),
            user([{"type": "tool_result", "tool_use_id": "t", "content": [text("It is red.")]}]),
        ]
    },
]


def events(response: HttpResponse) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for part in response.parts or ():
        name, data = part.data.decode().rstrip("\n").split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def test_the_order_of_requests_changes_nothing() -> None:
    """Ids, signatures and counts are the same whatever was asked before, by whichever worker."""
    one, other = api(), api()
    ask(other, messages=[user("Something else.")])
    ask(other)

    assert ask(one) == ask(other)


def test_another_request_has_another_id() -> None:
    ids = {
        ask(api())["id"],
        ask(api("Bye."))["id"],
        ask(api(), messages=[user("Bye.")])["id"],
    }

    assert len(ids) == 3


def test_a_reply_over_max_tokens_is_cut() -> None:
    message = ask(api("x" * 1_000), max_tokens=41)

    assert message["content"][-1]["text"] == "x" * 100
    assert message["stop_reason"] == "max_tokens"
    assert message["usage"]["output_tokens"] == 41


def test_given_output_tokens_are_reported() -> None:
    """A script may say what a reply costs; it is then not cut."""
    message = ask(api(EmulatedReply("x" * 1_000, output_tokens=7)), max_tokens=10)

    assert message["usage"]["output_tokens"] == 7
    assert message["stop_reason"] == "end_turn"


def test_a_stop_sequence_ends_the_reply() -> None:
    message = ask(api("one two three"), stop_sequences=["three", " two"])

    assert message["content"][-1]["text"] == "one"
    assert (message["stop_reason"], message["stop_sequence"]) == ("stop_sequence", " two")


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


def test_tools_are_used() -> None:
    """Each call has an id of its own, and the message stops for them."""
    tools: list[Any] = [ToolUse("look", {"at": "a"}), {"name": "look", "input": {"at": "a"}}]
    message = ask(api(EmulatedReply(tools=tools)), tools=[{"name": "look", "input_schema": {}}])

    first, second = (block for block in message["content"] if block["type"] == "tool_use")
    assert list(first) == ["type", "id", "name", "input"]
    assert first["id"] != second["id"]
    assert message["stop_reason"] == "tool_use"


def test_a_stream_has_its_events_in_order() -> None:
    """One start, a ping after the first block begins, deltas, one end."""
    reply = EmulatedReply("Hello there.", chunks=("Hel", "lo ", "there."))

    names = [name for name, _ in events(send(api(reply), body(stream=True)))]

    assert names == [
        "message_start",
        "content_block_start",
        "ping",
        "content_block_delta",
        "content_block_stop",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


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


@given(words=st.text(), chunks=st.none() | st.integers(1, 50))
def test_pieces_join_to_the_text(words: str, chunks: int | None) -> None:
    """Whatever the text, its pieces are the text, and each says something."""
    pieces = split_text(words, chunks)

    assert "".join(pieces) == words
    assert all(pieces)


@given(words=st.text(st.characters(exclude_categories=[])), stream=st.booleans())
def test_any_text_can_be_said(words: str, stream: bool) -> None:  # noqa: FBT001 - drawn
    response = send(api(words), body(max_tokens=100_000, stream=stream))

    if stream:
        deltas = [
            data["delta"]
            for name, data in events(response)
            if name.endswith("_delta") and "index" in data
        ]
        heard = "".join(delta.get("text", "") for delta in deltas)
    else:
        heard = "".join(b.get("text", "") for b in said(response)["content"])
    assert heard == words


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (KeyError("lost"), "KeyError: 'lost'"),
        # What pytest.fail() raises is no Exception.
        (pytest.fail.Exception("asked too often"), "asked too often"),
    ],
)
def test_a_responder_that_fails_is_not_asked_again(error: BaseException, message: str) -> None:
    core = api()

    def fails(_: dict[str, Any]) -> str:
        raise error

    core.responder = fails
    response = send(core, body())

    assert response.status == 500
    assert response.headers["x-should-retry"] == "false"
    assert message in said(response)["error"]["message"]
    assert core.failures == [error]


@pytest.mark.parametrize(("fault", "read"), [(Fault(529), 0), (Fault(kind="cut"), 820)])
def test_what_began_has_written_the_cache(fault: Fault, read: int) -> None:
    core = api(fault)
    system = [text("x" * 2_000, "5m")]
    send(core, body(system=system, stream=True))
    core.responder = lambda _body: "Hi."

    assert ask(core, system=system)["usage"]["cache_read_input_tokens"] == read


@pytest.mark.parametrize(("after", "heard"), [(0, ""), (2, "one two"), (9, "one two three")])
def test_a_stream_stops_after_so_many_deltas(after: int, heard: str) -> None:
    reply = EmulatedReply("one two three", chunks=("one", " two", " three"))

    found = events(send(api(Fault(kind="cut", reply=reply, after=after)), body(stream=True)))

    said_so_far = [
        data["delta"].get("text", "") for name, data in found if name.endswith("block_delta")
    ]
    assert "".join(said_so_far) == heard
    assert {"message_delta", "message_stop"}.isdisjoint(name for name, _ in found)


def test_a_responder_may_do_as_it_likes_with_the_body() -> None:
    """It is given a copy: what it changes changes no id and no account."""
    core = api()

    def careless(fields: dict[str, Any]) -> str:
        fields["messages"][0]["content"] = "changed"
        fields.clear()
        return "Hello."

    core.responder = careless

    assert ask(core) == ask(api())


def test_retry_headers_are_as_scripted() -> None:
    fault = Fault(
        429, retry_after="Sat, 21 Nov 2026 10:00:00 GMT", retry_after_ms=1.5, should_retry=True
    )

    headers = send(api(fault), body()).headers

    assert headers["retry-after"] == "Sat, 21 Nov 2026 10:00:00 GMT"
    assert headers["retry-after-ms"] == "1.5"
    assert headers["x-should-retry"] == "true"


def test_a_proxy_answers_in_plain_text() -> None:
    response = send(api(Fault(503, body="upstream")), body())

    assert (response.status, response.body) == (503, b"upstream")
    assert response.headers["content-type"] == "text/plain"


@pytest.mark.parametrize("tool", [{"input": {}}, "look"])
def test_what_is_no_tool_use_is_refused_where_it_is_made(tool: Any) -> None:
    with pytest.raises(ValueError, match="a tool use has a name and an input"):
        EmulatedReply(tools=[tool])
