"""A cassette shown as a conversation, with tokens and the effect of the prompt cache."""

import json
from collections.abc import Mapping
from contextlib import suppress
from itertools import takewhile
from typing import Any
from urllib.parse import urlsplit

from pytest_regen.cassettes.files.reader import CassetteFile
from pytest_regen.cassettes.interactions import Interaction, message_of, tokens_of
from pytest_regen.strict_json import json_or_none
from pytest_regen.turns.wire import sse_events


def conversation(file: CassetteFile) -> dict[str, Any]:
    """Return the cassette as JSON.

    Each interaction has its number, line, method, path, status, model, ``new`` messages (those
    that the interaction before did not send already), reply, stop reason and tokens.
    """
    rows: list[dict[str, Any]] = []
    before: list[dict[str, str]] = []
    for number, stored in enumerate(file.interactions, 1):
        interaction = stored.interaction
        sent = json_or_none(interaction.request_body)
        sent = sent if isinstance(sent, Mapping) else {}
        messages = [{"role": "system", "text": _text(sent["system"])}] if sent.get("system") else []
        listed = sent.get("messages")
        messages += [
            {"role": str(m.get("role")), "text": _text([m.get("content"), m.get("tool_calls")])}
            for m in (listed if isinstance(listed, list) else ())
            if isinstance(m, Mapping)
        ]
        pairs = zip(before, messages, strict=False)
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        answer = message_of(interaction)
        is_message = bool(answer.get("content")) or answer.get("stop_reason") is not None
        rows.append(
            {
                "number": number,
                "line": stored.line,
                "method": interaction.method,
                "path": urlsplit(interaction.uri).path,
                "status": interaction.status,
                "model": sent.get("model"),
                "repeated": common,
                "new": messages[common:],
                "reply": _text(answer.get("content")) if is_message else _plain_answer(interaction),
                "content": answer.get("content") if is_message else None,
                "stop_reason": answer.get("stop_reason"),
                "end": interaction.end,
                "tokens": tokens_of(answer),
            }
        )
        before = messages
    return {"path": str(file.path), "metadata": dict(file.metadata), "interactions": rows}


def _text(block: object) -> str:
    """Return blocks of a message, or of a chat completion's message, as text."""
    if isinstance(block, list):
        return "\n".join(filter(None, map(_text, block)))
    if not isinstance(block, Mapping):
        return str(block or "")
    kind, call = str(block.get("type")), block.get("function")
    if kind == "text":
        return str(block.get("text") or "")
    if kind == "thinking":
        return f"[thinks: {block.get('thinking')}]"
    if kind.endswith("tool_use"):
        sent = json.dumps(block.get("input"), ensure_ascii=False)
        return f"[calls {block.get('name')} with {sent}]"
    if kind.endswith("tool_result"):
        return f"[result: {_text(block.get('content'))}]"
    if isinstance(call, Mapping):
        return f"[calls {call.get('name')} with {call.get('arguments')}]"
    return f"[{kind}]"


def _plain_answer(interaction: Interaction) -> str:
    """Return an answer other than a message: an error, a chat completion, or the whole content."""
    text = interaction.response_body.decode("utf-8", "replace")
    body = json_or_none(interaction.response_body)
    with suppress(AttributeError, KeyError, TypeError):  # because a file may hold anything
        if "error" in body:
            return f"{body['error'].get('type')}: {body['error'].get('message')}"
    # A chat completion, be it whole or in chunks.
    texts = dict.fromkeys(("reasoning_content", "reasoning", "content"), "")
    calls: dict[int, dict[str, str]] = {}
    events = sse_events(text) if interaction.is_stream else [body]
    try:
        for choice in (choice for event in events for choice in event.get("choices") or ()):
            half = choice.get("delta") or choice.get("message") or {}
            for name in texts:
                texts[name] += half.get(name) or ""
            for number, piece in enumerate(half.get("tool_calls") or ()):
                call = calls.setdefault(piece.get("index", number), {"name": "", "arguments": ""})
                for name in call:
                    call[name] += piece["function"].get(name) or ""
    except (AttributeError, KeyError, TypeError):
        return text
    thoughts = texts["reasoning_content"] or texts["reasoning"]
    blocks = [{"type": "thinking", "thinking": thoughts}] if thoughts else []
    functions = [{"function": call} for call in calls.values()]
    return _text([*blocks, texts["content"], *functions]) or text
