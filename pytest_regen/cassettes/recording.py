"""Exchanges with a server as a cassette stores them: decoded, without credentials or noise."""

import re
from base64 import b64decode
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from pytest_regen.cassettes import headers, interactions, scrubbing
from pytest_regen.cassettes.files import bodies
from pytest_regen.cassettes.interactions import Headers, Interaction
from pytest_regen.cassettes.json_bodies import at_any_index, leaves, limited_depth
from pytest_regen.credentials.names import is_private_name, looks_random
from pytest_regen.errors import CassetteError
from pytest_regen.strict_json import json_or_none
from pytest_regen.turns.wire import sse_data

_REAL_HOST = "api.anthropic.com"
_CREDENTIAL_HEADERS = frozenset({"authorization", "proxy-authorization", "x-api-key", "api-key"})
# In characters, because a short word would be replaced wherever it occurs.
_SHORTEST_CREDENTIAL = 8


def made_by(recordings: Iterable[Interaction]) -> dict[str, Any]:
    """Return who answered these requests and which models they name, for the head of a file."""
    sources, models = set(), set()
    for recorded in recordings:
        is_api = urlsplit(recorded.uri).hostname == _REAL_HOST
        is_emulated = scrubbing.is_emulated(recorded.response_headers)
        sources.add("emulator" if is_emulated else "api" if is_api else "other")
        sent = json_or_none(recorded.request_body)
        model = sent.get("model") if isinstance(sent, dict) else None
        models |= {model} if isinstance(model, str) and model else set()
    return {"source": ", ".join(sorted(sources)), "models": sorted(models)}


@limited_depth()
def clean_exchange(
    exchange: Interaction, rules: headers.HeaderRules | None = None, *, is_foreign: bool = False
) -> Interaction:
    """Return ``exchange`` as a cassette stores it.

    Args:
        exchange: as it went over the wire, or as another recorder stored it.
        rules: what the project says about headers.
        is_foreign: whether another recorder stored it; then its address and its headers stay, but
            for credentials.

    Raises:
        CassetteError: the answer cannot be decoded, or a credential is in its compressed request
            or split across events of its stream.
    """
    rules, literal = rules or headers.HeaderRules(), _credentials(exchange)
    _refuse_packed(exchange, literal)
    content, true_headers = _decoded(exchange)
    if is_foreign:
        uri = headers.public_address(exchange.uri, literal)
        sent = headers.public_headers(exchange.request_headers, literal)
        answered = headers.public_headers(exchange.response_headers, literal)
    else:
        decoded = replace(exchange, response_headers=true_headers)
        uri = scrubbing.stable_uri(exchange.uri, exchange.response_headers, literal)
        sent = headers.keep_request_headers(exchange.request_headers, rules, literal)
        sent = bodies.with_stable_boundary_header(sent)
        answered = headers.keep_response_headers(decoded, rules, literal)
    if exchange.is_stream:
        refuse_hidden(content, literal)
    sent_body = bodies.with_stable_boundary(exchange.request_body)
    return replace(
        exchange,
        uri=uri,
        request_headers=sent,
        request_body=scrubbing.clean_body(sent_body, literal),
        reason=scrubbing.scrub_literal(exchange.reason, literal),
        response_headers=answered,
        response_body=scrubbing.clean_body(content, literal),
        # Of an answer that is no stream nobody asks how it arrived.
        chunks=exchange.chunks if exchange.is_stream else (),
    )


_LONGEST = 120
"""In characters: names of members are whatever a server calls them."""


@dataclass(frozen=True, slots=True)
class ChangedValue:
    """A value that a cassette holds otherwise than it was sent or answered."""

    member: str
    """``response body $.audio[3].data``; never the value."""
    live: int
    """Its length, in characters or bytes."""
    replayed: int

    def __str__(self) -> str:
        live = f"{self.member} came out different: {self.live:,} characters live"
        return f"{live}, {self.replayed:,} in replay"

    @property
    def place(self) -> str:
        """The member without the numbers of items: ``response body $.audio[*].data``."""
        return at_any_index(self.member)

    @property
    def is_answer(self) -> bool:
        """Whether the test reads it."""
        return self.member.startswith("response")


def changed_values(live: Interaction, stored: Interaction) -> tuple[ChangedValue, ...]:
    """Return the values that ``stored`` holds otherwise.

    Not those of headers that are never kept, nor of cookies: that they are gone is no news.
    """
    sent_to, recorded = urlsplit(live.uri), urlsplit(stored.uri)
    queries = (parse_qsl(parts.query, keep_blank_values=True) for parts in (sent_to, recorded))
    sent = bodies.with_stable_boundary_header(interactions.by_lower_name(live.request_headers))
    texts: list[tuple[str, Any, Any]] = [
        ("request path", unquote(sent_to.path) or "/", unquote(recorded.path) or "/"),
        *((f"request query {new[0]}", old[1], new[1]) for old, new in zip(*queries, strict=False)),
        *_pairs("request", sent, stored.request_headers, live.request_body, stored.request_body),
        ("response status", f"{live.status} {live.reason}", f"{stored.status} {stored.reason}"),
        *_pairs(
            "response",
            live.response_headers,
            stored.response_headers,
            _decoded(live)[0],
            _decoded(stored)[0],
        ),
    ]
    return tuple(
        ChangedValue(" ".join(member.split())[:_LONGEST], _length(old), _length(new))
        for member, old, new in texts
        if old != new
    )


def _decoded(exchange: Interaction) -> tuple[bytes, dict[str, tuple[str, ...]]]:
    """Return an answer as the callers of most clients read it, and the headers that fit."""
    headers = interactions.by_lower_name(exchange.response_headers)
    is_whole = exchange.end == "complete"
    return bodies.decode_body(exchange.response_body, headers, is_whole=is_whole)


def _length(value: object) -> int:
    return len(value if isinstance(value, bytes) else str(value))


def _pairs(
    part: str, headers: Headers, stored_headers: Headers, body: bytes, stored_body: bytes
) -> Iterator[tuple[str, Any, Any]]:
    """Yield headers, and of bodies the members of JSON, if there are some, else all."""
    before, after = map(interactions.by_lower_name, (headers, stored_headers))
    for name in sorted(after.keys() & before.keys() - {"content-length", "set-cookie"}):
        yield f"{part} header {name}", ", ".join(before[name]), ", ".join(after[name])
    if body == stored_body:
        return
    old, new = _members(body), _members(stored_body)
    # A name that was replaced, too, may not be told.
    has_names = [name for name, _ in old] == [name for name, _ in new]
    pairs = zip(old, new, strict=True) if has_names and old != new else ()
    yield from ((f"{part} body {name}", value, other) for (name, value), (_, other) in pairs)
    if not pairs:
        yield f"{part} body", body, stored_body


def _members(body: bytes) -> list[tuple[str, Any]]:
    """Return the members of JSON, or of the events of a stream, each with its path."""
    value = json_or_none(body)
    if value is None:
        events = sse_data(body.decode("utf-8", "replace"))
        value = [json_or_none(data.encode()) or data for data in events]
    return list(leaves(value))


def _refuse_packed(exchange: Interaction, literal: tuple[str, ...]) -> None:
    """Refuse a request that the client compressed and that holds a credential.

    It is stored as it was sent, so nothing in it can be replaced.
    """
    body = exchange.request_body
    plain, _ = bodies.decode_body(body, interactions.by_lower_name(exchange.request_headers))
    if plain != body and scrubbing.clean_body(plain, literal) != plain:
        raise CassetteError(
            "a recording was not written: its compressed request holds a credential",
            why="it cannot be replaced without packing the request anew",
            hint="keep the credential out of the request, or send it without compression",
        )


def refuse_hidden(body: bytes, literal: tuple[str, ...] = ()) -> None:
    """Refuse a stream that splits a credential across events."""
    kinds = scrubbing.credentials_across_events(body.decode("utf-8", "replace"), literal)
    if kinds:
        raise CassetteError(
            f"a recording was not written: its stream holds a credential ({', '.join(kinds)})",
            why="it is spread over several events",
            hint="keep the credential out of the conversation, then record again",
        )


def _credentials(exchange: Interaction) -> tuple[str, ...]:
    """Return the credentials that a request uses and its answer hands out, whatever their shape."""
    credentials: list[str] = []
    for name, values in exchange.request_headers.items():
        if name.lower() in _CREDENTIAL_HEADERS:
            credentials += [value.rpartition(" ")[2] for value in values]
        elif "idempot" not in name.lower() and (is_private_name(name) or name.lower() == "cookie"):
            # Keys that partition, route or count are not secret.
            words = [word for value in values for word in re.split(r"[\s;,=\"]+", value)]
            credentials += filter(looks_random, words)
    # Also the password inside "Basic ...", and the user part of an address.
    pairs = []
    for value in credentials:
        with suppress(ValueError):
            pairs.append(b64decode(value, validate=True).decode())
    parts = urlsplit(exchange.uri)
    pairs.append(unquote(parts.netloc.rpartition("@")[0]))
    credentials += [pair.partition(":")[2] for pair in pairs]
    credentials += [
        value
        for name, value in parse_qsl(parts.query)
        if scrubbing.is_private_parameter(name, value)
    ]
    cookies = interactions.by_lower_name(exchange.response_headers).get("set-cookie", ())
    contents = (cookie.partition(";")[0].partition("=")[2].strip('" ') for cookie in cookies)
    credentials += filter(looks_random, contents)
    long = {value for value in credentials if len(value) >= _SHORTEST_CREDENTIAL}
    # Longest first: one may be part of another.
    return tuple(sorted(long, key=len, reverse=True))
