"""One turn on its way to the API: when it may be sent, and whether it is sent again.

A refusal by a rate limit ends no turn: it waits, with all others, and is sent again. So is a
stream that broke off, as often as the client would send a request again. Any other failure of the
server or the line is left to the client's retries; only a run that has been answered often, and so
is long, waits for its end.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from pytest_regen.errors import ProviderError, RegenError, TransportError
from pytest_regen.strict_json import json_or_none
from pytest_regen.turns.buckets import Limits, Ticket, read_limits
from pytest_regen.turns.limits import Outcome, RateLimiter
from pytest_regen.turns.values import Reply, TurnRequest, Usage, size_of
from pytest_regen.turns.wire import RATE_LIMITED, is_spend_limit, limit_pause

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 8.0
"""Seconds before a broken stream is asked for again, doubled each time: as the SDK pauses."""

_under_way: ContextVar["PacedTurn | None"] = ContextVar("paced turn", default=None)


class PacedTurn:
    """One turn; ``hear`` tells it of the answers to what it sends.

    Args:
        limiter: says when.
        request: what is asked.
        model: the model asked.
        patience: returns the seconds in which everything may fail before the turn does.
        retries: times a stream that broke off is asked for again.
    """

    def __init__(
        self,
        limiter: RateLimiter,
        request: TurnRequest,
        model: str,
        *,
        patience: Callable[[], float],
        retries: int,
    ) -> None:
        self._limiter = limiter
        self._model = model
        self._asked = model, size_of(request), request.max_tokens
        self._patience = patience
        self._retries = retries
        self._spent = Usage()
        self._ticket: Ticket | None = None
        self._limits: Limits = {}
        self._refused: float | None = None
        self._is_replayed = False
        self._cut_pause: float | None = None
        """Seconds to wait should the answer that has begun break off."""
        self._cuts = 0
        self._refusal: RegenError | None = None
        """A refusal that was replayed: where no recording follows, the turn ended with it."""

    async def run(self, ask: Callable[[], Awaitable[Reply]]) -> Reply:
        """Return the reply, as often as it takes; what earlier attempts took is in its usage.

        Args:
            ask: sends the turn once.

        Raises:
            RegenError: as ``ask`` raised it, once the turn is over.
        """
        token = _under_way.set(self)
        try:
            while True:
                self._ticket = await self._limiter.admit(*self._asked)
                self._cut_pause = None
                try:
                    reply = await ask()
                except RegenError as error:
                    outcome = self._outcome(error)
                    if isinstance(outcome, float):
                        await asyncio.sleep(outcome)
                    elif not await self._settle(outcome):
                        raise self._last(error) from error.__cause__
                else:
                    await self._settle(Outcome(reply.usage, self._limits))
                    return replace(reply, usage=self._spent + reply.usage)
                self._abandon()
        finally:
            _under_way.reset(token)
            # What was sent and not settled counts as sent.
            self._abandon()

    async def _settle(self, outcome: Outcome) -> bool:
        ticket, self._ticket = self._ticket, None
        assert ticket is not None, "the turn has begun"
        return await self._limiter.asettle(self._model, ticket, outcome, self._patience())

    def hear(self, response: Any, body: object) -> bool:
        """Take note of an answer, and return whether a limit refused the request."""
        # A recorded answer came from no connection, and says nothing about the limits of today.
        self._is_replayed = "network_stream" not in response.extensions
        self._limits = {} if self._is_replayed else read_limits(response.headers)
        self._refused = limit_pause(response.status_code, response.headers, body)
        self._refusal = self._cut_pause = None
        if response.status_code < 400:
            self._cut_pause = min(_FIRST_PAUSE * 2**self._cuts, _LONGEST_PAUSE)
        return self._refused is not None

    def _outcome(self, error: RegenError) -> Outcome | float:
        """Return what came of an attempt, or the seconds after which the next one is made."""
        if isinstance(error, ProviderError) and error.usage is not None:
            self._spent += error.usage
        if self._is_replayed and self._refused is not None:
            self._refusal, self._is_replayed = error, False
            return 0.0
        if self._refusal is not None:
            raise self._refusal
        if not isinstance(error, TransportError):
            raise self._last(error)
        if self._cut_pause is not None and self._cuts < self._retries:
            self._cuts += 1
            return self._cut_pause
        self._cuts = 0
        return Outcome(None, self._limits, self._refused)

    def _last(self, error: RegenError) -> RegenError:
        if isinstance(error, ProviderError) and self._spent.total_tokens:
            error.usage = self._spent
        return error

    def _abandon(self) -> None:
        ticket, self._ticket = self._ticket, None
        if ticket is not None:
            self._limiter.abandon(self._model, ticket)


async def hear(response: Any) -> None:
    """Tell the turn that is under way of an answer, and keep the SDK from asking again in vain.

    Args:
        response: of httpx.
    """
    # What the limits say is waited for here, by all; what only money mends is not waited for at
    # all.
    is_limited = response.status_code == RATE_LIMITED
    body = json_or_none(await response.aread()) if is_limited else None
    turn = _under_way.get()
    is_refused = turn is not None and turn.hear(response, body)
    if is_refused or is_spend_limit(body):
        response.headers["x-should-retry"] = "false"
