"""The emulator as a process of its own, until it is interrupted."""

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pytest_regen.emulator.emulator import Emulator

__all__ = ["serve"]


def serve(
    port: int = 0,
    replies: Path | None = None,
    *,
    ready: Callable[[str], None] = print,
    answered: Callable[[str], None] | None = None,
    until: threading.Event | None = None,
) -> None:
    """Run an emulator and return when ``until`` is set or on Ctrl-C.

    Args:
        port: to listen on, on 127.0.0.1; 0 takes a free one.
        replies: a script (docs/emulator.md); without one every request gets the same sentence.
        ready: called once with the base URL, when requests are answered.
        answered: called with a line for each request, from several threads.
        until: set it from another thread to stop.

    Raises:
        UsageError: the script is wrong, or the port is taken.
    """
    # Ctrl-C is how it is meant to be stopped, from the moment its address is told: no error.
    with Emulator(script=replies, port=port) as emulator, suppress(KeyboardInterrupt):
        if answered is not None:
            tell = answered
            emulator.answered = lambda request, status: tell(
                f"{request.method} {request.path} {status}"
            )
        ready(emulator.base_url)
        (until or threading.Event()).wait()
