"""An event loop in a thread of its own, for callers that have none; it ends with the process.

Asynchronous clients keep their connections as long as their loop. So all runs of a process use one.
"""

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final, TypeVar

R = TypeVar("R")

_LAST_WORDS: Final = 1.0
"""Seconds that the end of the process waits for a loop to close its connections."""


class _Runner:
    """A running event loop and its thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        # A daemon: neither Ctrl-C nor the end of the process waits for a model.
        self.thread = threading.Thread(target=self._run, name="pytest-regen turns", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            tasks = asyncio.all_tasks(self.loop)
            for task in tasks:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()

    def stop(self) -> None:
        """End what is under way and close what is open, unless that takes too long."""
        with suppress(RuntimeError):  # It was closed.
            self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(_LAST_WORDS)


_lock = threading.Lock()
_runners: dict[threading.Thread | None, _Runner] = {}
"""The loop of all callers under ``None``; under the thread of a loop, the one that serves it."""

_left: list[_Runner] = []
"""Loops that run in the process this one was forked from: kept, so that none is closed here."""


def background_loop(*, is_shared: bool = False) -> asyncio.AbstractEventLoop:
    """Return an event loop that runs in another thread.

    Args:
        is_shared: whether callers that run in it get the same one; they must not block then.
    """
    # It is one and the same, but for callers that run in it themselves, a provider that generates a
    # store within its answer for one: they would wait for themselves, and get another.
    thread = threading.current_thread()
    with _lock:
        is_within = any(runner.thread is thread for runner in _runners.values())
        asker = thread if is_within and not is_shared else None
        runner = _runners.get(asker)
        if runner is None or not runner.thread.is_alive():
            runner = _runners[asker] = _Runner()
        return runner.loop


def run_in_background(work: Coroutine[Any, Any, R]) -> R:
    """Return what ``work`` comes to in the loop; an interruption of the caller's cancels it."""
    # It sees what is set in the context of the caller, because asyncio takes a copy of that along.
    future = asyncio.run_coroutine_threadsafe(work, background_loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def is_running(loop: asyncio.AbstractEventLoop | None) -> bool:
    """Return whether a loop is one of these and runs: not once the process was forked."""
    return any(
        runner.loop is loop and runner.thread.is_alive() for runner in list(_runners.values())
    )


@atexit.register
def _stop_all() -> None:
    for runner in list(_runners.values()):
        runner.stop()


def _forget_all() -> None:
    """Forget loops whose threads did not come along into a forked process."""
    global _lock  # noqa: PLW0603 - whoever held it is not here
    _lock = threading.Lock()
    _left.extend(_runners.values())
    _runners.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
