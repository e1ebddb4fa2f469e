"""How far a command is: one line that is drawn over and over, or plain lines, few of them.

The words are those of ``regeneration/progress.py``. All of it goes to stderr.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from pytest_regen.cli.output import console, say
from pytest_regen.regeneration.progress import Pace, final_line, progress_line
from pytest_regen.regeneration.values import RunState

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from pytest_regen.regeneration.costs import PriceOf
    from pytest_regen.regeneration.values import Progress

_FIRST_PAGES: Final = 20
"""Pages that are told one by one where lines are plain; a larger run is told in shares."""

_PLAIN_SECONDS: Final = 10.0
"""Seconds between two plain lines of a large run."""

_PLAIN_SHARE: Final = 0.1
"""What a run has to come further for a plain line before that."""

_LEAST_SECONDS: Final = 1.0
"""Seconds between two plain lines however fast a run is."""

_SILENCE: Final = 60.0
"""Seconds without any change after which a plain line says that the run goes on."""

_WIDE: Final = 120
"""Columns from which there is room for a bar beside the words."""

_BAR: Final = 20


class RunProgress:
    """What is known of a run while it goes on.

    ``page`` and ``watch`` are called from any thread.
    """

    def __init__(
        self, places: str, price_of: "PriceOf | None", words: Callable[[], str] | None
    ) -> None:
        """Know nothing yet.

        Args:
            places: what the run works on, in the singular: ``store``.
            price_of: what usage costs; ``None`` where nothing is paid.
            words: returns how far a run is that asks no model.
        """
        self.state = RunState()
        self.batches: Callable[[], int] = lambda: 0
        """Returns how many batches are under way."""
        self.price_of = price_of
        self._places = places
        self._words = words
        self._latest = self.state
        self._before: RunState | None = None
        """What the runs before came to, where a command needs several."""
        self._pace = Pace()
        self._lock = threading.Lock()

    def page(self, step: "Progress") -> None:
        """Take in one page that ended."""

    def watch(self, state: RunState) -> None:
        """Take in a new state of the run."""
        with self._lock:
            if state.elapsed < self._latest.elapsed:  # Another run of the same command began.
                self._before, self._pace = self.state, Pace()
            self._latest = state
            self.state = self._before + state if self._before else state
            self._pace.add(state)

    @property
    def cost(self) -> Decimal | None:
        """US dollars so far; ``None`` where a price is not known, or nothing was asked."""
        from pytest_regen.regeneration.costs import spent_on

        state = self.state
        if self.price_of is None or not state.calls:
            return None
        return spent_on(state.usage_by_model.items(), self.price_of)

    def line(self, width: int | None = None) -> str:
        """Return how far the run is, in at most ``width`` columns."""
        if self._words is not None:
            return self._words()[:width]
        with self._lock:
            return progress_line(
                self.state,
                self._pace,
                width=width,
                places=self._places,
                cost=self.cost,
                batches=self.batches(),
            )

    @property
    def share(self) -> float:
        """How much of what is known is done, 0 to 1."""
        state = self.state
        if state.places_total and state.places_total > 1:
            return min(state.places_done / state.places_total, 1.0)
        done = state.pages_done + state.pages_failed
        return min(done / state.pages_known, 1.0) if state.pages_known else 0.0


class _PlainProgress(RunProgress):
    """Lines for a log: a small run page by page, a large one every ten seconds or tenth part."""

    def __init__(
        self,
        places: str,
        price_of: "PriceOf | None",
        words: Callable[[], str] | None,
        *,
        first_pages: int,
    ) -> None:
        super().__init__(places, price_of, words)
        self._first_pages = first_pages
        """How many pages are told one by one."""
        self._pages = 0
        self._told = ""
        self._told_share = 0.0
        self._told_at = time.monotonic()
        self._is_over = threading.Event()
        self._clock = threading.Thread(target=self._tick, name="progress", daemon=True)

    def page(self, step: "Progress") -> None:
        """Tell one of the first pages."""
        self._pages += 1
        if self._pages <= self._first_pages:
            key = step.key
            say(
                f"  {step.done:,}/{step.total:,} {key.type_name} page {key.page} of "
                f"{key.total_pages}: {step.what}"
            )
            self._told_at = time.monotonic()

    def watch(self, state: RunState) -> None:
        """Take in a state, and tell it where it is time."""
        super().watch(state)
        if self._pages > self._first_pages and self.share >= self._told_share + _PLAIN_SHARE:
            self._tell(after=_LEAST_SECONDS)

    def _tell(self, *, after: float, even_unchanged: bool = False) -> None:
        line = self.line()
        with self._lock:
            now = time.monotonic()
            if now - self._told_at < after or (line == self._told and not even_unchanged):
                return
            self._told, self._told_at, self._told_share = line, now, self.share
        say(f"  {line}")

    def _tick(self) -> None:
        while not self._is_over.wait(_LEAST_SECONDS):
            is_silent = time.monotonic() - self._told_at >= _SILENCE
            self._tell(after=_PLAIN_SECONDS, even_unchanged=is_silent)

    def start(self) -> None:
        """Begin to tell what does not change as well."""
        self._clock.start()

    def stop(self) -> None:
        """Say what a run came to that was told in shares."""
        self._is_over.set()
        self._clock.join()
        if self._words is None and (self._told or self._pages > _FIRST_PAGES):
            say(f"  {final_line(self.state, places=self._places, cost=self.cost)}")


class _Drawing:
    """The line as rich draws it, anew each time, as wide as the terminal is now."""

    def __init__(self, run: RunProgress, title: str) -> None:
        from rich.progress_bar import ProgressBar
        from rich.spinner import Spinner

        self._run = run
        self._spinner = Spinner("line", text="")
        self._bar = ProgressBar(total=1.0, width=_BAR)
        self._title = title

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        from rich.table import Table
        from rich.text import Text

        row: list[Any] = [self._spinner]
        room = options.max_width - 3
        if options.max_width >= _WIDE:
            self._bar.update(self._run.share)
            row += [Text(self._title), self._bar]
            room -= len(self._title) + _BAR + 2
        row.append(Text(self._run.line(room), no_wrap=True, overflow="crop"))
        grid = Table.grid(padding=(0, 1))
        grid.add_row(*row)
        yield grid


@contextmanager
def progress_line_of(
    title: str,
    *,
    places: str = "store",
    price_of: "PriceOf | None" = None,
    words: Callable[[], str] | None = None,
    as_json: bool = False,
    is_free: bool = False,
) -> Iterator[RunProgress]:
    """Show how far a command is while the block runs.

    Args:
        title: what it does: ``generating``.
        places: what it works on, in the singular.
        price_of: what usage costs; ``None`` where nothing is paid.
        words: returns how far a run is that asks no model, in place of the words for pages.
        as_json: whether a program reads the output: then lines are plain.
        is_free: whether no model is asked: then nobody waits for a single page.
    """
    if as_json or not _draws():
        first_pages = 0 if is_free else _FIRST_PAGES
        plain = _PlainProgress(places, price_of, words, first_pages=first_pages)
        plain.start()
        try:
            yield plain
        finally:
            plain.stop()
        return
    from rich.live import Live

    run = RunProgress(places, price_of, words)
    drawing: Any = _Drawing(run, title)
    # What kinds print must neither break the line nor leave stdout, where that goes elsewhere.
    with Live(
        drawing,
        console=console(),
        transient=True,
        refresh_per_second=8,
        redirect_stdout=sys.stdout.isatty(),
    ):
        yield run


def _draws() -> bool:
    """Return whether a line that is drawn over and over can be seen, and is wanted."""
    if not sys.stderr.isatty() or os.environ.get("NO_COLOR") or os.environ.get("CI"):
        return False
    return os.environ.get("TERM", "") != "dumb"
