"""Requests to the emulator's core, without a socket."""

import gzip
import json
from typing import Any
from urllib.parse import urlsplit

from pytest_regen.emulator import Clock, Emulator
from pytest_regen.emulator.values import EmulatedReply, Fault, HttpResponse

HEADERS = {"authorization": "Bearer sk-test", "anthropic-version": "2026-10-21"}
MODEL = "claude-sonnet-5-5"


def api(said: str | EmulatedReply | Fault = "Hello.", **options: Any) -> Emulator:
    """Return an emulator that says the same to every request; it need not be started."""
    options.setdefault("clock", Clock(1_000_000.0))
    return Emulator(lambda _body: said, **options)


def body(**fields: Any) -> dict[str, Any]:
    """Return a valid request, with fields replaced; a field that is ``...`` is left out."""
    whole = {"model": MODEL, "max_tokens": 1_000, "messages": [user("Hi.")], **fields}
    return {name: value for name, value in whole.items() if value is not ...}


def user(content: Any) -> dict[str, Any]:
    """Return a user message."""
    return {"role": "user", "content": content}


def assistant(content: Any) -> dict[str, Any]:
    """Return an assistant message."""
    return {"role": "assistant", "content": content}


def text(words: str, ttl: str | None = None) -> dict[str, Any]:
    """Return a text block, with a breakpoint where ``ttl`` is given."""
    mark = {"cache_control": {"type": "ephemeral", "ttl": ttl}} if ttl else {}
    return {"type": "text", "text": words, **mark}


def send(
    core: Emulator,
    payload: Any = None,
    *,
    path: str = "/v1/messages",
    method: str = "POST",
    **headers: str | None,
) -> HttpResponse:
    """Return the response of the core; a header that is ``None`` is left out."""
    given = {**HEADERS, **{name.replace("_", "-"): value for name, value in headers.items()}}
    merged = {name: value for name, value in given.items() if value is not None}
    data = b"" if payload is None else dumped(payload)
    response = core.handle(method, urlsplit(path), merged, data)
    if response.on_start:
        response.on_start()
    return response


def dumped(value: Any) -> bytes:
    """Return JSON as the SDK sends it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def said(response: HttpResponse) -> dict[str, Any]:
    """Return the JSON body of a response."""
    packed = response.headers.get("content-encoding") == "gzip"
    data = gzip.decompress(response.body) if packed else response.body
    parsed: dict[str, Any] = json.loads(data)
    return parsed


def ask(core: Emulator, **fields: Any) -> dict[str, Any]:
    """Return the message that answers a valid request."""
    response = send(core, body(**fields))
    assert response.status == 200, said(response)
    return said(response)
