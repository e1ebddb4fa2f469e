"""Connections blocked for one test, as ``block_network`` and ``allowed_hosts`` say."""

import re
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from pytest_regen.pytest_plugin.options import usage_error

__all__ = ["blocked", "check_mark", "hosts_said"]


_INTERNET = frozenset({socket.AF_INET, socket.AF_INET6})
_LOCAL = getattr(socket, "AF_UNIX", None)


def check_mark(item: pytest.Item, mark: pytest.Mark | None) -> None:
    """Refuse arguments that ``block_network`` has not.

    Raises:
        pytest.UsageError: it has others than ``allowed_hosts``.
    """
    if mark is not None and (mark.args or set(mark.kwargs) - {"allowed_hosts"}):
        raise usage_error(
            f"{item.nodeid}: block_network has only the keyword argument allowed_hosts, not "
            f"{mark.args or mark.kwargs}",
            hint="block_network(allowed_hosts=['127.0.0.1', 'api.*'])",
        )


def hosts_said(item: pytest.Item) -> Any:
    """Return the hosts that a test may reach as its marks say, else the option."""
    block, allow = (
        item.get_closest_marker("block_network"),
        item.get_closest_marker("allowed_hosts"),
    )
    said = block.kwargs.get("allowed_hosts") if block else None
    said = said or (allow.args[0] if allow and allow.args else None)
    return said or item.config.getoption("--allowed-hosts")


@contextmanager
def blocked(allowed: str | Sequence[str] | None) -> Iterator[None]:
    """Refuse connections to every host but those that match, while the block runs.

    Args:
        allowed: regular expressions; as one text, separated by commas.
    """
    hosts = allowed.split(",") if isinstance(allowed, str) else allowed or ()
    gate = _Gate([host.strip() for host in hosts])
    patch = pytest.MonkeyPatch()
    patch.setattr(socket.socket, "connect", gate.guarded(socket.socket.connect))
    patch.setattr(socket.socket, "connect_ex", gate.guarded(socket.socket.connect_ex))
    patch.setattr(socket, "socketpair", gate.passing(socket.socketpair))
    patch.setattr(socket, "getaddrinfo", gate.resolving(socket.getaddrinfo))
    try:
        yield
    finally:
        patch.undo()


class _Gate:
    """Hosts that may be reached, and the numbers their names were resolved to."""

    def __init__(self, allowed: Sequence[str]) -> None:
        self._patterns = [re.compile(text) for text in allowed]
        self._numbers: set[str] = set()
        self._inside = threading.local()

    def _is_open(self, host: str) -> bool:
        return host in self._numbers or any(pattern.match(host) for pattern in self._patterns)

    def guarded(self, original: Callable[[socket.socket, Any], Any]) -> Any:
        """Return a method that connects to open hosts only."""

        def call(connection: socket.socket, address: Any) -> Any:
            host = _host(connection.family, address)
            if not getattr(self._inside, "pair", False) and not self._is_open(host):
                # Callers close it for an OSError only; nobody connects it after this.
                connection.close()
                raise RuntimeError(
                    f"Network is disabled for host {host!r}\n"
                    "  next: allow it with @pytest.mark.block_network(allowed_hosts=['…']), or "
                    "record with --record-mode"
                )
            return original(connection, address)

        return call

    def passing(self, original: Callable[..., Any]) -> Any:
        """Return a function whose connections are nobody's business.

        Where a system has no pairs of sockets, which every event loop wants, they are connected.
        """

        def call(*args: Any, **options: Any) -> Any:
            self._inside.pair = True
            try:
                return original(*args, **options)
            finally:
                self._inside.pair = False

        return call

    def resolving(self, resolve: Callable[..., Any]) -> Any:
        """Return a resolver that remembers what the names of open hosts stand for."""

        def resolved(host: Any, *args: Any, **options: Any) -> Any:
            found = resolve(host, *args, **options)
            if self._is_open(host.decode() if isinstance(host, bytes) else str(host)):
                self._numbers.update(str(one[4][0]) for one in found)
            return found

        return resolved


def _host(family: int, address: Any) -> str:
    """Return what stands for the host: its name or number, or where a local socket lies."""
    said = address[0] if family in _INTERNET else address if family == _LOCAL else ""
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
