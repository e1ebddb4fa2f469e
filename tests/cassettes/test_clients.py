"""Every HTTP client is told in replay what it was told live; uploads, and websockets."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from client_work import CLIENTS, SDKS
from recorded import answering, loaded
from small_site import Site

from pytest_regen.cassettes import use_cassette
from pytest_regen.errors import CassetteError, CassetteMissError
from pytest_regen.turns.interception import CassetteMiss

Work = Callable[[str], list[dict[str, Any]]]


@pytest.fixture(params=[*CLIENTS, *SDKS])
def work(request: pytest.FixtureRequest) -> Work:
    pytest.importorskip(str(request.param))
    return (CLIENTS | SDKS)[request.param]


def test_replay_tells_what_was_told_live(work: Work, site: Site, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    with use_cassette(path, mode="once"):
        live = work(site.address)
    asked = len(site.seen)

    with use_cassette(path) as run:
        again = work(site.address)

    for number, (one, other) in enumerate(zip(again, live, strict=True)):
        apart = {name for name in one | other if one.get(name) != other.get(name)}
        assert not apart, f"step {number}: {[(n, one.get(n), other.get(n)) for n in apart]}"
    assert len(site.seen) == asked
    assert run.unplayed == 0


# Uploads: a client draws a new boundary for each


URL = "https://api.example/v1/files"


def upload(path: Path, mode: Any, *contents: bytes) -> list[str]:
    with (
        answering(lambda request: httpx2.Response(200, text=f"{len(request.content)} bytes")),
        use_cassette(path, mode=mode),
        httpx2.Client() as client,
    ):
        sent = [{"file": ("a.bin", one, "application/octet-stream")} for one in contents]
        return [client.post(URL, files=files, data={"purpose": "x"}).text for files in sent]


def test_an_upload_is_found_again(tmp_path: Path) -> None:
    """Each by what is in it; the cassette holds no random boundary, neither in head nor in body."""
    path = tmp_path / "c.yaml"
    binary = b"\x00\xff--b\r\n"
    recorded = upload(path, "once", b"one", binary)

    assert upload(path, "none", binary, b"one") == recorded[::-1]
    with pytest.raises(CassetteMissError, match="has no answer"):
        upload(path, "none", b"two")
    file = loaded(path)
    for stored in file.interactions:
        kept = stored.interaction
        assert kept.request_headers["content-type"] == ("multipart/form-data; boundary=boundary",)
        assert kept.request_body.startswith(b"--boundary\r\n")
        assert kept.request_body.endswith(b"--boundary--\r\n")


def test_an_upload_that_vcrpy_recorded_is_found(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    mark = "0123456789abcdef0123456789abcdef"
    body = f'--{mark}\r\nContent-Disposition: form-data; name="a"; filename="b"\r\n\r\nx\r\n'
    request = {"method": "POST", "uri": URL, "headers": {}, "body": f"{body}--{mark}--\r\n"}
    response = {"status": {"code": 200, "message": "OK"}, "headers": {}, "body": {"string": "ok"}}
    data = {"interactions": [{"request": request, "response": response}], "version": 1}
    path.write_text(yaml.safe_dump(data), "utf-8")
    sent = request["body"].replace(mark, mark[::-1]).encode()  # type: ignore[attr-defined]

    with use_cassette(path), httpx2.Client() as client:
        assert client.post(URL, content=sent).text == "ok"


# Websockets: a cassette cannot keep what passes over one


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
