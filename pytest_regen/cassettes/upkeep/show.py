"""A cassette shown as a conversation, with tokens and the effect of the prompt cache."""

from collections.abc import Iterator, Mapping
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
    shown: list[dict[str, Any]] = []
    before: list[dict[str, str]] = []
    for number, stored in enumerate(file.interactions, 1):
        found = stored.interaction
        sent = json_or_none(found.request_body)
        messages = list(_messages(sent))
        pairs = zip(before, messages, strict=False)
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        shown.append(
            {
                "number": number,
                "line": stored.line,
                "method": found.method,
                "path": urlsplit(found.uri).path,
                "status": found.status,
                "model": sent.get("model") if isinstance(sent, Mapping) else None,
                "repeated": common,
                "new": messages[common:],
                **_answer(found),
            }
        )
        before = messages
    return {"path": str(file.path), "metadata": dict(file.metadata), "interactions": shown}


def _messages(sent: object) -> Iterator[dict[str, str]]:
    if not isinstance(sent, Mapping):
        return
    if sent.get("system"):
        yield {"role": "system", "text": _text(sent["system"])}
    messages = sent.get("messages")
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, Mapping):
            yield {"role": str(message.get("role")), "text": _text(message.get("content"))}


def _text(content: object) -> str:
    if not isinstance(content, list):
        return str(content or "")
    return "\n".join(_block(block) for block in content)


def _block(block: object) -> str:
    if not isinstance(block, Mapping):
        return str(block)
    kind = str(block.get("type"))
    if kind == "text":
        return str(block.get("text") or "")
    if kind == "tool_use":
        return f"[calls {block.get('name')} with {block.get('input')}]"
    if kind == "tool_result":
        return f"[result: {_text(block.get('content'))}]"
    return f"[{kind}]"


def _answer(found: Interaction) -> dict[str, Any]:
    message = message_of(found)
    is_message = bool(message.get("content")) or message.get("stop_reason") is not None
    return {
        "reply": _text(message.get("content")) if is_message else _plain_answer(found),
        "stop_reason": message.get("stop_reason"),
        "end": found.end,
        "tokens": tokens_of(message),
    }


def _plain_answer(found: Interaction) -> str:
    """Return an answer other than a message: an error, the text of a stream, or its content."""
    body = json_or_none(found.response_body)
    error = body.get("error") if isinstance(body, Mapping) else None
    if isinstance(error, Mapping):
        return f"{error.get('type')}: {error.get('message')}"
    text = found.response_body.decode("utf-8", "replace")
    return (found.is_stream and "".join(_pieces(text))) or text


def _pieces(stream: str) -> Iterator[str]:
    """Yield the pieces of text in a stream of "chat completion chunks"."""
    for event in sse_events(stream):
        choices = event.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            delta = choice.get("delta") if isinstance(choice, Mapping) else None
            piece = delta.get("content") if isinstance(delta, Mapping) else None
            if isinstance(piece, str):
                yield piece
