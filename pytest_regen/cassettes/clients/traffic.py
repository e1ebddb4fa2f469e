"""What passes between HTTP clients and servers while a cassette is in use.

Patched clients ask the innermost cassette; answers on their way to a caller are kept piece by piece
and recorded at their end; websockets of these clients are refused.
"""

import asyncio
import time
import zlib
from concurrent.futures import Future
from dataclasses import replace
from typing import Protocol, cast

from pytest_regen.cassettes.interactions import Interaction, StreamEnd
from pytest_regen.errors import CassetteError
from pytest_regen.network import host_of
from pytest_regen.turns.interception import client_interceptor


class ActiveCassette(Protocol):
    """A cassette in use, as patched clients know it."""

    def passes(self, uri: str) -> bool:
        """Whether requests to this address bypass the cassette."""

    def take(self, method: str, uri: str, body: bytes) -> Interaction | None:
        """Return the recorded answer, or ``None`` where the request is to be sent.

        Raises:
            CassetteMiss: nothing was recorded, and nothing may be sent.
        """

    def signal(self, error: CassetteError) -> BaseException:
        """Return what to raise so that ``error`` passes through clients without a retry."""

    def record(self, exchange: Interaction) -> None:
        """Record a request that was sent and its answer.

        Raises:
            CassetteMiss: it cannot be written.
        """

    def record_apart(self, exchange: Interaction) -> Future[None]:
        """Record a request and its answer in another thread, for callers in an event loop."""


def innermost(uri: str) -> ActiveCassette | None:
    """Return the cassette that serves requests to an address: the one put to use last, if any.

    Raises:
        CassetteMiss: several are in use, and nobody can say which of them is meant.
    """
    # Only a ``CassetteRun`` is put to use for clients, and it has both protocols.
    run = cast("ActiveCassette | None", client_interceptor())
    return None if run is None or run.passes(uri) else run


_STEP = 0.02
"""In seconds: pieces that arrive within one step of each other are recorded as one."""

_open: list["LiveAnswer"] = []
"""Answers on their way to a caller.

Changed only by single, atomic list operations, like everything that clients share here: a lock
would make an event loop wait for another thread.
"""


def end_streams(run: ActiveCassette) -> None:
    """Record the streams that were never closed, as far as they were read.

    Raises:
        CassetteMiss: one cannot be written.
    """
    for answer in [live for live in _open if live.run is run]:
        answer.end("closed")


class LiveAnswer:
    """An answer on its way to the caller.

    Args:
        run: the cassette that records it.
        exchange: the request, and the head of the answer.
        encoding: the compression of the pieces, as in ``content-encoding``.
    """

    def __init__(self, run: ActiveCassette, exchange: Interaction, encoding: str = "") -> None:
        self.run = run
        self._exchange = exchange
        self._encoding = encoding.lower()
        self._inflate = zlib.decompressobj(16 + zlib.MAX_WBITS)
        self._pieces: list[bytes] = []
        self._chunks: list[tuple[int, int]] = []
        self._start = time.monotonic()
        self._unended = [True]
        _open.append(self)

    def add(self, piece: bytes) -> None:
        """Add a piece that arrived now.

        If its decoded size is unknown, the recording is played back in one piece.
        """
        self._pieces.append(piece)
        if self._encoding == "gzip":
            # Only for its size: the caller decodes the piece, because clients do that themselves.
            try:
                size = len(self._inflate.decompress(piece))
            except zlib.error:
                return  # the client will raise, or does not mind
        elif self._encoding in {"", "identity"}:
            size = len(piece)
        else:
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
        """Let another thread record the answer; return a future the first time, then ``None``."""
        exchange = self._whole(how)
        return None if exchange is None else self.run.record_apart(exchange)

    async def aend(self, how: StreamEnd) -> None:
        """Record the answer in another thread and wait for it; raises as ``end`` does.

        If cancelled, the answer is recorded all the same.
        """
        future = self.end_apart(how)
        if future is None:
            return
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            # Trio, which may as well wait: it is a test that asks.
            future.result()
            return
        # Shielded, because the thread continues when the task is cancelled.
        await asyncio.shield(asyncio.wrap_future(future))

    def _whole(self, how: StreamEnd) -> Interaction | None:
        try:
            # Only one of several threads gets the item.
            self._unended.pop()
        except IndexError:
            return None
        _open.remove(self)
        body, chunks = b"".join(self._pieces), tuple(self._chunks)
        return replace(self._exchange, response_body=body, chunks=chunks, end=how)


def run_for(url: str, upgrade: str | None) -> ActiveCassette | None:
    """Return the cassette that serves a request of an HTTP client, if any.

    Args:
        url: what is asked for.
        upgrade: the value of its ``upgrade`` header.

    Raises:
        CassetteMiss: the request asks for a websocket.
    """
    run = innermost(url)
    if run is not None and (upgrade or "").strip().lower() == "websocket":
        host = host_of(url)
        what = f"a websocket to {host} cannot be recorded or replayed"
        why = "a cassette keeps requests and their answers, not what passes over a websocket"
        hint = f'let it pass with passthrough_hosts=["{host}"], or use no cassette in this test'
        raise run.signal(CassetteError(what, why=why, hint=hint))
    return run
