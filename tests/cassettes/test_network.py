"""The one gate between the process and the network."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from pytest_regen.network import (
    AllowedHosts,
    BlockedConnectionError,
    PassthroughOnly,
    UnresolvedNames,
    closed_network,
)

NAMES = ("connect", "connect_ex")


@pytest.fixture
def server() -> Iterator[tuple[str, int]]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()


def connect(address: tuple[str, int]) -> None:
    with socket.socket() as client:
        client.connect(address)


def allowed(*patterns: str) -> AllowedHosts:
    return AllowedHosts(patterns, "record it")


def test_a_connection_passes_only_where_each_guard_lets_it(server: tuple[str, int]) -> None:
    with closed_network(allowed("127.*")):
        connect(server)
        with closed_network(PassthroughOnly()), pytest.raises(BlockedConnectionError):
            connect(server)
        connect(server)
        with closed_network(allowed("example")), pytest.raises(RuntimeError, match=r"127\.0\.0\.1"):
            connect(server)
    connect(server)


@pytest.mark.parametrize("first", [0, 1])
def test_blocks_may_end_in_any_order(first: int, server: tuple[str, int]) -> None:
    """As in two threads; after the last one sockets are as they were."""
    before = [getattr(socket.socket, name) for name in NAMES]
    stacks = [ExitStack(), ExitStack()]
    for stack in stacks:
        stack.enter_context(closed_network(PassthroughOnly()))

    stacks.pop(first).close()
    with pytest.raises(BlockedConnectionError):
        connect(server)
    stacks.pop().close()

    connect(server)
    assert [getattr(socket.socket, name) for name in NAMES] == before


def test_the_number_of_an_allowed_host_is_allowed(server: tuple[str, int]) -> None:
    """A name is allowed, and it is a number that is connected to."""
    with closed_network(allowed("localhost")):
        with pytest.raises(RuntimeError):
            connect(server)
        socket.create_connection(("localhost", server[1])).close()
        connect(server)


def test_names_of_hosts_that_pass_resolve_to_nothing(server: tuple[str, int]) -> None:
    """But for those of this machine, which need no server of names."""
    with closed_network(UnresolvedNames(("*.example.com", "localhost"))):
        with pytest.raises(socket.gaierror, match=r"api\.example\.com"):
            socket.getaddrinfo("API.example.com", 443)
        socket.create_connection(("localhost", server[1])).close()
