"""The one gate between this process and the network, and the names of hosts.

Cassettes that only replay and ``block_network`` close it, several at a time and in any order. It
patches ``socket`` when the first one closes it, and takes the patch back after the last.
"""

import re
import socket
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from fnmatch import fnmatchcase
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from pytest_regen.errors import UsageError

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
                f"passthrough_hosts: {name!r} is not a host",
                why="a host has no scheme, port or path",
                hint='name it as in "raw.githubusercontent.com" or "*.example.com"',
            )
    return tuple(str(name).lower() for name in names)


def host_of(uri: str) -> str:
    """Return the host of an address, in small letters; empty if there is none."""
    try:
        return urlsplit(uri).hostname or ""
    except ValueError:
        return ""


def is_named(host: str, names: Iterable[str]) -> bool:
    """Return whether one of ``names``, as ``check_hosts`` returns them, fits the host."""
    return bool(host) and any(fnmatchcase(host.lower(), name) for name in names)


def is_loopback(host: str) -> bool:
    """Return whether a host, by name or by number, is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


_INTERNET = frozenset({socket.AF_INET, socket.AF_INET6})
_LOCAL = getattr(socket, "AF_UNIX", None)
_ITSELF = ("localhost", "127.0.0.1", "::1")


class BlockedConnectionError(ConnectionRefusedError):
    """A connection was attempted while a cassette replays.

    An ``OSError``, as on a machine without network: what runs in the background, such as a
    reporter of metrics, copes with that, and does not fail a test it has nothing to do with.
    """


class Guard:
    """What one user of the gate lets through: everything, unless a subclass says otherwise."""

    def check_connection(self, connection: socket.socket, address: Any) -> None:
        """Raise what the caller gets in place of a connection, or let it through."""

    def check_name(self, name: str) -> None:
        """Raise what the caller gets in place of a host's numbers, or let it ask for them."""

    def note_numbers(self, name: str, numbers: Iterable[str]) -> None:
        """Take note of the numbers that the name of a host stands for."""


class UnresolvedNames(Guard):
    """Resolves no name of certain hosts, but for this machine's, as a machine without network.

    Args:
        hosts: names and patterns, as ``check_hosts`` returns them.
    """

    def __init__(self, hosts: Sequence[str]) -> None:
        self._hosts = hosts

    def check_name(self, name: str) -> None:
        """Refuse the hosts."""
        if is_named(name, self._hosts) and not is_loopback(name):
            raise socket.gaierror(socket.EAI_NONAME, f"a cassette replays; {name} is not asked")


class PassthroughOnly(UnresolvedNames):
    """Refuses every IPv4 and IPv6 connection, those to this machine too.

    Args:
        hosts: hosts that pass a cassette by, as ``check_hosts`` returns them. Where one of them is
            this machine, connections to it are let through; the names of others do not resolve.
    """

    def __init__(self, hosts: Sequence[str] = ()) -> None:
        super().__init__(hosts)
        self._is_open_to_itself = any(is_named(host, hosts) for host in _ITSELF)

    def check_connection(self, connection: socket.socket, address: Any) -> None:
        """Refuse the connection unless it stays on this machine, and may."""
        if connection.family not in _INTERNET:
            return
        if not (self._is_open_to_itself and is_loopback(str(address[0]))):
            raise BlockedConnectionError(f"a cassette replays; nothing may connect to {address!r}")


class AllowedHosts(Guard):
    """Refuses all but some hosts, local sockets included, as pytest-recording does.

    Args:
        patterns: regular expressions for names, numbers and paths of local sockets.
        hint: what to do next, shown when a connection is refused.
    """

    def __init__(self, patterns: Iterable[str], hint: str) -> None:
        self._patterns = [re.compile(text) for text in patterns]
        self._numbers: set[str] = set()
        self._hint = hint

    def _is_open(self, host: str) -> bool:
        return host in self._numbers or any(pattern.match(host) for pattern in self._patterns)

    def check_connection(self, connection: socket.socket, address: Any) -> None:
        """Refuse the connection to a host that does not match."""
        # A name or a number; of a local socket, a path.
        is_inet, is_local = connection.family in _INTERNET, connection.family == _LOCAL
        part = address[0] if is_inet else address if is_local else ""
        host = part.decode("utf-8", "replace") if isinstance(part, bytes) else str(part)
        if not self._is_open(host):
            # Callers close it after an OSError only, and this one will never be connected.
            connection.close()
            raise RuntimeError(f"Network is disabled for host {host!r}\n  next: {self._hint}")

    def note_numbers(self, name: str, numbers: Iterable[str]) -> None:
        """Let the numbers of an open host through: a connection is made to a number."""
        if self._is_open(name):
            self._numbers.update(numbers)


# Tokens of the guards that are asked in this task or thread, and in those begun in it, alone.
_apart: ContextVar[tuple[object, ...]] = ContextVar("pytest_regen_closed", default=())


class _Gate:
    """The patched functions of ``socket``, and the guards they ask."""

    def __init__(self) -> None:
        # Two threads that close the gate at once would patch what the other one has patched.
        self.lock = threading.Lock()
        # Replaced as a whole: whoever connects reads it without the lock.
        self.guards: dict[object, tuple[Guard, bool]] = {}
        """By token, each with whether it is asked only where the gate was closed."""
        self.patched = ExitStack()
        """Takes the patches back."""
        self.in_thread = threading.local()
        """Its ``pair`` says whether this thread is making a pair of sockets."""

    def asked(self) -> list[Guard]:
        """Return the guards that are asked in this task or thread."""
        guards = self.guards.items()
        return [guard for token, (guard, apart) in guards if not apart or token in _apart.get()]

    def check(self, connection: socket.socket, address: Any) -> None:
        # Every event loop wants a pair; Windows has none, and Python connects two over loopback.
        if not getattr(self.in_thread, "pair", False):
            for guard in self.asked():
                guard.check_connection(connection, address)


_gate = _Gate()


@contextmanager
def closed_network(guard: Guard, *, is_apart: bool = False) -> Iterator[None]:
    """Let nothing through that ``guard`` refuses, in all of the process, while the block runs.

    Args:
        guard: says what passes.
        is_apart: whether the gate is closed only to this task or thread, and to those that begin
            here.
    """
    token = object()
    reset = _apart.set((*_apart.get(), token)) if is_apart else None
    with _gate.lock:
        if not _gate.guards:
            _patch_sockets()
        _gate.guards = {**_gate.guards, token: (guard, is_apart)}
    try:
        yield
    finally:
        if reset is not None:
            _apart.reset(reset)
        with _gate.lock:
            _gate.guards = {key: _gate.guards[key] for key in _gate.guards if key is not token}
            if not _gate.guards:
                _gate.patched.close()


def _patch_sockets() -> None:
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex
    make_pair, resolve = socket.socketpair, socket.getaddrinfo

    def guarded_connect(self: socket.socket, address: Any) -> None:
        _gate.check(self, address)
        connect(self, address)

    def guarded_connect_ex(self: socket.socket, address: Any) -> int:
        _gate.check(self, address)
        return connect_ex(self, address)

    def unguarded_pair(*args: Any, **options: Any) -> Any:
        _gate.in_thread.pair = True
        try:
            return make_pair(*args, **options)
        finally:
            _gate.in_thread.pair = False

    def guarded_resolve(host: Any, *args: Any, **options: Any) -> Any:
        name = host.decode("utf-8", "replace") if isinstance(host, bytes) else str(host)
        for guard in _gate.asked():
            guard.check_name(name.lower())
        results = resolve(host, *args, **options)
        # A connection is made to a number: the guard that let the name pass has to know it.
        for guard in _gate.asked():
            guard.note_numbers(name, [str(address[0]) for *_, address in results])
        return results

    patches: tuple[tuple[Any, str, Any], ...] = (
        (socket.socket, "connect", guarded_connect),
        (socket.socket, "connect_ex", guarded_connect_ex),
        (socket, "socketpair", unguarded_pair),
        (socket, "getaddrinfo", guarded_resolve),
    )
    for owner, name, patch in patches:
        _gate.patched.callback(setattr, owner, name, getattr(owner, name))
        setattr(owner, name, patch)
