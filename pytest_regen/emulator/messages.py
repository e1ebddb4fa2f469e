"""Messages and their events: content, stop reason, usage; ids depend on request and reply only."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

from pytest_regen.canonical import canonical_json, text_hash
from pytest_regen.emulator import prompt as prompts
from pytest_regen.emulator.prompt import as_blocks, text_tokens
from pytest_regen.emulator.values import ApiError, EmulatedReply, Part, dump
from pytest_regen.turns.models import Model
from pytest_regen.turns.wire import EMULATOR_NAME


@dataclass(slots=True)
class EmulatedTurn:
    """A request whose fields fit their types, its prompt, and once it is valid its cache use."""

    body: Mapping[str, Any]
    model: Model
    is_new: bool
    """Whether the version of the API is the one without sampling and with system turns."""
    tier: str
    """``standard`` or ``batch``."""
    prompt: list[prompts.Place]
    use: prompts.CacheUse = field(init=False)

    def get(self, name: str, key: str) -> Any:
        """Return a field of a field; ``None`` where either is absent or null."""
        return (self.body.get(name) or {}).get(key)

    @property
    def thinks(self) -> bool:
        """Whether the reply starts with a thinking block."""
        kind = self.get("thinking", "type")
        return self.model.thinks_by_default if kind is None else kind in {"enabled", "adaptive"}


def derived_id(prefix: str, *parts: str) -> str:
    """Return an id that depends only on ``parts``."""
    return prefix + text_hash("\0".join(parts)).removeprefix("sha256:")[:24]


def signature(thinking: str, model: Model, earlier: Sequence[Mapping[str, Any]]) -> str:
    """Return the signature of a thinking block; it verifies itself, so none is stored.

    Args:
        thinking: the text as it is sent; empty if it is omitted.
        model: the model, to which the signature is bound.
        earlier: the messages before the block's own, which some models bind it to.
    """
    bound = [
        [message["role"], [prompts.bare(block) for block in as_blocks(message["content"])]]
        for message in (earlier if model.binds_thinking else ())
    ]
    # Whole, because a real one is long as well, and is told from a key by that.
    proof = text_hash(canonical_json([thinking, model.id, bound]))
    return proof.replace("sha256:", "EmuSignature")


def message_of(turn: EmulatedTurn, reply: EmulatedReply) -> dict[str, Any]:
    """Return the body of the response, keys in the order in which the API sends them."""
    content, stop_reason, stop_sequence = _content(turn, reply)
    check_answer(turn, reply, stop_reason)
    limit, thought = turn.body["max_tokens"], text_tokens(reply.thinking or "", turn.model)
    texts = [
        block["name"] + canonical_json(block["input"]) if "input" in block else block["text"]
        for block in content
        if block["type"] != "thinking"
    ]
    spoken = sum(text_tokens(text, turn.model) for text in texts)
    # Even an empty reply costs a token, as in the real API; a request of no output costs none.
    output = min(limit, max(1, thought + spoken))
    if reply.output_tokens is not None and limit:
        output = reply.output_tokens
    usage: dict[str, Any] = {
        "input_tokens": turn.use.plain + prompts.TRAILING,
        "cache_creation_input_tokens": turn.use.write_5m + turn.use.write_1h,
        "cache_read_input_tokens": turn.use.read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": turn.use.write_5m,
            "ephemeral_1h_input_tokens": turn.use.write_1h,
        },
        "output_tokens": output,
    }
    if turn.thinks:
        usage["output_tokens_details"] = {"thinking_tokens": min(limit, thought)}
    usage["service_tier"] = turn.tier
    usage["inference_geo"] = turn.body.get("inference_geo") or turn.model.inference_geo
    identity = (canonical_json(turn.body), canonical_json(content))
    details = {"type": "refusal", "category": reply.category, "explanation": reply.explanation}
    return {
        "model": turn.model.id,
        "id": derived_id("msg_01Emu", *identity),
        "type": "message",
        "role": "assistant",
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": stop_sequence,
        "stop_details": details if stop_reason == "refusal" else None,
        "usage": usage,
    }


def _content(
    turn: EmulatedTurn, reply: EmulatedReply
) -> tuple[list[dict[str, Any]], str, str | None]:
    """Return what is said within the limits of the request, why it ends, and at which words."""
    limit, text, reason, sequence = turn.body["max_tokens"], reply.text, reply.stop_reason, None
    if limit == 0:
        return [], "max_tokens", None  # because such a request only warms the cache
    if reply.tools and reason == "end_turn":
        reason = "tool_use"
    # In the API's order: a stop sequence ends the text before the limit can.
    ends = [(text.find(stop), stop) for stop in turn.body.get("stop_sequences") or ()]
    if reached := [end for end in ends if end[0] >= 0]:
        at, sequence = min(reached)
        text, reason = text[:at], "stop_sequence"
    room = limit - text_tokens(reply.thinking or "", turn.model)
    if reply.output_tokens is None and text_tokens(text, turn.model) > room:
        text, reason, sequence = text[: prompts.fit(room, turn.model)], "max_tokens", None
    content: list[dict[str, Any]] = []
    if turn.thinks:
        default = "omitted" if turn.model.is_modern else "summarized"
        is_shown = (turn.get("thinking", "display") or default) == "summarized"
        summary = (reply.thinking or "") if is_shown else ""
        signed = signature(summary, turn.model, turn.body["messages"])
        content.append({"type": "thinking", "thinking": summary, "signature": signed})
    if text:
        content.append({"type": "text", "text": text})
    # Calls come after the text, so there is no room for them where it fills all there is.
    for number, tool in enumerate(reply.tool_uses if reason != "max_tokens" else ()):
        parts = (canonical_json(turn.body), str(number), canonical_json(dict(tool.input)))
        used = {"type": "tool_use", "id": derived_id("toolu_01Emu", *parts)}
        content.append({**used, "name": tool.name, "input": dict(tool.input)})
    return content, reason, sequence


def check_answer(turn: EmulatedTurn, reply: EmulatedReply, stop_reason: str) -> None:
    """Check that a reply keeps the promise of structured output, where jsonschema is installed.

    Refusals and truncated replies promise nothing, and ``check_schema=False`` turns this off.

    Raises:
        ApiError: 500, without a retry: the script is wrong.
    """
    output = turn.get("output_config", "format")
    if not output or not reply.check_schema or stop_reason != "end_turn":
        return
    # Not needed to answer, so it is no requirement of the emulator.
    try:
        import jsonschema
    except ModuleNotFoundError:
        return
    try:
        jsonschema.validate(json.loads(reply.text), output["schema"])
    except (ValueError, jsonschema.ValidationError, jsonschema.SchemaError) as error:
        place, reason = getattr(error, "json_path", "it is not JSON"), str(error).partition("\n")[0]
        raise ApiError(
            f"{EMULATOR_NAME}: the scripted reply breaks output_config.format: {place}: {reason}. "
            "Say check_schema=False if that is meant.",
            500,
            should_retry=False,
        ) from error


TEXT_DELTA = b'"text_delta"'
"""Part of exactly the events that carry text."""
# Uneven, because code that counts on the size of pieces is to fail here.
_LENGTHS = (4, 11, 27, 3, 18, 45, 8)
_CONSTANT = ("type", "id", "name")
_ENDING = ("stop_reason", "stop_sequence", "stop_details")


def events_of(message: Mapping[str, Any], reply: EmulatedReply) -> list[Part]:
    """Return the events of ``message`` in order.

    Args:
        message: the body that a request without streaming would get.
        reply: how the text is split, and its pauses.
    """
    usage = message["usage"]
    begun = {**message, "content": [], **dict.fromkeys(_ENDING)}
    begun["usage"] = {k: v for k, v in usage.items() if k != "output_tokens_details"}
    # At its start a stream has counted one token, and its last event counts all of them.
    begun["usage"]["output_tokens"] = min(1, usage["output_tokens"])
    events = [event("message_start", {"message": begun})]
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            pieces = split_text(block["text"], reply.chunks)
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
        elif block["type"] == "thinking":
            pieces = split_text(block["thinking"], None)
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        else:
            pieces = ["", *split_text(canonical_json(block["input"]), None)]
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        # What deltas fill is empty at first; the others tell which block it is.
        empty = {key: type(value)() for key, value in block.items() if key not in _CONSTANT}
        start = {"index": index, "content_block": {**block, **empty}}
        events.append(event("content_block_start", start))
        events += [event("content_block_delta", {"index": index, "delta": d}) for d in deltas]
        events.append(event("content_block_stop", {"index": index}))
    # The first ping comes as soon as the first block has begun.
    events.insert(2 if message["content"] else 1, b'event: ping\ndata: {"type": "ping"}\n\n')
    counted = {key: count for key, count in usage.items() if key.endswith(("tokens", "_details"))}
    ending = {"delta": {key: message[key] for key in _ENDING}, "usage": counted}
    events += [event("message_delta", ending), event("message_stop", {})]
    return [Part(data, reply.chunk_delay if number else 0.0) for number, data in enumerate(events)]


def event(name: str, data: Mapping[str, Any]) -> bytes:
    """Return one event."""
    data = {"type": name, **data}
    return b"event: " + name.encode() + b"\ndata: " + dump(data) + b"\n\n"


def split_text(text: str, chunks: int | Sequence[str] | None) -> list[str]:
    """Return the pieces in which ``text`` arrives.

    A text shorter than its given pieces ends inside one of them.
    """
    lengths = [chunks] if isinstance(chunks, int) else map(len, chunks) if chunks else _LENGTHS
    pieces, at = [], 0
    for length in cycle(lengths):
        if at >= len(text):
            break
        pieces.append(text[at : at + length])
        at += length
    return pieces
