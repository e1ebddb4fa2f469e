"""No connection leaves the process while a cassette only replays."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["BlockedConnectionError", "blocked_sockets"]

_NETWORK = frozenset({socket.AF_INET, socket.AF_INET6})


class BlockedConnectionError(ConnectionRefusedError):
    """A connection was attempted while a cassette replays.

    An ``OSError``, as of a machine without network: what runs in the background, such as a
    reporter of metrics, copes with that, and must not fail a test that has no part in it.
    """


class _Blocks:
    """How many replaying cassettes are in use; the sockets are patched once for all of them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0
        self.originals: tuple[Any, Any] = (None, None)


_blocks = _Blocks()


@contextmanager
def blocked_sockets() -> Iterator[None]:
    """Refuse every IPv4 and IPv6 connection of the process, loopback too, while the block runs."""
    with _blocks.lock:
        _blocks.count += 1
        if _blocks.count == 1:
            _patch()
    try:
        yield
    finally:
        with _blocks.lock:
            _blocks.count -= 1
            if _blocks.count == 0:
                _restore()


def _patch() -> None:
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex
    _blocks.originals = (connect, connect_ex)

    def refused(self: socket.socket, address: Any) -> None:  # noqa: ANN401 - as sockets take it
        if self.family in _NETWORK:
            raise BlockedConnectionError(_message(address))
        connect(self, address)

    def refused_code(self: socket.socket, address: Any) -> int:  # noqa: ANN401 - as sockets take it
        if self.family in _NETWORK:
            raise BlockedConnectionError(_message(address))
        return connect_ex(self, address)

    socket.socket.connect = refused  # type: ignore[method-assign,assignment]  # the same signature, wider
    socket.socket.connect_ex = refused_code  # type: ignore[method-assign,assignment]  # the same signature, wider


def _restore() -> None:
    connect, connect_ex = _blocks.originals
    socket.socket.connect = connect  # type: ignore[method-assign]  # the original
    socket.socket.connect_ex = connect_ex  # type: ignore[method-assign]  # the original


def _message(address: object) -> str:
    return f"a cassette replays; nothing may connect to {address!r}"
