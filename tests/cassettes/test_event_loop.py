"""Event loops are not kept waiting: what a cassette asks of files it asks outside of them."""

import asyncio
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import loop_work
import pytest
from loop_work import CLIENTS, ask_all
from recorded import loaded
from small_site import Site

from pytest_regen.cassettes import read_cassette, use_cassette
from pytest_regen.errors import CassetteMissError

blockbuster = pytest.importorskip("blockbuster")

WORDS = ("ivy", "oak", "elm")


@pytest.fixture(params=list(CLIENTS))
def client(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    pytest.importorskip(name)
    return name


@pytest.fixture
def ask(client: str, site: Site) -> Callable[..., list[str]]:
    ask_all(client, site.address, ["warm"])  # what a client looks up once is its own business

    def asking(*words: str, address: str = site.address) -> list[str]:
        told: list[str] = []

        def note(self: Exception, name: str) -> None:
            Exception.__init__(self, name)
            told.append(f"{name}\n{''.join(traceback.format_stack(limit=12))}")

        with pytest.MonkeyPatch.context() as patch, blockbuster.blockbuster_ctx():
            patch.setattr(blockbuster.blockbuster.BlockingError, "__init__", note)
            try:
                return ask_all(client, address, words)
            finally:
                assert not told, told[0]

    return asking


def test_recording(ask: Any, path: Path) -> None:
    """Answers are appended in another thread, each before its caller is given it."""
    with use_cassette(path, mode="once") as run:
        live = ask(*WORDS)
    assert run.recorded >= len(WORDS)

    with use_cassette(path) as run:
        assert ask(*WORDS) == live
    assert run.unplayed == 0


def test_a_miss(ask: Any, path: Path, tmp_path: Path) -> None:
    """What it says is known, or is written when the block ends."""
    with use_cassette(path, mode="once"):
        ask("ivy")
    folder = tmp_path / "diffs"
    with (
        pytest.raises(CassetteMissError, match="in full: ") as caught,
        use_cassette(path, diff_folder=folder),
    ):
        ask("oak", address="http://127.0.0.1:9")

    [file] = folder.iterdir()
    assert f"in full: {file}" in str(caught.value)
    assert "oak oak" in file.read_text("utf-8")


def test_an_answer_is_written_before_its_caller_has_it(
    client: str, site: Site, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a kill takes no answer that a program went on with."""
    counts, body = [], loop_work.body

    def counted(word: str) -> Any:
        partial = path.with_name("c.yaml.partial")
        file = read_cassette(partial) if partial.exists() else None
        counts.append(len(file.interactions) if file else 0)
        return body(word)

    monkeypatch.setattr(loop_work, "body", counted)
    with use_cassette(path, mode="once") as run:
        ask_all(client, site.address, WORDS)

    each = run.recorded // len(WORDS)
    assert counts == [0, each, 2 * each]


@pytest.mark.parametrize("name", ["httpx", "httpx2"])
def test_in_trio(name: str, site: Site, path: Path) -> None:
    """Another event loop than that of the standard library records and replays as well."""
    module, trio = pytest.importorskip(name), pytest.importorskip("trio")

    async def main() -> str:
        async with module.AsyncClient(follow_redirects=True) as client:
            return str((await client.get(f"{site.address}/redirect")).text)

    with use_cassette(path, mode="once"):
        live = trio.run(main)
    with use_cassette(path) as run:
        assert trio.run(main) == live
    assert (run.played, run.unplayed) == (2, 0)


@pytest.mark.parametrize("name", ["httpx2", "aiohttp"])
def test_a_caller_that_is_cancelled(name: str, site: Site, path: Path) -> None:
    """It stops at once, and the block ends with what had come of the stream."""
    module = pytest.importorskip(name)

    async def read_httpx2() -> None:
        async with module.AsyncClient() as client, client.stream("GET", url) as answer:
            async for piece in answer.aiter_bytes():
                got.append(piece)

    async def read_aiohttp() -> None:
        async with module.ClientSession() as client, client.get(url) as answer:
            async for piece in answer.content.iter_any():
                got.append(piece)

    url, got = f"{site.address}/events", list[bytes]()

    async def main() -> None:
        reading = {"httpx2": read_httpx2, "aiohttp": read_aiohttp}[name]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reading(), 0.08)

    with use_cassette(path, mode="once"):
        asyncio.run(main())

    file = loaded(path)
    [kept] = [stored.interaction for stored in file.interactions]
    assert kept.end == "closed"
    assert kept.response_body.startswith(b"".join(got))
    assert len(got) < 5


def test_what_is_being_written_is_kept_whoever_is_cancelled(site: Site, path: Path) -> None:
    """A caller that gives up while its answer is written does not take the answer with it."""
    httpx2 = pytest.importorskip("httpx2")

    async def main(run: Any) -> None:
        async with httpx2.AsyncClient() as client:
            asking = asyncio.create_task(client.get(f"{site.address}/echo"))
            with run._writing:
                # Long enough, on a busy machine, for the answer to have come.
                await asyncio.sleep(0.5)
                asking.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await asking

    with use_cassette(path, mode="once") as run:
        asyncio.run(main(run))

    file = loaded(path)
    assert len(file.interactions) == 1
