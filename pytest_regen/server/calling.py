"""Calls to an agent that may block: bounded threads, queue and time, ended with their client."""

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final, TypeVar

from starlette.requests import Request

from pytest_regen.server.problems import Problem

__all__ = ["CLIENT_GONE", "Caller", "ClientGoneError", "unless_gone"]

_T = TypeVar("_T")

CLIENT_GONE: Final = 499
"""Status of an answer that nobody reads."""


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
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_left(request))
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


async def _left(request: Request) -> None:
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

    async def awaited(self, work: Callable[[], Awaitable[_T]]) -> _T:
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
