"""The same work on many places in several processes; what came of it is told in their order."""

import io
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from multiprocessing.connection import wait
from typing import TypeVar

from pytest_regen.cli.output import hold_back, say
from pytest_regen.errors import RegenError, WorkerError

T = TypeVar("T")
R = TypeVar("R")
_Outcome = tuple[list[tuple[str, str]], str, str, R | RegenError]


def map_in_order(
    function: Callable[[T], R], tasks: Sequence[T], jobs: int, *, title: str
) -> Generator[R, None, None]:
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
    before = set(multiprocessing.active_children())
    # Forked where that is safe, because a new interpreter takes a second to import.
    is_safe = sys.platform == "linux" and threading.active_count() == 1
    context = multiprocessing.get_context("fork" if is_safe else "spawn")
    pool = ProcessPoolExecutor(min(jobs, len(tasks)), context, _prepare)
    try:
        for outcome in pool.map(partial(_work, function), tasks):
            lines, out, err, result = outcome
            sys.stdout.write(out)
            sys.stderr.write(err)
            for text, style in lines:
                say(text, style)
            if isinstance(result, RegenError):
                raise result
            yield result
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


def _prepare() -> None:
    """Let a process leave Ctrl-C to the one that began it, and end with that one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _work(function: Callable[[T], R], task: T) -> _Outcome[R]:
    """Return what is told in a task, what code of others prints, and the result or the error."""
    out, err = io.StringIO(), io.StringIO()
    with hold_back() as lines, redirect_stdout(out), redirect_stderr(err):
        try:
            result: R | RegenError = function(task)
        except RegenError as error:
            result = error
    return lines, out.getvalue(), err.getvalue(), result
