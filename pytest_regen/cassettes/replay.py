"""Turns answered from recordings, without an SDK, an HTTP client or a socket."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pytest_regen.cassettes.files.reader import StoredInteraction, read_cassette
from pytest_regen.cassettes.interactions import BROKEN_OFF, Interaction
from pytest_regen.cassettes.matching import Matching
from pytest_regen.cassettes.misses import Player
from pytest_regen.errors import CassetteMissError, ProviderError, TransportError
from pytest_regen.strict_json import json_or_none
from pytest_regen.turns.anthropic import DEFAULT_BASE_URL
from pytest_regen.turns.values import DEFAULT_MODEL, Cost, Reply, TurnRequest, Usage
from pytest_regen.turns.wire import (
    MESSAGES_PATH,
    StreamedMessage,
    connection_failure,
    cut_stream,
    is_retried,
    limit_pause,
    reply_from_body,
    request_body,
    sse_events,
    status_failure,
)

_FIRST_ERROR = 400


class ReplayProvider:
    """Answers turns from a cassette, each recording once, exactly as the SDK would through vcrpy.

    Args:
        path: the cassette.
        model: model of requests that name none.
        max_retries: how often a recorded failure is followed by the next recording of that request.
        base_url: the address the turns were recorded at, as in ``AnthropicProvider``. Its path must
            match; its host appears in messages about recorded failures.
        matching: what counts as the same request, and what drift does.

    Raises:
        CassetteUnreadableError: there is a file, but it is not a cassette.
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
        player, sent = self._player, self._player.matching.normalize_json(body)
        try:
            return replay_turn(
                lambda: player.find("POST", self._uri, sent, in_place=True),
                model=str(body["model"]),
                max_retries=self._max_retries,
                address=self._address,
                missed=lambda: player.miss("POST", self._uri, sent),
            )
        finally:
            player.files.write()

    async def asend(self, request: TurnRequest) -> Reply:
        """Return the recorded reply; raises as ``send`` does."""
        return self.send(request)


def replay_turn(
    take: Callable[[], StoredInteraction | None],
    *,
    model: str,
    max_retries: int,
    address: str,
    missed: Callable[[], BaseException],
) -> Reply:
    """Return the reply recorded for a turn, past the failures after which it was sent again.

    Args:
        take: returns the next recording of the request.
        model: the model asked, for messages.
        max_retries: how often a failure is followed by another recording; after a refusal by a rate
            limit counted anew.
        address: host named in messages.
        missed: makes the error for a request without a recording.
    """
    spent = Usage(cost=Cost())  # What is played costs nothing.
    attempt = 0
    refused: ProviderError | None = None
    while True:
        stored = take()
        if stored is None:
            error = missed()
            # A turn whose last recording is a refusal by a rate limit ended with that.
            raise refused if refused and isinstance(error, CassetteMissError) else error
        refused = None
        recorded = stored.interaction
        is_answer = recorded.status < _FIRST_ERROR
        if is_answer and recorded.end == "complete" and not recorded.is_stream:
            reply = reply_from_body(_json_or_text(recorded.response_body))
            return replace(reply, usage=spent + reply.usage)
        if is_answer and recorded.is_stream:
            try:
                reply = _read_stream(recorded, model, address)
            except ProviderError as error:
                spent += error.usage or Usage()
                error.usage = spent
                if attempt == max_retries or not isinstance(error, TransportError):
                    raise
                attempt += 1
                continue
            return replace(reply, usage=spent + reply.usage)
        failed, follows = _read_failure(recorded, model, address)
        if failed.usage is not None or spent.total_tokens:
            failed.usage = spent
        if follows == "again":
            refused, attempt = failed, 0
        elif follows == "retry" and attempt < max_retries:
            attempt += 1
        else:
            raise failed


def _read_failure(
    recorded: Interaction, model: str, address: str
) -> tuple[ProviderError, Literal["again", "retry", "end"]]:
    """Return the failure of a recorded answer that is no reply, and what followed it.

    After a refusal by a rate limit the turn was sent again, however often.
    """
    if recorded.end != "complete" and not recorded.is_stream:
        # The client left before it was whole; the SDK would ask again.
        reason = f"RemoteProtocolError: {BROKEN_OFF}"
        return connection_failure(reason, model=model, address=address), "retry"
    answer = _json_or_text(recorded.response_body)
    headers = {name: values[0] for name, values in recorded.response_headers.items() if values}
    failed = status_failure(recorded.status, answer, model=model, address=address)
    if limit_pause(recorded.status, headers, answer) is not None:
        return failed, "again"
    return failed, "retry" if is_retried(recorded.status, headers, answer) else "end"


def _read_stream(recorded: Interaction, model: str, address: str) -> Reply:
    """Return the reply of a recorded stream.

    Raises:
        ProviderError: the stream was cut off or reports an error; carries the usage so far.
    """
    message = StreamedMessage()
    try:
        for event in sse_events(recorded.response_body.decode("utf-8", "replace")):
            if event.get("type") == "error":
                raise status_failure(recorded.status, event, model=model, address=address)
            message.feed(event)
        if recorded.end != "complete":
            # In the words of the client that would have read the stream.
            raise cut_stream(f"RemoteProtocolError: {BROKEN_OFF}")
        return message.reply()
    except ProviderError as error:
        error.usage = message.usage
        raise


def _json_or_text(body: bytes) -> object:
    value = json_or_none(body)
    return body.decode("utf-8", "replace") if value is None else value
