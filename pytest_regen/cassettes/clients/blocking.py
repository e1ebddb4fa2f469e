"""No connection leaves the process while a cassette only replays."""

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pytest_regen.cassettes.hosts import is_loopback, is_named

__all__ = ["BlockedConnectionError", "blocked_sockets", "unresolved_names"]

_NETWORK = frozenset({socket.AF_INET, socket.AF_INET6})
_ITSELF = ("localhost", "127.0.0.1", "::1")


class BlockedConnectionError(ConnectionRefusedError):
    """A connection was attempted while a cassette replays.

    An ``OSError``, as on a machine without network: what runs in the background, such as a
    reporter of metrics, copes with that, and does not fail a test it has nothing to do with.
    """


class _Blocks:
    """Which replaying cassettes are in use; sockets are patched once for all of them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.open_to_itself: list[bool] = []
        """For each, whether connections to this machine are let through."""
        self.originals: tuple[Any, Any, Any] = (None, None, None)
        self.in_thread = threading.local()
        """Its ``pair`` says whether this thread is making a pair of sockets."""

    def refuses(self, family: int, address: Any) -> bool:  # noqa: ANN401 - as sockets take it
        """Whether a socket of this family may not connect to an address now."""
        if family not in _NETWORK or getattr(self.in_thread, "pair", False):
            return False
        return not (all(self.open_to_itself) and is_loopback(str(address[0])))


_blocks = _Blocks()


@contextmanager
def blocked_sockets(passing: Sequence[str] = ()) -> Iterator[None]:
    """Refuse every IPv4 and IPv6 connection of the process, loopback too, while the block runs.

    Args:
        passing: hosts that pass a cassette by, as ``checked_hosts`` returns them. Where one of
            them is this machine, connections to it are let through; the names of others resolve
            to nothing, as on a machine without network.
    """
    itself = any(is_named(host, passing) for host in _ITSELF)
    with _blocks.lock:
        if not _blocks.open_to_itself:
            _patch()
        _blocks.open_to_itself.append(itself)
    try:
        with unresolved_names(passing):
            yield
    finally:
        with _blocks.lock:
            _blocks.open_to_itself.remove(itself)
            if not _blocks.open_to_itself:
                _restore()


def _patch() -> None:
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex
    make_pair = socket.socketpair
    _blocks.originals = (connect, connect_ex, make_pair)

    def refused(self: socket.socket, address: Any) -> None:  # noqa: ANN401 - as sockets take it
        if _blocks.refuses(self.family, address):
            raise BlockedConnectionError(_message(address))
        connect(self, address)

    def refused_code(self: socket.socket, address: Any) -> int:  # noqa: ANN401 - as sockets take it
        if _blocks.refuses(self.family, address):
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


class _Names:
    """Names that resolve to nothing, for each cassette in use that has some."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.hosts: list[Sequence[str]] = []
        self.original: Any = None


_names = _Names()


@contextmanager
def unresolved_names(hosts: Sequence[str]) -> Iterator[None]:
    """Let the names of hosts resolve to nothing while the block runs, but for this machine's.

    Args:
        hosts: names and patterns, as ``checked_hosts`` returns them.
    """
    if not hosts:
        yield
        return
    with _names.lock:
        if not _names.hosts:
            _names.original = socket.getaddrinfo
            socket.getaddrinfo = _resolving(socket.getaddrinfo)
        _names.hosts.append(hosts)
    try:
        yield
    finally:
        with _names.lock:
            _names.hosts.remove(hosts)
            if not _names.hosts:
                socket.getaddrinfo = _names.original


def _resolving(resolve: Any) -> Any:  # noqa: ANN401 - a function
    def resolved(host: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - as sockets do it
        name = (host.decode("utf-8", "replace") if isinstance(host, bytes) else str(host)).lower()
        if not is_loopback(name) and any(is_named(name, hosts) for hosts in tuple(_names.hosts)):
            raise socket.gaierror(socket.EAI_NONAME, f"a cassette replays; {name} is not asked")
        return resolve(host, *args, **options)

    return resolved
