"""Websockets, refused while a cassette is in use: what passes over one cannot be kept.

Libraries open their own connections for them, so the request for the upgrade is looked for where
all of it passes: in what sockets send, and over TLS in what is about to be encrypted.
"""

import asyncio
import re
import socket
import ssl
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from pytest_regen.cassettes.clients.active import CassetteInUse, innermost
from pytest_regen.cassettes.clients.blocking import BlockedConnectionError
from pytest_regen.cassettes.hosts import host_of
from pytest_regen.errors import CassetteError

__all__ = ["patch_sockets", "refuse_websocket"]

_UPGRADE = re.compile(rb"\r\nupgrade:[ \t]*websocket[ \t]*\r\n", re.IGNORECASE)
_HOST = re.compile(rb"\r\nhost:[ \t]*([^\r\n]+?)[ \t]*\r\n", re.IGNORECASE)
_HEAD = 16_384
"""Bytes: a request for an upgrade has no body, and is no longer."""


def refuse_websocket(run: CassetteInUse, url: str, upgrade: str | None) -> None:
    """Refuse a request of an HTTP client that asks for a websocket.

    Args:
        run: the cassette in use.
        url: what is asked for.
        upgrade: the header of that name.

    Raises:
        CassetteMiss: it does.
    """
    if upgrade is not None and upgrade.strip().lower() == "websocket":
        raise run.signal(_refusal(host_of(url) or url))


def patch_sockets(patches: ExitStack) -> None:
    """Look at the first words of what is sent, for a request that asks for a websocket."""
    for owner, name in (
        (socket.socket, "send"),
        (socket.socket, "sendall"),
        (ssl.SSLSocket, "send"),
        (ssl.SSLObject, "write"),
    ):
        own = vars(owner).get(name)
        setattr(owner, name, _watched(getattr(owner, name)))
        # What a class only inherits is not left behind as its own.
        if own is None:
            patches.callback(delattr, owner, name)
        else:
            patches.callback(setattr, owner, name, own)


def _watched(original: Callable[..., Any]) -> Callable[..., Any]:
    def send(self: Any, data: Any, *args: Any) -> Any:  # noqa: ANN401 - as sockets take it
        if data[:4] == b"GET ":
            _look_at(bytes(data[:_HEAD]))
        return original(self, data, *args)

    return send


def _look_at(head: bytes) -> None:
    """Refuse the request for an upgrade.

    Raises:
        CassetteMiss: it is one.
        BlockedConnectionError: it is one, and an event loop would take anything but an error of
            the connection for a fault of its own.
    """
    if not _UPGRADE.search(head):
        return
    host = _HOST.search(head)
    address = f"//{host[1].decode('latin-1')}" if host else ""
    run = innermost(address)
    if run is None:
        return
    refusal = _refusal(host_of(address) or "a server")
    signal = run.signal(refusal)
    if asyncio._get_running_loop() is None:  # noqa: SLF001 - documented for such as us
        raise signal
    raise BlockedConnectionError(str(refusal))


def _refusal(host: str) -> CassetteError:
    return CassetteError(
        f"a websocket to {host} cannot be recorded or replayed",
        why="a cassette keeps requests and their answers, not what passes over a websocket",
        hint=f'let it pass with passthrough_hosts=["{host}"], or use no cassette in this test',
    )
