"""Steps: what takes several calls, written once and driven by threads or by an event loop.

Steps are a generator that yields questions, is sent answers and returns a result. What answering
raises is thrown into it, so that it can account for the call and decide whether to go on. The
questions are requests to a model, answered by a provider; batches of such steps, answered by
``Parallel``; or calls of the parts of a loop.
"""

import contextvars
import threading
import warnings
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Generic, Protocol, TypeVar, cast

from pytest_regen.turns.values import Provider, Reply, TurnRequest

# A failure shows the code of the test that called, none of the lines in between.
__tracebackhide__ = True

R = TypeVar("R")
Question = TypeVar("Question")
Question_contra = TypeVar("Question_contra", contravariant=True)
Answer = TypeVar("Answer")
Answer_co = TypeVar("Answer_co", covariant=True)

Steps = Generator[TurnRequest, Reply, R]
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


async def adrive(
    steps: Generator[Question, Answer, R],
    sender: Sender[Question, Answer] | AsyncSender[Question, Answer],
) -> R:
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


class Parallel(Generic[R]):
    """Answers batches: drives the steps of a batch at the same time.

    Steps that yield batches (lists of ``Steps``), and are sent a list with a result or an exception
    for each, are driven by it as those that yield requests are by a provider.

    Args:
        provider: who answers the steps.
        limit: how many run at the same time.
    """

    def __init__(self, provider: Provider, limit: int) -> None:
        self._provider = provider
        self._limit = max(1, limit)

    def send(self, batch: Sequence[Steps[R]], /) -> list[R | Exception]:
        """Return the outcome of each, in order.

        An interruption ends it at once. What was not asked yet never is; what is under way is not
        waited for, and counts with what was sent.
        """
        if min(self._limit, len(batch)) <= 1:
            return [_raise_stop(_outcome(steps, self._provider)) for steps in batch]
        return [_raise_stop(outcome) for outcome in self._in_threads(batch)]

    async def asend(self, batch: Sequence[Steps[R]], /) -> list[R | Exception]:
        """Return the outcome of each, in order, without blocking the event loop."""
        import asyncio

        gate = asyncio.Semaphore(self._limit)

        async def run(steps: Steps[R]) -> R:
            async with gate:
                return await adrive(steps, self._provider)

        outcomes = await asyncio.gather(*map(run, batch), return_exceptions=True)
        return [_raise_stop(outcome) for outcome in outcomes]

    def _in_threads(self, batch: Sequence[Steps[R]]) -> list[R | BaseException]:
        """Drive steps in threads that no interruption and no end of the process waits for."""
        # Both would wait for a pool of concurrent.futures, whose threads are joined at exit.
        stop = threading.Event()
        waiting = deque(enumerate(batch))
        ended: SimpleQueue[tuple[int, R | BaseException]] = SimpleQueue()
        provider = _Stoppable(self._provider, stop)

        def work() -> None:
            while not stop.is_set():
                try:
                    number, steps = waiting.popleft()
                except IndexError:
                    return
                ended.put((number, _outcome(steps, provider)))

        for _ in range(min(self._limit, len(batch))):
            context = contextvars.copy_context()
            threading.Thread(target=context.run, args=(work,), daemon=True).start()
        try:
            outcomes = dict(ended.get() for _ in batch)
        except BaseException:
            stop.set()
            for steps in batch:
                with suppress(ValueError):  # It reads an answer just now, and asks nothing more.
                    steps.close()
            raise
        return [outcomes[number] for number in range(len(batch))]


class _Stopped(Exception):  # noqa: N818 - not raised past this module
    """The call is not made, because the turn was interrupted."""


@dataclass(frozen=True, slots=True)
class _Stoppable:
    """A provider that answers nothing any more once a turn was interrupted."""

    provider: Provider
    stop: threading.Event

    def send(self, request: TurnRequest) -> Reply:
        if self.stop.is_set():
            raise _Stopped("the turn was interrupted before this call")
        return self.provider.send(request)


def _outcome(steps: Steps[R], provider: Provider) -> R | BaseException:
    try:
        return drive(steps, provider)
    except BaseException as error:  # noqa: BLE001 - raised where the batch ends
        return error


def _raise_stop(outcome: R | BaseException) -> R | Exception:
    """Return a result or the failure of one of the batch; raise what is to stop all of it."""
    if isinstance(outcome, BaseException) and not isinstance(outcome, Exception):
        raise outcome
    return outcome


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
    # asyncio.to_thread takes threads of a pool, for which the event loop and the interpreter wait
    # when they end: Ctrl-C would give control back only once the model had answered.
    import asyncio

    loop = asyncio.get_running_loop()
    future: asyncio.Future[R] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: "R | None", error: BaseException | None) -> None:
        if future.done():
            return  # Cancelled: the result is no longer awaited.
        if error is None:
            future.set_result(cast("R", result))
        else:
            future.set_exception(error)

    def work() -> None:
        result: R | None = None
        failure: BaseException | None = None
        try:
            result = context.run(function, *arguments)
        except StopIteration as error:  # A future refuses it, and the error would be lost.
            failure = RuntimeError(f"{function!r} raised StopIteration")
            failure.__cause__ = error
        except BaseException as error:  # noqa: BLE001 - whoever awaits decides
            failure = error
        with suppress(RuntimeError):  # The loop was closed meanwhile.
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=work, daemon=True).start()
    return await future


def tell(progress: OnProgress | None, message: str) -> None:
    """Call ``progress`` with a line. What it raises becomes a warning: it must not end a turn."""
    if progress is None:
        return
    try:
        progress(message)
    except Exception as error:  # noqa: BLE001 - what was paid must not be lost for a line
        warnings.warn(f"on_progress raised {error!r} at {message!r}", RuntimeWarning, stacklevel=3)
