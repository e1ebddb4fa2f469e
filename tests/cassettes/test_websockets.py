"""Websockets: a cassette cannot keep what passes over one, and says so before it is opened."""

import asyncio
from pathlib import Path

import pytest
from small_site import Site

from pytest_regen.cassettes import use_cassette
from pytest_regen.errors import CassetteError
from pytest_regen.turns.interception import CassetteMiss


def opened(address: str) -> None:
    module = pytest.importorskip("aiohttp")

    async def main() -> None:
        async with module.ClientSession() as session:
            await session.ws_connect(f"{address.replace('http', 'ws', 1)}/ws")

    asyncio.run(main())


@pytest.mark.parametrize("mode", ["once", "none"])
def test_opened_while_a_cassette_is_in_use(mode: str, site: Site, path: Path) -> None:
    """Nothing is sent; the error names the host and what to do."""
    before = list(site.seen)

    with (
        pytest.raises(CassetteError) as caught,
        use_cassette(path, mode=mode),  # type: ignore[arg-type]  # one of them
        pytest.raises((Exception, CassetteMiss), match=r"websocket to 127\.0\.0\.1") as raised,
    ):
        opened(site.address)

    assert site.seen == before
    assert "websocket to 127.0.0.1" in str(caught.value)
    assert "passthrough_hosts" in str(raised.value)
    assert "127.0.0.1" in caught.value.hint


def test_a_host_that_passes(site: Site, path: Path) -> None:
    """The request for it is sent, as without a cassette; that no websocket answers is not ours."""
    before = len(site.seen)

    with (
        use_cassette(path, mode="once", passthrough_hosts=["127.0.0.1"]),
        pytest.raises(Exception, match=r"200"),
    ):
        opened(site.address)

    assert len(site.seen) == before + 1
