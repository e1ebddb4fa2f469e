"""What a cassette holds, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pytest_regen.cassettes.keys import request_key

__all__ = [
    "BROKEN_OFF",
    "Headers",
    "Interaction",
    "StreamEnd",
    "has_body",
]

StreamEnd = Literal["complete", "cut", "closed"]
"""How an answer ended: whole; broken off on its way; or left by a client that had heard enough."""

BROKEN_OFF = "peer closed connection without sending complete message body"
"""What a client reports at the end of a recorded answer that did not end."""

_NO_BODY = frozenset({204, 304})

Headers = Mapping[str, tuple[str, ...]]
"""Names in lower case."""


def has_body(method: str, status: int) -> bool:
    """Whether an answer may have a body: https://www.rfc-editor.org/rfc/rfc9110#section-6.4.1."""
    return method.upper() != "HEAD" and status not in _NO_BODY


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
