"""Hosts that are no business of a cassette, and the gate between the process and the network."""

import asyncio
import socket
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest
from loopback import Answer, Asked, serving
from recorded import loaded

from pytest_regen.cassettes import CassetteRun, use_cassette
from pytest_regen.network import (
    AllowedHosts,
    BlockedConnectionError,
    PassthroughOnly,
    UnresolvedNames,
    closed_network,
)

THIRD = "prices.test"
"""A name that stands for this machine while a test runs."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, list[str]]]:
    """The port of a server of this machine, and the hosts it was asked for."""
    resolve, hosts = socket.getaddrinfo, list[str]()

    def resolved(host: str | bytes, *args: object, **options: object) -> object:
        name = host.decode() if isinstance(host, bytes) else host
        found = "127.0.0.1" if name.endswith(".test") else name
        return resolve(found, *args, **options)  # type: ignore[arg-type]  # as it is called

    def answer(asked: Asked) -> Answer:
        hosts.append(asked.headers["host"].partition(":")[0])
        return Answer(b"yes")

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    with serving({"/*": answer}) as address:
        yield int(address.rpartition(":")[2]), hosts


def by_urllib(url: str) -> int:
    with urllib.request.urlopen(url) as said:
        return int(said.status)


def by_httpx2(url: str) -> int:
    return httpx2.get(url).status_code


def by_aiohttp(url: str) -> int:
    aiohttp = pytest.importorskip("aiohttp")

    async def ask() -> int:
        async with aiohttp.ClientSession() as session, session.get(url) as said:
            return int(said.status)

    return asyncio.run(ask())


CLIENTS = [by_urllib, by_httpx2, by_aiohttp]


@pytest.mark.parametrize("ask", CLIENTS)
def test_a_host_passes_the_cassette_by(
    path: Path, server: tuple[int, list[str]], ask: Callable[[str], int]
) -> None:
    """Recording, it is asked and not recorded; replaying, it is not there, and that is no miss."""
    port, hosts = server
    other, own = f"http://{THIRD}:{port}/list", f"http://api.test:{port}/own"
    with use_cassette(path, mode="once", passthrough_hosts=[THIRD]):
        assert (ask(other), ask(own)) == (200, 200)

    [kept] = loaded(path).interactions
    assert kept.interaction.uri == own
    with use_cassette(path, passthrough_hosts=["*.other.test", THIRD]) as run:
        with pytest.raises((OSError, httpx2.ConnectError)):
            ask(other)
        assert ask(own) == 200

    assert run.played == 1
    assert hosts == [THIRD, "api.test"]


def test_this_machine_is_reached_in_replay_too(path: Path, server: tuple[int, list[str]]) -> None:
    """A database beside the tests: nothing leaves the machine. Others of it stay blocked."""
    path.write_text("version: 1\ninteractions: []\n", "utf-8")
    place = ("127.0.0.1", server[0])

    with use_cassette(path, passthrough_hosts=["127.0.0.1"]):
        assert [ask(f"http://127.0.0.1:{server[0]}/") for ask in CLIENTS] == [200] * len(CLIENTS)
        socket.create_connection(place).close()
        with pytest.raises(ConnectionRefusedError, match="nothing may connect"):
            socket.create_connection(("192.0.2.1", 80))
    with use_cassette(path), pytest.raises(ConnectionRefusedError, match="nothing may connect"):
        socket.create_connection(place)


@pytest.mark.parametrize(
    ("host", "pattern", "passes"),
    [
        ("Example.COM", "example.com", True),
        ("api.example.com", "example.com", False),
        ("api.example.com", "*.Example.com", True),
        ("example.com", "*.example.com", False),
        ("example.com.evil.org", "*.example.com", False),
        ("[::1]", "::1", True),
    ],
)
def test_names_and_patterns(path: Path, host: str, pattern: str, passes: bool) -> None:  # noqa: FBT001 - a case
    """A name is the whole host, in any case; ``*`` stands for a part of one."""
    with use_cassette(path, mode="once", passthrough_hosts=[pattern]) as run:
        assert run.passes(f"http://{host}:8000/x") is passes


NAMES = ("connect", "connect_ex")


@pytest.fixture
def listener() -> Iterator[tuple[str, int]]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()


def connect(address: tuple[str, int]) -> None:
    with socket.socket() as client:
        client.connect(address)


def allowed(*patterns: str) -> AllowedHosts:
    return AllowedHosts(patterns, "record it")


def test_a_connection_passes_only_where_each_guard_lets_it(listener: tuple[str, int]) -> None:
    with closed_network(allowed("127.*")):
        connect(listener)
        with closed_network(PassthroughOnly()), pytest.raises(BlockedConnectionError):
            connect(listener)
        connect(listener)
        with closed_network(allowed("example")), pytest.raises(RuntimeError, match=r"127\.0\.0\.1"):
            connect(listener)
    connect(listener)


@pytest.mark.parametrize("first", [0, 1])
def test_blocks_may_end_in_any_order(first: int, listener: tuple[str, int]) -> None:
    """As in two threads; after the last one sockets are as they were."""
    before = [getattr(socket.socket, name) for name in NAMES]
    stacks = [ExitStack(), ExitStack()]
    for stack in stacks:
        stack.enter_context(closed_network(PassthroughOnly()))

    stacks.pop(first).close()
    with pytest.raises(BlockedConnectionError):
        connect(listener)
    stacks.pop().close()

    connect(listener)
    assert [getattr(socket.socket, name) for name in NAMES] == before


def test_the_number_of_an_allowed_host_is_allowed(listener: tuple[str, int]) -> None:
    """A name is allowed, and it is a number that is connected to."""
    with closed_network(allowed("localhost")):
        with pytest.raises(RuntimeError):
            connect(listener)
        socket.create_connection(("localhost", listener[1])).close()
        connect(listener)


def test_names_of_hosts_that_pass_resolve_to_nothing(listener: tuple[str, int]) -> None:
    """But for those of this machine, which need no listener of names."""
    with closed_network(UnresolvedNames(("*.example.com", "localhost"))):
        with pytest.raises(socket.gaierror, match=r"api\.example\.com"):
            socket.getaddrinfo("API.example.com", 443)
        socket.create_connection(("localhost", listener[1])).close()


def test_a_replay_closes_the_network_to_itself(tmp_path: Path) -> None:
    """A turn that only replays reaches nothing, while one beside it may send."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        run = CassetteRun(tmp_path / "c.yaml", "none", is_apart=True)

        async def connect() -> str:
            try:
                socket.create_connection(address, timeout=5).close()
            except BlockedConnectionError:
                return "blocked"
            return "open"

        async def replay(inside: asyncio.Event, left: asyncio.Event) -> str:
            with run.in_use(http_clients=False):
                inside.set()
                await left.wait()
                return await connect()

        async def both() -> tuple[str, str]:
            inside, left = asyncio.Event(), asyncio.Event()
            replaying = asyncio.create_task(replay(inside, left))
            await inside.wait()
            beside = await connect()
            left.set()
            return await replaying, beside

        assert asyncio.run(both()) == ("blocked", "open")
