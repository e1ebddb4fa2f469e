"""Hosts that are no business of a cassette: what is asked of them passes it by."""

import asyncio
import contextlib
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pytest

from pytest_regen.cassettes import use_cassette
from pytest_regen.cassettes.files.reader import read_cassette
from pytest_regen.errors import CassetteMissError, UsageError

THIRD = "prices.test"
"""A name that stands for this machine while a test runs."""


class Server(BaseHTTPRequestHandler):
    """Says nothing but yes, and remembers who was asked for."""

    asked: list[str]

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Answer."""
        self.asked.append(self.headers["host"].partition(":")[0])
        self.send_response(200)
        self.send_header("content-length", "3")
        self.end_headers()
        self.wfile.write(b"yes")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadingHTTPServer]:
    resolve = socket.getaddrinfo

    def resolved(host: str | bytes, *args: object, **options: object) -> object:
        name = host.decode() if isinstance(host, bytes) else host
        found = "127.0.0.1" if name.endswith(".test") else name
        return resolve(found, *args, **options)  # type: ignore[arg-type]  # as it is called

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    monkeypatch.setattr(Server, "asked", [], raising=False)
    running = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=running.serve_forever)
    thread.start()
    yield running
    running.shutdown()
    thread.join()
    running.server_close()


def by_urllib(url: str) -> int:
    with urllib.request.urlopen(url) as said:
        return int(said.status)


def by_httpx2(url: str) -> int:
    return httpx2.get(url).status_code


def by_async_httpx2(url: str) -> int:
    async def ask() -> int:
        async with httpx2.AsyncClient() as client:
            return (await client.get(url)).status_code

    return asyncio.run(ask())


def by_requests(url: str) -> int:
    return int(pytest.importorskip("requests").get(url, timeout=5).status_code)


def by_aiohttp(url: str) -> int:
    aiohttp = pytest.importorskip("aiohttp")

    async def ask() -> int:
        async with aiohttp.ClientSession() as session, session.get(url) as said:
            return int(said.status)

    return asyncio.run(ask())


CLIENTS = [by_urllib, by_httpx2, by_async_httpx2, by_requests, by_aiohttp]


@pytest.mark.parametrize("ask", CLIENTS)
def test_a_host_passes_the_cassette_by(
    tmp_path: Path, server: ThreadingHTTPServer, ask: Callable[[str], int]
) -> None:
    """Recording, it is asked and not recorded; replaying, it is not there, and that is no miss."""
    path, port = tmp_path / "c.yaml", server.server_port
    other, own = f"http://{THIRD}:{port}/list", f"http://api.test:{port}/own"

    with use_cassette(path, mode="once", passthrough_hosts=[THIRD]):
        assert (ask(other), ask(own)) == (200, 200)
    assert Server.asked == [THIRD, "api.test"]
    file = read_cassette(path)
    assert file is not None
    assert [one.interaction.uri for one in file.interactions] == [own]

    with use_cassette(path, passthrough_hosts=["*.other.test", THIRD]) as run:
        with pytest.raises((OSError, httpx2.ConnectError)):
            ask(other)
        assert ask(own) == 200
    assert run.played == 1
    assert Server.asked == [THIRD, "api.test"]


def test_this_machine_is_reached_in_replay_too(tmp_path: Path, server: ThreadingHTTPServer) -> None:
    """A database beside the tests: nothing leaves the machine. Others of it stay blocked."""
    path = tmp_path / "c.yaml"
    path.write_text("version: 1\ninteractions: []\n", "utf-8")
    local = f"http://127.0.0.1:{server.server_port}/"

    with use_cassette(path, passthrough_hosts=["127.0.0.1"]):
        assert [ask(local) for ask in CLIENTS] == [200] * len(CLIENTS)
        with socket.create_connection(("127.0.0.1", server.server_port)):
            pass
        with pytest.raises(ConnectionRefusedError, match="nothing may connect"):
            socket.create_connection(("192.0.2.1", 80))
    with use_cassette(path), pytest.raises(ConnectionRefusedError, match="nothing may connect"):
        socket.create_connection(("127.0.0.1", server.server_port))


def test_a_swallowed_miss_says_how_its_host_is_exempted(tmp_path: Path) -> None:
    """With the line to write; one that was told does not, for somebody waits for its answer."""
    path = tmp_path / "c.yaml"
    path.write_text("version: 1\ninteractions: []\n", "utf-8")

    with (
        pytest.raises(CassetteMissError) as swallowed,
        use_cassette(path),
        contextlib.suppress(BaseException),
    ):
        by_httpx2("https://raw.example.com:8443/prices.json")
    with pytest.raises(CassetteMissError) as told, use_cassette(path):
        by_httpx2("https://raw.example.com/prices.json")

    assert 'passthrough_hosts=["raw.example.com"]' in str(swallowed.value)
    assert "passthrough_hosts" not in str(told.value)


@pytest.mark.parametrize("host", ["https://example.com", "example.com:443", ""])
def test_what_is_no_host_is_refused(tmp_path: Path, host: str) -> None:
    """It would match nothing, in silence."""
    with (
        pytest.raises(UsageError, match="passthrough_hosts"),
        use_cassette(tmp_path / "c.yaml", passthrough_hosts=[host]),
    ):
        pass


@pytest.mark.parametrize(
    ("host", "pattern", "passes"),
    [
        ("Example.COM", "example.com", True),
        ("api.example.com", "example.com", False),
        ("api.example.com", "*.Example.com", True),
        ("example.com", "*.example.com", False),
        ("example.com.evil.org", "*.example.com", False),
        ("[::1]", "::1", True),
        ("example.com", "[a-z]xample.com", False),
    ],
)
def test_names_and_patterns(tmp_path: Path, host: str, pattern: str, passes: bool) -> None:  # noqa: FBT001 - a case
    """A name is the whole host, in any case; ``*`` stands for a part of one."""
    path = tmp_path / "c.yaml"
    path.write_text("version: 1\ninteractions: []\n", "utf-8")

    if pattern.startswith("[a"):
        with pytest.raises(UsageError), use_cassette(path, passthrough_hosts=[pattern]):
            pass
        return
    with use_cassette(path, passthrough_hosts=[pattern]) as run:
        assert run.passes(f"http://{host}:8000/x") is passes
