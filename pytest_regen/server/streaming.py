"""Server-sent events: one answer, told as a stream that never falls silent."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable

__all__ = ["HEADERS", "frame", "told_with_heartbeats"]

HEADERS = {
    "cache-control": "no-cache, no-store",
    "x-accel-buffering": "no",  # or a proxy would hold events back until its buffer is full
}
_HEARTBEAT = b": waiting for the model\n\n"


def frame(event: str, data: object) -> bytes:
    """Return one event. JSON escapes line ends, so that its data is always one line."""
    return f"event: {event}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


async def told_with_heartbeats(
    opening: bytes, ending: Awaitable[bytes], *, every: float
) -> AsyncIterator[bytes]:
    """Yield the opening, a comment every so many seconds while waiting, and the ending.

    A client that leaves ends the waiting: the awaited work is cancelled.
    """
    yield opening
    task = asyncio.ensure_future(ending)
    try:
        while not (await asyncio.wait({task}, timeout=every))[0]:
            yield _HEARTBEAT
        yield task.result()
    finally:
        task.cancel()
