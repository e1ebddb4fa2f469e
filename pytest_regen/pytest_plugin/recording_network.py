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
    patterns = [re.compile(text) for text in allowed]
    numbers: set[str] = set()
    connect, connect_ex, resolve = (
        socket.socket.connect,
        socket.socket.connect_ex,
        socket.getaddrinfo,
    )

    def check(family: int, address: Any) -> None:  # noqa: ANN401 - as sockets take it
        if family not in _NETWORK:
            return
        host = str(address[0] if isinstance(address, tuple) else address)
        if host not in numbers and not any(pattern.match(host) for pattern in patterns):
            raise RuntimeError(
                f"Network is disabled: this test may not connect to {host}\n"
                "  next: allow it with @pytest.mark.allowed_hosts(['…']), or record with "
                "--record-mode"
            )

    def resolved(host: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - as sockets do it
        found = resolve(host, *args, **options)
        name = host.decode() if isinstance(host, bytes) else str(host)
        if any(pattern.match(name) for pattern in patterns):
            # Clients connect to what the name stands for.
            numbers.update(str(one[4][0]) for one in found)
        return found

    def guarded(original: Callable[[socket.socket, Any], Any]) -> Any:  # noqa: ANN401 - a method
        def call(self: socket.socket, address: Any) -> Any:  # noqa: ANN401 - as sockets take it
            check(self.family, address)
            return original(self, address)

        return call

    patch = pytest.MonkeyPatch()
    patch.setattr(socket.socket, "connect", guarded(connect))
    patch.setattr(socket.socket, "connect_ex", guarded(connect_ex))
    patch.setattr(socket, "getaddrinfo", resolved)
    try:
        yield
    finally:
        patch.undo()
