"""The text of a cassette: YAML that vcrpy loads, with JSON bodies spread out for readable diffs.

A file written here is a comment, ``version``, ``recording`` and ``interactions``, and each
interaction begins with its key, so that a reader finds every recording without parsing any.
"""

import base64
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, get_args
from urllib.parse import urlsplit

from pytest_regen.cassettes import interactions
from pytest_regen.cassettes.files.bodies import decode_body
from pytest_regen.cassettes.files.parser import broken
from pytest_regen.cassettes.interactions import Headers, Interaction, StreamEnd
from pytest_regen.cassettes.json_bodies import LAYOUTS, restore_wire, spread_json
from pytest_regen.errors import CassetteError
from pytest_regen.strict_json import json_or_none

FIRST_LINE: Final = "# pytest-regen cassette, format 1\n"
"""A file that starts like this has the layout that this module writes."""

INTERACTIONS: Final = "interactions:\n"

RECORDING: Final = "recording"
"""The mapping that says when, with what and from which server a file was recorded, and what others
noted below ``metadata``."""

_PRINTABLE = re.compile(
    "[\n\t\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]*"
)
"""What a YAML literal block can hold as it is; line ends other than LF would be rewritten."""

_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")

_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./+-]*(?: [A-Za-z0-9_./+-]+)*")
_WORDS_OF_YAML = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})


def header_text(metadata: Mapping[str, Any]) -> str:
    """Return everything before the first interaction.

    Not below ``metadata``, also what others noted there: where there is such a key, vcrpy (since
    9.4) gives its persister three values, and that of pytest-recording 0.14 takes two.
    """
    lines = [FIRST_LINE, "version: 1\n", f"{RECORDING}:\n", *_mapping_lines(metadata, "  ")]
    return "".join(lines) + INTERACTIONS


def _mapping_lines(values: Mapping[str, Any], indent: str) -> Iterable[str]:
    """Yield the lines of a mapping, which may hold anything another recorder wrote."""
    for name, value in values.items():
        head = f"{indent}{_scalar(name)}:"
        if isinstance(value, Mapping):
            yield f"{head}\n" if value else f"{head} {{}}\n"
            yield from _mapping_lines(value, indent + "  ")
        elif isinstance(value, list | tuple):
            yield f"{head}\n" if value else f"{head} []\n"
            yield from (f"{indent}- {_scalar(str(item))}\n" for item in value)
        else:
            yield f"{head} {_scalar(str(value))}\n"


def interaction_text(interaction: Interaction, *, lays_out: bool = True) -> str:
    """Return the text of one interaction.

    ``status`` comes last, so that a file truncated anywhere inside an interaction is recognized.

    Args:
        interaction: the recording.
        lays_out: whether JSON gets one line per member. If not, all text is as it came, also for
            vcrpy, which knows no layout.
    """
    sent = interaction.request_body
    # A request that is not strict JSON is compared as it is, so it is stored as it is.
    request, _ = _body_lines(sent, as_it_came=not lays_out or json_or_none(sent) is None)
    as_it_came = not lays_out or interaction.is_stream
    answer, layout = _body_lines(interaction.response_body, as_it_came=as_it_came)
    # Parsed only for people, and only where it may say something: most large answers do not.
    tells = b"usage" in interaction.response_body
    tokens = interactions.tokens_of(interactions.message_of(interaction)) if tells else {}
    counts = ", ".join(f"{name}: {count}" for name, count in tokens.items())
    usage, stream = f"  tokens: {{{counts}}}\n" if counts else "", ""
    if interaction.end != "complete" or interaction.chunks:
        # One line of JSON, which is YAML, because reviews are to stay short.
        chunks = json.dumps(interaction.chunks, separators=(", ", ":"))
        stream = f"  stream: {{end: {interaction.end}, chunks: {chunks}}}\n"
    headers = dict(interaction.response_headers)
    if interaction.end == "complete" and interactions.has_body(
        interaction.method, interaction.status
    ):
        length = len(answer if isinstance(answer, bytes) else answer.encode())
        headers["content-length"] = (str(length),)
    return (
        f"- key: {interaction.key}\n"
        f"{usage}{layout}{stream}"
        "  request:\n"
        f"    method: {_scalar(interaction.method)}\n"
        f"    uri: {_scalar(interaction.uri)}\n"
        f"{_headers_text(interaction.request_headers)}"
        f"    body: {_block(request, '      ')}\n"
        "  response:\n"
        f"{_headers_text(dict(sorted(headers.items())))}"
        "    body:\n"
        f"      string: {_block(answer, '        ')}\n"
        "    status:\n"
        f"      code: {interaction.status}\n"
        f"      message: {_scalar(interaction.reason)}\n"
    )


def _body_lines(body: bytes, *, as_it_came: bool = False) -> tuple[str | bytes, str]:
    """Return a body as the file shows it, and the line that names its layout on the wire, if any.

    Text is shown as text, and JSON with one line per member if that gives the same bytes back.
    """
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return body, ""
    if as_it_came:
        return text, ""
    spread = spread_json(text)
    if spread is None or not _fits_literal(spread[0]):
        return text, ""
    return spread[0], f"  layout: {spread[1]}\n"


def _headers_text(headers: Headers) -> str:
    if not headers:
        return "    headers: {}\n"
    lines = ["    headers:\n"]
    for name, values in headers.items():
        lines.append(f"      {_scalar(name)}:\n")
        lines += [f"      - {_scalar(value)}\n" for value in values]
    return "".join(lines)


def _block(body: str | bytes, indent: str) -> str:
    if isinstance(body, bytes):
        encoded = base64.encodebytes(body).decode().rstrip("\n")
        return "!!binary |\n" + _indent(encoded, indent)
    if not _fits_literal(body):
        return _quote(body)
    stripped = body.rstrip("\n")
    ends = len(body) - len(stripped)
    # "-" ends the text at its last line, nothing keeps one line end, "+" keeps them all.
    style = {0: "|-", 1: "|"}.get(ends, "|+")
    return f"{style}\n" + _indent(body[:-1] if ends else body, indent)


def _fits_literal(text: str) -> bool:
    return (
        "\n" in text.strip("\n")
        and text[0] not in " \t\n"
        and _PRINTABLE.fullmatch(text) is not None
    )


def _indent(text: str, indent: str) -> str:
    return "\n".join(indent + line if line else "" for line in text.split("\n"))


def _scalar(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS_OF_YAML:
        return text
    return _quote(text)


def _quote(text: str) -> str:
    """Return a double-quoted YAML scalar on one line; JSON's escapes are a subset of YAML's."""
    quoted = json.dumps(text, ensure_ascii=False)
    if quoted.isascii() and "\x7f" not in quoted:
        return quoted  # for a large body this search takes a sixth of the time
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)


_OURS: Final = frozenset(
    {"key", "recorded_at", "tokens", "layout", "stream", "request", "response"}
)
"""The keys of an interaction written here; a misspelt one would silently have no effect."""

_STATUSES: Final = range(100, 1000)

_BROKEN: Final = (KeyError, TypeError, ValueError, ArithmeticError, CassetteError)


def build_interaction(data: object, path: Path, line: int) -> Interaction:
    """Return a parsed interaction, ours or vcrpy's, as a value.

    Args:
        data: the parsed data.
        path: the cassette.
        line: the line the interaction starts at.

    Raises:
        CassetteUnreadableError: something is missing or has the wrong type.
    """
    try:
        interaction = _build(data)
        urlsplit(interaction.uri)
    except _BROKEN as error:
        raise broken(path, error, line) from None
    return interaction


def _build(value: object) -> Interaction:
    data = _mapping(value, "it")
    unknown = sorted(map(str, set(data) - _OURS)) if "key" in data else []
    if unknown:
        raise ValueError(f"it has the unknown key {unknown[0]!r}")
    request = _mapping(data["request"], "request")
    response = with_current_layout(_mapping(data["response"], "response"))
    status = _mapping(response["status"], "status")
    code = str(status["code"])
    if not code.isdecimal() or int(code) not in _STATUSES:
        raise ValueError(f"the status is {_show_value(code)}, not a number of three digits")
    arrival: dict[str, Any] = {}
    if data.get("stream") is not None:
        stream = _mapping(data["stream"], "stream")
        chunks = tuple((int(ms), int(size)) for ms, size in stream["chunks"])
        arrival = {"end": stream["end"], "chunks": chunks}
        if stream["end"] not in get_args(StreamEnd):
            raise ValueError(f"a stream cannot end {stream['end']!r}")
    body = wire_body(_body(response), data)
    content, headers = decode_body(body, _headers(response, is_ours="key" in data))
    return Interaction(
        method=_text(request["method"], "method"),
        uri=_text(request["uri"], "uri"),
        request_body=_body(request, is_request=True),
        status=int(code),
        # Required even if empty: it is the last line of an interaction.
        reason=str(status["message"] or ""),
        response_body=content,
        request_headers=_headers(request, is_ours="key" in data),
        response_headers=headers,
        **arrival,
    )


def with_current_layout(response: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return an answer of vcrpy in its current layout; up to version 5 it had another for httpx.

    Raises:
        KeyError: it has neither layout.
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
        raise TypeError(f"{name} is {_show_value(value)}, not a mapping")
    return value


def _text(value: object, name: str) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(f"{name} is {_show_value(value)}, not text")
    return value


def _show_value(value: object) -> str:
    return "empty" if value is None or value == "" else repr(value)[:40]


def _body(part: Mapping[str, Any], *, is_request: bool = False) -> bytes:
    """Return a body as vcrpy stores it, or as the JSON some projects' serializers put there.

    In requests of aiohttp that is what it was given to send: a mapping.
    """
    if "parsed_body" in part:
        return interactions.body_bytes(part["parsed_body"])
    body = part["body"]
    if isinstance(body, Mapping) and body and not (is_request and "string" not in body):
        body = body["string"]
    return interactions.body_bytes(body) if body or isinstance(body, bool | int | float) else b""


def wire_body(body: bytes, data: Mapping[str, Any]) -> bytes:
    """Return a body as it was on the wire.

    Args:
        body: the body as the file shows it.
        data: its interaction, which may name its layout.

    Raises:
        ValueError: the layout is unknown.
    """
    layout = data.get("layout")
    if layout not in LAYOUTS:
        if layout is None or "key" not in data:
            return body
        raise ValueError(f"the layout is {_show_value(layout)}, not one of {', '.join(LAYOUTS)}")
    text = restore_wire(body.decode("utf-8", "surrogatepass"), layout)
    return text.encode("utf-8", "surrogatepass")


def _headers(part: Mapping[str, Any], *, is_ours: bool) -> dict[str, tuple[str, ...]]:
    headers = part["headers"] if is_ours else part.get("headers")
    return interactions.by_lower_name(_mapping(headers, "headers")) if headers else {}
