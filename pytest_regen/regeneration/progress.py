"""How far a run is, in words: one line that fits any width.

Nothing here draws, waits or reads a clock: commands and pytest do that, with these words.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from pytest_regen.regeneration.values import RunState
from pytest_regen.text import plural
from pytest_regen.turns.values import Usage

_WINDOW: Final = 60.0
"""Seconds that the pace is taken from."""

_SAMPLE: Final = 1.0
"""Seconds between two samples of it, so that a fast run keeps few."""

_LEAST_TIME: Final = 2.0
"""Seconds before there is a pace to tell."""


@dataclass(frozen=True, slots=True)
class _Sample:
    elapsed: float
    calls: int
    pages: int


@dataclass(slots=True)
class Pace:
    """How fast a run goes: fed with each of its states, it remembers the last minute."""

    _samples: deque[_Sample] = field(default_factory=lambda: deque([_Sample(0.0, 0, 0)]))
    _last: _Sample = _Sample(0.0, 0, 0)

    def add(self, state: RunState) -> None:
        """Take in a state; one that is older than the last changes nothing."""
        now = _Sample(state.elapsed, state.calls, state.pages_done + state.pages_failed)
        if now.elapsed < self._last.elapsed:
            return
        self._last = now
        if now.elapsed - self._samples[-1].elapsed >= _SAMPLE:
            self._samples.append(now)
        while len(self._samples) > 1 and self._samples[1].elapsed <= now.elapsed - _WINDOW:
            self._samples.popleft()

    @property
    def calls_per_minute(self) -> float | None:
        """Requests per minute; ``None`` where that cannot be said yet."""
        first, last = self._samples[0], self._last
        time = last.elapsed - first.elapsed
        return 60 * (last.calls - first.calls) / time if time >= _LEAST_TIME else None

    def seconds_left(self, state: RunState) -> float | None:
        """Return how long the rest takes at this pace; ``None`` where that cannot be said.

        Places that were not begun are taken to have as many pages as the finished ones had.
        """
        ended = state.pages_done + state.pages_failed
        total: float = state.pages_known
        if state.places_total is None or not state.calls:
            return None
        if state.places_total > 1:
            if not state.places_done:
                return None
            if state.places_done < state.places_total:
                total = max(total, ended * state.places_total / state.places_done)
        first, last = self._samples[0], self._last
        time, pages = last.elapsed - first.elapsed, last.pages - first.pages
        if pages <= 0:  # Nothing in the last minute: the whole run says more.
            time, pages = last.elapsed, last.pages
        if pages <= 0 or time < _LEAST_TIME:
            return None
        remaining = max(total - ended, 0)
        left = remaining * time / pages
        if state.waiting and state.limit:
            # What the last minute began with is used up: from now on it goes as the limit does.
            left = max(left, remaining * 60 / state.limit)
        return left


def progress_line(
    state: RunState,
    pace: Pace,
    *,
    width: int | None = None,
    places: str = "store",
    batches: int = 0,
) -> str:
    """Return how far a run is, in one line: what matters least is left out where it is narrow.

    ``1,204 of 1,310 pages so far, 240 of 2,000 stores, 950 of 1,000 requests a minute, 12 wait for
    the limit, 3.1M tokens, about $12.40, 9 min left``. Pages are known once their store is begun.

    Args:
        state: of the run.
        pace: that was fed with it.
        width: columns that there are; ``None`` for as many as it takes.
        places: what the places of the run are called, in the singular.
        batches: batches that are under way.
    """
    left = pace.seconds_left(state)
    parts = [
        (0, _pages(state, "so far")),
        (3, _places(state, places)),
        (1, f"{state.pages_failed:,} failed" if state.pages_failed else ""),
        (6, "" if batches else _rate(state, pace)),
        (4, _waiting(state.waiting)),
        (2, f"{batches:,} {'batch' if batches == 1 else 'batches'} under way" if batches else ""),
        (7, _tokens(state.usage)),
        (5, str(state.usage.cost or "")),
        (2, f"{duration(left)} left" if left and state.pages_known else ""),
    ]
    return _fit([part for part in parts if part[1]], width)


def final_line(state: RunState, *, places: str = "store") -> str:
    """Return what a run came to, in one line."""
    parts = [
        _pages(state, ""),
        _places(state, places),
        f"{state.pages_failed:,} failed" if state.pages_failed else "",
        plural(state.calls, "call") if state.calls else "",
        _tokens(state.usage),
        str(state.usage.cost or ""),
    ]
    return f"{', '.join(filter(None, parts))} in {duration(state.elapsed)}"


def _fit(parts: Sequence[tuple[int, str]], width: int | None) -> str:
    """Join parts in their order; those with the highest numbers go first where room lacks."""
    fitting = list(parts)
    while width is not None and len(fitting) > 1 and len(_join(fitting)) > width:
        fitting.remove(max(fitting, key=lambda part: part[0]))
    line = _join(fitting)
    return line if width is None or len(line) <= width else line[: max(width, 0)]


def _join(parts: Sequence[tuple[int, str]]) -> str:
    return ", ".join(text for _, text in parts)


def _pages(state: RunState, so_far: str) -> str:
    pages = "nothing to ask"
    if state.pages_known:
        pages = f"{state.pages_done:,} of {plural(state.pages_known, 'page')}"
    # Those of places that are not begun are not among them.
    is_all = state.places_total is not None and state.places_total in {1, state.places_done}
    return pages if is_all else f"{pages} {so_far}".rstrip()


def _places(state: RunState, noun: str) -> str:
    total = state.places_total
    if total is None:
        return plural(state.places_done, noun) if state.places_done else ""
    return f"{state.places_done:,} of {plural(total, noun)}" if total > 1 else ""


def _rate(state: RunState, pace: Pace) -> str:
    rate = pace.calls_per_minute
    if rate is None or not state.calls:
        return ""
    number = f"{rate:,.1f}" if 0 < rate < 10 else f"{rate:,.0f}"
    if state.limit:
        return f"{number} of {state.limit:,} requests a minute"
    return f"{number} requests a minute"


def _waiting(number: int) -> str:
    if not number:
        return ""
    return f"{number:,} {'waits' if number == 1 else 'wait'} for the limit"


def _tokens(usage: Usage) -> str:
    total = usage.total_tokens
    if not total:
        return ""
    if total >= 1_000_000:
        return f"{total / 1_000_000:,.1f}M tokens"
    return f"{total // 1000:,}k tokens" if total >= 100_000 else plural(total, "token")


def duration(seconds: float) -> str:
    """Return a time as people say it: ``40 s``, ``9 min``, ``2 h 05 min``, ``3 d 4 h``."""
    whole = max(round(seconds), 1)
    if whole < 100:
        return f"{whole} s"
    minutes = round(whole / 60)
    if minutes < 100:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes:02} min"
    days, hours = divmod(round(whole / 3600), 24)
    return f"{days:,} d {hours} h"
