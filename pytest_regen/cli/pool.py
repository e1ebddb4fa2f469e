"""The same work on many places in several processes; what came of it is told in their order."""

import io
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import wait
from typing import Any, Final, Generic, TypeVar

from pytest_regen.cli.output import hold_back, say
from pytest_regen.errors import RegenError, WorkerError

_AHEAD: Final = 4
"""Tasks per process that are handed out or done before the first of them is told of."""

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class _Done(Generic[R]):
    """What came of one task."""

    lines: Sequence[tuple[str, str]]
    """What the task told, as ``say`` takes it."""
    out: str
    """What code of others printed meanwhile."""
    err: str
    result: R | None
    error: RegenError | None


def map_in_order(
    function: Callable[[T], R], tasks: Sequence[T], jobs: int, *, title: str
) -> Iterator[R]:
    """Yield what a function makes of each task, in their order; so is told what it tells.

    Args:
        function: is called in other processes, so that it, the tasks and the results are pickled.
        tasks: what it is called with.
        jobs: processes at the same time.
        title: what the processes do, for the message that one of them has died.

    Raises:
        RegenError: what the function raised; tasks that were not begun are left out.
        WorkerError: a process died.
    """
    work = partial(_work, function)
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        min(jobs, len(tasks)), multiprocessing.get_context(_start_method()), _prepare
    )
    waiting: deque[Future[_Done[R]]] = deque()
    rest = iter(tasks)
    try:
        for task in rest:
            waiting.append(pool.submit(work, task))
            if len(waiting) >= jobs * _AHEAD:
                yield _take(waiting.popleft())
        while waiting:
            yield _take(waiting.popleft())
        pool.shutdown()
    except BrokenProcessPool:
        raise WorkerError(
            f"a process that was {title} has died",
            why="it was ended from outside, as the system does where memory is short, or its "
            "interpreter broke down",
            hint="the same command with --jobs 1",
        ) from None
    finally:
        # Nobody waits for what is under way when the command ends early.
        for child in set(multiprocessing.active_children()) - before:
            child.terminate()
        pool.shutdown(wait=False, cancel_futures=True)


def _start_method() -> str | None:
    """Return how processes begin: as copies of this one where that is safe, which is fast."""
    is_safe = sys.platform == "linux" and threading.active_count() == 1
    return "fork" if is_safe else "spawn"


def _prepare() -> None:
    """Let a process leave Ctrl-C to the one that began it, and end with that one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _work(function: Callable[[T], R], task: T) -> _Done[R]:
    out, err = io.StringIO(), io.StringIO()
    result, error = None, None
    with hold_back() as lines, redirect_stdout(out), redirect_stderr(err):
        try:
            result = function(task)
        except RegenError as raised:
            error = raised
    return _Done(lines, out.getvalue(), err.getvalue(), result, error)


def _take(future: "Future[_Done[R]]") -> Any:
    done = future.result()
    sys.stdout.write(done.out)
    sys.stderr.write(done.err)
    for text, style in done.lines:
        say(text, style)
    if done.error is not None:
        raise done.error
    return done.result
