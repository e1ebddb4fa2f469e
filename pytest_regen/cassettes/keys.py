"""The keys of requests: hashes of all that a request must have in common with a recording."""

import base64
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from pytest_regen.canonical import canonical_hash
from pytest_regen.cassettes.scrubbing import (
    scrub_lines,
    scrub_value,
    scrubbed_path,
    scrubbed_query,
)
from pytest_regen.cassettes.strict_json import json_or_none, too_deep
from pytest_regen.turns.secrets import scrub_text

__all__ = ["keys_of", "request_key"]


def keys_of(method: str, uri: str, body: bytes | Mapping[str, Any]) -> Iterator[str]:
    """Yield the keys a request may be stored under, the cheap one first.

    That is the key of a request which holds no credential: made in a fifth of the time, because
    none is looked for. The other one follows only where they differ; last, of a form, the key of
    the mapping that vcrpy keeps in its place for aiohttp. Arguments and errors as of
    ``request_key``.
    """
    quick = _unscrubbed_key(method, uri, body)
    if quick is not None:
        yield quick
    careful = request_key(method, uri, body)
    if careful != quick:
        yield careful
    fields = _fields(body) if isinstance(body, bytes) else None
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
    query = sorted(parse_qsl(scrubbed_query(parts.query), keep_blank_values=True))
    try:
        return canonical_hash(
            [method.upper(), scrubbed_path(parts.path) or "/", query, _comparable(body)]
        )
    except RecursionError:
        raise too_deep() from None


def _fields(body: bytes) -> dict[str, str] | None:
    """Return the fields of a form; ``None`` where the body is none, or names one twice."""
    if len(body) > _LONGEST_FORM or b"=" not in body or body[:1] in {b"{", b"[", b"-"}:
        return None
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=True)
    except ValueError:
        return None
    fields = dict(pairs)
    return fields if len(fields) == len(pairs) else None


_LONGEST_FORM = 1 << 20


def _unscrubbed_key(method: str, uri: str, body: bytes | Mapping[str, Any]) -> str | None:
    value = json_or_none(body) if isinstance(body, bytes) else body
    parts = urlsplit(uri)
    if value is None or parts.query:
        return None
    try:
        return canonical_hash([method.upper(), parts.path or "/", [], {"json": value}])
    except RecursionError:
        raise too_deep() from None


def _comparable(body: bytes | Mapping[str, Any] | None) -> object:
    if not body:
        return None
    if isinstance(body, Mapping):
        return {"json": scrub_value(body)}
    value = json_or_none(body)
    if value is not None:
        return {"json": scrub_value(value)}
    try:
        return {"text": scrub_lines(body.decode())}
    except UnicodeDecodeError:
        # As it is stored: Latin-1 maps every byte to itself.
        clean = scrub_text(body.decode("latin-1")).encode("latin-1")
        return {"bytes": base64.b64encode(clean).decode()}
