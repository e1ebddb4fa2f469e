"""Requests to the emulator's core, without a socket."""

import gzip
import json
from typing import Any
from urllib.parse import urlencode, urlsplit

from pytest_regen.emulator import Clock, Emulator
from pytest_regen.emulator.values import EmulatedReply, Fault, HttpResponse

HEADERS = {
    "authorization": "Bearer sk-test",
    "anthropic-version": "2026-10-21",
    "host": "127.0.0.1:9",
}
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
    block: dict[str, Any] = {"type": "text", "text": words}
    if ttl:
        block["cache_control"] = {"type": "ephemeral", "ttl": ttl}
    return block


def send(
    core: Emulator,
    payload: Any = None,
    *,
    path: str = "/v1/messages",
    method: str = "POST",
    query: dict[str, str] | None = None,
    **headers: str | None,
) -> HttpResponse:
    """Return the response of the core; a header that is ``None`` is left out."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    merged = {k: v for k, v in {**HEADERS, **given}.items() if v is not None}
    data = payload if isinstance(payload, bytes) else b"" if payload is None else dumped(payload)
    url = urlsplit(f"{path}?{urlencode(query or {})}")
    response = core.handle(method, url, merged, data)
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
