"""Connections blocked for one test, as ``block_network`` and ``allowed_hosts`` say."""

import re
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

__all__ = ["blocked", "hosts_of"]

_NETWORK = frozenset({socket.AF_INET, socket.AF_INET6})


def hosts_of(item: pytest.Item) -> tuple[str, ...]:
    """Return the patterns of hosts that a test may reach: its marks, else the option."""
    block, allow = (
        item.get_closest_marker("block_network"),
        item.get_closest_marker("allowed_hosts"),
    )
    said: Any = (block.kwargs.get("allowed_hosts") if block else None) or (
        allow.args[0] if allow and allow.args else None
    )
    said = said or item.config.getoption("--allowed-hosts") or ()
    return tuple(part.strip() for part in said.split(",")) if isinstance(said, str) else tuple(said)


@contextmanager
def blocked(allowed: Sequence[str]) -> Iterator[None]:
    """Refuse connections to every host but those that match, while the block runs."""
    gate = _Gate(allowed)
    patch = pytest.MonkeyPatch()
    patch.setattr(socket.socket, "connect", gate.guarded(socket.socket.connect))
    patch.setattr(socket.socket, "connect_ex", gate.guarded(socket.socket.connect_ex))
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

    def _is_open(self, host: str) -> bool:
        return host in self._numbers or any(pattern.match(host) for pattern in self._patterns)

    def guarded(self, original: Callable[[socket.socket, Any], Any]) -> Any:  # noqa: ANN401 - a method
        """Return a method that connects to open hosts only."""

        def call(connection: socket.socket, address: Any) -> Any:  # noqa: ANN401 - as sockets take it
            host = str(address[0] if isinstance(address, tuple) else address)
            if connection.family in _NETWORK and not self._is_open(host):
                raise RuntimeError(
                    f"Network is disabled: this test may not connect to {host}\n"
                    "  next: allow it with @pytest.mark.allowed_hosts(['…']), or record with "
                    "--record-mode"
                )
            return original(connection, address)

        return call

    def resolving(self, resolve: Callable[..., Any]) -> Any:  # noqa: ANN401 - a function
        """Return a resolver that remembers what the names of open hosts stand for."""

        def resolved(host: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - as sockets do it
            found = resolve(host, *args, **options)
            if self._is_open(host.decode() if isinstance(host, bytes) else str(host)):
                self._numbers.update(str(one[4][0]) for one in found)
            return found

        return resolved
