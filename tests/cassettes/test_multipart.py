"""Uploads: a form with files is found again, although its client draws a new boundary each time."""

from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from recorded import answering, loaded

from pytest_regen.cassettes import use_cassette
from pytest_regen.cassettes.files.bodies import with_stable_boundary
from pytest_regen.errors import CassetteMissError

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


def test_what_is_no_such_form_stays() -> None:
    """Nor one with a boundary that somebody chose, nor one that is cut."""
    for body in (b"", b"--x", b"--b\r\nContent-Type: a\r\n\r\nx\r\n--b--\r\n",
                 b"--0123456789abcdef0123\r\nContent-Type: a\r\n\r\ncut"):  # fmt: skip
        assert with_stable_boundary(body) is body
