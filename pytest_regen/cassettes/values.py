"""What a cassette holds, as values."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pytest_regen.cassettes.keys import request_key

__all__ = [
    "BROKEN_OFF",
    "Headers",
    "Interaction",
    "StreamEnd",
    "by_lower_name",
    "has_body",
    "text_of_header",
]

StreamEnd = Literal["complete", "cut", "closed"]
"""How an answer ended: whole; broken off on its way; or left by a client that had heard enough."""

BROKEN_OFF = "peer closed connection without sending complete message body"
"""What a client reports at the end of a recorded answer that did not end."""

_NO_BODY = frozenset({204, 304})

_HALVES = re.compile("[\ud800-\udfff]")
_ESCAPED = 0xDC00
_NO_ASCII = range(0x80, 0x100)
"""What Python calls ``surrogateescape``: bytes of that range stand so much higher."""

Headers = Mapping[str, tuple[str, ...]]
"""Names in lower case."""


def by_lower_name(
    headers: Mapping[Any, Any] | Iterable[tuple[Any, Any]],
) -> dict[str, tuple[str, ...]]:
    """Return headers by their name in lower case, each with all of its values.

    A name may stand there more than once, and in several spellings: ``Set-Cookie``, ``set-cookie``.

    Args:
        headers: names with a value or a list of them, as text or bytes; pairs, or a mapping, in
            which vcrpy lists all values behind each spelling.
    """
    found: dict[str, tuple[str, ...]] = {}
    is_mapping = isinstance(headers, Mapping)
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    for given, values in pairs:
        name = text_of_header(given).lower()
        listed: Iterable[object] = values if isinstance(values, list | tuple) else (values,)
        texts, before = tuple(map(text_of_header, listed)), found.get(name, ())
        found[name] = before if is_mapping and before == texts else (*before, *texts)
    return found


def text_of_header(value: object) -> str:
    """Return a header's name or value, or a reason, as text that a file can hold.

    Bytes that are no UTF-8 are Latin-1, also where a client made halves of characters of them.
    """
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.decode("latin-1")
    text = str(value)
    return text if text.isascii() else _HALVES.sub(_of_half, text)


def _of_half(found: re.Match[str]) -> str:
    """Return the character for a byte that is no UTF-8, which aiohttp hands on as half of one."""
    byte = ord(found[0]) - _ESCAPED
    return chr(byte) if byte in _NO_ASCII else "\ufffd"


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
