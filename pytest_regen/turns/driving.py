"""Steps: what takes several calls, written once and driven by threads or by an event loop.

Steps are a generator that yields requests, is sent replies and returns a result. What a provider
raises is thrown into it, so that it can account for the call.
"""

from collections.abc import Awaitable, Callable, Generator
from typing import Protocol, TypeVar, cast

from pytest_regen.turns.values import Reply, TurnRequest

__all__ = ["Progress", "Sender", "Steps", "adrive", "asend", "drive"]

R = TypeVar("R")
Question = TypeVar("Question")
Question_contra = TypeVar("Question_contra", contravariant=True)
Answer = TypeVar("Answer")
Answer_co = TypeVar("Answer_co", covariant=True)

Steps = Generator[TurnRequest, Reply, R]
Progress = Callable[[str], None]
"""Called with one line per step."""


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
    import asyncio  # noqa: PLC0415 - 40 ms that a turn outside an event loop need not spend

    waiting: Callable[[Question], Awaitable[Answer]] | None = getattr(sender, "asend", None)
    if waiting is None:
        return await asyncio.to_thread(sender.send, request)
    return await waiting(request)
