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

    An ``OSError``, as on a machine without network: what runs in the background, such as a
    reporter of metrics, copes with that, and does not fail a test it has nothing to do with.
    """


class _Blocks:
    """How many replaying cassettes are in use; the sockets are patched once for all of them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0
        self.originals: tuple[Any, Any, Any] = (None, None, None)
        self.in_thread = threading.local()
        """Its ``pair`` says whether this thread is making a pair of sockets."""

    def refuses(self, family: int) -> bool:
        """Whether a socket of this family may not connect now."""
        return family in _NETWORK and not getattr(self.in_thread, "pair", False)


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
    make_pair = socket.socketpair
    _blocks.originals = (connect, connect_ex, make_pair)

    def refused(self: socket.socket, address: Any) -> None:  # noqa: ANN401 - as sockets take it
        if _blocks.refuses(self.family):
            raise BlockedConnectionError(_message(address))
        connect(self, address)

    def refused_code(self: socket.socket, address: Any) -> int:  # noqa: ANN401 - as sockets take it
        if _blocks.refuses(self.family):
            raise BlockedConnectionError(_message(address))
        return connect_ex(self, address)

    def paired(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - as sockets take them
        # Every event loop wants a pair; Windows has none, and Python connects two over loopback.
        _blocks.in_thread.pair = True
        try:
            return make_pair(*args, **options)
        finally:
            _blocks.in_thread.pair = False

    socket.socket.connect = refused  # type: ignore[method-assign,assignment]  # the same signature, wider
    socket.socket.connect_ex = refused_code  # type: ignore[method-assign,assignment]  # the same signature, wider
    socket.socketpair = paired


def _restore() -> None:
    connect, connect_ex, make_pair = _blocks.originals
    socket.socket.connect = connect  # type: ignore[method-assign]  # the original
    socket.socket.connect_ex = connect_ex  # type: ignore[method-assign]  # the original
    socket.socketpair = make_pair


def _message(address: object) -> str:
    return f"a cassette replays; nothing may connect to {address!r}"
