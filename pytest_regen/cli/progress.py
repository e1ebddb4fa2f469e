"""How far a command is: one line that is drawn over and over, or plain lines, few of them.

The words are those of ``regeneration/progress.py``. All of it goes to stderr.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from pytest_regen.cli.output import console, say
from pytest_regen.regeneration.progress import progress_line
from pytest_regen.regeneration.values import RunState

_MANY_PAGES: Final = 20
"""Of a run with more of them a plain line says what it came to, however short it was."""

_SECONDS: Final = 10.0
"""Between two plain lines."""

_SILENT_TIMES: Final = 6
"""After as many of these without any change a plain line says that the run goes on."""


class RunProgress:
    """What is known of a run while it goes on, and what was told of it in plain lines.

    ``watch`` is called from any thread.

    Args:
        places: what the run works on, in the singular: ``store``.
    """

    def __init__(self, places: str) -> None:
        self.state = RunState()
        self.batches: Callable[[], int] = lambda: 0
        """Returns how many batches are under way."""
        self._places = places

    def watch(self, state: RunState) -> None:
        """Take in a new state of the run."""
        # No lock, because a state is a value: who draws sees the old one or the new one.
        self.state = state

    def line(self, *, is_over: bool = False) -> str:
        """Return how far the run is, or what it came to."""
        batches = 0 if is_over else self.batches()
        return progress_line(self.state, places=self._places, batches=batches, is_over=is_over)

    def tell_lines(self, is_over: threading.Event) -> None:
        """Tell in plain lines how far the run is, until it is over, and what it came to."""
        told, unchanged = "", 0
        while not is_over.wait(_SECONDS):
            line = self.line()
            unchanged = unchanged + 1 if line == told else 0
            # Because services for CI end a job whose log stands still.
            if unchanged % _SILENT_TIMES == 0:
                told = line
                say(f"  {line}")
        # Of a short run nothing, because its results say the same.
        if told or self.state.pages_done > _MANY_PAGES:
            say(f"  {self.line(is_over=True)}")


@contextmanager
def progress_line_of(places: str = "store", *, as_json: bool = False) -> Iterator[RunProgress]:
    """Show how far a command is while the block runs.

    Args:
        places: what it works on, in the singular.
        as_json: whether a program reads the output: then lines are plain.
    """
    # A line that is drawn over and over must be seen, and be wanted.
    environment = os.environ
    is_plain = environment.get("NO_COLOR") or environment.get("CI") or not sys.stderr.isatty()
    if as_json or is_plain or environment.get("TERM", "") == "dumb":
        plain = RunProgress(places)
        is_over = threading.Event()
        clock = threading.Thread(target=plain.tell_lines, args=[is_over], daemon=True)
        clock.start()
        try:
            yield plain
        finally:
            is_over.set()
            clock.join()
        return
    from rich.live import Live
    from rich.spinner import Spinner

    run = RunProgress(places)
    spinner = Spinner("line")

    def draw() -> Spinner:
        # Cut, because a line that wraps could not be drawn over; what matters most stands first.
        spinner.update(text=run.line()[: max(console().width - 3, 0)])
        return spinner

    # What kinds print must neither break the line nor leave stdout, where that goes elsewhere.
    with Live(
        get_renderable=draw,
        console=console(),
        transient=True,
        refresh_per_second=8,
        redirect_stdout=sys.stdout.isatty(),
    ):
        yield run
