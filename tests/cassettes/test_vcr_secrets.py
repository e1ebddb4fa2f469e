"""No credential in vcrpy's own files either; a recording says which values it holds otherwise."""

import gzip
import http.client
import io
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from loopback import Answer, Asked, serving
from planted_secrets import PLANTED

from pytest_regen.cassettes import CassetteRun, use_cassette
from pytest_regen.cassettes.clients.vcr_run import VcrOptions, use_vcr_cassette
from pytest_regen.credentials.search import find_secrets
from pytest_regen.errors import CassetteError

SECRET = PLANTED["anthropic"]
TEXT = json.dumps({"said": f"It is {SECRET}."}).encode()
PACKED = (("content-encoding", "gzip"),)
EVENTS = (("content-type", "text/event-stream"),)
UNREADABLE = Answer(b"\x00\x01\x02", headers=(("content-encoding", "made-up"),))


def post(
    folder: Path, url: str, data: Any, mode: str = "once", config: dict[str, Any] | None = None
) -> bytes:
    options = VcrOptions("c", folder, mode, config or {}, (), lambda _: None)
    headers = {"content-type": "text/plain", "content-length": str(len(data))}
    with use_vcr_cassette(options):
        sent = urllib.request.Request(url, data, headers)
        answer: bytes = urllib.request.urlopen(sent, timeout=10).read()
    return answer


def written(folder: Path) -> str:
    return (folder / "c.yaml").read_text("utf-8")


@pytest.mark.parametrize("data", [TEXT, gzip.compress(TEXT, mtime=0)], ids=["plain", "gzip"])
def test_requests_are_clean(tmp_path: Path, data: bytes) -> None:
    """Compressed or not, what is found is replaced, and the file is vcrpy's."""
    with serving({"/*": Answer(b"{}")}) as url:
        post(tmp_path, url, data)

    assert SECRET not in written(tmp_path)
    assert "[anthropic-key]" in written(tmp_path)


def test_a_request_read_from_a_file_can_be_replayed(tmp_path: Path) -> None:
    """It is written as bytes: of the file itself YAML would make an object of Python."""

    class Sized(io.BytesIO):
        def __len__(self) -> int:
            return len(self.getvalue())

    with serving({"/*": Answer(b'{"said": "yes"}')}) as url:
        post(tmp_path, url, Sized(b"hello"))
        assert "python" not in written(tmp_path)

        assert post(tmp_path, url, Sized(b"hello"), "none") == b'{"said": "yes"}'


@pytest.mark.parametrize("match_on", [["method", "path", "query"], ["body"]])
def test_a_request_with_a_credential_is_found_again(tmp_path: Path, match_on: list[str]) -> None:
    with serving({"/*": Answer(b"{}")}) as url:
        address, config = f"{url}?api_key={SECRET}&rows=2", {"match_on": match_on}
        live = post(tmp_path, address, TEXT, config=config)

    assert SECRET not in (tmp_path / "c.yaml").read_text("utf-8")
    assert post(tmp_path, address, TEXT, "none", config) == live


def test_an_address_names_nobody(tmp_path: Path) -> None:
    """Who asks is left out: with a placeholder there, vcrpy could not read the address."""

    def ask(mode: str) -> bytes:
        options = VcrOptions("c", tmp_path, mode, {"match_on": ["uri"]}, (), lambda _: None)
        with use_vcr_cassette(options):
            return httpx2.get(named, trust_env=False).content

    with serving({"/*": Answer(b"yes")}) as url:
        named = url.replace("://", "://ada:" + "hopper1906x@")
        live = ask("once")

    assert "hopper1906x" not in written(tmp_path)
    assert ask("none") == live


def test_answers_are_clean(tmp_path: Path) -> None:
    """A compressed answer with a credential is kept as text without it."""
    with serving({"/*": Answer(gzip.compress(TEXT), headers=PACKED)}) as url:
        post(tmp_path, url, b"{}")

    assert find_secrets(written(tmp_path)) == ()
    assert "It is [anthropic-key]." in written(tmp_path)


def test_a_credential_in_pieces_of_a_stream_is_refused(tmp_path: Path) -> None:
    unpatched = http.client.HTTPConnection
    pieces = [SECRET[:20], SECRET[20:]]
    said = "".join(f"data: {json.dumps({'delta': {'text': one}})}\n\n" for one in pieces)

    with (
        serving({"/*": Answer(said.encode(), headers=EVENTS)}) as url,
        pytest.raises(CassetteError, match="not written") as caught,
    ):
        post(tmp_path, url, b"{}")

    assert "anthropic-key" in str(caught.value)
    assert not (tmp_path / "c.yaml").exists()
    assert http.client.HTTPConnection is unpatched


def test_a_failure_says_what_was_not_written_besides(tmp_path: Path) -> None:
    """The failure of the block is told, and with it that nothing was kept."""
    unpatched = http.client.HTTPConnection
    options = VcrOptions("c", tmp_path, "once", {}, (), lambda _: None)

    def fails(url: str) -> None:
        with use_vcr_cassette(options):
            urllib.request.urlopen(urllib.request.Request(url, b"{}"), timeout=10).read()
            raise ZeroDivisionError

    with (
        serving({"/*": UNREADABLE}) as url,
        pytest.raises(ZeroDivisionError) as caught,
    ):
        fails(url)

    assert "cannot be searched" in caught.value.__notes__[0]
    assert http.client.HTTPConnection is unpatched


TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
REFERENCES = {"references": [{"key": "b3"}, {"key": TOKEN}, {"key": f"see {TOKEN}, page 3"}]}
JSON = ("content-type", "application/json")


def answer(asked: Asked) -> Answer:
    path = asked.target.partition("?")[0]
    if path.startswith("/plain"):
        return Answer(b'{"plan": "north wall"}', headers=(JSON, ("set-cookie", "a=b1c2d3e4f5")))
    if path == "/events":
        lines = [json.dumps({"delta": text}) for text in ("ivy", f"and {TOKEN} too")]
        text = "".join(f"data: {line}\n\n" for line in lines)
        return Answer(text.encode(), headers=(("content-type", "text/event-stream"),))
    if path == "/form":
        return Answer(f"plan=wall&access_token={TOKEN}".encode())
    if path == "/renamed":
        return Answer(json.dumps({TOKEN: "ivy"}).encode(), headers=(JSON,))
    if path == "/away":
        place = f"http://{asked.headers['host']}/plain?token={TOKEN}"
        return Answer(status=302, headers=(("location", place),))
    body = json.dumps(REFERENCES).encode()
    return (
        Answer(gzip.compress(body), headers=(JSON, *PACKED)) if path == "/packed" else Answer(body)
    )


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving({"/*": answer}) as served:
        yield served


KEY = {"authorization": f"Bearer {TOKEN}", "x-api-key": "opaque"}


def recorded(path: Path, url: str, **options: Any) -> CassetteRun:
    with use_cassette(path, mode="once") as run:
        httpx2.request(options.pop("method", "GET"), url, **options)
    return run


def recorded_by_vcrpy(path: Path, url: str, **options: Any) -> Any:
    cassette = VcrOptions(path.name, path.parent, "once", {}, (), lambda _: None)
    with use_vcr_cassette(cassette) as run:
        httpx2.request(options.pop("method", "GET"), url, **options)
    return run


WAYS = pytest.mark.parametrize("record", [recorded, recorded_by_vcrpy])


EXPECTED = {
    "/plain": [],
    "/references": ["response body $.references[1].key", "response body $.references[2].key"],
    "/packed": ["response body $.references[1].key", "response body $.references[2].key"],
    "/events": ["response body $[1].delta"],
    "/form": ["response body"],
    "/renamed": ["response body"],
    "/away": ["response header location"],
    f"/plain?api_key={TOKEN}&page=2": ["request query api_key"],
    f"/plain/{TOKEN}": ["request path"],
}


@WAYS
@pytest.mark.parametrize("target", EXPECTED)
def test_a_member_that_was_replaced_is_named(
    tmp_path: Path, address: str, target: str, record: Any
) -> None:
    """That the keys of the provider are gone is no news."""
    run = record(tmp_path / "c.yaml", address + target, headers=KEY)

    assert [value.member for value in run.changed] == EXPECTED[target]


def test_the_lengths_are_told_and_the_value_is_not(tmp_path: Path, address: str) -> None:
    path, sent = tmp_path / "c.yaml", {"token": TOKEN, "n": [1, "x"]}

    run = recorded(path, f"{address}/references", method="POST", json=sent, headers=KEY)

    assert [str(value) for value in run.changed] == [
        "request body $.token came out different: 40 characters live, 17 in replay",
        "response body $.references[1].key came out different: 40 characters live, 14 in replay",
        "response body $.references[2].key came out different: 52 characters live, 26 in replay",
    ]
    assert [value.is_answer for value in run.changed] == [False, True, True]
