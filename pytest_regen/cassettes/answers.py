"""What a recorded answer says, whole or as a stream, and with which headers a client gets it."""

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_regen.cassettes.strict_json import json_or_none
from pytest_regen.cassettes.values import Interaction, has_body
from pytest_regen.turns.failures import is_retried_status
from pytest_regen.turns.wire import StreamedMessage, sse_events, usage_of

__all__ = ["message_of", "pieces_of", "playable_headers", "tokens_of"]


def message_of(found: Interaction) -> Mapping[str, Any]:
    """Return an answer's JSON object, of a stream the message it adds up to; empty for others."""
    if not found.is_stream:
        body = json_or_none(found.response_body)
        return body if isinstance(body, Mapping) else {}
    message = StreamedMessage()
    for event in sse_events(found.response_body.decode("utf-8", "replace")):
        message.feed(event)
    return message.as_json()


def tokens_of(message: Mapping[str, Any]) -> dict[str, int]:
    """Return the tokens an answer names: ``input``, ``output``, ``cache_read``, ``cache_write``."""
    usage = usage_of(message.get("usage"))
    known = {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cache_read": usage.cache_read_tokens,
        "cache_write": usage.cache_write_tokens,
    }
    return {name: count for name, count in known.items() if count is not None}


def playable_headers(taken: Interaction) -> dict[str, tuple[str, ...]]:
    """Return the response headers that a client is given in replay."""
    headers = dict(taken.response_headers)
    broke_off = taken.is_stream and (
        taken.end != "complete" or b"event: error" in taken.response_body
    )
    if is_retried_status(taken.status) or broke_off:
        # Nobody waits for a server that is not there. Zero would mean "not given" to the SDK.
        headers.pop("retry-after", None)
        headers["retry-after-ms"] = ("1",)
    if not has_body(taken.method, taken.status):
        return headers
    headers.pop("content-length", None)
    if taken.end == "complete" and not taken.is_stream:
        headers["content-length"] = (str(len(taken.response_body)),)
    return headers


def pieces_of(taken: Interaction) -> Iterator[bytes]:
    """Yield the body in the pieces it came in; the last holds all that the sizes do not cover."""
    start = 0
    for _, size in taken.chunks[:-1]:
        yield taken.response_body[start : start + size]
        start += size
    yield taken.response_body[start:]
