"""The API without its socket: an HTTP request in, an HTTP response out."""

import gzip
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from pytest_regen.emulator.batches import Batches, model_info, model_list
from pytest_regen.emulator.limits import Clock, Limiter, RateLimits
from pytest_regen.emulator.messages import derived_id
from pytest_regen.emulator.service import (
    MessageService,
    count_tokens,
    drop_connection,
    status_fault,
)
from pytest_regen.emulator.values import (
    ApiError,
    BatchStep,
    HttpRequest,
    HttpResponse,
    Responder,
    error_response,
    json_response,
)
from pytest_regen.strict_json import TooDeepError, strict_loads
from pytest_regen.turns.models import find_model
from pytest_regen.turns.wire import EMULATOR_NAME

_VERSIONS = ("2023-06-01", "2026-10-21")
MAX_BYTES = 32 * 1024 * 1024
MAX_BATCH_BYTES = 256 * 1024 * 1024
_BATCHES = "/v1/messages/batches"
_REFUSALS = range(400, 429)
"""Statuses of invalid requests; 429 is that of a limit."""
_DEEPEST = 200
"""How deep a body may nest: far deeper than real ones, a little less than Python's stack."""
_TOO_DEEP = "The request body is nested too deeply."
_NO_GZIP = re.compile(r"gzip\s*;\s*q\s*=\s*0(?:\.0*)?\s*(?:,|$)")
_ORGANIZATION = "00000000-0000-4000-8000-000000000000"


class MessagesApi:
    """Routes, credentials, envelopes and headers.

    Args:
        responder: returns the replies.
        clock: the API's idea of the current time.
        keys: accepted API keys; any non-empty one if ``None``.
        limits: enforced per minute; no limits if ``None``.
        batch_seconds: how long a batch takes by ``clock``.
        padding: pad the lines of streams.
        compress: answer in gzip where the client accepts it.
        next_batch: what happens to the next call that creates a batch.
    """

    def __init__(
        self,
        responder: Responder,
        *,
        clock: Clock,
        keys: Iterable[str] | None = None,
        limits: RateLimits | None = None,
        batch_seconds: float = 60.0,
        padding: bool = False,
        compress: bool = True,
        next_batch: Callable[[], BatchStep] = BatchStep,
    ) -> None:
        self._next_batch = next_batch
        self._keys = None if keys is None else frozenset(map(_digest, keys))
        self._compress = compress
        self._limiter = Limiter(limits, clock)
        self.service = MessageService(
            responder, clock=clock, limiter=self._limiter, padding=padding
        )
        self._batches = Batches(
            lambda body, headers: self.service.answer_in_batch(body, headers=headers),
            clock=clock,
            seconds=batch_seconds,
            admit=self._limiter.admit_queued,
        )

    def refuse(self, status: int, message: str) -> HttpResponse:
        """Return the response to bytes that are not a request for ``handle``."""
        request = HttpRequest("", "", id=derived_id("req_emu", str(status), message))
        error = error_response(ApiError(message, status=status), request.id)
        return self._with_headers(request, error)

    def handle(self, request: HttpRequest) -> HttpResponse:
        """Return the response to one request; never raises."""
        # The same request gets the same id, whichever worker sends it first; a retry gets another.
        retry = request.headers.get("x-stainless-retry-count", "0")
        body = request.body.decode("utf-8", "replace")
        request_id = derived_id("req_emu", request.method, request.path, retry, body)
        request = replace(request, id=request_id)
        try:
            response = self._route(request)
        except ApiError as error:
            response = error_response(error, request_id)
        except RecursionError:
            response = error_response(ApiError(_TOO_DEEP), request_id)
        except Exception as error:  # noqa: BLE001 - a thread that dies would look like a fault
            self.service.failures.append(error)
            broken = ApiError(
                f"{EMULATOR_NAME}: {type(error).__name__}: {error}",
                status=500,
                headers={"x-should-retry": "false"},
            )
            response = error_response(broken, request_id)
        return self._with_headers(request, response)

    def _route(self, request: HttpRequest) -> HttpResponse:
        self._authenticate(request)
        for pattern, methods in self._routes:
            if found := re.fullmatch(pattern, request.path):
                if request.method not in methods:
                    raise ApiError("Method Not Allowed", status=405)
                if pattern.startswith(_BATCHES):
                    self._limiter.admit_other("batches")
                return methods[request.method](request, *found.groups())
        raise ApiError("Not found", status=404)

    def _messages(self, request: HttpRequest) -> HttpResponse:
        body = _json_body(request, MAX_BYTES)
        model = find_model(str(body.get("model")))
        try:
            response = self.service.answer(
                body, headers=public_headers(request.headers), request_id=request.id
            )
        except ApiError as error:
            response = error_response(error, request.id)
        # An invalid request does not count against the limits.
        if model is None or response.status in _REFUSALS:
            return response
        return replace(response, headers={**self._limiter.headers(model), **response.headers})

    def _count(self, request: HttpRequest) -> HttpResponse:
        self._limiter.admit_other("count_tokens")
        body = _json_body(request, MAX_BYTES)
        return json_response({"input_tokens": count_tokens(body, version=_version(request))})

    def _create_batch(self, request: HttpRequest) -> HttpResponse:
        body = _json_body(request, MAX_BATCH_BYTES)
        headers, step = public_headers(request.headers), self._next_batch()
        if step.fault and step.fault.kind == "status":
            return status_fault(step.fault, request.id)
        batch = self._batches.create(body, headers, request.host, step)
        if step.fault is None:
            return json_response(batch)
        if step.fault.kind == "drop":
            return drop_connection(step.fault)
        return replace(json_response(batch), delay=step.fault.delay, end="cut")

    def _results(self, _: HttpRequest, id_: str) -> HttpResponse:
        return HttpResponse(
            headers={"content-type": "application/binary"}, body=self._batches.results(id_)
        )

    @property
    def _routes(self) -> tuple[tuple[str, dict[str, Callable[..., HttpResponse]]], ...]:
        batches = self._batches
        return (
            ("/v1/messages", {"POST": self._messages}),
            ("/v1/messages/count_tokens", {"POST": self._count}),
            (
                _BATCHES,
                {
                    "POST": self._create_batch,
                    "GET": lambda request: json_response(batches.page(request.query, request.host)),
                },
            ),
            (
                f"{_BATCHES}/([^/]+)",
                {
                    "GET": lambda request, id_: json_response(batches.get(id_, request.host)),
                    "DELETE": lambda _, id_: json_response(batches.delete(id_)),
                },
            ),
            (
                f"{_BATCHES}/([^/]+)/cancel",
                {"POST": lambda request, id_: json_response(batches.cancel(id_, request.host))},
            ),
            (f"{_BATCHES}/([^/]+)/results", {"GET": self._results}),
            ("/v1/models", {"GET": lambda request: json_response(model_list(request.query))}),
            ("/v1/models/([^/]+)", {"GET": lambda _, name: json_response(model_info(name))}),
        )

    def _authenticate(self, request: HttpRequest) -> None:
        key = key_of(request.headers)
        if not key or (self._keys is not None and _digest(key) not in self._keys):
            raise ApiError("invalid x-api-key", status=401)
        version = request.headers.get("anthropic-version")
        if version is None:
            raise ApiError("anthropic-version: header is required")
        if version not in _VERSIONS:
            raise ApiError(f'anthropic-version: "{version}" is not a valid version')

    def _with_headers(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        headers = {
            "server": EMULATOR_NAME,
            "request-id": request.id,
            "anthropic-organization-id": _ORGANIZATION,
            **response.headers,
        }
        if not self._compress or response.parts is not None:
            return replace(response, headers=headers)
        headers["vary"] = "Accept-Encoding"
        if not response.body or not _takes_gzip(request.headers.get("accept-encoding", "")):
            return replace(response, headers=headers)
        headers["content-encoding"] = "gzip"
        return replace(response, headers=headers, body=gzip.compress(response.body, mtime=0))


def _json_body(request: HttpRequest, limit: int) -> dict[str, Any]:
    """Return the body of a request as a JSON object.

    Raises:
        ApiError: it is not a JSON object, or larger than ``limit`` bytes.
    """
    if len(request.body) > limit:
        raise ApiError("Request exceeds the maximum size", status=413)
    try:
        text = request.body.decode("utf-8")
        # The real API accepts duplicate keys.
        body = strict_loads(text, unique_keys=False)
    except TooDeepError:
        raise ApiError(_TOO_DEEP) from None
    except ValueError as error:
        raise ApiError(f"The request body is not valid JSON: {error}") from error
    if _is_deep(body):
        raise ApiError(_TOO_DEEP)
    if not isinstance(body, dict):
        raise ApiError("Input should be a valid dictionary")
    return body


def _is_deep(value: object) -> bool:
    """Whether a JSON value is nested too deeply."""
    level: list[Any] = [value]
    for _ in range(_DEEPEST):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def _takes_gzip(accepted: str) -> bool:
    """Whether an ``accept-encoding`` header allows gzip, the only encoding that is offered."""
    return "gzip" in accepted.lower() and not _NO_GZIP.search(accepted.lower())


def key_of(headers: Mapping[str, str]) -> str:
    """Return the credential of a request; empty if there is none."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")


def public_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers without credentials and cookies."""
    hidden = {"authorization", "x-api-key", "cookie", "proxy-authorization"}
    return {name: value for name, value in headers.items() if name not in hidden}


def _version(request: HttpRequest) -> str:
    return request.headers["anthropic-version"]


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
