"""One queue for all that a run asks, and the driver of the flows that ask it.

A *flow* is the work on one place as steps (``turns/steps.py``): a generator that yields batches of
asks and is sent what has arrived. ``drive_flows`` drives any number of them in the caller's thread,
where stores are planned, validated and written; an ``AskQueue`` asks in an event loop of its own.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import TypeVar

from pytest_regen.errors import RegenError
from pytest_regen.regeneration.values import Answer, Ask, TurnSettings

__all__ = ["Batch", "Flow", "drive_flow", "drive_flows"]

R = TypeVar("R")

Batch = Sequence[Ask]
"""Asks of one piece whose answers are kept or rejected together; a failure ends the rest of it."""

Flow = Generator[Sequence[Batch], Sequence[tuple[Answer, ...]], R]
"""Yields the batches to ask next, maybe none, and is sent the answers of batches that ended.

Each batch that was yielded is answered once, in any order: by the answers to those of its asks that
were sent, in their order. They are none where something ended the run before. What is returned is
the result of the work.
"""


def drive_flow(flow: Flow[R], settings: TurnSettings) -> R:
    """Drive one flow to its end and return its result; raises what it raises."""
    raise NotImplementedError


def drive_flows(
    flows: Iterable[tuple[str, Flow[R]]], settings: TurnSettings, *, total: int | None = None
) -> Iterator[tuple[str, R | RegenError]]:
    """Drive flows at the same time; yield the name of each with its result, as they finish.

    The next flow begins only while fewer asks wait than may be under way, so that few are open at a
    time. With one job flows follow one another. After a failure that would meet every request
    nothing more is sent, and flows that got no answer are left out.

    Args:
        flows: names and flows; one is taken when it begins.
        settings: with what, and within which limits, pages are asked; the flows have the same.
        total: how many flows there are, where that is known; for ``settings.watch``.

    Raises:
        Exception: what a flow raised that is no ``RegenError``, an interruption for one. What is
            under way then is not waited for.
    """
    raise NotImplementedError
