"""Clients that vcrpy patches: what it hands on as a body is compared and kept as what was sent."""

import io
from pathlib import Path
from typing import Any

import pytest
from vcr.request import Request

from pytest_regen.cassettes import read_cassette, use_cassette
from pytest_regen.cassettes.clients.vcr.bodies import body_bytes, comparable_bytes
from pytest_regen.cassettes.clients.vcr.patching import _builder
from pytest_regen.errors import CassetteError, CassetteMissError

URL = "https://api.example/v1/messages"
ANSWER = {"status": {"code": 200, "message": "OK"}, "headers": {}, "body": {"string": b"{}"}}


def send(body: Any, answer: Any = ANSWER) -> bool:
    """Do what vcrpy's patches do for a request; return whether a recording answered."""
    target = _builder()._cassette
    request = Request("POST", URL, body, {})
    is_recorded = bool(target.can_play_response_for(request))
    if is_recorded:
        target.play_response(request)
    else:
        target.append(request, answer)
    return is_recorded


@pytest.mark.parametrize(
    ("body", "other", "kept"),
    [
        ({"model": "m", "n": 1}, {"model": "m", "n": 2}, b'{"model": "m", "n": 1}'),
        ([1, "x"], [2, "x"], b'[1, "x"]'),
        ([("a", "1")], [("a", "2")], b'[["a", "1"]]'),
        ({"file": b"\xff"}, {"file": b"\xfe"}, '{"file": "ÿ"}'.encode()),
        (7, 8, b"7"),
        ([b"pie", b"ces"], [b"pie"], b"pieces"),
        ((part for part in (b"pie", "ces")), [b"pie"], b"pieces"),
        (io.BytesIO(b"file"), io.BytesIO(b"other"), b"file"),
        (bytearray(b"bytes"), b"other", b"bytes"),
        (None, b"something", b""),
    ],
)
def test_a_body_is_compared_by_what_is_in_it(
    tmp_path: Path, body: Any, other: Any, kept: bytes
) -> None:
    """Aiohttp hands on the objects behind ``json=`` and ``data=``, others files and pieces."""
    path = tmp_path / "c.yaml"
    with use_cassette(path, mode="once"):
        assert not send(body)

    file = read_cassette(path)
    assert file is not None
    assert body_bytes(kept) == kept
    sent = file.interactions[0].interaction.request_body
    assert b"".join(sent.split()) == b"".join(kept.split())
    with pytest.raises(CassetteMissError), use_cassette(path):
        send(other)
    with use_cassette(path):
        assert send(kept)


def test_headers_may_come_in_pairs(tmp_path: Path) -> None:
    """As of tornado, whose request would never end where recording its answer fails."""
    path = tmp_path / "c.yaml"
    with use_cassette(path, mode="once"):
        assert not send(b"", {**ANSWER, "headers": [("Link", ["<a>", "<b>"]), ("ETag", ["1"])]})

    file = read_cassette(path)
    assert file is not None
    kept = file.interactions[0].interaction.response_headers
    assert (kept["link"], kept["etag"]) == (("<a>", "<b>"), ("1",))


def test_a_body_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """Compared as nothing, all such requests would be equal; the error names the kind."""
    for body in (object(), {"form": object()}):
        with (
            pytest.raises(CassetteError, match=r"its body is a builtins\.object"),
            use_cassette(tmp_path / "c.yaml", mode="once"),
        ):
            send(body)

        assert comparable_bytes(body) == b""
