"""Cassettes of tests marked ``vcr``: vcrpy's own files, and no credential in them either."""

import gzip
import http.client
import io
import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from loopback import Answer, serving
from planted_secrets import PLANTED

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
