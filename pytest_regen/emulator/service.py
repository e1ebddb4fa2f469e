"""Calls of the Messages API: validated, counted, answered by the responder or a fault."""

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_regen.emulator.batches import ExpiredError
from pytest_regen.emulator.limits import Clock, Limiter
from pytest_regen.emulator.messages import TEXT_DELTA, EmulatedTurn, event, events_of, message_of
from pytest_regen.emulator.prompt import PromptCache, PromptHistory, prompt_of
from pytest_regen.emulator.rules import check_request
from pytest_regen.emulator.schemas import check_answer
from pytest_regen.emulator.values import (
    ERROR_TYPES,
    ApiError,
    EmulatedReply,
    End,
    Fault,
    HttpResponse,
    Part,
    Responder,
    ResponderResult,
    dump,
    error_response,
)
from pytest_regen.turns.models import Model
from pytest_regen.turns.wire import EMULATOR_NAME

_MESSAGES = {
    401: "invalid x-api-key",
    413: "Request exceeds the maximum size",
    429: "This request would exceed the rate limit of your organization.",
    500: "Internal server error",
    529: "Overloaded",
}


def status_fault(fault: Fault, request_id: str) -> HttpResponse:
    """Return the error response that ``fault`` describes."""
    if fault.body is not None:
        headers = {"content-type": "text/plain", **fault_headers(fault)}
        return HttpResponse(fault.status, headers, fault.body.encode(), delay=fault.delay)
    response = error_response(fault_error(fault), request_id)
    return HttpResponse(response.status, response.headers, response.body, delay=fault.delay)


def drop_connection(fault: Fault) -> HttpResponse:
    """Return the response for a connection that is dropped before it begins."""
    return HttpResponse(fault.status, delay=fault.delay, end="drop")


def stop_early(parts: Sequence[Part], fault: Fault, request_id: str) -> tuple[Part, ...]:
    """Return the parts of a stream that still arrive, with its error event if it ends in one."""
    kept: list[Part] = []
    deltas = 0
    for part in parts:
        is_text = TEXT_DELTA in part.data
        if is_text and deltas == fault.after:
            break
        if part.data.startswith(b"event: content_block_stop") and deltas == fault.after > 0:
            break
        if part.data.startswith(b"event: message_delta"):
            break
        deltas += is_text
        kept.append(part)
    if fault.kind == "error_event":
        kept.append(Part(event("error", fault_error(fault).envelope(request_id))))
    return tuple(kept)


def fault_headers(fault: Fault) -> dict[str, str]:
    """Return the headers of a fault that tell the client whether and when to retry."""
    headers = {str(name).lower(): str(value) for name, value in fault.headers.items()}
    if fault.retry_after is not None:
        headers["retry-after"] = str(fault.retry_after)
    if fault.retry_after_ms is not None:
        headers["retry-after-ms"] = str(fault.retry_after_ms)
    if fault.should_retry is not None:
        headers["x-should-retry"] = str(fault.should_retry).lower()
    return headers


def fault_error(fault: Fault) -> ApiError:
    """Return the error that ``fault`` describes."""
    return ApiError(
        fault.message or _MESSAGES.get(fault.status, "An emulated fault."),
        status=fault.status,
        type_=fault.type or ERROR_TYPES.get(fault.status),
        headers=fault_headers(fault),
        error_code=fault.error_code,
    )


Body = Mapping[str, Any]
ServedHeaders = Mapping[str, str]


class MessageService:
    """Answers calls; holds the prompt cache and the history for diagnostics.

    Args:
        responder: returns the replies; may be replaced at any time.
        clock: the clock for the lifetimes of cache entries.
        limiter: grants or refuses tokens per minute.
        padding: pad the lines of streams with white space.
    """

    def __init__(
        self, responder: Responder, *, clock: Clock, limiter: Limiter, padding: bool = False
    ) -> None:
        self.responder = responder
        self.failures: list[BaseException] = []
        """Exceptions of the responder, in order."""
        self._clock = clock
        self._limiter = limiter
        self._padding = padding
        self._cache = PromptCache()
        self._history = PromptHistory()

    def answer(self, body: Body, *, headers: ServedHeaders, request_id: str) -> HttpResponse:
        """Answer one call over HTTP.

        Raises:
            ApiError: the request is refused, or a limit is reached.
        """
        model = check_request(body, version=headers["anthropic-version"])
        turn = self._turn(body, model, "standard")
        self._limiter.admit(model, turn.use.plain + turn.use.write)
        answer = self._ask(body, headers)
        if isinstance(answer, EmulatedReply):
            return self._response(turn, answer, None, request_id)
        if answer.kind == "drop":
            return drop_connection(answer)
        if answer.kind in {"status", "expire"} or (
            answer.kind == "error_event" and not body.get("stream")
        ):
            return status_fault(answer, request_id)
        return self._response(turn, answer.reply, answer, request_id)

    def answer_in_batch(self, body: Body, *, headers: ServedHeaders) -> dict[str, Any]:
        """Return the message that answers one request of a batch.

        Raises:
            ApiError: the request is refused, or the responder answered with a fault.
            ExpiredError: the fault is that it was not processed in time.
        """
        model = check_request(body, version=headers["anthropic-version"], batched=True)
        turn = self._turn(body, model, "batch")
        answer = self._ask(body, headers)
        if isinstance(answer, Fault):
            raise ExpiredError if answer.kind == "expire" else fault_error(answer)
        message = self._message(turn, answer)
        turn.use.commit()
        return message

    def _turn(self, body: Body, model: Model, tier: str) -> EmulatedTurn:
        prompt = prompt_of(body, model)
        if prompt.tokens > model.max_input:
            raise ApiError(
                f"prompt is too long: {prompt.tokens} tokens > {model.max_input} maximum"
            )
        use = self._cache.look_up(
            prompt.blocks, now=self._clock.now(), minimum=model.min_cacheable, scope=model.id
        )
        return EmulatedTurn(body, model, prompt, use, tier, self._history.compare(body, prompt))

    def _ask(self, body: Body, headers: ServedHeaders) -> EmulatedReply | Fault:
        try:
            return _reply_or_fault(
                call_responder(self.responder, copy.deepcopy(dict(body)), headers)
            )
        except ApiError:
            raise
        except BaseException as error:  # pytest.fail() in a responder raises no Exception
            self.failures.append(error)
            raise ApiError(
                f"{EMULATOR_NAME}: the responder raised {type(error).__name__}: {error}",
                status=500,
                headers={"x-should-retry": "false"},
            ) from error

    def _message(self, turn: EmulatedTurn, reply: EmulatedReply) -> dict[str, Any]:
        check_answer(turn.body, reply)
        message = message_of(turn, reply)
        self._history.remember(message["id"], turn.body, turn.prompt)
        return message

    def _response(
        self, turn: EmulatedTurn, reply: EmulatedReply, fault: Fault | None, request_id: str
    ) -> HttpResponse:
        """Return the message, complete or ended early by a fault."""
        message = self._message(turn, reply)
        self._limiter.spend(turn.model, message["usage"]["output_tokens"])
        response = HttpResponse(
            headers={"content-type": "application/json"},
            delay=fault.delay if fault else reply.delay,
            end=_end_of(fault, streamed=bool(turn.body.get("stream"))),
            on_start=turn.use.commit,
        )
        if not turn.body.get("stream"):
            return replace(response, body=dump(message))
        parts = tuple(events_of(message, reply, padding=self._padding))
        if fault:
            parts = stop_early(parts, fault, request_id)
        headers = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
        headers |= fault_headers(fault) if fault else {}
        return replace(response, headers=headers, parts=parts)


def count_tokens(body: Body, *, version: str) -> int:
    """Return the input tokens of a request, cached or not.

    Raises:
        ApiError: the request would be refused.
    """
    return prompt_of(body, check_request(body, version=version, counting=True)).tokens


def _end_of(fault: Fault | None, *, streamed: bool) -> End:
    breaks = fault is not None and (
        fault.kind == "cut" or (fault.kind == "unfinished" and not streamed)
    )
    return "cut" if breaks else "whole"


def _reply_or_fault(answer: object) -> EmulatedReply | Fault:
    if isinstance(answer, str):
        return EmulatedReply(answer)
    if isinstance(answer, EmulatedReply | Fault):
        return answer
    raise TypeError(f"a responder returns str, EmulatedReply or Fault, not {type(answer).__name__}")


def call_responder(
    responder: Callable[..., ResponderResult], body: dict[str, Any], headers: ServedHeaders
) -> ResponderResult:
    """Call ``responder`` with the headers if it takes them, without if it does not."""
    parameters = inspect.signature(responder).parameters.values()
    takes_headers = any(
        p.name == "headers" or p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters
    )
    return responder(body, headers=headers) if takes_headers else responder(body)
