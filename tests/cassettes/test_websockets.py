"""Websockets: a cassette cannot keep what passes over one, and says so before it is opened."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_site import Site

from pytest_regen.cassettes import use_cassette
from pytest_regen.errors import CassetteError
from pytest_regen.turns.interception import CassetteMiss


def with_websocket_client(address: str) -> None:
    module = pytest.importorskip("websocket")
    module.create_connection(f"{address}/ws", timeout=5)


def with_websockets(address: str) -> None:
    module = pytest.importorskip("websockets.asyncio.client")

    async def main() -> None:
        await module.connect(f"{address}/ws", open_timeout=5)

    asyncio.run(main())


def with_aiohttp(address: str) -> None:
    module = pytest.importorskip("aiohttp")

    async def main() -> None:
        async with module.ClientSession() as session:
            await session.ws_connect(f"{address}/ws")

    asyncio.run(main())


TRANSPORT = vars(asyncio.selector_events)["_SelectorSocketTransport"]
OPENED = [
    with_websocket_client,
    with_websockets,
    with_aiohttp,
]


@pytest.mark.parametrize("opened", OPENED)
def test_opened_while_recording(opened: Callable[[str], None], site: Site, tmp_path: Path) -> None:
    """Nothing is sent; the error names the host and what to do."""
    before = list(site.seen)

    with (
        pytest.raises(CassetteError, match=r"websocket to 127\.0\.0\.1") as caught,
        use_cassette(tmp_path / "c.yaml", mode="once"),
        pytest.raises((Exception, CassetteMiss), match=r"websocket to 127\.0\.0\.1") as raised,
    ):
        opened(site.address.replace("http", "ws", 1))

    assert site.seen == before
    assert "passthrough_hosts" in str(caught.value)
    assert "passthrough_hosts" in str(raised.value)
    assert "127.0.0.1" in caught.value.hint


@pytest.mark.parametrize("opened", OPENED)
def test_a_host_that_passes(opened: Callable[[str], None], site: Site, tmp_path: Path) -> None:
    """The request for it is sent, as without a cassette; that no websocket answers is not ours."""
    before = len(site.seen)

    with (
        use_cassette(tmp_path / "c.yaml", mode="once", passthrough_hosts=["127.0.0.1"]),
        pytest.raises(Exception, match=r"200"),
    ):
        opened(site.address.replace("http", "ws", 1))

    assert len(site.seen) == before + 1


@pytest.mark.parametrize("opened", OPENED)
def test_opened_in_replay(opened: Callable[[str], None], site: Site, tmp_path: Path) -> None:
    """Nothing connects, whoever tries."""
    path = tmp_path / "c.yaml"
    with use_cassette(path, mode="once"):
        pytest.importorskip("httpx2").get(f"{site.address}/echo")
    before = list(site.seen)

    with pytest.raises((CassetteError, OSError, TimeoutError)), use_cassette(path):
        opened(site.address.replace("http", "ws", 1))

    assert site.seen == before


def test_a_loop_over_tls(tmp_path: Path) -> None:
    """What an event loop writes is looked at before it is encrypted, too."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        made = asyncio.sslproto.SSLProtocol(
            loop,
            asyncio.Protocol(),
            ssl.create_default_context(),
            loop.create_future(),
            server_hostname="a.test",
        )
        made._app_transport.write(
            b"GET /v1/realtime HTTP/1.1\r\nHost: ws.example\r\nUpgrade: websocket\r\n\r\n"
        )

    with (
        pytest.raises(CassetteError, match=r"websocket to ws\.example"),
        use_cassette(tmp_path / "c.yaml", mode="once"),
    ):
        asyncio.run(main())


def test_over_tls(tmp_path: Path) -> None:
    """What is sent is looked at before it is encrypted, with and without an event loop."""
    context, incoming, outgoing = ssl.create_default_context(), ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname="ws.example")
    asked = b"GET /v1/realtime HTTP/1.1\r\nHost: ws.example\r\nUpgrade: websocket\r\n\r\n"

    with (
        pytest.raises(CassetteError, match=r"websocket to ws\.example"),
        use_cassette(tmp_path / "c.yaml", mode="once"),
    ):
        tls.write(asked)
    with pytest.raises(ssl.SSLError), use_cassette(tmp_path / "c.yaml", mode="once"):
        tls.write(b"GET / HTTP/1.1\r\nHost: ws.example\r\n\r\n")


def test_sockets_are_as_they_were(tmp_path: Path) -> None:
    def methods() -> list[Any]:
        owners = (socket.socket, ssl.SSLSocket, ssl.SSLObject, TRANSPORT)
        names = ("send", "sendall", "write")
        return [vars(owner).get(name) for owner in owners for name in names]

    before = methods()
    with use_cassette(tmp_path / "c.yaml", mode="once"):
        assert methods() != before
    assert methods() == before
