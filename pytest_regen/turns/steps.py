"""Steps: what takes several calls, written once and driven by threads or by an event loop.

Steps are a generator that yields requests, is sent replies and returns a result. What a provider
raises is thrown into it, so that it can account for the call.
"""

import contextvars
import threading
import warnings
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from typing import Protocol, TypeVar, cast

from pytest_regen.turns.values import Reply, TurnRequest

__all__ = ["Progress", "Sender", "Steps", "adrive", "asend", "drive", "in_thread", "tell"]


R = TypeVar("R")
Question = TypeVar("Question")
Question_contra = TypeVar("Question_contra", contravariant=True)
Answer = TypeVar("Answer")
Answer_co = TypeVar("Answer_co", covariant=True)

Steps = Generator[TurnRequest, Reply, R]
Progress = Callable[[str], None]
"""Called with one line per step."""


def tell(progress: Progress | None, message: str) -> None:
    """Pass one line on to whoever watches. What a watcher raises ends no turn: it is warned of."""
    if progress is None:
        return
    try:
        progress(message)
    except Exception as error:  # noqa: BLE001 - what was paid must not be lost for a line
        warnings.warn(f"on_progress raised {error!r} at {message!r}", RuntimeWarning, stacklevel=3)


class Sender(Protocol[Question_contra, Answer_co]):
    """Who answers what steps ask; a ``Provider`` is one. ``asend`` is used where it is there."""

    def send(self, request: Question_contra, /) -> Answer_co:
        """Return the answer, or raise."""
        ...


def drive(steps: Generator[Question, Answer, R], sender: Sender[Question, Answer]) -> R:
    """Make the calls of ``steps`` one after the other and return their result."""
    try:
        request = next(steps)
        while True:
            try:
                reply = sender.send(request)
            except Exception as error:  # noqa: BLE001 - the steps decide
                request = steps.throw(error)
            else:
                request = steps.send(reply)
    except StopIteration as end:
        return cast("R", end.value)
    finally:
        steps.close()


async def adrive(steps: Generator[Question, Answer, R], sender: Sender[Question, Answer]) -> R:
    """Make the calls of ``steps`` without blocking the event loop."""
    try:
        request = next(steps)
        while True:
            try:
                reply = await asend(sender, request)
            except Exception as error:  # noqa: BLE001 - the steps decide
                request = steps.throw(error)
            else:
                request = steps.send(reply)
    except StopIteration as end:
        return cast("R", end.value)
    finally:
        steps.close()


async def asend(sender: Sender[Question, Answer], request: Question) -> Answer:
    """Return the answer to ``request``; a sender without ``asend`` is called in a thread."""
    waiting: Callable[[Question], Awaitable[Answer]] | None = getattr(sender, "asend", None)
    if waiting is None:
        return await in_thread(sender.send, request)
    return await waiting(request)


async def in_thread(function: Callable[..., R], *arguments: object) -> R:
    """Return what ``function`` returns, called in a thread that does not outlive the process.

    ``asyncio.to_thread`` takes threads of a pool, for which the event loop and the interpreter
    wait when they end: Ctrl-C would give control back only once the model had answered.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    future: asyncio.Future[R] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: "R | None", error: BaseException | None) -> None:
        if future.done():
            return  # Cancelled: nobody waits any more.
        if error is None:
            future.set_result(cast("R", result))
        else:
            future.set_exception(error)

    def work() -> None:
        result: R | None = None
        failure: BaseException | None = None
        try:
            result = context.run(function, *arguments)
        except StopIteration as error:  # No future takes it, and nobody would hear of it.
            failure = RuntimeError(f"{function!r} raised StopIteration")
            failure.__cause__ = error
        except BaseException as error:  # noqa: BLE001 - whoever awaits decides
            failure = error
        with suppress(RuntimeError):  # The loop was closed meanwhile.
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=work, daemon=True).start()
    return await future
