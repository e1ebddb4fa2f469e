"""Cassettes that VCR for Ruby wrote: read where they mean the same, and named as what they are."""

import base64
import gzip
import json
from pathlib import Path

import httpx2
import pytest
from cassette_commands import checked, run

from pytest_regen.cassettes import read_cassette, use_cassette
from pytest_regen.cassettes.clients.vcr_run import VcrOptions, use_vcr_cassette
from pytest_regen.errors import CassetteUnreadableError

IMAGE = bytes(range(256))
HEAD = """---
http_interactions:
"""
ONE = """- request:
    method: post
    uri: https://api.example.com/v1/things?page=2
    body:
      encoding: UTF-8
      string: '{"model":"m","input":"grün"}'
    headers:
      User-Agent:
      - Faraday v2.12.2
      Content-Type:
      - application/json
      Accept-Encoding:
      - gzip;q=1.0,deflate;q=0.6,identity;q=0.3
  response:
    status:
      code: 201
      message: Created
    headers:
      Content-Type:
      - application/json
      Link:
      - "</v1/things?page=3>; rel=\\"next\\""
    body:
      encoding: UTF-8
      string: '{"price":1.10,"said":"grün"}'
    http_version: null
  recorded_at: Tue, 10 Jun 2025 08:23:42 GMT
"""
TAIL = "recorded_with: VCR 6.3.1\n"


def get(path: str, body: str, headers: str = "{}") -> str:
    """Return a recording of a GET with this body, as YAML."""
    return f"""- request:
    method: get
    uri: https://api.example.com{path}
    body:
      encoding: US-ASCII
      string: ''
    headers: {{}}
  response:
    status:
      code: 200
      message:
    headers: {headers}
    body:
{body}
  recorded_at: Tue, 10 Jun 2025 08:23:43 GMT
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where commands are called."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, *recordings: str) -> Path:
    """Write a cassette."""
    path = folder / "c.yml"
    path.write_text(HEAD + "".join(recordings) + TAIL, "utf-8")
    return path


def test_it_is_replayed(folder: Path) -> None:
    """Methods in capitals, bytes, headers and status as the server sent them."""
    path = write(folder, ONE)

    with use_cassette(path) as run_:
        url = "https://api.example.com/v1/things?page=2"
        answer = httpx2.post(url, json={"input": "grün", "model": "m"})

    assert (answer.status_code, answer.reason_phrase) == (201, "Created")
    assert answer.content == '{"price":1.10,"said":"grün"}'.encode()
    assert answer.links["next"]["url"] == "/v1/things?page=3"
    assert run_.unplayed == 0


def test_bodies_are_read_in_each_of_its_ways(folder: Path) -> None:
    """As text of an encoding, in base64 by either name, compressed."""
    packed = base64.b64encode(gzip.compress(b'{"a":1}')).decode()
    image = base64.encodebytes(IMAGE).decode()
    folded = "".join(f"        {line}\n" for line in image.splitlines())
    path = write(
        folder,
        get("/latin", '      encoding: ISO-8859-1\n      string: "gr\\xFCn"'),
        get("/base64", f"      encoding: ASCII-8BIT\n      base64_string: |\n{folded}"),
        get("/binary", f"      encoding: ASCII-8BIT\n      string: !binary |-\n{folded}"),
        get(
            "/gzip",
            f"      encoding: ASCII-8BIT\n      base64_string: {packed}",
            "{Content-Encoding: [gzip]}",
        ),
        get("/empty", "      encoding: UTF-8\n      string: ''"),
    )
    wanted = {
        "/latin": "grün".encode("latin-1"),
        "/base64": IMAGE,
        "/binary": IMAGE,
        "/gzip": b'{"a":1}',
        "/empty": b"",
    }

    with use_cassette(path):
        found = {one: httpx2.get(f"https://api.example.com{one}").content for one in wanted}

    assert found == wanted


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("      encoding: KLINGON\n      string: x", "KLINGON"),
        ("      encoding: US-ASCII\n      base64_string: '%%'", "base64"),
        ("      encoding: ISO-8859-1\n      string: €", "ISO-8859-1"),
        ("      encoding: [1]\n      string: x", "encoding"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(folder: Path, body: str, said: str) -> None:
    """By its line."""
    path = write(folder, ONE, get("/", body))

    with pytest.raises(CassetteUnreadableError, match=r"c\.yml:30") as refused:
        read_cassette(path)

    assert said in refused.value.why


@pytest.mark.parametrize(
    "body", ["!ruby/object:Gem::Installer\n        i: x", "!ruby/regexp /x/", "!ruby/hash:A {a: 1}"]
)
def test_an_object_of_ruby_is_never_made(folder: Path, body: str) -> None:
    """Nor told as broken YAML: loading the file elsewhere could run code."""
    path = write(folder, ONE.replace('\'{"model":"m","input":"grün"}\'', body))

    with pytest.raises(CassetteUnreadableError, match="cannot be read") as caught:
        read_cassette(path)

    assert "asks for a Ruby object (!ruby/" in caught.value.why
    assert "could run code" in caught.value.hint


def test_a_test_that_is_marked_vcr_is_told(folder: Path) -> None:
    """For that vcrpy reads; the advice is one that works."""
    path = write(folder, ONE)
    options = VcrOptions(
        "c.yml", folder, "none", {"path_transformer": str}, (), configure=lambda _: None
    )

    with pytest.raises(CassetteUnreadableError) as refused, use_vcr_cassette(options):
        pass

    assert "VCR for Ruby" in refused.value.why
    assert f"convert {path.name} --out" in refused.value.hint
    assert run("convert", "c.yml", "--out", "d.yaml") == 0
    with use_vcr_cassette(VcrOptions("d.yaml", folder, "none", {}, (), lambda _: None)):
        url = "https://api.example.com/v1/things?page=2"
        assert httpx2.post(url, json={}).json()["price"] == 1.1


def test_commands_take_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is a cassette among others, shown, and not replaced: Ruby could not read ours."""
    write(folder, ONE)

    assert checked(capsys, ".")[1]["checked"] == 1
    assert run("show", "c.yml") == 0
    assert "POST /v1/things 201, m" in capsys.readouterr().out
    assert run("convert", "c.yml", "--json") == 1
    [one] = json.loads(capsys.readouterr().out)["files"]
    assert "VCR for Ruby" in one["why"]
