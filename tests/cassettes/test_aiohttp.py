"""aiohttp: every answer it is given is recorded, each hop of a redirect, and played back alike."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from recorded import loaded
from small_site import EVENTS, Site, told_headers

from pytest_regen.cassettes import use_cassette
from pytest_regen.errors import CassetteMissError

aiohttp = pytest.importorskip("aiohttp")

Work = Callable[[Any, str], Awaitable[Any]]


def run(work: Work, address: str, **options: Any) -> Any:
    async def main() -> Any:
        async with aiohttp.ClientSession(**options) as session:
            return await work(session, address)

    return asyncio.run(main())


async def seen(response: Any) -> dict[str, Any]:
    return {
        "status": response.status,
        "reason": response.reason,
        "url": str(response.url),
        "history": [(one.method, one.status, str(one.url)) for one in response.history],
        "cookies": sorted(response.cookies),
        "headers": told_headers(response.headers.items()),
        "body": await response.read(),
    }


def asks(method: str, url: str, **options: Any) -> Work:
    async def work(session: Any, address: str) -> dict[str, Any]:
        async with session.request(method, address + url, **options) as response:
            return await seen(response)

    return work


def test_forms_and_pieces_are_recorded(site: Site, path: Path) -> None:
    """A form with a file, and a body that a generator gives, are compared by what they hold."""

    async def work(session: Any, address: str, word: bytes = b"ivy") -> list[Any]:
        async def pieces() -> Any:
            yield b"some "
            yield word

        form = aiohttp.FormData()
        form.add_field("plan", b"north wall", filename="plan.txt")
        answers = []
        for data in (form, pieces()):
            async with session.post(f"{address}/echo", data=data) as response:
                answers.append(await seen(response))
        return answers

    async def other(session: Any, address: str) -> list[Any]:
        return await work(session, address, b"oak")

    with use_cassette(path, mode="once"):
        live = run(work, site.address)
    with use_cassette(path):
        assert run(work, site.address) == live
    with pytest.raises(CassetteMissError, match="POST /echo"), use_cassette(path):
        run(other, site.address)


async def events(session: Any, address: str) -> list[tuple[float, bytes]]:
    loop = asyncio.get_running_loop()
    start = loop.time()
    async with session.get(f"{address}/events") as response:
        return [(loop.time() - start, piece) async for piece in response.content.iter_any()]


def test_a_stream_arrives_while_it_is_recorded(site: Site, path: Path) -> None:
    """The first event is there before the last was sent; replay gives the pieces without pauses."""
    with use_cassette(path, mode="once"):
        live = run(events, site.address)
    with use_cassette(path):
        again = run(events, site.address)

    assert [piece for _, piece in live] == EVENTS
    assert live[-1][0] - live[0][0] > 0.1
    assert b"".join(piece for _, piece in again) == b"".join(EVENTS)
    file = loaded(path)
    assert [size for _, size in file.interactions[0].interaction.chunks] == [
        len(event) for event in EVENTS
    ]


def test_what_broke_off_breaks_off_again(site: Site, path: Path) -> None:
    """A stream is replayed as cut; any other answer that broke off is none, and is not kept."""

    async def work(session: Any, address: str) -> bytes:
        got: list[bytes] = []

        async def read(response: Any) -> None:
            async for piece in response.content.iter_any():
                got.append(piece)  # noqa: PERF401 - what came before it broke off counts

        async with session.get(f"{address}/cut") as response:
            with pytest.raises(aiohttp.ClientPayloadError):
                await read(response)
        return b"".join(got)

    async def plain(session: Any, address: str) -> None:
        async with session.get(f"{address}/cut/plain") as response:
            with pytest.raises(aiohttp.ClientPayloadError):
                await response.read()

    with use_cassette(path, mode="once"):
        live = run(work, site.address)
        run(plain, site.address)
    with use_cassette(path) as replay:
        assert run(work, site.address) == live == b"".join(EVENTS[:2])
    assert len(replay.index) == 1


def test_few_connections_serve_many_requests(site: Site, path: Path) -> None:
    """Neither a recorded nor a replayed answer keeps a connection that others wait for."""

    async def work(session: Any, address: str) -> list[Any]:
        asked = (asks("GET", f"/redirect?to=/echo?n={n}")(session, address) for n in range(5))
        return await asyncio.wait_for(asyncio.gather(*asked), 10)

    def limited() -> list[Any]:
        async def main() -> Any:
            connector = aiohttp.TCPConnector(limit=1)
            async with aiohttp.ClientSession(connector=connector) as session:
                return await work(session, site.address)

        return list(asyncio.run(main()))

    with use_cassette(path, mode="once"):
        live = limited()
    with use_cassette(path):
        assert limited() == live


def test_what_vcrpy_recorded_is_replayed(site: Site, path: Path) -> None:
    """It keeps the objects behind ``json=`` and ``data=``; what is sent of them matches."""
    vcr = pytest.importorskip("vcr")

    async def work(session: Any, address: str) -> list[Any]:
        given: list[dict[str, Any]] = [
            {"json": {"q": [1]}},
            {"data": {"a": "1", "b": "x y"}},
            {"data": b"raw"},
        ]
        return [await asks("POST", "/echo", **one)(session, address) for one in given]

    with vcr.use_cassette(str(path)):
        live = run(work, site.address)
    with use_cassette(path) as replay:
        assert run(work, site.address) == live
    assert (replay.played, replay.unplayed) == (3, 0)
