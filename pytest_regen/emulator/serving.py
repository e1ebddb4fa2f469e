"""The emulator as a process of its own, until it is interrupted."""

import threading
from collections.abc import Callable
from pathlib import Path

from pytest_regen.emulator.emulator import Emulator
from pytest_regen.emulator.script_reading import load_script
from pytest_regen.errors import UsageError

__all__ = ["serve"]


def serve(
    port: int = 0,
    replies: Path | None = None,
    *,
    ready: Callable[[str], None] = print,
    until: threading.Event | None = None,
) -> None:
    """Run an emulator and return when ``until`` is set or on Ctrl-C.

    Args:
        port: to listen on, on 127.0.0.1; 0 takes a free one.
        replies: a script (docs/emulator.md); without one every request gets the same sentence.
        ready: called once with the base URL, when requests are answered.
        until: set it from another thread to stop.

    Raises:
        UsageError: the script is wrong, or the port is taken.
    """
    script = load_script(replies) if replies else None
    emulator = Emulator(script=script, port=port)
    try:
        emulator.start()
    except OSError as error:
        raise UsageError(
            f"cannot listen on 127.0.0.1:{port}",
            why=str(error),
            hint="choose another --port, or 0 for a free one",
        ) from error
    with emulator:
        ready(emulator.base_url)
        try:
            (until or threading.Event()).wait()
        except KeyboardInterrupt:
            return
