"""Requests as bodies, bodies as replies."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each
from turn_values import turn

from pytest_regen.errors import TransportError
from pytest_regen.turns.values import Message, Reply, Usage
from pytest_regen.turns.wire import (
    STREAM_ABOVE,
    StreamedMessage,
    reply_from_body,
    request_body,
    sse_data,
    sse_events,
)

TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)


def told(events: Iterable[dict[str, Any]]) -> Reply:
    message = StreamedMessage()
    for event in events:
        message.feed(event)
    return message.reply()


def message(*blocks: dict[str, object], **changes: object) -> dict[str, object]:
    body = {"content": list(blocks), "stop_reason": "end_turn", "model": "m", "id": "msg_1"}
    return {**body, **changes}


def test_nothing_is_sent_that_was_not_asked_for() -> None:
    """No temperature, no thinking, no tools; what the SDK would not wait for is streamed."""
    schema = {"type": "object"}
    longest = request_body(turn(max_tokens=STREAM_ABOVE, system="", response_schema=schema))

    assert request_body(turn("Hi")) == {
        "max_tokens": 200,
        "messages": [{"role": "user", "content": "Hi"}],
        "model": "claude-sonnet-5-5",
        "system": "You are terse.",
    }
    assert longest.keys() == {"max_tokens", "messages", "model", "output_config"}
    assert longest["output_config"] == {"format": {"schema": schema, "type": "json_schema"}}
    assert request_body(turn(max_tokens=STREAM_ABOVE + 1))["stream"] is True


def test_breakpoints_are_content_blocks() -> None:
    """A marked system prompt or message is one text block with cache_control."""
    body = request_body(turn(messages=(Message("user", "Hi", "5m"),), cache="1h"))

    lasting = {"type": "ephemeral", "ttl": "1h"}
    assert body["system"] == [{"type": "text", "text": "You are terse.", "cache_control": lasting}]
    assert body["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral"}


@given(
    marks=st.lists(st.tuples(TEXTS, st.sampled_from([None, "5m", "1h"])), max_size=12),
    system=TEXTS,
    cache=st.sampled_from([None, "5m"]),
)
def test_never_more_than_four_breakpoints(
    marks: list[tuple[str, str | None]], system: str, cache: str | None
) -> None:
    """Of many marks the last ones stay, with the system prompt's; empty text bears none."""
    messages = tuple(Message("user", text, ttl) for text, ttl in marks)  # type: ignore[arg-type]  # sampled

    body = request_body(turn(messages=messages, system=system, cache=cache))

    kept = [m for m in body["messages"] if isinstance(m["content"], list)]
    on_system = isinstance(body.get("system"), list)
    wanted = [text for text, ttl in marks if ttl and text.strip()]
    assert len(kept) + on_system == min(len(wanted) + on_system, 4)
    assert [m["content"][0]["text"] for m in kept] == wanted[len(wanted) - len(kept) :]
    assert on_system == bool(cache and system)


@each("body", ["<html>", None, {}, {"content": "text"}, {"content": [], "stop_reason": None}])
def test_what_is_no_finished_message_is_a_transport_error(body: object) -> None:
    """A wrong shape, another server's page, a message without stop reason: none is a reply."""
    with pytest.raises(TransportError):
        reply_from_body(body)


def test_usage_tells_cache_writes_apart_by_lifetime() -> None:
    """Servers that know no lifetimes write with the default one; what they omit is unknown."""
    usage = {"input_tokens": 4, "cache_creation_input_tokens": 30}
    lifetimes = {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20}
    whole = {**usage, "output_tokens": 7, "cache_creation": lifetimes}

    assert reply_from_body(message(usage=usage)).usage == Usage(4, None, None, 30, None)
    assert reply_from_body(message(usage=whole)).usage == Usage(4, 7, None, 10, 20)


def stream(text: str, pieces: int) -> list[dict[str, object]]:
    size = max(1, -(-len(text) // pieces))
    parts = [text[n : n + size] for n in range(0, len(text), size)]
    return [
        {"type": "message_start", "message": {**message(), "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text"}},
        {"type": "ping"},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": p}}
            for p in parts
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}},
        {"type": "message_stop"},
    ]


@given(text=TEXTS, pieces=st.integers(1, 9))
def test_a_stream_says_what_its_pieces_say(text: str, pieces: int) -> None:
    """However it is cut into events; without its end the reply was cut, even if it looks whole."""
    events = stream(text, pieces)
    wire = "".join(
        f"event: {e['type']}\ndata: {json.dumps(e, ensure_ascii=False)}  \n\n" for e in events
    )

    assert told(sse_events(wire)).text == text
    with pytest.raises(TransportError, match="cut off"):
        told(events[:-1])


def test_counts_in_a_stream_are_cumulative() -> None:
    events = stream("x", 1)
    started = {
        "input_tokens": 3,
        "output_tokens": 1,
        "cache_creation": {"ephemeral_5m_input_tokens": 5, "ephemeral_1h_input_tokens": 0},
    }
    events[0] = {"type": "message_start", "message": {**message(), "usage": started}}
    events[-2] = {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn"},
        "usage": {"input_tokens": None, "output_tokens": 40, "cache_creation_input_tokens": 5},
    }

    assert told(events).usage == Usage(3, 40, None, 5, 0)


def test_one_space_behind_the_colon_is_not_part_of_the_data() -> None:
    """The others are, lines of one event are joined, and comments and names are no data."""
    wire = "event: a\r\ndata:  two\r\ndata:none\r\n\r\n: a comment\n\ndata: cut"

    assert list(sse_data(wire)) == [" two\nnone", "cut"]
