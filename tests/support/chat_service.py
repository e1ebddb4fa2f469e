"""A server that speaks Chat Completions, Ollama's API and the Messages API, from a script."""

import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = [
    "MODEL",
    "Asked",
    "ChatService",
    "Dropped",
    "Failed",
    "Line",
    "Raw",
    "Said",
    "chat_service",
]

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


@dataclass(frozen=True)
class Dropped:
    """A connection that ends in the middle of the answer."""


@dataclass(frozen=True)
class Raw:
    """An answer that is something else."""

    body: bytes


Line = Said | Failed | Dropped | Raw | str


@dataclass(frozen=True)
class Asked:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class ChatService:
    """A server under way."""

    address: str
    requests: list[Asked] = field(default_factory=list)


@contextmanager
def chat_service(*script: Line) -> Iterator[ChatService]:
    """Serve while the block runs: each answer in its turn, the last for ever."""
    waiting, lock = list(script), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            with lock:
                service.requests.append(Asked(self.path, headers, json.loads(text)))
                line = waiting.pop(0) if len(waiting) > 1 else waiting[0]
            if isinstance(line, Dropped):
                self.send_response_only(200)
                self.send_header("content-length", "9999")
                self.end_headers()
                self.wfile.write(b'{"id": "chatcmpl-1", ')
                self.wfile.flush()
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            status, extra, body = answer_to(self.path, line)
            self.send_response_only(status)
            for name, value in (*extra, ("content-type", "application/json")):
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    service = ChatService(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def answer_to(path: str, line: Line) -> tuple[int, tuple[tuple[str, str], ...], bytes]:
    """Return status, headers and body as the API at ``path`` words them."""
    of_ollama = path.startswith("/api/")
    if isinstance(line, Raw):
        return 200, (), line.body
    if isinstance(line, Failed):
        error: Any = {"message": line.message, "type": "api_error", "param": None}
        body = {"error": line.message if of_ollama else {**error, "code": line.code}}
        return line.status, line.headers, json.dumps(body).encode()
    said = Said(line) if isinstance(line, str) else line
    assert isinstance(said, Said)
    form = _of_ollama if of_ollama else _message if path == "/v1/messages" else _completion
    return 200, (), json.dumps(form(said)).encode()


def _completion(said: Said) -> dict[str, Any]:
    message = {"role": "assistant", "content": said.text, "refusal": said.refusal, **said.more}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": MODEL,
        "choices": [
            {"index": 0, "message": message, "finish_reason": said.finish, "logprobs": None}
        ],
        "usage": {
            "prompt_tokens": 50,
            "completion_tokens": 7,
            "total_tokens": 57,
            "prompt_tokens_details": {"cached_tokens": said.cached, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
    }


def _message(said: Said) -> dict[str, Any]:
    reasons = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [{"type": "text", "text": said.text or said.refusal or ""}],
        "stop_reason": "refusal" if said.refusal else reasons[said.finish],
        "stop_sequence": None,
        "usage": {
            "input_tokens": 50 - said.cached,
            "output_tokens": 7,
            "cache_read_input_tokens": said.cached,
        },
    }


def _of_ollama(said: Said) -> dict[str, Any]:
    return {
        "model": MODEL,
        "created_at": "2026-11-23T00:00:00Z",
        "message": {"role": "assistant", "content": said.text or "", **said.more},
        "done": True,
        "done_reason": said.finish,
        "total_duration": 5,
        "prompt_eval_count": 50,
        "eval_count": 7,
    }
