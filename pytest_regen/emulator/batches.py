"""Message batches and lists of models: created, polled, cancelled and deleted by the clock."""

import hashlib
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_regen.canonical import canonical_json
from pytest_regen.emulator.limits import Clock, timestamp
from pytest_regen.emulator.messages import derived_id
from pytest_regen.emulator.values import ApiError, BatchStep, dump
from pytest_regen.turns.models import MODELS, Model, find_model

_DEFAULT_LIMIT = 20
_MAX_LIMIT = 1_000
_LIMIT = re.compile("[0-9]{1,9}")


def page_of(items: Sequence[dict[str, Any]], query: Mapping[str, str]) -> dict[str, Any]:
    """Return the page of ``items`` that ``limit``, ``after_id`` and ``before_id`` ask for.

    Raises:
        ApiError: 400, a parameter is wrong.
    """
    limit = query.get("limit", str(_DEFAULT_LIMIT))
    if not _LIMIT.fullmatch(limit) or not 1 <= int(limit) <= _MAX_LIMIT:
        raise ApiError(f"limit: Input should be between 1 and {_MAX_LIMIT}")
    ids = [item["id"] for item in items]
    first, last = 0, len(items)
    if "after_id" in query:
        first = _position(ids, query["after_id"], "after_id") + 1
    if "before_id" in query:
        last = _position(ids, query["before_id"], "before_id")
        first = max(first, last - int(limit))
    page = list(items[first : min(last, first + int(limit))])
    more = first > 0 if "before_id" in query else first + len(page) < last
    return {
        "data": page,
        "has_more": more,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
    }


def _position(ids: Sequence[str], id_: str, name: str) -> int:
    if id_ not in ids:
        raise ApiError(f"{name}: '{id_}' is not in this list")
    return ids.index(id_)


def model_list(query: Mapping[str, str]) -> dict[str, Any]:
    """Return one page of the models, newest first."""
    return page_of([_info(model) for model in MODELS], query)


def model_info(name: str) -> dict[str, Any]:
    """Return one model by id or alias.

    Raises:
        ApiError: 404.
    """
    model = find_model(name)
    if model is None:
        raise ApiError(f"model: {name}", status=404)
    return _info(model)


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


_DAY = 24 * 3600.0
_KEPT = 29 * _DAY
_MAX_REQUESTS = 100_000
_CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_COUNTS = ("processing", "succeeded", "errored", "canceled", "expired")

BatchAnswer = Callable[[Mapping[str, Any], Mapping[str, str]], dict[str, Any]]
"""Returns the message for one request of a batch, or raises ApiError or ExpiredError."""


class ExpiredError(Exception):
    """A request of a batch was not processed in time."""


@dataclass(slots=True)
class _Batch:
    id: str
    requests: list[dict[str, Any]]
    headers: Mapping[str, str]
    created_at: float
    seconds: float
    seen_from: float
    cancelled_at: float | None = None
    ended_at: float | None = None
    results: list[dict[str, Any]] = field(default_factory=list)


class Batches:
    """All batches that were not deleted. Safe in several threads.

    Args:
        answer: returns the message for one request.
        clock: a batch ends ``seconds`` after it was created by this clock.
        seconds: how long a batch takes unless it says so itself; with 24 hours or more it expires.
        admit: called with the number of requests that would wait; raises ApiError if it is too
            large.
    """

    def __init__(
        self, answer: BatchAnswer, *, clock: Clock, seconds: float, admit: Callable[[int], None]
    ) -> None:
        self._answer = answer
        self._admit = admit
        self._clock = clock
        self._seconds = seconds
        self._known: dict[str, _Batch] = {}
        self._created: dict[str, int] = {}
        self._lock = threading.RLock()

    def create(
        self,
        body: Mapping[str, Any],
        headers: Mapping[str, str],
        host: str,
        step: BatchStep | None = None,
    ) -> dict[str, Any]:
        """Create a batch; its requests are validated only when it is processed.

        Args:
            body: of the request.
            headers: of the request.
            host: that the client used for this server.
            step: how long this batch takes, and from when on it is seen.

        Raises:
            ApiError: 400, a custom id is missing, repeated or malformed; 429, too many wait.
        """
        requests = _check_requests(body)
        text = canonical_json(requests)
        with self._lock:
            current = [self._processed(batch) for batch in self._known.values()]
            waiting = [len(batch.requests) for batch in current if batch.ended_at is None]
            self._admit(sum(waiting) + len(requests))
            # Only a repetition of the very same batch needs a number.
            repetition = self._created.get(text, 0)
            self._created[text] = repetition + 1
            id_ = derived_id("msgbatch_01Emu", text, str(repetition))
            step, now = step or BatchStep(), self._clock.now()
            seconds = self._seconds if step.seconds is None else step.seconds
            self._known[id_] = _Batch(id_, requests, headers, now, seconds, now + step.unlisted)
            return self._description(self._known[id_], host)

    def get(self, id_: str, host: str) -> dict[str, Any]:
        """Return the current state of one batch.

        Raises:
            ApiError: 404.
        """
        with self._lock:
            return self._description(self._current(id_), host)

    def page(self, query: Mapping[str, str], host: str) -> dict[str, Any]:
        """Return one page of the batches, newest first."""
        with self._lock:
            shown = [
                self._description(self._processed(batch), host)
                for batch in reversed(self._known.values())
                if self._is_seen(batch)
            ]
        return page_of(shown, query)

    def cancel(self, id_: str, host: str) -> dict[str, Any]:
        """Cancel a batch: it ends at the next tick of the clock.

        Raises:
            ApiError: 404.
        """
        with self._lock:
            batch = self._current(id_)
            if batch.ended_at is None and batch.cancelled_at is None:
                batch.cancelled_at = self._clock.now()
            return self._description(batch, host)

    def delete(self, id_: str) -> dict[str, Any]:
        """Delete a batch that has ended.

        Raises:
            ApiError: 404, or 400 while it is processed.
        """
        with self._lock:
            batch = self._current(id_)
            if batch.ended_at is None:
                raise ApiError(
                    f"Message Batch {id_} cannot be deleted while it is in progress; "
                    "cancel it first."
                )
            del self._known[id_]
        return {"id": id_, "type": "message_batch_deleted"}

    def results(self, id_: str) -> bytes:
        """Return the results of a batch that has ended, one JSON object per line, in any order.

        Raises:
            ApiError: 404, also after 29 days, or 400 while it is processed.
        """
        with self._lock:
            batch = self._current(id_)
            if batch.ended_at is None:
                raise ApiError(f"Message Batch {id_} has not yet finished processing.")
            if self._is_archived(batch):
                raise ApiError(f"Message Batch {id_} has no results any more", status=404)
            return b"".join(dump(result) + b"\n" for result in batch.results)

    def _current(self, id_: str) -> _Batch:
        """Return a batch that callers see, processed first if it is due."""
        batch = self._known.get(id_)
        if batch is None or not self._is_seen(batch):
            raise ApiError(f"Message Batch {id_} not found", status=404)
        return self._processed(batch)

    def _is_seen(self, batch: _Batch) -> bool:
        return self._clock.now() >= batch.seen_from

    def _processed(self, batch: _Batch) -> _Batch:
        now = self._clock.now()
        due = batch.created_at + min(batch.seconds, _DAY)
        cancelled = batch.cancelled_at is not None and now > batch.cancelled_at
        if batch.ended_at is None and (cancelled or now >= due):
            batch.ended_at = now if cancelled else due
            batch.results = self._process(batch, cancelled=cancelled)
        return batch

    def _process(self, batch: _Batch, *, cancelled: bool) -> list[dict[str, Any]]:
        ending = "canceled" if cancelled else "expired" if batch.seconds >= _DAY else None
        results = [
            {
                "custom_id": request["custom_id"],
                "result": {"type": ending} if ending else self._result(batch, request),
            }
            for request in batch.requests
        ]
        return sorted(results, key=lambda result: _result_order(batch.id, result["custom_id"]))

    def _result(self, batch: _Batch, request: Mapping[str, Any]) -> dict[str, Any]:
        try:
            message = self._answer(request["params"], batch.headers)
        except ExpiredError:
            return {"type": "expired"}
        except ApiError as error:
            request_id = derived_id("req_emu", batch.id, request["custom_id"])
            return {"type": "errored", "error": error.envelope(request_id)}
        return {"type": "succeeded", "message": message}

    def _is_archived(self, batch: _Batch) -> bool:
        return self._clock.now() >= batch.created_at + _KEPT

    def _description(self, batch: _Batch, host: str) -> dict[str, Any]:
        # A client sends its key to results_url, so that has to be the host it asked.
        url = f"http://{host}/v1/messages/batches/{batch.id}/results"
        cancelled, ended = batch.cancelled_at, batch.ended_at
        archived = self._is_archived(batch)
        running = "in_progress" if cancelled is None else "canceling"
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": running if ended is None else "ended",
            "request_counts": _counts(batch),
            "ended_at": None if ended is None else timestamp(ended),
            "created_at": timestamp(batch.created_at),
            "expires_at": timestamp(batch.created_at + _DAY),
            "archived_at": timestamp(batch.created_at + _KEPT) if archived else None,
            "cancel_initiated_at": None if cancelled is None else timestamp(cancelled),
            "results_url": None if ended is None or archived else url,
        }


def _check_requests(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    requests = body.get("requests")
    _refuse_others(body, {"requests"}, "")
    if requests is None:
        raise ApiError("requests: Field required")
    if not isinstance(requests, list) or not requests or len(requests) > _MAX_REQUESTS:
        raise ApiError(f"requests: List should have between 1 and {_MAX_REQUESTS} items")
    seen: set[str] = set()
    for number, request in enumerate(requests):
        where = f"requests.{number}"
        if not isinstance(request, dict) or not isinstance(request.get("params"), dict):
            raise ApiError(f"{where}.params: Field required")
        _refuse_others(request, {"custom_id", "params"}, f"{where}.")
        id_ = request.get("custom_id")
        if not isinstance(id_, str) or not _CUSTOM_ID.fullmatch(id_):
            raise ApiError(
                f"{where}.custom_id: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'"
            )
        if id_ in seen:
            raise ApiError(f"{where}.custom_id: '{id_}' is not unique in this batch")
        seen.add(id_)
    return requests


def _refuse_others(fields: Mapping[str, Any], known: set[str], where: str) -> None:
    for name in fields:
        if name not in known:
            raise ApiError(f"{where}{name}: Extra inputs are not permitted")


def _counts(batch: _Batch) -> dict[str, int]:
    counts = dict.fromkeys(_COUNTS, 0)
    if batch.ended_at is None:
        counts["processing"] = len(batch.requests)
    for result in batch.results:
        counts[result["result"]["type"]] += 1
    return counts


def _result_order(batch_id: str, custom_id: str) -> bytes:
    return hashlib.sha256(f"{batch_id}/{custom_id}".encode()).digest()
