"""How far a run is, in words: one line of counts.

Nothing here draws, waits or reads a clock: commands and pytest do that, with these words.
"""

from pytest_regen.regeneration.values import RunState
from pytest_regen.text import plural


def progress_line(
    state: RunState, *, places: str = "store", batches: int = 0, is_over: bool = False
) -> str:
    """Return how far a run is, or what it came to, in one line; what matters least stands last.

    ``1,204 of 1,310 pages so far, 240 of 2,000 stores, 3 failed, 1,215 calls, 12 waiting for the
    limit, 3,120,000 tokens, about $12.40``. Pages are known once their store is begun.

    Args:
        state: of the run.
        places: what the places of the run are called, in the singular.
        batches: batches that are under way.
        is_over: whether the run has ended.
    """
    done, total = state.places_done, state.places_total
    pages = "nothing to ask"
    if state.pages_known:
        pages = f"{state.pages_done:,} of {plural(state.pages_known, 'page')}"
    # Those of places that are not begun are not among them.
    of_all = "" if is_over or total in {1, done} else " so far"
    tokens = state.usage.total_tokens
    # At the end alone, because a line that does not change is told more rarely in a log.
    seconds = f"{state.elapsed:,.0f} s" if is_over else ""
    parts = [
        f"{pages}{of_all}",
        f"{done:,} of {plural(total, places)}" if total is not None and total > 1 else "",
        f"{state.pages_failed:,} failed" if state.pages_failed else "",
        plural(state.calls, "call") if state.calls else "",
        f"{state.waiting:,} waiting for the limit" if state.waiting else "",
        f"batches under way: {batches:,}" if batches else "",
        plural(tokens, "token") if tokens else "",
        str(state.usage.cost or ""),
        seconds,
    ]
    return ", ".join(filter(None, parts))
