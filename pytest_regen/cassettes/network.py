"""No connection leaves the process while a cassette only replays."""

import re
import socket
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from pytest_regen.errors import UsageError

__all__ = [
    "BlockedConnectionError",
    "block_names",
    "block_network",
    "check_hosts",
    "host_of",
    "is_loopback",
    "is_named",
]


_HOST = re.compile(r"[\w*.:-]*[\w*]|::")
_PORT = re.compile(r"[^:]+:\d+")


def check_hosts(hosts: Sequence[str]) -> tuple[str, ...]:
    """Return names and patterns of hosts (``example.com``, ``*.example.com``), in small letters.

    Raises:
        UsageError: one of them names no host, and would match nothing in silence.
    """
    names: tuple[object, ...] = (hosts,) if isinstance(hosts, str) else tuple(hosts)
    for name in names:
        if not isinstance(name, str) or not _HOST.fullmatch(name) or _PORT.fullmatch(name):
            raise UsageError(
                f"passthrough_hosts: {name!r} is no host",
                why="a host has no scheme, port or path",
                hint='name it as in "raw.githubusercontent.com" or "*.example.com"',
            )
    return tuple(str(name).lower() for name in names)


def host_of(uri: str) -> str:
    """Return the host of an address, in small letters; empty where there is none."""
    try:
        return urlsplit(uri).hostname or ""
    except ValueError:
        return ""


def is_named(host: str, names: Iterable[str]) -> bool:
    """Return whether one of ``names`` is the host, or a pattern of it."""
    return bool(host) and any(_pattern(name).fullmatch(host.lower()) for name in names)


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, name.split("*"))))


def is_loopback(host: str) -> bool:
    """Return whether a host, by name or by number, is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


_NETWORK = frozenset({socket.AF_INET, socket.AF_INET6})
_ITSELF = ("localhost", "127.0.0.1", "::1")


class BlockedConnectionError(ConnectionRefusedError):
    """A connection was attempted while a cassette replays.

    An ``OSError``, as on a machine without network: what runs in the background, such as a
    reporter of metrics, copes with that, and does not fail a test it has nothing to do with.
    """


class _Gate:
    """Which replaying cassettes are in use; sockets are patched once for all of them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.open_to_itself: list[bool] = []
        """For each, whether connections to this machine are let through."""
        self.originals: tuple[Any, Any, Any] = (None, None, None)
        self.in_thread = threading.local()
        """Its ``pair`` says whether this thread is making a pair of sockets."""

    def refuses(self, family: int, address: Any) -> bool:
        """Whether a socket of this family may not connect to an address now."""
        if family not in _NETWORK or getattr(self.in_thread, "pair", False):
            return False
        return not (all(self.open_to_itself) and is_loopback(str(address[0])))


_blocks = _Gate()


@contextmanager
def block_network(passing: Sequence[str] = ()) -> Iterator[None]:
    """Refuse every IPv4 and IPv6 connection of the process, loopback too, while the block runs.

    Args:
        passing: hosts that pass a cassette by, as ``checked_hosts`` returns them. Where one of
            them is this machine, connections to it are let through; the names of others resolve
            to nothing, as on a machine without network.
    """
    itself = any(is_named(host, passing) for host in _ITSELF)
    with _blocks.lock:
        if not _blocks.open_to_itself:
            _patch_sockets()
        _blocks.open_to_itself.append(itself)
    try:
        with block_names(passing):
            yield
    finally:
        with _blocks.lock:
            _blocks.open_to_itself.remove(itself)
            if not _blocks.open_to_itself:
                _restore_sockets()


def _patch_sockets() -> None:
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex
    make_pair = socket.socketpair
    _blocks.originals = (connect, connect_ex, make_pair)

    def refused(self: socket.socket, address: Any) -> None:
        if _blocks.refuses(self.family, address):
            raise BlockedConnectionError(_refusal_text(address))
        connect(self, address)

    def refused_code(self: socket.socket, address: Any) -> int:
        if _blocks.refuses(self.family, address):
            raise BlockedConnectionError(_refusal_text(address))
        return connect_ex(self, address)

    def paired(*args: Any, **options: Any) -> Any:
        # Every event loop wants a pair; Windows has none, and Python connects two over loopback.
        _blocks.in_thread.pair = True
        try:
            return make_pair(*args, **options)
        finally:
            _blocks.in_thread.pair = False

    socket.socket.connect = refused  # type: ignore[method-assign,assignment]  # the same signature, wider
    socket.socket.connect_ex = refused_code  # type: ignore[method-assign,assignment]  # the same signature, wider
    socket.socketpair = paired


def _restore_sockets() -> None:
    connect, connect_ex, make_pair = _blocks.originals
    socket.socket.connect = connect  # type: ignore[method-assign]  # the original
    socket.socket.connect_ex = connect_ex  # type: ignore[method-assign]  # the original
    socket.socketpair = make_pair


def _refusal_text(address: object) -> str:
    return f"a cassette replays; nothing may connect to {address!r}"


class _Names:
    """Names that resolve to nothing, for each cassette in use that has some."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.hosts: list[Sequence[str]] = []
        self.original: Any = None


_names = _Names()


@contextmanager
def block_names(hosts: Sequence[str]) -> Iterator[None]:
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
            socket.getaddrinfo = _wrap_resolver(socket.getaddrinfo)
        _names.hosts.append(hosts)
    try:
        yield
    finally:
        with _names.lock:
            _names.hosts.remove(hosts)
            if not _names.hosts:
                socket.getaddrinfo = _names.original


def _wrap_resolver(resolve: Any) -> Any:
    def resolved(host: Any, *args: Any, **options: Any) -> Any:
        name = (host.decode("utf-8", "replace") if isinstance(host, bytes) else str(host)).lower()
        if not is_loopback(name) and any(is_named(name, hosts) for hosts in tuple(_names.hosts)):
            raise socket.gaierror(socket.EAI_NONAME, f"a cassette replays; {name} is not asked")
        return resolve(host, *args, **options)

    return resolved
