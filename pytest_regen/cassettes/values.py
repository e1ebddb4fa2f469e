"""What a cassette holds, as values."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args
from urllib.parse import parse_qsl, urlsplit

from pytest_regen.canonical import canonical_hash
from pytest_regen.cassettes.scrubbing import scrub_value, scrubbed_path, scrubbed_query
from pytest_regen.turns.secrets import scrub_text

__all__ = [
    "BROKEN_OFF",
    "RECORD_MODES",
    "Headers",
    "Interaction",
    "RecordMode",
    "StreamEnd",
    "json_or_none",
    "playable_headers",
    "request_key",
    "stored_key",
]

RecordMode = Literal["none", "once", "new_episodes", "all", "rewrite"]
"""``none`` replays and sends nothing. ``once`` records where there is no file, else replays.
``new_episodes`` replays what is recorded and records the rest. ``all`` sends everything; what is
not sent again stays. ``rewrite`` sends everything and keeps nothing of the old file."""

RECORD_MODES: tuple[RecordMode, ...] = get_args(RecordMode)

StreamEnd = Literal["complete", "cut", "closed"]
"""How an answer ended: whole; broken off on its way; or left by a client that had heard enough."""

BROKEN_OFF = "peer closed connection without sending complete message body"
"""What a client is told at the end of a recorded answer that did not end."""

_RETRIED = frozenset({408, 409, 429})
_SERVER_ERROR = 500

Headers = Mapping[str, tuple[str, ...]]
"""Names in lower case."""


@dataclass(frozen=True, slots=True)
class Interaction:
    """One request and its answer, bodies decoded, credentials gone."""

    method: str
    uri: str
    request_body: bytes
    status: int
    reason: str
    response_body: bytes
    request_headers: Headers = field(default_factory=dict)
    response_headers: Headers = field(default_factory=dict)
    end: StreamEnd = "complete"
    chunks: tuple[tuple[int, int], ...] = ()
    """Of a stream, milliseconds since the answer began and bytes that arrived then."""

    @property
    def key(self) -> str:
        """What a request must equal to be given this answer."""
        return request_key(self.method, self.uri, self.request_body)

    @property
    def content_type(self) -> str:
        """Media type of the answer, without parameters."""
        return "".join(self.response_headers.get("content-type", ())[:1]).partition(";")[0].strip()

    @property
    def is_stream(self) -> bool:
        """Whether the answer is a stream of events."""
        return self.content_type == "text/event-stream"


def playable_headers(taken: Interaction) -> dict[str, tuple[str, ...]]:
    """Return the response headers that a client is given in replay."""
    headers = dict(taken.response_headers)
    if taken.status in _RETRIED or taken.status >= _SERVER_ERROR:
        # Nobody waits for a server that is not there. Zero would mean "not given" to the SDK.
        headers.pop("retry-after", None)
        headers["retry-after-ms"] = ("1",)
    headers.pop("content-length", None)
    if taken.end == "complete" and not taken.is_stream:
        headers["content-length"] = (str(len(taken.response_body)),)
    return headers


def stored_key(method: str, uri: str, body: bytes) -> str:
    """Return the key of a request that was scrubbed when it was stored.

    The same as ``request_key`` gives, without looking for credentials again.
    """
    value = json_or_none(body) if body else None
    parts = urlsplit(uri)
    if value is None or parts.query:
        return request_key(method, uri, body)
    return canonical_hash([method.upper(), parts.path or "/", [], {"json": value}])


def request_key(method: str, uri: str, body: bytes | Mapping[str, Any] | None) -> str:
    """Return the hash of method, path, query and body; host and port have no part in it.

    Args:
        method: HTTP method, any case.
        uri: whole address, or its path.
        body: the bytes sent, or the JSON they stand for. Equal JSON is equal, whatever its order
            and spacing; credentials in it are compared as they are stored, scrubbed.
    """
    parts = urlsplit(uri)
    query = sorted(parse_qsl(scrubbed_query(parts.query), keep_blank_values=True))
    return canonical_hash(
        [method.upper(), scrubbed_path(parts.path) or "/", query, _comparable(body)]
    )


def _comparable(body: bytes | Mapping[str, Any] | None) -> object:
    if not body:
        return None
    if isinstance(body, Mapping):
        return {"json": scrub_value(body)}
    value = json_or_none(body)
    if value is not None:
        return {"json": scrub_value(value)}
    try:
        return {"text": scrub_text(body.decode())}
    except UnicodeDecodeError:
        return {"bytes": base64.b64encode(body).decode()}


def json_or_none(body: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """Return the JSON in ``body``, or ``None`` where it is none, or would not survive as such.

    An object that names a key twice, NaN and infinities are not what JSON can carry back.
    """
    try:
        return json.loads(body, object_pairs_hook=_unique, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _refuse(name: str) -> Any:  # noqa: ANN401 - never returns
    raise ValueError(name)
