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
def clean_exchange(exchange: Interaction, rules: headers.HeaderRules | None = None) -> Interaction:
    """Return ``exchange`` as a cassette stores it.

    Args:
        exchange: as it went over the wire.
        rules: what the project says about headers.

    Raises:
        CassetteError: the answer cannot be decoded, or its stream holds a credential split across
            events.
    """
    rules = rules or headers.HeaderRules()
    literal = _credentials(exchange)
    _refuse_packed(exchange, literal)
    content, true_headers = _decoded(exchange)
    interaction = Interaction(
        method=exchange.method.upper(),
        uri=scrubbing.stable_uri(exchange.uri, exchange.response_headers, literal),
        request_body=scrubbing.clean_body(
            bodies.with_stable_boundary(exchange.request_body), literal
        ),
        status=exchange.status,
        reason=scrubbing.scrub_literal(exchange.reason, literal),
        response_body=scrubbing.clean_body(content, literal),
        request_headers=bodies.with_stable_boundary_header(
            headers.keep_request_headers(exchange.request_headers, rules, literal)
        ),
        response_headers=headers.keep_response_headers(
            replace(exchange, response_headers=true_headers), rules, literal
        ),
        end=exchange.end,
    )
    if not interaction.is_stream:
        return interaction
    refuse_hidden(content, literal)
    return replace(interaction, chunks=exchange.chunks)


@limited_depth()
def clean_interaction(recorded: Interaction) -> Interaction:
    """Return another recorder's recording without credentials and otherwise unchanged.

    Raises:
        CassetteError: a credential is in its compressed request or split across events of its
            stream.
    """
    literal = _credentials(recorded)
    _refuse_packed(recorded, literal)
    if recorded.is_stream:
        refuse_hidden(recorded.response_body, literal)
    return replace(
        recorded,
        uri=headers.public_address(recorded.uri, literal),
        request_headers=headers.public_headers(recorded.request_headers, literal),
        request_body=scrubbing.clean_body(recorded.request_body, literal),
        reason=scrubbing.scrub_literal(recorded.reason, literal),
        response_headers=headers.public_headers(recorded.response_headers, literal),
        response_body=scrubbing.clean_body(recorded.response_body, literal),
    )


DECOMPRESSED = "response body (decompressed)"
_LONGEST = 120
"""In characters: names of members are whatever a server calls them."""
_LINE = re.compile(r"line \d+")


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
        """The member without the numbers of items and lines: ``response body $.audio[*].data``."""
        return _LINE.sub("line *", at_any_index(self.member))

    @property
    def is_replaced(self) -> bool:
        """Whether another value was put in its place; else what the client got is not stored."""
        return self.member != DECOMPRESSED

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
    changed = [
        ChangedValue(" ".join(member.split())[:_LONGEST], _length(old), _length(new))
        for member, old, new in texts
        if old != new
    ]
    came, played = live.response_body, stored.response_body
    if not live.is_decoded and came != _decoded(live)[0]:
        changed.append(ChangedValue(DECOMPRESSED, len(came), len(played)))
    return tuple(changed)


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
    """Yield headers, and of bodies the members of JSON or a form, or lines, else all."""
    before, after = map(interactions.by_lower_name, (headers, stored_headers))
    for name in sorted(after.keys() & before.keys() - {"content-length", "set-cookie"}):
        yield f"{part} header {name}", ", ".join(before[name]), ", ".join(after[name])
    if body == stored_body:
        return
    old, new = list(_members(body)), list(_members(stored_body))
    # A name that was replaced, too, may not be told.
    has_names = [name for name, _ in old] == [name for name, _ in new]
    pairs = zip(old, new, strict=True) if has_names and old != new else ()
    yield from ((f"{part} body {name}", value, other) for (name, value), (_, other) in pairs)
    if not pairs:
        yield f"{part} body", body, stored_body


def _members(body: bytes) -> Iterator[tuple[str, object]]:
    value = json_or_none(body)
    if value is not None:
        yield from leaves(value)
    elif b"=" in body and len(body.split(None, 1)) == 1:
        yield from parse_qsl(body.decode("latin-1"), keep_blank_values=True)
    else:
        for number, line in enumerate(body.split(b"\n"), 1):
            event = json_or_none(line.removeprefix(b"data:").strip())
            parts = leaves(event) if isinstance(event, dict | list) else [("", line)]
            yield from ((f"line {number} {path}".rstrip(), leaf) for path, leaf in parts)


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
    credentials += headers.cookie_credentials(exchange.response_headers)
    long = {value for value in credentials if len(value) >= _SHORTEST_CREDENTIAL}
    # Longest first: one may be part of another.
    return tuple(sorted(long, key=len, reverse=True))
