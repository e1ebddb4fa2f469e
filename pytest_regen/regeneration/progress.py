"""How far a run is, in words: one line that fits any width.

Nothing here draws, waits or reads a clock: commands and pytest do that, with these words.
"""

from typing import Final

from pytest_regen.regeneration.values import RunState
from pytest_regen.text import plural
from pytest_regen.turns.values import Usage

_LEAST_TIME: Final = 2.0
"""Seconds before there is a pace to tell."""


def seconds_left(state: RunState) -> float | None:
    """Return how long the rest takes at the pace of the run; ``None`` where that cannot be said.

    Places that were not begun are taken to have as many pages as the finished ones had.
    """
    ended = state.pages_done + state.pages_failed
    places, total = state.places_total, float(state.pages_known)
    if places is None or not (state.calls and ended) or state.elapsed < _LEAST_TIME:
        return None
    # Not yet, because only a finished place tells how many pages one has.
    if places > 1 and not state.places_done:
        return None
    if state.places_done < places and places > 1:
        total = max(total, ended * places / state.places_done)
    remaining = max(total - ended, 0)
    left = remaining * state.elapsed / ended
    if state.waiting and state.limit:
        # What the run began with is used up: from now on it goes as the limit does.
        left = max(left, remaining * 60 / state.limit)
    return left


def progress_line(
    state: RunState, *, width: int | None = None, places: str = "store", batches: int = 0
) -> str:
    """Return how far a run is, in one line: what matters least is left out where it is narrow.

    ``1,204 of 1,310 pages so far, 240 of 2,000 stores, 950 of 1,000 requests a minute, 12 wait for
    the limit, 3.1M tokens, about $12.40, 9 min left``. Pages are known once their store is begun.

    Args:
        state: of the run.
        width: columns that there are; ``None`` for as many as it takes.
        places: what the places of the run are called, in the singular.
        batches: batches that are under way.
    """
    left, waiting = seconds_left(state), state.waiting
    verb = "waits" if waiting == 1 else "wait"
    noun = "batch" if batches == 1 else "batches"
    parts = [
        (0, _pages(state, "so far")),
        (3, _places(state, places)),
        (1, f"{state.pages_failed:,} failed" if state.pages_failed else ""),
        (6, "" if batches else _rate(state)),
        (4, f"{waiting:,} {verb} for the limit" if waiting else ""),
        (2, f"{batches:,} {noun} under way" if batches else ""),
        (7, _tokens(state.usage)),
        (5, str(state.usage.cost or "")),
        (2, f"{duration(left)} left" if left and state.pages_known else ""),
    ]
    fitting = [part for part in parts if part[1]]
    while True:
        line = ", ".join(text for _, text in fitting)
        if width is None or len(line) <= width:
            return line
        if len(fitting) == 1:
            return line[: max(width, 0)]
        fitting.remove(max(fitting, key=lambda part: part[0]))


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


def _rate(state: RunState) -> str:
    if not state.calls or state.elapsed < _LEAST_TIME:
        return ""
    rate = 60 * state.calls / state.elapsed
    number = f"{rate:,.1f}" if rate < 10 else f"{rate:,.0f}"
    limit = f" of {state.limit:,}" if state.limit else ""
    return f"{number}{limit} requests a minute"


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
