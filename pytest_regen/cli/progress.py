"""How far a command is: one line that is drawn over and over, or plain lines, few of them.

The words are those of ``regeneration/progress.py``. All of it goes to stderr.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from pytest_regen.cli.output import console, say
from pytest_regen.regeneration.progress import final_line, progress_line
from pytest_regen.regeneration.values import RunState

if TYPE_CHECKING:
    from pytest_regen.regeneration.values import Progress

_FIRST_PAGES: Final = 20
"""Pages that are told one by one where lines are plain; of a larger run the log has its sums."""

_SECONDS: Final = 10.0
"""Between two plain lines of a large run."""

_SILENT_TIMES: Final = 6
"""After as many of these without any change a plain line says that the run goes on."""

_WIDE: Final = 120
"""Columns from which there is room for a bar beside the words."""

_BAR: Final = 20


class RunProgress:
    """What is known of a run while it goes on, and what was told of it in plain lines.

    ``page`` and ``watch`` are called from any thread.
    """

    def __init__(self, places: str, words: Callable[[], str] | None, first_pages: int) -> None:
        """Know nothing yet.

        Args:
            places: what the run works on, in the singular: ``store``.
            words: returns how far a run is that asks no model.
            first_pages: how many pages are told one by one.
        """
        self.state = RunState()
        self.batches: Callable[[], int] = lambda: 0
        """Returns how many batches are under way."""
        self._places = places
        self._words = words
        self._first_pages = first_pages
        self._pages = 0
        self._told = ""
        self._latest = self.state
        self._before: RunState | None = None
        """What the runs before came to, where a command needs several."""
        self._lock = threading.Lock()

    def page(self, step: "Progress") -> None:
        """Take in one page that ended, and tell it if it is one of the first."""
        self._pages += 1
        if self._pages <= self._first_pages:
            page = f"{step.key.type_name} page {step.key.page} of {step.key.total_pages}"
            say(f"  {step.done:,}/{step.total:,} {page}: {step.what}")

    def watch(self, state: RunState) -> None:
        """Take in a new state of the run."""
        with self._lock:
            if state.elapsed < self._latest.elapsed:  # Another run of the same command began.
                self._before = self.state
            self._latest = state
            self.state = self._before + state if self._before else state

    def line(self, width: int | None = None) -> str:
        """Return how far the run is, in at most ``width`` columns."""
        if self._words is not None:
            return self._words()[:width]
        with self._lock:
            batches = self.batches()
            return progress_line(self.state, width=width, places=self._places, batches=batches)

    @property
    def share(self) -> float:
        """How much of what is known is done, 0 to 1."""
        state = self.state
        if state.places_total and state.places_total > 1:
            return min(state.places_done / state.places_total, 1.0)
        pages = state.pages_done + state.pages_failed
        return min(pages / state.pages_known, 1.0) if state.pages_known else 0.0

    def tell_lines(self, is_over: threading.Event) -> None:
        """Tell in plain lines how far the run is, until it is over."""
        unchanged = 0
        while not is_over.wait(_SECONDS):
            line = self.line()
            unchanged = unchanged + 1 if line == self._told else 0
            # Because services for CI end a job whose log stands still.
            if unchanged % _SILENT_TIMES == 0:
                self._told = line
                say(f"  {line}")

    def tell_sum(self) -> None:
        """Tell what a run came to of which not every page was told."""
        if self._words is None and (self._told or self._pages > _FIRST_PAGES):
            say(f"  {final_line(self.state, places=self._places)}")


@contextmanager
def progress_line_of(
    title: str,
    *,
    places: str = "store",
    words: Callable[[], str] | None = None,
    as_json: bool = False,
    is_free: bool = False,
) -> Iterator[RunProgress]:
    """Show how far a command is while the block runs.

    Args:
        title: what it does: ``generating``.
        places: what it works on, in the singular.
        words: returns how far a run is that asks no model, in place of the words for pages.
        as_json: whether a program reads the output: then lines are plain.
        is_free: whether no model is asked: then nobody waits for a single page.
    """
    # A line that is drawn over and over must be seen, and be wanted.
    environment = os.environ
    is_plain = environment.get("NO_COLOR") or environment.get("CI") or not sys.stderr.isatty()
    if as_json or is_plain or environment.get("TERM", "") == "dumb":
        plain = RunProgress(places, words, 0 if is_free else _FIRST_PAGES)
        is_over = threading.Event()
        clock = threading.Thread(target=plain.tell_lines, args=[is_over], daemon=True)
        clock.start()
        try:
            yield plain
        finally:
            is_over.set()
            clock.join()
            plain.tell_sum()
        return
    from rich.live import Live
    from rich.progress_bar import ProgressBar
    from rich.spinner import Spinner
    from rich.table import Table
    from rich.text import Text

    run = RunProgress(places, words, 0)
    spinner, bar = Spinner("line"), ProgressBar(total=1.0, width=_BAR)

    def draw() -> Table:
        width = console().width
        room = width - 3
        row: list[Any] = [spinner]
        if width >= _WIDE:
            bar.update(run.share)
            row += [Text(title), bar]
            room -= len(title) + _BAR + 2
        row.append(Text(run.line(room), no_wrap=True, overflow="crop"))
        grid = Table.grid(padding=(0, 1))
        grid.add_row(*row)
        return grid

    # What kinds print must neither break the line nor leave stdout, where that goes elsewhere.
    with Live(
        get_renderable=draw,
        console=console(),
        transient=True,
        refresh_per_second=8,
        redirect_stdout=sys.stdout.isatty(),
    ):
        yield run
