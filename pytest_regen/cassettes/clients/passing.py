"""Answers on their way from a server to a caller, kept piece by piece and recorded at their end."""

import asyncio
import time
import zlib
from collections.abc import Callable
from concurrent.futures import Future

from pytest_regen.cassettes.clients.active import CassetteInUse
from pytest_regen.cassettes.recording import WireExchange
from pytest_regen.cassettes.values import StreamEnd

__all__ = ["PassingAnswer", "end_streams", "written"]

_STEP = 0.02
"""Seconds: pieces that arrive within one step of each other are kept as one."""

_open: list["PassingAnswer"] = []
"""Answers on their way to a caller.

Like all that clients share here it is changed by single operations of lists: a lock would make an
event loop wait for another thread.
"""


def end_streams(run: CassetteInUse) -> None:
    """Keep streams that nobody closed as far as they were read.

    Raises:
        CassetteMiss: one cannot be written.
    """
    for answer in [one for one in _open if one.run is run]:
        answer.end("closed")


class PassingAnswer:
    """An answer on its way to the caller.

    Args:
        run: the cassette that records it.
        exchange: the request, and the head of the answer.
        encoding: how the pieces are packed, as ``content-encoding`` names it.
    """

    def __init__(self, run: CassetteInUse, exchange: WireExchange, encoding: str = "") -> None:
        self.run = run
        self._exchange = exchange
        self._size = _sizes(encoding.lower())
        self._pieces: list[bytes] = []
        self._chunks: list[tuple[int, int]] = []
        self._start = time.monotonic()
        self._unended = [True]
        _open.append(self)

    def add(self, piece: bytes) -> None:
        """Keep a piece that arrived now."""
        self._pieces.append(piece)
        size = self._size(piece)
        if size is None:
            return
        now = time.monotonic() - self._start
        if self._chunks and now - self._chunks[-1][0] / 1000 < _STEP:
            at, before = self._chunks.pop()
            self._chunks.append((at, before + size))
        else:
            self._chunks.append((int(now / _STEP) * round(_STEP * 1000), size))

    def end(self, how: StreamEnd) -> None:
        """Record the answer as far as it came; only the first call counts.

        Raises:
            CassetteMiss: it cannot be written.
        """
        exchange = self._whole(how)
        if exchange is not None:
            self.run.record(exchange)

    def end_apart(self, how: StreamEnd) -> Future[None] | None:
        """Let another thread record the answer; returns what ends with it, the first time."""
        exchange = self._whole(how)
        return None if exchange is None else self.run.record_apart(exchange)

    async def aend(self, how: StreamEnd) -> None:
        """Record the answer in another thread, and return when it is written; raises as ``end``.

        Cancelled, it is recorded all the same.
        """
        future = self.end_apart(how)
        if future is not None:
            await written(future)

    def _whole(self, how: StreamEnd) -> WireExchange | None:
        try:
            # Of several threads one gets it.
            self._unended.pop()
        except IndexError:
            return None
        _open.remove(self)
        return self._exchange.ended(b"".join(self._pieces), tuple(self._chunks), how)


async def written(future: Future[None]) -> None:
    """Wait for a recording without keeping the event loop from its other tasks.

    Raises:
        CassetteMiss: it cannot be written.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        # Trio, which clients speak through anyio.
        from anyio.to_thread import run_sync  # noqa: PLC0415 - loaded by then

        await run_sync(future.result)
        return
    # The thread goes on when the task is cancelled.
    await asyncio.shield(asyncio.wrap_future(future))


def _sizes(encoding: str) -> Callable[[bytes], int | None]:
    """Return a function that gives the decoded size of a piece; ``None`` where it is unknown.

    Where that is not known the recording is played back in one piece.
    """
    if encoding in {"", "identity"}:
        return len
    if encoding != "gzip":
        return lambda _piece: None
    inflate = zlib.decompressobj(16 + zlib.MAX_WBITS)

    def size(piece: bytes) -> int | None:
        try:
            return len(inflate.decompress(piece))
        except zlib.error:
            return None  # the client will say so, or does not mind

    return size
