"""Steps: what takes several calls, written once and driven by threads or by an event loop.

Steps are a generator that yields questions, is sent answers and returns a result. What answering
raises is thrown into it, so that it can account for the call and decide whether to go on. The
questions are requests to a model, answered by a provider, or calls of the parts of a loop.
"""

import contextvars
import threading
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Protocol, TypeVar, cast

from pytest_regen.errors import RegenError, TransportError
from pytest_regen.turns.values import Reply, TurnRequest
from pytest_regen.turns.wire import in_brief

# A failure shows the code of the test that called, none of the lines in between.
__tracebackhide__ = True

R = TypeVar("R")
Question = TypeVar("Question")
Question_contra = TypeVar("Question_contra", contravariant=True)
Answer = TypeVar("Answer")
Answer_co = TypeVar("Answer_co", covariant=True)

Steps = Generator[TurnRequest, Reply, R]
_MEND = "correct the provider, then run again; what was finished is kept"

OnProgress = Callable[[str], None]
"""Called with one line per step."""


class Sender(Protocol[Question_contra, Answer_co]):
    """Answers what steps ask, as a ``Provider`` does; ``asend`` is used where it exists."""

    def send(self, request: Question_contra, /) -> Answer_co:
        """Return the answer, or raise."""
        ...


class AsyncSender(Protocol[Question_contra, Answer_co]):
    """Answers what steps ask where only an event loop drives them."""

    async def asend(self, request: Question_contra, /) -> Answer_co:
        """Return the answer, or raise."""
        ...


def drive(steps: Generator[Question, Answer, R], sender: Sender[Question, Answer]) -> R:
    """Make the calls of ``steps`` one after the other and return their result."""

    async def answer(request: Question) -> Answer:
        return sender.send(request)

    # It ends at once, because no answer is waited for: so it needs no event loop.
    try:
        _driven(steps, answer).send(None)
    except StopIteration as end:
        return cast("R", end.value)
    raise AssertionError("an answer that is there was waited for")


async def adrive(
    steps: Generator[Question, Answer, R],
    sender: Sender[Question, Answer] | AsyncSender[Question, Answer],
) -> R:
    """Make the calls of ``steps`` without blocking the event loop."""
    return await _driven(steps, partial(asend, sender))


async def _driven(
    steps: Generator[Question, Answer, R], answer: Callable[[Question], Coroutine[Any, Any, Answer]]
) -> R:
    try:
        request = next(steps)
        while True:
            try:
                reply = await answer(request)
            except Exception as error:  # noqa: BLE001 - the steps decide
                request = steps.throw(error)
            else:
                request = steps.send(reply)
    except StopIteration as end:
        return cast("R", end.value)
    finally:
        steps.close()


async def asend(
    sender: Sender[Question, Answer] | AsyncSender[Question, Answer], request: Question
) -> Answer:
    """Return the answer to ``request``; a sender without ``asend`` is called in a thread."""
    waiting: Callable[[Question], Awaitable[Answer]] | None = getattr(sender, "asend", None)
    if waiting is None:
        return await in_thread(cast("Sender[Question, Answer]", sender).send, request)
    return await waiting(request)


async def in_thread(function: Callable[..., R], *arguments: object) -> R:
    """Return what ``function`` returns, called in a thread that does not outlive the process."""
    # Not asyncio.to_thread, because it takes threads of a pool, for which the event loop and the
    # interpreter wait when they end: Ctrl-C would give control back only once the model answered.
    import asyncio

    future: Future[R] = Future()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            result = context.run(function, *arguments)
        except StopIteration as error:  # A future refuses it, and the error would be lost.
            failure = RuntimeError(f"{function!r} raised StopIteration")
            failure.__cause__ = error
            settle = partial(future.set_exception, failure)
        except BaseException as error:  # noqa: BLE001 - whoever awaits decides
            settle = partial(future.set_exception, error)
        else:
            settle = partial(future.set_result, result)
        with suppress(InvalidStateError):  # Cancelled: the result is no longer awaited.
            settle()

    threading.Thread(target=work, daemon=True).start()
    return await asyncio.wrap_future(future)


@contextmanager
def calling(name: str) -> Iterator[None]:
    """Raise what somebody else's provider raises as an error of this package.

    Args:
        name: of the provider, for messages.
    """
    try:
        yield
    except RegenError:
        raise
    except Exception as error:
        raise TransportError(
            f"{name} raised {type(error).__name__}", why=in_brief(str(error)), hint=_MEND
        ) from error


def no_reply(name: str, answer: str) -> TransportError:
    """Return the error of a provider that returned something else than a reply."""
    why = "a provider returns a Reply, whose text is a string; a function may return that text"
    return TransportError(f"{name} returned {answer}", why=why, hint=_MEND)


def tell(progress: OnProgress | None, message: str) -> None:
    """Call ``progress`` with a line. What it raises becomes a warning: it must not end a turn."""
    if progress is None:
        return
    try:
        progress(message)
    except Exception as error:  # noqa: BLE001 - what was paid must not be lost for a line
        warnings.warn(f"on_progress raised {error!r} at {message!r}", RuntimeWarning, stacklevel=3)
