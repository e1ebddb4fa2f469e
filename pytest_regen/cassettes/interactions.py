"""One recorded request and its answer as a value, and the keys that requests are found by."""

import base64
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import parse_qsl, urlsplit

from pytest_regen.canonical import canonical_hash
from pytest_regen.cassettes.json_bodies import limited_depth
from pytest_regen.cassettes.scrubbing import clean_body, scrub_path, scrub_query, scrub_value
from pytest_regen.strict_json import json_bytes, json_or_none
from pytest_regen.turns.wire import StreamedMessage, is_retried_status, sse_events, usage_of


def keys_of(method: str, uri: str, body: bytes | Mapping[str, Any]) -> Iterator[str]:
    """Yield the keys a request may be stored under, the cheap one first.

    The first is right for a request without credentials and takes a fifth of the time, because none
    are searched for. The second follows only where it differs. For a form the last one is the key
    of the mapping that vcrpy stores in its place for aiohttp. Arguments and errors are those of
    ``request_key``.
    """
    value = json_or_none(body) if isinstance(body, bytes) else body
    # Not for a request with a query, because its parameters are scrubbed by their names.
    parts, quick = urlsplit(uri), ""
    if value is not None and not parts.query:
        with limited_depth():
            quick = canonical_hash([method.upper(), parts.path or "/", [], {"json": value}])
        yield quick
    careful = request_key(method, uri, body)
    if careful != quick:
        yield careful
    fields = form_fields(body) if isinstance(body, bytes) else None
    if fields:
        yield request_key(method, uri, fields)


def request_key(method: str, uri: str, body: bytes | Mapping[str, Any] | None) -> str:
    """Return the hash of method, path, query and body; host and port have no part in it.

    Args:
        method: HTTP method, any case.
        uri: whole address, or its path.
        body: the bytes sent, or the JSON they stand for. Equal JSON is equal, whatever its order
            and spacing; credentials in it are compared as they are stored, scrubbed.

    Raises:
        CassetteError: the body is nested too deeply.
    """
    parts = urlsplit(uri)
    # Sorted, because clients order parameters as they like.
    query = sorted(parse_qsl(scrub_query(parts.query), keep_blank_values=True))
    path = scrub_path(parts.path) or "/"
    with limited_depth():
        compared: object = None
        value = json_or_none(body) if isinstance(body, bytes) else body
        if body and value is not None:
            compared = {"json": scrub_value(value)}
        elif isinstance(body, bytes) and body:
            # As it is stored.
            clean = clean_body(body)
            try:
                compared = {"text": clean.decode()}
            except UnicodeDecodeError:
                compared = {"bytes": base64.b64encode(clean).decode()}
        return canonical_hash([method.upper(), path, query, compared])


def form_fields(body: bytes) -> dict[str, Any] | None:
    """Return the fields of a form, with or without files; ``None`` if the body is not a form."""
    if len(body) > _LONGEST_FORM or b"=" not in body or body[:1] in {b"{", b"["}:
        return None
    text = body.decode("utf-8", "replace")
    boundary = text.partition("\r\n")[0]
    if boundary.startswith("--") and text.rstrip().endswith(f"{boundary}--"):
        parts = (part.partition("\r\n\r\n") for part in text.split(boundary)[1:-1])
        fields = ((_FIELD.search(head), value) for head, _, value in parts)
        return by_name((name[1], value.removesuffix("\r\n")) for name, value in fields if name)
    if any(map(str.isspace, text)):
        return None
    try:
        return by_name(parse_qsl(text, keep_blank_values=True, strict_parsing=True))
    except ValueError:
        return None


def by_name(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return pairs as a mapping; a name that repeats has the list of its values."""
    collected = defaultdict[str, list[str]](list)
    for name, value in pairs:
        collected[name].append(value)
    return {name: values if len(values) > 1 else values[0] for name, values in collected.items()}


_FIELD = re.compile(r'\bname="([^"]*)"')
_LONGEST_FORM = 1 << 20


def body_bytes(body: Any) -> bytes:
    """Return the body of a request or of an answer, as a client or a file has it, in one piece.

    For aiohttp vcrpy passes on the value of ``json=`` or ``data=``, but not which of the two: a
    mapping or list is compared and stored as JSON in either case.

    Raises:
        TypeError: the body cannot be read before it is sent.
    """
    if hasattr(body, "read"):
        body = body.read()
    if body is None or isinstance(body, str):
        return (body or "").encode("utf-8", "surrogatepass")
    if isinstance(body, _BYTES):
        return bytes(body)
    # JSON holds no bytes, so a list of them is a body in pieces.
    is_pieces = isinstance(body, list | tuple) and all(isinstance(part, _BYTES) for part in body)
    if isinstance(body, Mapping | list | tuple | bool | int | float) and not (body and is_pieces):
        # A day or the bytes of a file, which JSON cannot hold, are compared as they are shown.
        return json_bytes(body, str)
    return b"".join(body_bytes(piece) for piece in body)


_BYTES = (bytes, bytearray, memoryview)


StreamEnd = Literal["complete", "cut", "closed"]
"""How an answer ended: whole, cut off by the connection, or closed early by the client."""

BROKEN_OFF = "peer closed connection without sending complete message body"
"""What a client reports at the end of a recorded answer that was cut off."""

_NO_BODY = frozenset({204, 304})

_HALVES = re.compile("[\ud800-\udfff]")

Headers = Mapping[str, tuple[str, ...]]
"""Names in lower case."""


def by_lower_name(
    headers: Mapping[Any, Any] | Iterable[tuple[Any, Any]],
) -> dict[str, tuple[str, ...]]:
    """Return headers by their name in lower case, each with all of its values.

    A name may appear more than once and in several spellings: ``Set-Cookie``, ``set-cookie``.

    Args:
        headers: names with a value or a list of them, as text or bytes; pairs, or a mapping, in
            which vcrpy lists all values behind each spelling.
    """
    # In a mapping the same values in two spellings are one header, because vcrpy stores both.
    collected: dict[str, tuple[str, ...]] = {}
    is_mapping = isinstance(headers, Mapping)
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    for spelling, values in pairs:
        name = text_of_header(spelling).lower()
        listed: Iterable[object] = values if isinstance(values, list | tuple) else (values,)
        texts, before = tuple(map(text_of_header, listed)), collected.get(name, ())
        collected[name] = before if is_mapping and before == texts else (*before, *texts)
    return collected


def text_of_header(value: object) -> str:
    """Return a header's name or value, or a reason, as text that a file can hold.

    Bytes that are not UTF-8 are read as Latin-1, also where a client turned them into surrogates.
    """
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.decode("latin-1")
    text = str(value)
    if text.isascii():
        return text
    # aiohttp passes on a byte that is not UTF-8 as a surrogate, 0xDC00 above it.
    text = re.sub("[\udc80-\udcff]", lambda half: chr(ord(half[0]) - 0xDC00), text)
    return _HALVES.sub("\ufffd", text)


def has_body(method: str, status: int) -> bool:
    """Whether an answer may have a body: https://www.rfc-editor.org/rfc/rfc9110#section-6.4.1."""
    return method.upper() != "HEAD" and status not in _NO_BODY


@dataclass(frozen=True, slots=True)
class Interaction:
    """One request and its answer: with bodies decoded and credentials gone, or as they came."""

    method: str
    uri: str
    request_headers: Headers
    request_body: bytes
    status: int
    reason: str
    response_headers: Headers
    response_body: bytes
    end: StreamEnd = "complete"
    chunks: tuple[tuple[int, int], ...] = ()
    """For a stream: milliseconds since the answer began, and how many bytes arrived then."""

    @property
    def key(self) -> str:
        """What a request must equal to be given this answer."""
        return request_key(self.method, self.uri, self.request_body)

    @property
    def is_stream(self) -> bool:
        """Whether the answer is a stream of events."""
        media = "".join(self.response_headers.get("content-type", ())[:1]).partition(";")[0]
        return media.strip() == "text/event-stream"


def message_of(interaction: Interaction) -> Mapping[str, Any]:
    """Return an answer's JSON object, or the message that a stream adds up to; empty for others."""
    if not interaction.is_stream:
        body = json_or_none(interaction.response_body)
        return body if isinstance(body, Mapping) else {}
    message = StreamedMessage()
    for event in sse_events(interaction.response_body.decode("utf-8", "replace")):
        message.feed(event)
    return message.as_json()


def tokens_of(message: Mapping[str, Any]) -> dict[str, int]:
    """Return the tokens an answer names: ``input``, ``output``, ``cache_read``, ``cache_write``."""
    usage = usage_of(message.get("usage"))
    counts = {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cache_read": usage.cache_read_tokens,
        "cache_write": usage.cache_write_tokens,
    }
    return {name: count for name, count in counts.items() if count is not None}


def playable_headers(taken: Interaction) -> dict[str, tuple[str, ...]]:
    """Return the response headers that a client is given in replay."""
    headers = dict(taken.response_headers)
    broke_off = taken.is_stream and (
        taken.end != "complete" or b"event: error" in taken.response_body
    )
    if is_retried_status(taken.status) or broke_off:
        # A replay has no server to wait for. SDKs read this one before ``retry-after``, which
        # stays as it came for code that looks at it. Zero would mean "not given" to them.
        headers["retry-after-ms"] = ("1",)
    if not has_body(taken.method, taken.status):
        return headers
    headers.pop("content-length", None)
    if taken.end == "complete" and not taken.is_stream:
        headers["content-length"] = (str(len(taken.response_body)),)
    return headers


def pieces_of(taken: Interaction) -> Iterator[bytes]:
    """Yield the body in the pieces it came in; the last holds all that the sizes do not cover."""
    start = 0
    for _, size in taken.chunks[:-1]:
        yield taken.response_body[start : start + size]
        start += size
    yield taken.response_body[start:]
