"""An exchange with a server made fit to be kept: decoded, without credentials, without noise."""

import json
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from pytest_regen.cassettes.decoding import UndecodableBodyError, decoded_body
from pytest_regen.cassettes.scrubbing import (
    allowed_request_headers,
    allowed_response_headers,
    hidden_in_stream,
    is_emulated,
    scrub_literal,
    scrub_value,
    stable_uri,
)
from pytest_regen.cassettes.values import Headers, Interaction, StreamEnd, json_or_none
from pytest_regen.errors import CassetteError

__all__ = ["Exchange", "clean_body", "kept_exchange"]

_REAL_HOST = "api.anthropic.com"
_SHORTEST_CREDENTIAL = 8


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its answer as they went over the wire."""

    method: str
    uri: str
    request_headers: Headers
    """Names in any case, credentials and all."""
    request_body: bytes
    status: int
    reason: str
    response_headers: Headers
    response_body: bytes
    """As it came, compressed or not."""
    end: StreamEnd = "complete"
    chunks: tuple[tuple[int, int], ...] = ()
    """Milliseconds since the answer began and decoded bytes that arrived then."""

    def ended(self, body: bytes, chunks: tuple[tuple[int, int], ...], end: StreamEnd) -> "Exchange":
        """Return the exchange with its answer."""
        return replace(self, response_body=body, chunks=chunks, end=end)

    @property
    def is_kept(self) -> bool:
        """Whether a cassette keeps it: a line that broke is no answer, a stream that broke is."""
        types = ",".join(_lower(self.response_headers).get("content-type", ()))
        return self.end == "complete" or "text/event-stream" in types

    @property
    def source(self) -> str:
        """Who answered: ``api``, ``emulator`` or ``other``."""
        if is_emulated(self.response_headers):
            return "emulator"
        return "api" if urlsplit(self.uri).hostname == _REAL_HOST else "other"

    @property
    def model(self) -> str:
        """The model asked, where the request names one."""
        sent = json_or_none(self.request_body)
        model = sent.get("model") if isinstance(sent, dict) else None
        return model if isinstance(model, str) else ""


def kept_exchange(exchange: Exchange) -> Interaction:
    """Return what a cassette keeps of ``exchange``.

    Raises:
        CassetteError: the answer cannot be read, or its stream holds a credential in pieces.
    """
    literal = _credentials(exchange.request_headers)
    try:
        content, headers = decoded_body(
            exchange.response_body,
            _lower(exchange.response_headers),
            is_whole=exchange.end == "complete",
        )
    except UndecodableBodyError as error:
        raise CassetteError(
            "a recording was not written: its answer cannot be read, and so not searched for "
            "credentials",
            why=str(error),
            hint="install the decoder, or ask for an answer without compression",
        ) from error
    interaction = Interaction(
        method=exchange.method.upper(),
        uri=scrub_literal(stable_uri(exchange.uri, exchange.response_headers), literal),
        request_body=clean_body(exchange.request_body, literal),
        status=exchange.status,
        reason=scrub_literal(exchange.reason, literal),
        response_body=clean_body(content, literal),
        request_headers=allowed_request_headers(exchange.request_headers),
        response_headers=allowed_response_headers(headers),
        end=exchange.end,
    )
    if not interaction.is_stream:
        return interaction
    _refuse_hidden(interaction.response_body)
    return replace(interaction, chunks=exchange.chunks)


def _refuse_hidden(body: bytes) -> None:
    kinds = hidden_in_stream(body.decode("utf-8", "replace"))
    if kinds:
        raise CassetteError(
            f"a recording was not written: its stream holds a credential ({', '.join(kinds)})",
            why="it is spread over several events",
            hint="keep the credential out of the conversation, then record again",
        )


def _lower(headers: Headers) -> dict[str, tuple[str, ...]]:
    return {name.lower(): tuple(values) for name, values in headers.items()}


def _credentials(headers: Headers) -> tuple[str, ...]:
    """Return the credentials this request was sent with, whatever they look like."""
    found = []
    for name, values in headers.items():
        if name.lower() in {"authorization", "x-api-key", "api-key", "proxy-authorization"}:
            found += [value.rpartition(" ")[2] for value in values]
    return tuple(value for value in found if len(value) >= _SHORTEST_CREDENTIAL)


def clean_body(body: bytes, literal: tuple[str, ...] = ()) -> bytes:
    """Return a decoded body without credentials.

    Args:
        body: JSON, text or anything else.
        literal: credentials in use, whatever their shape.
    """
    value = json_or_none(body)
    if value is not None:
        clean = scrub_value(value, literal)
        return body if clean is value else _json_bytes(clean)
    try:
        text = body.decode()
    except UnicodeDecodeError:
        # Latin-1 maps every byte to itself, so that shapes are found between binary data.
        return scrub_literal(body.decode("latin-1"), literal).encode("latin-1")
    return scrub_literal(text, literal).encode()


def _json_bytes(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
