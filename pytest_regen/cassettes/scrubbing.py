"""Credentials kept out of cassettes: headers by what is allowed, everything else by shape."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

from pytest_regen.turns.secrets import (
    ASSIGNED,
    find_secrets,
    is_private_name,
    looks_random,
    scrub_text,
)
from pytest_regen.turns.wire import sse_events

__all__ = [
    "EMULATOR_SERVER",
    "PRIVATE_HEADERS",
    "allowed_request_headers",
    "allowed_response_headers",
    "hidden_in_stream",
    "is_emulated",
    "scrub_literal",
    "scrub_value",
    "scrubbed_path",
    "scrubbed_query",
    "stable_uri",
]

EMULATOR_SERVER: Final = "pytest-regen-emulator"
"""How the emulator names itself in the ``server`` header of every answer."""

_REQUEST_HEADERS: Final = frozenset(
    {"accept", "anthropic-beta", "anthropic-version", "content-type"}
)
_RESPONSE_HEADERS: Final = frozenset(
    {"content-type", "retry-after", "retry-after-ms", "x-should-retry"}
)
"""All others go: what is not needed for replay can only leak, or change with every recording."""

PRIVATE_HEADERS: Final = frozenset(
    {
        "authorization",
        "x-api-key",
        "api-key",
        "proxy-authorization",
        "cookie",
        "set-cookie",
        "anthropic-organization-id",
    }
)
"""Headers that hold a credential or identify an account, in cassettes that keep others."""

_PRIVATE_PARAMETERS: Final = (
    "key",
    "token",
    "secret",
    "password",
    "signature",
    "credential",
    "auth",
)

_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost", "0.0.0.0"})  # noqa: S104 - compared


def allowed_request_headers(headers: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """Return the request headers a cassette keeps."""
    return _allowed(headers, _REQUEST_HEADERS)


def allowed_response_headers(headers: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """Return the response headers a cassette keeps; ``server`` only where the emulator answered."""
    kept = _allowed(headers, _RESPONSE_HEADERS)
    if is_emulated(headers):
        kept["server"] = (EMULATOR_SERVER,)
    return dict(sorted(kept.items()))


def is_emulated(headers: Mapping[str, Iterable[str]]) -> bool:
    """Whether the emulator gave this answer."""
    return any(
        name.lower() == "server" and any(EMULATOR_SERVER in value for value in values)
        for name, values in headers.items()
    )


def _allowed(
    headers: Mapping[str, Iterable[str]], names: frozenset[str]
) -> dict[str, tuple[str, ...]]:
    kept = {
        name.lower(): tuple(scrub_text(str(value)) for value in values)
        for name, values in headers.items()
        if name.lower() in names
    }
    return dict(sorted(kept.items()))


def scrub_value(value: Any, literal: tuple[str, ...] = ()) -> Any:  # noqa: ANN401 - any JSON value
    """Return a JSON value with every credential in its keys and strings replaced.

    Args:
        value: the value.
        literal: credentials in use, whatever their shape.
    """
    text = json.dumps(value, ensure_ascii=False)
    if not find_secrets(text) and not any(secret in text for secret in literal):
        return value
    return _scrubbed(value, literal)


def _scrubbed(value: Any, literal: tuple[str, ...]) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        return scrub_literal(value, literal)
    if isinstance(value, Mapping):
        return {
            scrub_literal(str(name), literal): _member(str(name), item, literal)
            for name, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_scrubbed(item, literal) for item in value]
    return value


def _member(name: str, item: Any, literal: tuple[str, ...]) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(item, str) and is_private_name(name) and looks_random(item):
        return f"[{ASSIGNED}]"
    return _scrubbed(item, literal)


def scrub_literal(text: str, literal: tuple[str, ...]) -> str:
    """Return ``text`` without anything shaped like a credential and without those in use.

    Shapes first: replay, which has no key at hand, must come to the same text.
    """
    text = scrub_text(text)
    for secret in literal:
        text = text.replace(secret, "[key]")
    return text


def hidden_in_stream(text: str) -> tuple[str, ...]:
    """Return the kinds of credential that only show once a stream's pieces are joined."""
    pieces: list[str] = []
    for event in sse_events(text):
        delta = event.get("delta")
        if isinstance(delta, Mapping):
            pieces += [
                str(v) for k, v in delta.items() if k in {"text", "partial_json", "thinking"}
            ]
    return find_secrets("".join(pieces))


def stable_uri(uri: str, response_headers: Mapping[str, Iterable[str]]) -> str:
    """Return the address as stored: the same whatever port a local server had, no credentials."""
    parts = urlsplit(uri)
    host = parts.hostname or ""
    if is_emulated(response_headers):
        scheme, netloc = "http", "emulator.invalid"
    elif host in _LOOPBACK or host.startswith("127."):
        scheme, netloc = "http", "loopback.invalid"
    else:
        scheme, netloc = parts.scheme, parts.netloc.rpartition("@")[2]
    return urlunsplit((scheme, netloc, scrubbed_path(parts.path), scrubbed_query(parts.query), ""))


def scrubbed_path(path: str) -> str:
    """Return a path without credentials, those that were percent-encoded included."""
    plain = unquote(path)
    clean = scrub_text(plain)
    return path if clean == plain else quote(clean, safe="/[]")


def scrubbed_query(query: str) -> str:
    """Return a query without the values of parameters that are named like credentials."""
    kept = []
    for name, value in parse_qsl(query, keep_blank_values=True):
        private = any(word in name.lower() for word in _PRIVATE_PARAMETERS)
        kept.append((name, "[scrubbed]" if private else scrub_text(value)))
    return "&".join(f"{quote(name)}={quote(value)}" for name, value in kept)
