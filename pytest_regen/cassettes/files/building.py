"""One parsed interaction as a value, or the error that says what is wrong with it."""

from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, get_args
from urllib.parse import urlsplit

from pytest_regen.cassettes.files.decoding import UndecodableBodyError, decoded_body
from pytest_regen.cassettes.files.parsing import unreadable
from pytest_regen.cassettes.json_text import LAYOUTS, restored
from pytest_regen.cassettes.strict_json import json_bytes
from pytest_regen.cassettes.values import Interaction, StreamEnd, by_lower_name

__all__ = ["built_interaction", "wire_body", "with_status"]

_OURS: Final = frozenset(
    {"key", "recorded_at", "tokens", "layout", "stream", "request", "response"}
)
"""What an interaction of ours consists of; a misspelt one would be silently without effect."""

_ENCODINGS: Final = ("UTF-8", "US-ASCII", "ASCII-8BIT", "BINARY", None)
"""What Ruby calls UTF-8, or bytes that it could write as such."""

_STATUSES: Final = range(100, 1000)


def built_interaction(data: object, path: Path, line: int) -> Interaction:
    """Return a parsed interaction, ours or of vcrpy, as a value.

    Args:
        data: what stands in the file.
        path: the cassette.
        line: the line the interaction starts at.

    Raises:
        CassetteUnreadableError: something is missing, or is not what it has to be.
    """
    try:
        found = _built(data)
        urlsplit(found.uri)
    except KeyError as error:
        why = f"this interaction is incomplete: {error.args[0]!r} is missing"
        raise unreadable(path, why, line=line) from None
    except (TypeError, ValueError, ArithmeticError) as error:
        raise unreadable(path, f"this interaction is broken: {error}", line=line) from None
    except UndecodableBodyError as error:
        raise unreadable(path, str(error), line=line) from None
    except RecursionError:
        why = "this interaction is broken: a body is nested too deeply"
        raise unreadable(path, why, line=line) from None
    return found


def _built(value: object) -> Interaction:
    data = _mapping(value, "it")
    unknown = sorted(map(str, set(data) - _OURS)) if "key" in data else []
    if unknown:
        raise ValueError(f"it has the unknown key {unknown[0]!r}")
    request = _mapping(data["request"], "request")
    response = with_status(_mapping(data["response"], "response"))
    status = _mapping(response["status"], "status")
    body = wire_body(_body(response), data)
    content, headers = decoded_body(body, _headers(response, is_ours="key" in data))
    return Interaction(
        method=_method(request),
        uri=_text(request["uri"], "uri"),
        request_body=_body(_with_text(request)),
        status=_status(status["code"]),
        # Required even where it is empty: it is the last line of an interaction.
        reason=str(status["message"] or ""),
        response_body=content,
        request_headers=_headers(request, is_ours="key" in data),
        response_headers=headers,
        **_stream(data),
    )


def with_status(response: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return an answer of vcrpy in the layout it has now; up to 5 it had another for httpx.

    Raises:
        KeyError: it has neither.
    """
    if "status_code" not in response or "status" in response:
        return response
    return {
        "status": {"code": response["status_code"], "message": ""},
        "headers": response["headers"],
        "body": {"string": response["content"]},
    }


def _mapping(value: object, name: str) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} is {_shown(value)}, no mapping")
    return value


def _method(request: Mapping[str, Any]) -> str:
    """Return the method as it was sent; VCR for Ruby writes all of them in small letters."""
    method, body = _text(request["method"], "method"), request.get("body")
    return method.upper() if isinstance(body, Mapping) and "encoding" in body else method


def _text(value: object, name: str) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(f"{name} is {_shown(value)}, no text")
    return value


def _shown(value: object) -> str:
    return "empty" if value is None or value == "" else repr(value)[:40]


def _status(value: object) -> int:
    is_number = isinstance(value, str | int) and not isinstance(value, bool)
    if not is_number or not str(value).isdecimal() or int(str(value)) not in _STATUSES:
        raise ValueError(f"the status is {_shown(value)}, no number of three digits")
    return int(str(value))


def _stream(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a stream arrived, where that was kept."""
    if data.get("stream") is None:
        return {}
    kept = _mapping(data["stream"], "stream")
    if kept["end"] not in get_args(StreamEnd):
        raise ValueError(f"a stream cannot end {kept['end']!r}")
    chunks = kept["chunks"]
    pairs = chunks if isinstance(chunks, list) else [chunks]
    for pair in pairs:
        if not isinstance(pair, list) or [type(one) for one in pair] != [int, int] or min(pair) < 0:
            raise ValueError(f"a piece of a stream is {_shown(pair)}, no [milliseconds, bytes]")
    return {"end": kept["end"], "chunks": tuple((ms, size) for ms, size in pairs)}


def _body(part: Mapping[str, Any]) -> bytes:
    """Return a body as vcrpy stores it, or as the JSON some projects' serializers put there."""
    if "parsed_body" in part:
        return json_bytes(part["parsed_body"], str)
    body = part["body"]
    if isinstance(body, Mapping) and body:
        if "string" not in body:
            return _from_base64(body["base64_string"])
        body, encoding = body["string"], body.get("encoding")
        if isinstance(body, str) and encoding not in _ENCODINGS:
            return _encoded(body, encoding)
    return _plain_body(body)


def _plain_body(body: object) -> bytes:
    if not body and not isinstance(body, bool | int | float):
        return b""
    if isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return body.encode("utf-8", "surrogatepass")
    return json_bytes(body, str)


def _from_base64(text: object) -> bytes:
    try:
        return b64decode("".join(str(text).split()), validate=True)
    except ValueError as error:
        raise ValueError(f"its body is no base64: {error}") from None


def _encoded(text: str, encoding: object) -> bytes:
    """Return text in the encoding that Ruby says it had on the wire."""
    try:
        return text.encode(str(encoding))
    except (LookupError, ValueError):
        raise ValueError(f"its body is no text in the encoding {_shown(encoding)}") from None


def wire_body(body: bytes, data: Mapping[str, Any]) -> bytes:
    """Return a body as the wire wrote it.

    Args:
        body: as it stands in the file.
        data: the interaction it stands in, which may say how it was laid out.

    Raises:
        ValueError: it is one of ours, and says nothing known.
    """
    layout = data.get("layout")
    if layout not in LAYOUTS:
        if layout is None or "key" not in data:
            return body
        raise ValueError(f"the layout is {_shown(layout)}, none of {', '.join(LAYOUTS)}")
    text = restored(body.decode("utf-8", "surrogatepass"), layout)
    return text.encode("utf-8", "surrogatepass")


def _with_text(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a request whose body is text where vcrpy kept what aiohttp was given to send."""
    body = request.get("body")
    if not isinstance(body, Mapping) or {"string", "base64_string"} & set(body):
        return request
    return {**request, "body": json_bytes(body, str)}


def _headers(part: Mapping[str, Any], *, is_ours: bool) -> dict[str, tuple[str, ...]]:
    headers = part["headers"] if is_ours else part.get("headers")
    return by_lower_name(_mapping(headers, "headers")) if headers else {}
