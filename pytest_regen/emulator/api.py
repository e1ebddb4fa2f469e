"""The API without its socket: an HTTP request in, an HTTP response out."""

import copy
import gzip
import hashlib
import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from pytest_regen.emulator import faults, values
from pytest_regen.emulator.batches import Batches, ExpiredError, model_info, model_list
from pytest_regen.emulator.limits import Clock, Limiter, RateLimits
from pytest_regen.emulator.messages import EmulatedTurn, derived_id, events_of, message_of
from pytest_regen.emulator.prompt import PromptCache, prompt_of
from pytest_regen.emulator.rules import check_request
from pytest_regen.strict_json import TooDeepError, strict_loads
from pytest_regen.turns.models import Model
from pytest_regen.turns.wire import EMULATOR_NAME

# Only these two, because the API refuses any other.
_VERSIONS = ("2023-06-01", "2026-10-21")
MAX_BYTES = 32 * 1024 * 1024
MAX_BATCH_BYTES = 256 * 1024 * 1024
_BATCHES = "/v1/messages/batches"
_TOO_DEEP = "The request body is nested too deeply."
_NO_GZIP = re.compile(r"gzip\s*;\s*q\s*=\s*0(?:\.0*)?\s*(?:,|$)")
_ORGANIZATION = "00000000-0000-4000-8000-000000000000"

Body = Mapping[str, Any]


class MessagesApi:
    """Routes, credentials, envelopes and headers; calls are checked, counted and answered.

    Args:
        responder: returns the replies; may be replaced at any time.
        clock: the API's idea of the current time.
        keys: accepted API keys; any non-empty one if ``None``.
        limits: enforced per minute; no limits if ``None``.
        batch_seconds: how long a batch takes by ``clock``.
        next_batch: what happens to the next call that creates a batch.
    """

    def __init__(
        self,
        responder: values.Responder,
        *,
        clock: Clock,
        keys: Iterable[str] | None = None,
        limits: RateLimits | None = None,
        batch_seconds: float = 60.0,
        next_batch: Callable[[], values.BatchStep] = values.BatchStep,
    ) -> None:
        self.responder = responder
        self.failures: list[BaseException] = []
        """Exceptions of the responder, in order."""
        self._clock = clock
        self._next_batch = next_batch
        self._keys = None if keys is None else frozenset(map(_digest, keys))
        self._limiter = Limiter(limits, clock)
        self._cache = PromptCache()
        self._batches = batches = Batches(
            self._answer_in_batch,
            clock=clock,
            seconds=batch_seconds,
        )
        one = f"{_BATCHES}/([^/]+)"
        self._routes: tuple[
            tuple[str, str, Callable[..., values.HttpResponse | dict[str, Any]]], ...
        ] = (
            ("POST", "/v1/messages", self._messages),
            ("POST", "/v1/messages/count_tokens", self._count),
            ("POST", _BATCHES, self._create_batch),
            ("GET", _BATCHES, lambda request: batches.page(request.query, request.host)),
            ("GET", one, lambda request, id_: batches.get(id_, request.host)),
            ("DELETE", one, lambda _, id_: batches.delete(id_)),
            ("POST", f"{one}/cancel", lambda request, id_: batches.cancel(id_, request.host)),
            ("GET", f"{one}/results", self._results),
            ("GET", "/v1/models", lambda request: model_list(request.query)),
            ("GET", "/v1/models/([^/]+)", lambda _, name: model_info(name)),
        )

    def refuse(self, status: int, message: str) -> values.HttpResponse:
        """Return the response to bytes that are not a request for ``handle``."""
        request = values.HttpRequest("", "", id=derived_id("req_emu", str(status), message))
        error = values.error_response(values.ApiError(message, status=status), request.id)
        return _with_headers(request, error)

    def handle(self, request: values.HttpRequest) -> values.HttpResponse:
        """Return the response to one request; never raises."""
        # The same request gets the same id, whichever worker sends it first; a retry gets another.
        retry = request.headers.get("x-stainless-retry-count", "0")
        body = request.body.decode("utf-8", "replace")
        request_id = derived_id("req_emu", request.method, request.path, retry, body)
        request = replace(request, id=request_id)
        try:
            response = self._route(request)
        except values.ApiError as error:
            response = values.error_response(error, request_id)
        except RecursionError:
            response = values.error_response(values.ApiError(_TOO_DEEP), request_id)
        except Exception as error:  # noqa: BLE001 - a thread that dies would look like a fault
            response = values.error_response(self._failure(error), request_id)
        # Notes repeat names out of the body, which may repeat the key.
        if key := key_of(request.headers):
            request.notes[:] = [note.replace(key, "<key>") for note in request.notes]
        return _with_headers(request, response)

    def _failure(self, error: BaseException, what: str = "") -> values.ApiError:
        """Note an error that is not the client's; the client is told not to retry."""
        self.failures.append(error)
        return values.ApiError(
            f"{EMULATOR_NAME}: {what}{type(error).__name__}: {error}",
            status=500,
            headers={"x-should-retry": "false"},
        )

    def _route(self, request: values.HttpRequest) -> values.HttpResponse:
        key = key_of(request.headers)
        if not key or (self._keys is not None and _digest(key) not in self._keys):
            raise values.ApiError("invalid x-api-key", status=401)
        version = request.headers.get("anthropic-version")
        if version is None:
            raise values.ApiError("anthropic-version: header is required")
        if version not in _VERSIONS:
            raise values.ApiError(f'anthropic-version: "{version}" is not a valid version')
        status = 404
        # A path that is there with another method is 405, so all routes are looked at before 404.
        for method, pattern, answer in self._routes:
            if match := re.fullmatch(pattern, request.path):
                status = 405
                if method == request.method:
                    if pattern.startswith(_BATCHES):
                        self._limiter.admit_batches()
                    response = answer(request, *match.groups())
                    return (
                        values.json_response(response) if isinstance(response, dict) else response
                    )
        raise values.ApiError("Not found" if status == 404 else "Method Not Allowed", status=status)

    def _messages(self, request: values.HttpRequest) -> values.HttpResponse:
        body, headers = _json_body(request, MAX_BYTES), values.public_headers(request.headers)
        # An invalid request does not count against the limits, so its answer reports none.
        turn = self._turn(body, check_request(body, headers, notes=request.notes), "standard")
        try:
            self._limiter.admit(turn.model, turn.use.plain + turn.use.write)
            response = self._response(turn, self._ask(body, headers), request.id)
        except values.ApiError as error:
            response = values.error_response(error, request.id)
        if response.status in range(400, 429):
            return response
        return replace(response, headers={**self._limiter.headers(turn.model), **response.headers})

    def _count(self, request: values.HttpRequest) -> dict[str, Any]:
        body, headers = _json_body(request, MAX_BYTES), values.public_headers(request.headers)
        model = check_request(body, headers, counting=True, notes=request.notes)
        return {"input_tokens": prompt_of(body, model).tokens}

    def _create_batch(self, request: values.HttpRequest) -> values.HttpResponse:
        body, step = _json_body(request, MAX_BATCH_BYTES), self._next_batch()
        if step.fault and step.fault.kind == "status":
            return faults.status_fault(step.fault, request.id)
        response = values.json_response(self._batches.create(body, request, step))
        if step.fault is None:
            return response
        # The batch exists all the same, because a client that lost the answer has to find it.
        end: values.End = "drop" if step.fault.kind == "drop" else "cut"
        return replace(response, delay=step.fault.delay, end=end)

    def _results(self, _: values.HttpRequest, id_: str) -> values.HttpResponse:
        headers = {"content-type": "application/binary"}
        return values.HttpResponse(headers=headers, body=self._batches.results(id_))

    def _answer_in_batch(
        self, body: Body, *, headers: Mapping[str, str], notes: list[str]
    ) -> dict[str, Any]:
        model = check_request(body, headers, batched=True, notes=notes)
        turn = self._turn(body, model, "batch")
        answer = self._ask(body, headers)
        if isinstance(answer, values.Fault):
            raise ExpiredError if answer.kind == "expire" else faults.fault_error(answer)
        _check_answer(body, answer)
        turn.use.commit()  # at once, because a batch has no first byte to wait for
        return message_of(turn, answer)

    def _turn(self, body: Body, model: Model, tier: str) -> EmulatedTurn:
        prompt = prompt_of(body, model)
        if prompt.tokens > model.max_input:
            raise values.ApiError(
                f"prompt is too long: {prompt.tokens} tokens > {model.max_input} maximum"
            )
        use = self._cache.look_up(
            prompt.blocks, now=self._clock.now(), minimum=model.min_cacheable, scope=model.id
        )
        return EmulatedTurn(body, model, use, tier)

    def _ask(self, body: Body, headers: Mapping[str, str]) -> values.EmulatedReply | values.Fault:
        try:
            answer: object = call_responder(self.responder, copy.deepcopy(dict(body)), headers)
        except values.ApiError:
            raise
        except BaseException as error:  # pytest.fail() in a responder raises no Exception
            raise self._failure(error, "the responder raised ") from error
        if not isinstance(answer, str | values.EmulatedReply | values.Fault):
            kind = type(answer).__name__
            wrong = TypeError(f"a responder returns str, EmulatedReply or Fault, not {kind}")
            raise self._failure(wrong, "the responder raised ")
        return values.EmulatedReply(answer) if isinstance(answer, str) else answer

    def _response(
        self, turn: EmulatedTurn, answer: values.EmulatedReply | values.Fault, request_id: str
    ) -> values.HttpResponse:
        """Return the message, complete or ended early by a fault."""
        fault = answer if isinstance(answer, values.Fault) else None
        reply = answer.reply if isinstance(answer, values.Fault) else answer
        streamed = bool(turn.body.get("stream"))
        kind = fault.kind if fault else ""
        if fault and kind == "drop":
            return values.HttpResponse(fault.status, delay=fault.delay, end="drop")
        if fault and (kind in {"status", "expire"} or (kind == "error_event" and not streamed)):
            return faults.status_fault(fault, request_id)
        _check_answer(turn.body, reply)
        message = message_of(turn, reply)
        # Only now, because nobody knows before it is written how long an answer is.
        self._limiter.spend(turn.model, message["usage"]["output_tokens"])
        breaks = kind == "cut" or (kind == "unfinished" and not streamed)
        response = values.HttpResponse(
            headers={"content-type": "application/json"},
            body=b"" if streamed else values.dump(message),
            delay=answer.delay,
            end="cut" if breaks else "whole",
            on_start=turn.use.commit,
        )
        if not streamed:
            return response
        parts = tuple(events_of(message, reply))
        headers = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
        if fault:
            parts = faults.stop_early(parts, fault, request_id)
            headers |= faults.fault_headers(fault)
        return replace(response, headers=headers, parts=parts)


def _check_answer(body: Body, reply: values.EmulatedReply) -> None:
    """Check that a reply keeps the promise of structured output, where jsonschema is installed.

    Refusals and truncated replies promise nothing, and ``check_schema=False`` turns this off.

    Raises:
        ApiError: 500, without a retry: the script is wrong.
    """
    output = (body.get("output_config") or {}).get("format")
    is_whole = reply.stop_reason == "end_turn" and not reply.tools and body.get("max_tokens") != 0
    if not output or not reply.check_schema or not is_whole:
        return
    # Not needed to answer, so it is no requirement of the emulator.
    try:
        import jsonschema
    except ModuleNotFoundError:
        return
    try:
        jsonschema.validate(json.loads(reply.text), output["schema"])
    except jsonschema.SchemaError as error:
        raise values.ApiError(f"output_config.format.schema: {error.message}") from error
    except jsonschema.ValidationError as error:
        problem = f"{error.json_path}: {error.message}"
    except ValueError as error:
        problem = f"it is no JSON ({error})"
    else:
        return
    raise values.ApiError(
        f"{EMULATOR_NAME}: the scripted reply breaks output_config.format: {problem}. "
        "Say check_schema=False if that is meant.",
        status=500,
        headers={"x-should-retry": "false"},
    )


def call_responder(
    responder: Callable[..., values.ResponderResult],
    body: dict[str, Any],
    headers: Mapping[str, str],
) -> values.ResponderResult:
    """Call ``responder`` with the headers if it takes them, without if it does not."""
    # By its signature, because a TypeError of a call could come out of the responder itself.
    parameters = inspect.signature(responder).parameters.values()
    takes_headers = any(
        p.name == "headers" or p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters
    )
    return responder(body, headers=headers) if takes_headers else responder(body)


def _with_headers(
    request: values.HttpRequest, response: values.HttpResponse
) -> values.HttpResponse:
    headers = {
        "server": EMULATOR_NAME,
        "request-id": request.id,
        "anthropic-organization-id": _ORGANIZATION,
        **response.headers,
    }
    if response.parts is not None:
        return replace(response, headers=headers)
    headers["vary"] = "Accept-Encoding"
    accepted = request.headers.get("accept-encoding", "").lower()
    if not response.body or "gzip" not in accepted or _NO_GZIP.search(accepted):
        return replace(response, headers=headers)
    # Packed without the time, because recordings of the same answer are the same bytes.
    headers["content-encoding"] = "gzip"
    return replace(response, headers=headers, body=gzip.compress(response.body, mtime=0))


def _json_body(request: values.HttpRequest, limit: int) -> dict[str, Any]:
    """Return the body of a request as a JSON object.

    Raises:
        ApiError: it is not a JSON object, or larger than ``limit`` bytes.
    """
    if len(request.body) > limit:
        raise values.ApiError("Request exceeds the maximum size", status=413)
    try:
        text = request.body.decode("utf-8")
        # The real API accepts duplicate keys.
        body = strict_loads(text, unique_keys=False)
        # Ids are hashes of the canonical JSON, which has no number beyond a float's.
        json.dumps(body, allow_nan=False)
    except TooDeepError:
        raise values.ApiError(_TOO_DEEP) from None
    except ValueError as error:
        raise values.ApiError(f"The request body is not valid JSON: {error}") from error
    if not isinstance(body, dict):
        raise values.ApiError("Input should be a valid dictionary")
    return body


def key_of(headers: Mapping[str, str]) -> str:
    """Return the credential of a request; empty if there is none."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
