"""Turns answered from recordings, without an SDK, an HTTP client or a socket."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from pytest_regen.cassettes.files.reader import StoredInteraction
from pytest_regen.cassettes.interactions import BROKEN_OFF, Interaction
from pytest_regen.errors import CassetteMissError, ProviderError, TransportError
from pytest_regen.strict_json import json_or_none
from pytest_regen.turns import wire
from pytest_regen.turns.values import Cost, Reply, Usage

_FIRST_ERROR = 400


def replay_turn(
    take: Callable[[], StoredInteraction | None],
    *,
    model: str,
    max_retries: int,
    address: str,
) -> Reply | None:
    """Return the reply recorded for a turn, past the failures after which it was sent again.

    Args:
        take: returns the next recording of the request, raises ``CassetteMissError`` where there is
            none, or returns ``None`` if it is to be sent, and so does this.
        model: the model asked, for messages.
        max_retries: how often a failure is followed by another recording; after a refusal by a rate
            limit counted anew.
        address: host named in messages.
    """
    spent = Usage(cost=Cost())  # What is played costs nothing.
    attempt = 0
    refused: ProviderError | None = None
    while True:
        try:
            stored = take()
        except CassetteMissError as error:
            # Because a turn whose last recording is a refusal by a rate limit ended with that.
            raise refused or error from None
        if stored is None:
            return None
        refused = None
        recorded = stored.interaction
        is_answer = recorded.status < _FIRST_ERROR
        if is_answer and recorded.end == "complete" and not recorded.is_stream:
            reply = wire.reply_from_body(_json_or_text(recorded.response_body))
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
        if follows == "end" or (follows == "retry" and attempt >= max_retries):
            raise failed
        refused, attempt = (failed, 0) if follows == "again" else (None, attempt + 1)


def _read_failure(
    recorded: Interaction, model: str, address: str
) -> tuple[ProviderError, Literal["again", "retry", "end"]]:
    """Return the failure of a recorded answer that is no reply, and what followed it.

    After a refusal by a rate limit the turn was sent again, however often.
    """
    if recorded.end != "complete" and not recorded.is_stream:
        # The client left before it was whole; the SDK would ask again.
        reason = f"RemoteProtocolError: {BROKEN_OFF}"
        return wire.connection_failure(reason, model=model, address=address), "retry"
    answer = _json_or_text(recorded.response_body)
    headers = {name: values[0] for name, values in recorded.response_headers.items() if values}
    failed = wire.status_failure(recorded.status, answer, model=model, address=address)
    if wire.limit_pause(recorded.status, headers, answer) is not None:
        return failed, "again"
    return failed, "retry" if wire.is_retried(recorded.status, headers, answer) else "end"


def _read_stream(recorded: Interaction, model: str, address: str) -> Reply:
    """Return the reply of a recorded stream.

    Raises:
        ProviderError: the stream was cut off or reports an error; carries the usage so far.
    """
    message = wire.StreamedMessage()
    try:
        for event in wire.sse_events(recorded.response_body.decode("utf-8", "replace")):
            if event.get("type") == "error":
                raise wire.status_failure(recorded.status, event, model=model, address=address)
            message.feed(event)
        if recorded.end != "complete":
            # In the words of the client that would have read the stream.
            raise wire.cut_stream(f"RemoteProtocolError: {BROKEN_OFF}")
        return message.reply()
    except ProviderError as error:
        error.usage = message.usage
        raise


def _json_or_text(body: bytes) -> object:
    value = json_or_none(body)
    return body.decode("utf-8", "replace") if value is None else value
