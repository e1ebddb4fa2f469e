"""One turn of a conversation, from a client's request to the response. Keeps nothing."""

import asyncio
import contextvars
import inspect
import secrets
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, TypeVar

from starlette.requests import Request

from pytest_regen.context.prompts import render_context
from pytest_regen.context.questions import is_blank
from pytest_regen.context.requests import ClarificationRequest, parse_request
from pytest_regen.context.sealing import Sealer, SealPolicy, require_seal
from pytest_regen.context.values import Ask, ConversationContext, TurnResult
from pytest_regen.errors import InvalidContextError, RegenError, SealError
from pytest_regen.server.problems import (
    Problem,
    invalid,
    log_failure,
    of_model,
    of_seal,
    second_question,
)
from pytest_regen.server.settings import Agent, Quotas, QuotaStatus, Screen, ServerSettings

_T = TypeVar("_T")

CLIENT_GONE: Final = 499
"""Status of an answer whose client has left."""


class ClientGoneError(Exception):
    """The client left before it was answered."""


async def unless_gone(request: Request, work: Coroutine[Any, Any, _T]) -> _T:
    """Return what ``work`` returns; end it as soon as the client closes the connection.

    Args:
        request: whose body was read.
        work: what the client waits for.

    Raises:
        ClientGoneError: it waits no longer.
    """
    working, leaving = (
        asyncio.ensure_future(work),
        asyncio.ensure_future(_wait_for_disconnect(request)),
    )
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
    finally:
        leaving.cancel()
        working.cancel()
    with suppress(asyncio.CancelledError):
        await working  # lets go of what it holds
    raise ClientGoneError


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


class Caller:
    """Runs calls side by side; refuses those that would have to wait too long.

    Args:
        max_concurrent: threads for calls that block, at most.
        max_pending: calls under way or waiting, at most; one more is answered 503.
        seconds: a call may take; a longer one is answered 504. Its thread counts until it ends.
    """

    def __init__(self, *, max_concurrent: int, max_pending: int, seconds: float) -> None:
        self._max_pending = max_pending
        self._seconds = seconds
        self._pending = 0
        self._lock = threading.Lock()
        self._max_concurrent = max_concurrent
        self._threads = self._new_threads()

    async def in_thread(self, work: Callable[[], _T]) -> _T:
        """Return what ``work`` returns, called in a thread.

        Raises:
            Problem: 503 where too many calls are pending, 504 where this one took too long.
        """
        self._enter()
        job = self._threads.submit(contextvars.copy_context().run, work)
        job.add_done_callback(lambda _: self._leave())
        return await self._in_time(asyncio.wrap_future(job))

    async def in_loop(self, work: Callable[[], Awaitable[_T]]) -> _T:
        """Return what ``work`` returns, awaited; raises as ``in_thread`` does."""
        self._enter()
        try:
            return await self._in_time(work())
        finally:
            self._leave()

    def close(self) -> None:
        """Drop what waits and let go of the threads; calls under way end by themselves.

        A server that is started again gets new ones.
        """
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._threads = self._new_threads()

    def _new_threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._max_concurrent, thread_name_prefix="regen-server")

    async def _in_time(self, answer: Awaitable[_T]) -> _T:
        try:
            async with asyncio.timeout(self._seconds) as deadline:
                return await answer
        except TimeoutError:
            if not deadline.expired():
                raise
            raise Problem(
                HTTPStatus.GATEWAY_TIMEOUT, "MODEL_TIMEOUT", "The model took too long to answer."
            ) from None

    def _enter(self) -> None:
        with self._lock:
            if self._pending >= self._max_pending:
                raise Problem(
                    HTTPStatus.SERVICE_UNAVAILABLE,
                    "BUSY",
                    "Too many requests are waiting for the model.",
                    retry_after=2,
                )
            self._pending += 1

    def _leave(self) -> None:
        with self._lock:
            self._pending -= 1


@dataclass(frozen=True, slots=True)
class AcceptedRequest:
    """A request that may be put to the model."""

    request: ClarificationRequest
    conversation: str
    client: str
    quota: QuotaStatus | None
    request_id: str = ""
    """Under which it is logged."""

    @property
    def is_legacy(self) -> bool:
        """Whether it sends answers without what was asked."""
        return self.request.is_second_turn and self.request.conversation_context is None


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """What came of a turn."""

    accepted: AcceptedRequest
    result: TurnResult
    seal: str | None
    """Where the result asks and seals are in use."""

    @property
    def event(self) -> str:
        """Name of the event that tells it in a stream."""
        return "clarification" if isinstance(self.result, Ask) else "complete"

    def as_json(self) -> dict[str, object]:
        """Return the members of the answer."""
        members = self.result.model_dump(mode="json", by_alias=True)
        members.setdefault("clarification_questions", [])
        members["interactionId"] = self.accepted.conversation
        if self.seal is not None:
            members["seal"] = self.seal
        return members

    def context(self) -> ConversationContext:
        """Return what the next turn needs: this one, without answers."""
        asked = self.result.questions if isinstance(self.result, Ask) else ()
        return ConversationContext(
            original_description=self.accepted.request.message,
            questions_asked=asked,
            inferred_context=self.result.inferred_context,
        )


class Flow:
    """Takes turns, one at a time or many side by side; no turn leaves anything behind.

    Args:
        agent: who answers.
        seal: how contexts are vouched for.
        settings: limits.
        screen: decides whether a model may see a request's texts.
        clock: for quotas; returns seconds since the epoch.
        new_id: makes the name of a conversation.
    """

    def __init__(
        self,
        agent: Agent,
        *,
        seal: SealPolicy,
        settings: ServerSettings,
        screen: Screen | None = None,
        clock: Callable[[], float] = time.time,
        new_id: Callable[[], str] = lambda: f"conv_{secrets.token_hex(12)}",
    ) -> None:
        self.agent = agent
        self.settings = settings
        self._seal = seal
        self._screen = screen
        self._new_id = new_id
        self._first = Quotas(settings.first_turns, clock=clock)
        self._second = Quotas(settings.second_turns, clock=clock)
        self._caller = Caller(
            max_concurrent=settings.max_concurrent,
            max_pending=settings.max_pending,
            seconds=settings.model_seconds,
        )

    async def close(self) -> None:
        """Let go of threads, and of connections that the provider opened in this event loop."""
        self._caller.close()
        aclose = getattr(getattr(self.agent, "provider", None), "aclose", None)
        if aclose is not None:
            await aclose()

    async def accept(
        self, data: Mapping[str, object], client: str, *, request_id: str = ""
    ) -> AcceptedRequest:
        """Check a request: form, quota, seal, texts, in this order.

        Args:
            data: the request, JSON as Python values.
            client: whom a quota counts.
            request_id: under which the turn is logged.

        Raises:
            Problem: 400, 403, 422, 429 or 503, and why.
        """
        request = _parse(data)
        quotas = self._quotas_of(request)
        quota = quotas.charge(client)
        if quota is not None and not quota.allowed:
            raise _rate_limited(quota)
        try:
            self._check_seal(request)
        except Problem as problem:
            problem.headers |= _headers(quotas.give_back(client))
            raise
        conversation = request.interaction_id or ""
        if not request.is_second_turn or is_blank(conversation):
            conversation = self._new_id()
        accepted = AcceptedRequest(request, conversation, client, quota, request_id)
        try:
            await self._check_texts(accepted)
        except BaseException as error:
            if isinstance(error, Problem):
                error.headers |= _headers(quota)
            raise
        return accepted

    async def answer(self, accepted: AcceptedRequest) -> TurnOutcome:
        """Put a request to the agent.

        Raises:
            Problem: 502, 503 or 504, and why.
        """
        try:
            result = await self._turn(accepted.request)
        except BaseException as error:
            if not isinstance(error, RegenError | Problem):
                raise
            problem = of_model(error) if isinstance(error, RegenError) else error
            log_failure(accepted.request_id, error, problem)
        else:
            return TurnOutcome(accepted, result, self._seal_of(accepted, result))
        quota = accepted.quota
        if problem.status == HTTPStatus.SERVICE_UNAVAILABLE:
            # No model has seen it, so that it does not count.
            quota = self._quotas_of(accepted.request).give_back(accepted.client)
        problem.headers |= _headers(quota)
        raise problem from None

    def visible_prompt(self, accepted: AcceptedRequest) -> str | None:
        """Return what the model was given on a second turn, where the page is to show it."""
        context = accepted.request.conversation_context
        return render_context(context) if context and self.settings.shows_prompt else None

    async def _turn(self, request: ClarificationRequest) -> TurnResult:
        if self._is_asynchronous:
            result: TurnResult = await self._caller.in_loop(
                lambda: self.agent.aturn(request)  # type: ignore[attr-defined]  # it was looked for
            )
        else:
            result = await self._caller.in_thread(lambda: self.agent.turn(request))
        if isinstance(result, Ask) and request.is_second_turn:
            raise second_question()
        return result

    @property
    def _is_asynchronous(self) -> bool:
        provider = getattr(self.agent, "provider", None)
        can_wait = hasattr(provider, "asend") and getattr(provider, "is_async", True)
        return hasattr(self.agent, "aturn") and (provider is None or can_wait)

    def _quotas_of(self, request: ClarificationRequest) -> Quotas:
        # Without seals, anybody can claim to be on a second turn.
        vouched = request.conversation_context is not None and self._seal != "off"
        return self._second if vouched else self._first

    def _check_seal(self, request: ClarificationRequest) -> None:
        context = request.conversation_context
        if context is None:
            return
        try:
            require_seal(
                self._seal, request.seal, context, conversation=request.interaction_id or ""
            )
        except SealError as error:
            raise of_seal(error) from None

    async def _check_texts(self, accepted: AcceptedRequest) -> None:
        if self._screen is None:
            return
        screen, texts = self._screen, _texts_in(accepted.request)
        try:
            passed = await self._caller.in_thread(lambda: screen(texts))
            passed = await passed if inspect.isawaitable(passed) else passed
        except Exception as error:  # noqa: BLE001 - the answer does not repeat it
            log_failure(accepted.request_id, error)
            raise Problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "SCREEN_UNAVAILABLE",
                "What was sent could not be checked.",
                retry_after=5,
            ) from None
        if not passed:
            raise Problem(
                HTTPStatus.FORBIDDEN,
                "PROMPT_INJECTION_DETECTED",
                "What was sent looks like an attempt to steer the model.",
            )

    def _seal_of(self, accepted: AcceptedRequest, result: TurnResult) -> str | None:
        if not isinstance(result, Ask) or not isinstance(self._seal, Sealer):
            return None
        context = ConversationContext(
            original_description=accepted.request.message,
            questions_asked=result.questions,
            inferred_context=result.inferred_context,
        )
        return self._seal.seal(context, conversation=accepted.conversation)


def _parse(data: Mapping[str, object]) -> ClarificationRequest:
    message = data.get("message", data.get("description"))
    if not isinstance(message, str) or is_blank(message):
        raise Problem(
            HTTPStatus.BAD_REQUEST,
            "MESSAGE_REQUIRED",
            "Say what should change: the message is missing or blank.",
            where="message",
        )
    try:
        return parse_request(data)
    except InvalidContextError as error:
        raise invalid(error) from None


def _rate_limited(quota: QuotaStatus) -> Problem:
    return Problem(
        HTTPStatus.TOO_MANY_REQUESTS,
        "RATE_LIMITED",
        f"Too many requests. Try again in {quota.retry_after} seconds.",
        retry_after=quota.retry_after,
        headers=quota.headers,
        details=quota.as_json(),
    )


def _headers(quota: QuotaStatus | None) -> Mapping[str, str]:
    return {} if quota is None else quota.headers


def _texts_in(request: ClarificationRequest) -> tuple[str, ...]:
    seen = request.model_dump(mode="json", exclude={"seal", "interaction_id"})
    return (*(request.clarification_answers or ()), *_texts(seen))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
