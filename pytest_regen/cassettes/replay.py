"""Turns answered from recordings, without an SDK, an HTTP client or a socket."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from pytest_regen.cassettes.files.reading import StoredInteraction, read_cassette
from pytest_regen.cassettes.matching import Matching
from pytest_regen.cassettes.playing import Player
from pytest_regen.cassettes.strict_json import json_or_none
from pytest_regen.cassettes.values import BROKEN_OFF, Interaction
from pytest_regen.errors import ProviderError, TransportError
from pytest_regen.turns.anthropic import DEFAULT_BASE_URL
from pytest_regen.turns.defaults import DEFAULT_MODEL
from pytest_regen.turns.failures import connection_failure, is_retried, status_failure
from pytest_regen.turns.values import Reply, TurnRequest, Usage
from pytest_regen.turns.wire import (
    MESSAGES_PATH,
    StreamedMessage,
    cut_stream,
    reply_from_body,
    request_body,
    sse_events,
)

__all__ = ["ReplayProvider", "replayed_turn"]

_FIRST_ERROR = 400


class ReplayProvider:
    """Answers turns from a cassette, each recording once, exactly as the SDK would through vcrpy.

    Args:
        path: the cassette.
        model: model of requests that name none.
        max_retries: times a recorded failure is followed by the next recording of that request.
        base_url: address the turns were recorded at, as of ``AnthropicProvider``: its path is part
            of what must match, its host is named in messages about recorded failures.
        matching: what counts as the same request, and what drift does.

    Raises:
        CassetteUnreadableError: there is a file, but it is no cassette.
    """

    def __init__(
        self,
        path: Path,
        *,
        model: str | None = None,
        max_retries: int = 2,
        base_url: str = DEFAULT_BASE_URL,
        matching: Matching | None = None,
    ) -> None:
        self.path = Path(path)
        self._model = model
        self._max_retries = max_retries
        server = urlsplit(base_url)
        self._uri = server.path.rstrip("/") + MESSAGES_PATH
        self._address = server.netloc.rpartition("@")[2] or base_url
        self._player = Player(self.path, read_cassette(self.path), matching or Matching())

    def send(self, request: TurnRequest) -> Reply:
        """Return the recorded reply.

        Raises:
            CassetteMissError: this request was never recorded, or is used up.
            ProviderError: the recording is a failure.
        """
        body = request_body(request)
        body["model"] = request.model or self._model or DEFAULT_MODEL
        player, sent = self._player, self._player.matching.normalized_json(body)
        try:
            return replayed_turn(
                lambda: player.find("POST", self._uri, sent, in_place=True),
                model=str(body["model"]),
                max_retries=self._max_retries,
                address=self._address,
                missed=lambda: player.missed("POST", self._uri, sent),
            )
        finally:
            player.files.write()

    async def asend(self, request: TurnRequest) -> Reply:
        """Return the recorded reply; raises as ``send`` does."""
        return self.send(request)


def replayed_turn(
    take: Callable[[], StoredInteraction | None],
    *,
    model: str,
    max_retries: int,
    address: str,
    missed: Callable[[], BaseException],
) -> Reply:
    """Return the reply recorded for a turn, past the failures that the SDK would retry.

    Args:
        take: gives the next recording of the request.
        model: the model asked, for messages.
        max_retries: times a failure is followed by another recording.
        address: host named in messages.
        missed: makes the error for a request without a recording.
    """
    spent = Usage()
    for attempt in range(max_retries + 1):
        stored = take()
        if stored is None:
            raise missed()
        found = stored.interaction
        if found.end != "complete" and not found.is_stream:
            # Left by its client before it was whole; the SDK would ask again.
            if attempt == max_retries:
                reason = f"RemoteProtocolError: {BROKEN_OFF}"
                failure = connection_failure(reason, model=model, address=address)
                failure.usage = Usage()
                raise failure
            continue
        if found.status < _FIRST_ERROR and not found.is_stream:
            return reply_from_body(_json_or_text(found.response_body))
        if found.status < _FIRST_ERROR:
            try:
                reply = _streamed(found, model, address)
            except ProviderError as error:
                spent += error.usage or Usage()
                error.usage = spent
                if attempt == max_retries or not isinstance(error, TransportError):
                    raise
                continue
            return replace(reply, usage=spent + reply.usage)
        said = _json_or_text(found.response_body)
        headers = {name: values[0] for name, values in found.response_headers.items() if values}
        if attempt == max_retries or not is_retried(found.status, headers, said):
            failed = status_failure(found.status, said, model=model, address=address)
            failed.usage = spent if spent.total_tokens else None
            raise failed
    raise AssertionError("the last attempt returns or raises")


def _streamed(found: Interaction, model: str, address: str) -> Reply:
    """Return the reply of a recorded stream.

    Raises:
        ProviderError: it broke off, or told of an error; with what it took.
    """
    message = StreamedMessage()
    try:
        for event in sse_events(found.response_body.decode("utf-8", "replace")):
            if event.get("type") == "error":
                raise status_failure(found.status, event, model=model, address=address)
            message.feed(event)
        if found.end != "complete":
            # In the words of the client that replay stands for.
            raise cut_stream(f"RemoteProtocolError: {BROKEN_OFF}")
        return message.reply()
    except ProviderError as error:
        error.usage = message.usage
        raise


def _json_or_text(body: bytes) -> object:
    value = json_or_none(body)
    return body.decode("utf-8", "replace") if value is None else value
