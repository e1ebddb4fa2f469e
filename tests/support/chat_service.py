"""A server that speaks Chat Completions, Ollama's API and the Messages API, from a script."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import loopback
from loopback import Answer, serving

MODEL = "kite-1-2026-08-07"
"""What it says of itself, whatever was asked."""


@dataclass(frozen=True)
class Said:
    """A finished reply."""

    text: str | None
    finish: str = "stop"
    refusal: str | None = None
    cached: int = 0
    more: Mapping[str, Any] = field(default_factory=dict)
    """Members of the message beside the text: calls of tools, what the model thinks."""


@dataclass(frozen=True)
class Failed:
    """An answer with an error status."""

    status: int
    message: str = "it went wrong"
    code: str | None = None
    headers: tuple[tuple[str, str], ...] = ()


DROPPED = Answer(
    b'{"id": "chatcmpl-1", ', headers=(("content-length", "9999"), ("connection", "close"))
)
"""A connection that ends in the middle of the answer."""

Line = Said | Failed | Answer | str


@dataclass(frozen=True)
class Asked:
    """A request as it came."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


@dataclass
class ChatService:
    """A server under way."""

    address: str = ""
    requests: list[Asked] = field(default_factory=list)


@contextmanager
def chat_service(*script: Line) -> Iterator[ChatService]:
    """Serve while the block runs: each answer in its turn, the last for ever."""
    waiting, lock, service = list(script), threading.Lock(), ChatService()

    def answer(asked: loopback.Asked) -> Answer:
        with lock:
            request = Asked(asked.target, asked.headers, json.loads(asked.body))
            service.requests.append(request)
            line = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        return answer_to(asked.target, line)

    with serving({"/*": answer}) as service.address:
        yield service


def answer_to(path: str, line: Line) -> Answer:
    """Return an answer as the API at ``path`` words it."""
    of_ollama = path.startswith("/api/")
    if isinstance(line, Answer):
        return line
    if isinstance(line, Failed):
        error: Any = {"message": line.message, "type": "api_error", "param": None}
        body = {"error": line.message if of_ollama else {**error, "code": line.code}}
        return Answer(json.dumps(body).encode(), line.status, (*line.headers, JSON))
    form = _of_ollama if of_ollama else _message if path == "/v1/messages" else _completion
    body = form(Said(line) if isinstance(line, str) else line)
    return Answer(json.dumps(body).encode(), headers=(JSON,))


JSON = ("content-type", "application/json")


def _completion(said: Said) -> dict[str, Any]:
    message = {"role": "assistant", "content": said.text, "refusal": said.refusal, **said.more}
    usage = {"prompt_tokens": 50, "completion_tokens": 7, "total_tokens": 57}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": said.finish}],
        "usage": {**usage, "prompt_tokens_details": {"cached_tokens": said.cached}},
    }


def _message(said: Said) -> dict[str, Any]:
    reasons = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}
    usage = {"input_tokens": 50 - said.cached, "output_tokens": 7}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [{"type": "text", "text": said.text or said.refusal or ""}],
        "stop_reason": "refusal" if said.refusal else reasons[said.finish],
        "usage": {**usage, "cache_read_input_tokens": said.cached},
    }


def _of_ollama(said: Said) -> dict[str, Any]:
    return {
        "model": MODEL,
        "message": {"role": "assistant", "content": said.text or "", **said.more},
        "done": True,
        "done_reason": said.finish,
        "prompt_eval_count": 50,
        "eval_count": 7,
    }
