"""A cassette shown as a conversation, with tokens and the effect of the prompt cache."""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Any, TypeGuard
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
        messages = list(_messages(sent))
        pairs = zip(before, messages, strict=False)
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        rows.append(
            {
                "number": number,
                "line": stored.line,
                "method": interaction.method,
                "path": urlsplit(interaction.uri).path,
                "status": interaction.status,
                "model": sent.get("model") if isinstance(sent, Mapping) else None,
                "repeated": common,
                "new": messages[common:],
                **_answer(interaction),
            }
        )
        before = messages
    return {"path": str(file.path), "metadata": dict(file.metadata), "interactions": rows}


def _messages(sent: object) -> Iterator[dict[str, str]]:
    if not isinstance(sent, Mapping):
        return
    if sent.get("system"):
        yield {"role": "system", "text": _text(sent["system"])}
    messages = sent.get("messages")
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, Mapping):
            yield {
                "role": str(message.get("role")),
                "text": _text(message.get("content"), message.get("tool_calls")),
            }


def _text(content: object, calls: object = None) -> str:
    """Return the blocks of a message, then the calls that a chat completion has beside them."""
    blocks = [
        *(content if isinstance(content, list) else [content or ""]),
        *(calls if isinstance(calls, list) else ()),
    ]
    return "\n".join(filter(None, map(_block, blocks)))


def _block(block: object) -> str:
    """Return a block of a message, or of a chat completion's message, as text."""
    if not isinstance(block, Mapping):
        return str(block)
    kind = str(block.get("type"))
    if kind == "text":
        return str(block.get("text") or "")
    if kind == "thinking":
        return f"[thinks: {block.get('thinking')}]"
    if kind.endswith("tool_use"):
        sent = json.dumps(block.get("input"), ensure_ascii=False)
        return f"[calls {block.get('name')} with {sent}]"
    if kind.endswith("tool_result"):
        return f"[result: {_text(block.get('content'))}]"
    call = block.get("function")
    if isinstance(call, Mapping):
        return f"[calls {call.get('name')} with {call.get('arguments')}]"
    return f"[{kind}]"


def _answer(interaction: Interaction) -> dict[str, Any]:
    message = message_of(interaction)
    content = message.get("content")
    is_message = bool(content) or message.get("stop_reason") is not None
    return {
        "reply": _text(content) if is_message else _plain_answer(interaction),
        "content": content if is_message else None,
        "stop_reason": message.get("stop_reason"),
        "end": interaction.end,
        "tokens": tokens_of(message),
    }


def _plain_answer(interaction: Interaction) -> str:
    """Return an answer other than a message: an error, a chat completion, or the whole content."""
    body = json_or_none(interaction.response_body)
    error = body.get("error") if isinstance(body, Mapping) else None
    if isinstance(error, Mapping):
        return f"{error.get('type')}: {error.get('message')}"
    text = interaction.response_body.decode("utf-8", "replace")
    events = sse_events(text) if interaction.is_stream else [body]
    return _chat_completion(event for event in events if isinstance(event, Mapping)) or text


def _chat_completion(events: Iterable[Mapping[str, Any]]) -> str:
    """Return what a chat completion says and calls, be it whole or in chunks."""
    texts = dict.fromkeys(("reasoning_content", "reasoning", "content"), "")
    calls: dict[str, dict[str, str]] = {}
    for event in events:
        choices = event.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            half = choice.get("delta") or choice.get("message") if _is_object(choice) else None
            if not _is_object(half):
                continue
            for name in texts:
                texts[name] += half[name] if isinstance(half.get(name), str) else ""
            pieces = half.get("tool_calls")
            for number, piece in enumerate(pieces if isinstance(pieces, list) else ()):
                function = piece.get("function") if _is_object(piece) else None
                if _is_object(function):
                    # As text, because a file may hold anything, also what cannot be a key.
                    index = str(piece.get("index", number))
                    call = calls.setdefault(index, {"name": "", "arguments": ""})
                    for name in call:
                        call[name] += str(function.get(name) or "")
    thoughts = texts["reasoning_content"] or texts["reasoning"]
    return "\n".join(
        [
            *([f"[thinks: {thoughts}]"] if thoughts else []),
            *([texts["content"]] if texts["content"] else []),
            *(_block({"function": call}) for call in calls.values()),
        ]
    )


def _is_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)
