"""Turns answered from recordings, without an SDK, an HTTP client or a socket."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pytest_regen.cassettes.misses import miss
from pytest_regen.cassettes.reading import StoredInteraction, read_cassette
from pytest_regen.cassettes.tape import Tape
from pytest_regen.cassettes.values import Interaction, json_or_none, request_key
from pytest_regen.errors import CassetteMissError
from pytest_regen.turns.defaults import DEFAULT_MODEL
from pytest_regen.turns.failures import is_retried, status_failure
from pytest_regen.turns.values import Reply, TurnRequest
from pytest_regen.turns.wire import (
    MESSAGES_PATH,
    reply_from_body,
    reply_from_events,
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
        base_path: path before ``/v1/messages``, where the recorded server had one.
        address: host named in messages about recorded failures.

    Raises:
        CassetteUnreadableError: there is a file, but it is no cassette.
    """

    def __init__(
        self,
        path: Path,
        *,
        model: str | None = None,
        max_retries: int = 2,
        base_path: str = "",
        address: str = "api.anthropic.com",
    ) -> None:
        self.path = Path(path)
        self._model = model
        self._max_retries = max_retries
        self._uri = base_path + MESSAGES_PATH
        self._address = address
        file = read_cassette(self.path)
        self._exists = file is not None
        self.tape = Tape(file.interactions if file else ())

    def send(self, request: TurnRequest) -> Reply:
        """Return the recorded reply.

        Raises:
            CassetteMissError: this request was never recorded, or is used up.
            ProviderError: the recording is a failure.
        """
        body = request_body(request)
        body["model"] = request.model or self._model or DEFAULT_MODEL
        return replayed_turn(
            self.tape.take,
            body,
            uri=self._uri,
            max_retries=self._max_retries,
            address=self._address,
            missed=self._missed,
        )

    async def asend(self, request: TurnRequest) -> Reply:
        """Return the recorded reply; raises as ``send`` does."""
        return self.send(request)

    def _missed(self, body: Mapping[str, Any], key: str) -> CassetteMissError:
        return miss(
            self.path,
            self.tape,
            method="POST",
            uri=self._uri,
            body=body,
            key=key,
            exists=self._exists,
        )


def replayed_turn(
    take: Callable[[str], StoredInteraction | None],
    body: Mapping[str, Any],
    *,
    uri: str,
    max_retries: int,
    address: str,
    missed: Callable[[Mapping[str, Any], str], BaseException],
) -> Reply:
    """Return the reply recorded for ``body``, past the failures that the SDK would retry.

    Args:
        take: gives the next recording for a key.
        body: JSON of the request.
        uri: path of the request.
        max_retries: times a failure is followed by another recording.
        address: host named in messages.
        missed: makes the error for a request without a recording.
    """
    key = request_key("POST", uri, body)
    for attempt in range(max_retries + 1):
        stored = take(key)
        if stored is None:
            raise missed(body, key)
        found = stored.interaction
        if found.status < _FIRST_ERROR:
            return _reply(found, str(body.get("model")), address)
        said = _json_or_text(found.response_body)
        headers = {name: values[0] for name, values in found.response_headers.items() if values}
        if attempt == max_retries or not is_retried(found.status, headers, said):
            raise status_failure(found.status, said, model=str(body.get("model")), address=address)
    raise AssertionError("the last attempt returns or raises")


def _reply(found: Interaction, model: str, address: str) -> Reply:
    if not found.is_stream:
        return reply_from_body(_json_or_text(found.response_body))
    events = list(sse_events(found.response_body.decode("utf-8", "replace")))
    for event in events:
        if event.get("type") == "error":
            raise status_failure(found.status, event, model=model, address=address)
    return reply_from_events(events)


def _json_or_text(body: bytes) -> object:
    value = json_or_none(body)
    return body.decode("utf-8", "replace") if value is None else value
