"""A message as server-sent events, split as the real API splits them."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_regen.canonical import canonical_json
from pytest_regen.emulator.values import EmulatedReply
from pytest_regen.emulator.wire import Part, dump

__all__ = ["TEXT_DELTA", "event", "events_of", "split_text"]

TEXT_DELTA = b'"text_delta"'
"""Found in the events that carry text, and in no other."""
_LENGTHS = (4, 11, 27, 3, 18, 45, 8)
_PING = b'event: ping\ndata: {"type": "ping"}\n\n'
_DELTA_USAGE = (
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "output_tokens",
    "output_tokens_details",
)


def events_of(message: Mapping[str, Any], reply: EmulatedReply, *, padding: bool) -> list[Part]:
    """Return the events of ``message`` in order.

    Args:
        message: the body that a plain request would get.
        reply: says how the text is split and how slowly it comes.
        padding: add white space before the last brace of each line, as the real API does.
    """
    events: list[bytes] = [event("message_start", _start(message), padding=padding)]
    for index, block in enumerate(message["content"]):
        for number, data in enumerate(_block_events(index, block, reply)):
            events.append(event(data["type"], data, padding=padding))
            if index == 0 and number == 0:
                events.append(_PING)
    if not message["content"]:
        events.append(_PING)
    events.append(event("message_delta", _delta(message), padding=padding))
    events.append(event("message_stop", {"type": "message_stop"}, padding=padding))
    return [Part(data, reply.chunk_delay if number else 0.0) for number, data in enumerate(events)]


def event(name: str, data: Mapping[str, Any], *, padding: bool = False) -> bytes:
    """Return one event."""
    line = dump(data)
    if padding:
        spaces = hashlib.sha256(line).digest()[0] % 16
        line = line[:-1] + b" " * spaces + b"}"
    return b"event: " + name.encode() + b"\ndata: " + line + b"\n\n"


def split_text(text: str, chunks: int | list[str] | tuple[str, ...] | None) -> list[str]:
    """Return the pieces in which ``text`` arrives.

    A text that was cut short of its given pieces ends in the middle of one.
    """
    if isinstance(chunks, int):
        return [text[at : at + chunks] for at in range(0, len(text), chunks)]
    lengths = [len(piece) for piece in chunks] if chunks else _LENGTHS
    pieces, at, turn = [], 0, 0
    while at < len(text):
        length = lengths[turn % len(lengths)]
        pieces.append(text[at : at + length])
        at, turn = at + length, turn + 1
    return pieces


def _start(message: Mapping[str, Any]) -> dict[str, Any]:
    begun = {**message, "content": [], "stop_reason": None, "stop_sequence": None}
    begun["stop_details"] = None
    usage = {k: v for k, v in message["usage"].items() if k != "output_tokens_details"}
    begun["usage"] = {**usage, "output_tokens": min(1, usage["output_tokens"])}
    return {"type": "message_start", "message": begun}


def _delta(message: Mapping[str, Any]) -> dict[str, Any]:
    usage = message["usage"]
    return {
        "type": "message_delta",
        "delta": {key: message[key] for key in ("stop_reason", "stop_sequence", "stop_details")},
        "usage": {key: usage[key] for key in _DELTA_USAGE if key in usage},
    }


def _block_events(
    index: int, block: Mapping[str, Any], reply: EmulatedReply
) -> Iterator[dict[str, Any]]:
    begun, deltas = _deltas(block, reply)
    yield {"type": "content_block_start", "index": index, "content_block": begun}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _deltas(
    block: Mapping[str, Any], reply: EmulatedReply
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a block as it starts, empty, and the deltas that fill it."""
    if block["type"] == "text":
        pieces = split_text(block["text"], _pieces(reply))
        return {"type": "text", "text": ""}, [{"type": "text_delta", "text": p} for p in pieces]
    if block["type"] == "thinking":
        shown = [
            {"type": "thinking_delta", "thinking": piece}
            for piece in split_text(block["thinking"], None)
        ]
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return {"type": "thinking", "thinking": "", "signature": ""}, [*shown, signed]
    pieces = ["", *split_text(canonical_json(block["input"]), None)]
    begun = {"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}}
    return begun, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]


def _pieces(reply: EmulatedReply) -> int | tuple[str, ...] | None:
    if isinstance(reply.chunks, int) or reply.chunks is None:
        return reply.chunks
    return tuple(reply.chunks)
