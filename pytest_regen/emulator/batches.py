"""Message batches and lists of models: created, polled, cancelled and deleted by the clock."""

import math
import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_regen.canonical import canonical_json
from pytest_regen.emulator.faults import envelope
from pytest_regen.emulator.limits import Clock, timestamp
from pytest_regen.emulator.messages import derived_id
from pytest_regen.emulator.values import ApiError, BatchStep, HttpResponse, ReceivedRequest, dump
from pytest_regen.turns.models import MODELS, Model, find_model

_DAY = 24 * 3600.0
_KEPT = 29 * _DAY
_CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_COUNTS = ("processing", "succeeded", "errored", "canceled", "expired")


def _page(items: Sequence[dict[str, Any]], query: Mapping[str, str]) -> dict[str, Any]:
    """Return the page of ``items`` that ``limit`` and ``after_id`` ask for."""
    ids = [item["id"] for item in items]
    try:
        limit = int(query.get("limit", "20"))
        first = ids.index(query["after_id"]) + 1 if "after_id" in query else 0
    except ValueError as error:
        raise ApiError(f"there is no such page: {error}") from error
    page = list(items[first : first + limit])
    return {
        "data": page,
        "has_more": first + limit < len(ids),
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
    }


def model_list(request: ReceivedRequest) -> dict[str, Any]:
    """Return one page of the models, newest first."""
    return _page([_info(model) for model in MODELS], request.query)


def model_info(_: ReceivedRequest, name: str) -> dict[str, Any]:
    """Return one model by id or alias; 404 if there is none."""
    return _info(model_of(name))


def model_of(name: str) -> Model:
    """Return one model by id or alias; 404 if there is none."""
    if model := find_model(name):
        return model
    raise ApiError(f"model: {name}", 404)


def _info(model: Model) -> dict[str, Any]:
    return {
        "type": "model",
        "id": model.id,
        "display_name": model.display_name,
        "created_at": model.created_at,
        "lifecycle": "deprecated" if model.deprecated else "active",
        "line": model.line,
        "max_input_tokens": model.max_input,
        "max_tokens": model.max_output,
    }


@dataclass(slots=True)
class _Batch:
    id: str
    creation: ReceivedRequest
    created_at: float
    visible_from: float
    due: float
    cancelled_at: float | None = None
    ended_at: float | None = None
    results: list[dict[str, Any]] = field(default_factory=list)


class Batches:
    """All batches that were not deleted. Whoever calls holds ``lock``.

    Args:
        answer: returns the message for one request of a batch, whose creation it is told too, or
            raises ApiError.
        clock: a batch ends ``seconds`` after it was created by this clock.
        seconds: how long a batch takes unless it says so itself.
    """

    def __init__(self, answer: Callable[..., dict[str, Any]], clock: Clock, seconds: float) -> None:
        self._answer = answer
        self._clock = clock
        self._seconds = seconds
        self._batches: dict[str, _Batch] = {}
        self._repetitions: Counter[str] = Counter()
        self.lock = threading.Lock()

    def create(self, creation: ReceivedRequest, step: BatchStep) -> dict[str, Any]:
        """Create a batch; its requests are validated only when it is processed.

        Args:
            creation: the request.
            step: how long this batch takes, and from when on it is seen.

        Raises:
            ApiError: 400, a custom id is missing, repeated or malformed.
        """
        requests = (creation.body or {}).get("requests")
        if not isinstance(requests, list) or not requests:
            raise ApiError("requests: List should have at least 1 item")
        ids: set[str] = set()
        for number, request in enumerate(requests):
            if not isinstance(request, dict) or not isinstance(request.get("params"), dict):
                raise ApiError(f"requests.{number}.params: Field required")
            id_ = str(request.get("custom_id") or "")
            if not _CUSTOM_ID.fullmatch(id_) or id_ in ids:
                pattern = f"match '^{_CUSTOM_ID.pattern}$' and be unique in its batch"
                raise ApiError(f"requests.{number}.custom_id: {id_!r} should {pattern}")
            ids.add(id_)
        text = canonical_json(requests)
        # The number tells repetitions of the very same batch apart, and only these.
        id_ = derived_id("msgbatch_01Emu", text, str(self._repetitions[text]))
        self._repetitions[text] += 1
        now = self._clock.now()
        seconds = self._seconds if step.seconds is None else step.seconds
        self._batches[id_] = _Batch(id_, creation, now, now + step.unlisted, now + seconds)
        return self._description(self._batches[id_], creation)

    def get(self, request: ReceivedRequest, id_: str) -> dict[str, Any]:
        """Return the current state of one batch, 404 if there is none."""
        return self._description(self._current(id_), request)

    def page(self, request: ReceivedRequest) -> dict[str, Any]:
        """Return one page of the batches, newest first."""
        visible = [b for b in self._batches.values() if self._clock.now() >= b.visible_from]
        listed = [self._description(self._current(b.id), request) for b in visible]
        return _page(listed[::-1], request.query)

    def cancel(self, request: ReceivedRequest, id_: str) -> dict[str, Any]:
        """Cancel a batch: it ends at the next tick of the clock."""
        batch = self._current(id_)
        if batch.ended_at is None and batch.cancelled_at is None:
            batch.cancelled_at = self._clock.now()
            # Not at once, because a client is to see that it is being cancelled.
            batch.due = math.nextafter(batch.cancelled_at, math.inf)
        return self._description(batch, request)

    def delete(self, _: ReceivedRequest, id_: str) -> dict[str, Any]:
        """Delete a batch that has ended; 400 while it is processed."""
        if self._current(id_).ended_at is None:
            raise ApiError(f"Message Batch {id_} is in progress; cancel it before you delete it.")
        del self._batches[id_]
        return {"id": id_, "type": "message_batch_deleted"}

    def results(self, _: ReceivedRequest, id_: str) -> HttpResponse:
        """Return the results of a batch, one JSON object per line, in any order.

        Raises:
            ApiError: 404, or 400 while it is processed.
        """
        batch = self._current(id_)
        if batch.ended_at is None:
            raise ApiError(f"Message Batch {id_} has not yet finished processing.")
        lines = b"".join(dump(result) + b"\n" for result in batch.results)
        return HttpResponse(headers={"content-type": "application/binary"}, body=lines)

    def _current(self, id_: str) -> _Batch:
        """Return a batch that callers see, processed first if it is due."""
        batch, now = self._batches.get(id_), self._clock.now()
        if batch is None or now < batch.visible_from:
            raise ApiError(f"Message Batch {id_} not found", 404)
        if batch.ended_at is None and now >= batch.due:
            batch.ended_at = batch.due
            for request in batch.creation.body["requests"]:
                id_ = request["custom_id"]
                result: dict[str, Any] = {"type": "canceled"}
                try:
                    if batch.cancelled_at is None:
                        message = self._answer(request["params"], batch.creation)
                        result = {"type": "succeeded", "message": message}
                except ApiError as error:
                    problem = envelope(error.fault, derived_id("req_emu", batch.id, id_))
                    result = {"type": "errored", "error": problem}
                    if error.fault.kind == "expire":
                        result = {"type": "expired"}
                batch.results.append({"custom_id": id_, "result": result})
            # Clients must go by custom ids, because the API returns results in any order.
            batch.results.sort(key=lambda result: derived_id(batch.id, result["custom_id"]))
        return batch

    def _description(self, batch: _Batch, request: ReceivedRequest) -> dict[str, Any]:
        # A client sends its key to results_url, so that has to be the host it asked.
        url = f"http://{request.headers.get('host')}/v1/messages/batches/{batch.id}/results"
        archived = self._clock.now() >= batch.created_at + _KEPT
        running = "in_progress" if batch.cancelled_at is None else "canceling"
        counts = Counter(result["result"]["type"] for result in batch.results)
        counts["processing"] = len(batch.creation.body["requests"]) - len(batch.results)
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": running if batch.ended_at is None else "ended",
            "request_counts": {name: counts[name] for name in _COUNTS},
            "ended_at": timestamp(batch.ended_at),
            "created_at": timestamp(batch.created_at),
            "expires_at": timestamp(batch.created_at + _DAY),
            "archived_at": timestamp(batch.created_at + _KEPT) if archived else None,
            "cancel_initiated_at": timestamp(batch.cancelled_at),
            "results_url": None if batch.ended_at is None or archived else url,
        }
