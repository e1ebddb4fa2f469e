"""Every place in which a credential travels, over real clients: nothing of it stays on the disk."""

import base64
import gzip
import json
import re
import urllib.parse
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from planted_secrets import PLANTED
from recorded import answering

from pytest_regen.cassettes import use_cassette
from pytest_regen.cassettes.headers import public_address
from pytest_regen.credentials.search import ASSIGNED
from pytest_regen.errors import CassetteError

SECRETS = {
    **{kind: PLANTED[kind] for kind in ("anthropic", "private", "bearer", "aws")},
    "assigned": "api_key=" + "q7Rt9ZxP2mKw4LsV8n",
    "url": "postgres://admin:" + "hunter2hunter@db.example/x",
}
EACH = pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
OPAQUE = "opaque-key-of-a-gateway"
"""Has no shape at all: only the request that carries it says what it is."""
URL = "https://api.example/v1/messages"
JSON = {"content-type": "application/json"}
SSE = {"content-type": "text/event-stream"}
Answer = Callable[[httpx2.Request], httpx2.Response]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cassettes" / "c.yaml"


def readings(data: bytes) -> Iterator[bytes]:
    yield data
    yield urllib.parse.unquote_to_bytes(data.replace(b"+", b" "))
    yield data.replace(b"\\n", b"\n").replace(b'\\"', b'"')
    # A binary body stands in base64.
    for token in re.findall(rb"[A-Za-z0-9+/]{20,}=*", re.sub(rb"\n +", b"", data)):
        yield base64.b64decode(token[: len(token) // 4 * 4])


def revealed(folder: Path, secret: str) -> list[Path]:
    core = "MIIB" if "BEGIN" in secret else secret[12:30]
    return [
        file
        for file in folder.rglob("*")
        if core in file.name
        or (file.is_file() and any(core.encode() in one for one in readings(file.read_bytes())))
    ]


def record(path: Path, answer: Answer, *calls: dict[str, Any]) -> None:
    for mode in ("once", "none"):
        anyway: Any = mode
        with (
            answering(answer),
            use_cassette(path, mode=anyway) as run,
            httpx2.Client() as client,
        ):
            for call in calls:
                client.request(**{"method": "POST", "url": URL, **call}).read()
        assert (run.recorded if mode == "once" else run.played) == len(calls)
        assert run.unplayed == 0


def requests(secret: str) -> dict[str, dict[str, Any]]:
    quoted = urllib.parse.quote(secret, safe="")
    text = f"Before it {secret} and after."
    return {
        "kept header": {"headers": {"anthropic-beta": secret.replace("\n", " ")}},
        "query": {"url": f"{URL}?page=1&q={quoted}"},
        "path": {"url": f"https://api.example/v1/{quoted}/messages"},
        "JSON": {"json": {"a": [{"b": text}]}},
        "name of a member": {"json": {text: 1}},
        "model": {"json": {"model": secret, "messages": [{"role": "user", "content": text}]}},
        "form": {"data": {"grant": "x", "value": secret}},
        "file": {
            "content": b"--b\r\nContent-Disposition: form-data; name=f\r\n\r\n\xff\xfe"
            + text.encode()
            + b"\x00\r\n--b--\r\n",
            "headers": {"content-type": "multipart/form-data; boundary=b"},
        },
        "gzip": {
            "content": gzip.compress(json.dumps({"a": text}).encode(), mtime=0),
            "headers": {**JSON, "content-encoding": "gzip"},
        },
        "text": {"content": text},
    }


@EACH
@pytest.mark.parametrize("place", requests("x"))
def test_in_a_request(path: Path, secret: str, place: str) -> None:
    """It is replaced, the request is found again all the same, and its credential was no part."""
    call = requests(secret)[place]

    record(path, lambda _: httpx2.Response(200, json={"ok": True}), call)

    assert revealed(path.parent, secret) == []


COMPOUND = {
    "words": ("host=db password={} sslmode=require", "sslmode=require"),
    "address": ("otpauth://totp/A:jo?secret={}&issuer=Acme", "issuer=Acme"),
    "list": ("Server=tcp:db.example,1433;Password={};Encrypt=True;", ";Encrypt=True;"),
    "jdbc": ("jdbc:postgresql://db.example:5432/shop?user=app&password={}", "user=app"),
}


@pytest.mark.parametrize(("value", "kept"), COMPOUND.values(), ids=COMPOUND)
def test_within_a_parameter_only_the_credential_goes(path: Path, value: str, kept: str) -> None:
    """Requests that differ in what stands behind it are different, and each is found again."""
    secret = "Qx7LmP2vRt9KdW3nZa"
    call: dict[str, Any] = {"params": {"dsn": value.format(secret)}}

    record(path, lambda _: httpx2.Response(200, json={"ok": True}), call)

    [line] = [line for line in path.read_text("utf-8").splitlines() if "uri:" in line]
    assert secret not in line
    assert kept in urllib.parse.unquote(line)
    address = public_address(f"{URL}?dsn={urllib.parse.quote(value.format(secret))}")
    assert urllib.parse.unquote(address) == f"{URL}?dsn={value.format(f'[{ASSIGNED}]')}"


def answers(secret: str) -> dict[str, httpx2.Response]:
    text = f"Before it {secret} and after."
    body = json.dumps({"said": text}).encode()
    event = f"data: {json.dumps({'delta': {'text': text}})}\n\n".encode()

    def packed(data: bytes, kind: dict[str, str]) -> httpx2.Response:
        stream = httpx2.ByteStream(gzip.compress(data))
        return httpx2.Response(200, headers={**kind, "content-encoding": "gzip"}, stream=stream)

    return {
        "JSON": httpx2.Response(200, content=body, headers=JSON),
        "text": httpx2.Response(200, text=text),
        "binary": httpx2.Response(200, content=b"\xff\xfe" + text.encode() + b"\x00"),
        "refusal": httpx2.Response(400, json={"error": {"message": text}}),
        "headers": httpx2.Response(
            200,
            json={},
            headers={
                "set-cookie": "session=" + secret.replace("\n", " "),
                "x-debug": secret.replace("\n", " "),
                "retry-after": secret.replace("\n", " "),
            },
        ),
        "event": httpx2.Response(200, content=event, headers=SSE),
        "packed JSON": packed(body, JSON),
        "packed event": packed(event, SSE),
    }


@EACH
@pytest.mark.parametrize("place", answers("x"))
def test_in_an_answer(path: Path, secret: str, place: str) -> None:
    record(path, lambda _: answers(secret)[place], {"json": {}})

    assert revealed(path.parent, secret) == []


def split(text: str) -> tuple[str, str]:
    middle = text.index("-----BEGIN") + 8 if "BEGIN" in text else len(text) // 2
    return text[:middle], text[middle:]


def events(make: Callable[[str], Any], secret: str) -> bytes:
    return b"".join(f"data: {json.dumps(make(piece))}\n\n".encode() for piece in split(secret))


STREAMS: dict[str, Callable[[str], Any]] = {
    "text": lambda piece: {"delta": {"type": "text_delta", "text": piece}},
    "input of a tool": lambda piece: {"delta": {"type": "input_json_delta", "partial_json": piece}},
    "a tool of another make": lambda piece: {
        "choices": [{"delta": {"tool_calls": [{"function": {"arguments": piece}}]}}]
    },
    "no JSON": lambda piece: piece,
}


@EACH
@pytest.mark.parametrize("make", STREAMS.values(), ids=STREAMS)
def test_in_pieces_of_a_stream(path: Path, secret: str, make: Callable[[str], Any]) -> None:
    """It cannot be replaced in pieces, so the recording is refused, and nothing is written."""
    said = b"data: [STARTED]\n\n" + events(make, secret)

    with pytest.raises(CassetteError, match="not written"):
        record(path, lambda _: httpx2.Response(200, content=said, headers=SSE), {"json": {}})

    assert revealed(path.parent, secret) == []


CARRIED: dict[str, dict[str, Any]] = {
    "bearer": {"headers": {"authorization": f"Bearer {OPAQUE}"}},
    "api key": {"headers": {"x-api-key": OPAQUE}},
    "basic": {"auth": ("user", OPAQUE)},
    "address": {"url": f"https://user:{OPAQUE}@api.example/v1/messages"},
    "parameter": {"url": f"{URL}?access_token={OPAQUE}"},
}


@pytest.mark.parametrize("call", CARRIED.values(), ids=CARRIED)
def test_a_key_without_a_shape(path: Path, call: dict[str, Any]) -> None:
    """What a request carried as its credential is not kept where an answer says it back."""
    record(path, lambda _: httpx2.Response(401, json={"error": f"bad key {OPAQUE}"}), call)

    assert revealed(path.parent, OPAQUE) == []


@pytest.mark.parametrize(
    "headers", [{"x-partition-key": "customers"}, {"idempotency-key": "3f2c9a7e-11d2-4c8b-9d57-1"}]
)
def test_a_header_that_opens_nothing_changes_nothing(path: Path, headers: dict[str, str]) -> None:
    """What only has the name of a key is left where it stands in a body."""
    [value] = headers.values()

    record(
        path,
        lambda _: httpx2.Response(200, json={"said": value}),
        {"headers": headers, "json": {"asked": value}},
    )

    assert path.read_text("utf-8").count(value) == 2


def test_a_key_in_pieces_of_a_stream(path: Path) -> None:
    """The key in use is known without a shape, in pieces as well."""
    said = events(STREAMS["text"], OPAQUE)

    with pytest.raises(CassetteError, match="key-in-use"):
        record(
            path,
            lambda _: httpx2.Response(200, content=said, headers=SSE),
            {"headers": {"x-api-key": OPAQUE}},
        )

    assert revealed(path.parent, OPAQUE) == []


@EACH
def test_a_compressed_request_that_cannot_be_changed_is_refused(path: Path, secret: str) -> None:
    """Deflate does not tell by itself that it is one; it is read, and refused if it must be."""
    body = zlib.compress(json.dumps({"a": secret}).encode())
    call = {"content": body, "headers": {"content-encoding": "deflate"}}

    with pytest.raises(CassetteError, match="compressed request"):
        record(path, lambda _: httpx2.Response(200, json={}), call)

    assert revealed(path.parent, secret) == []


def test_a_compressed_request_is_kept_as_text(path: Path) -> None:
    """However it is packed the next time: what it says is what is compared."""
    body = json.dumps({"asked": "hello"}).encode()
    answer = httpx2.Response(200, json={"said": "hello"})
    record(path, lambda _: answer, {"content": gzip.compress(body, mtime=1)})

    with use_cassette(path), httpx2.Client() as client:
        again = client.post(URL, content=gzip.compress(body, compresslevel=1, mtime=2))

    assert again.json() == {"said": "hello"}
    assert '"asked": "hello"' in path.read_text("utf-8")


@pytest.mark.parametrize("name", ["anthropic", "assigned"])
def test_a_cassette_is_not_named_by_one(tmp_path: Path, name: str) -> None:
    secret = SECRETS[name]
    path = tmp_path / f"test_key[{secret}].yaml"
    calls: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        calls.append(request)
        return httpx2.Response(200)

    with pytest.raises(CassetteError, match="the name of the cassette") as caught:
        record(path, answer, {})

    assert secret not in str(caught.value)
    assert not calls
    assert not list(tmp_path.iterdir())


@EACH
@pytest.mark.parametrize("drift", ["fail", "warn"])
def test_in_what_a_miss_says(tmp_path: Path, path: Path, secret: str, drift: Any) -> None:
    """Wherever a long value is cut for the message, half a credential is none of its pieces."""
    told = {"model": "m", "messages": [{"role": "user", "content": "w" * 45 + " x"}]}
    record(path, lambda _: httpx2.Response(200, json={}), {"json": told})
    other = {
        "model": f"m {secret}",
        "messages": [{"role": "user", "content": "w" * 45 + " " + secret}],
        "metadata": {secret: secret},
        "more": {f"n{before}": f"{'v' * before} {secret}" for before in (20, 30, 45, 50, 60)},
    }

    try:
        with (
            use_cassette(path, drift=drift, diff_folder=tmp_path / "diffs") as run,
            httpx2.Client() as client,
        ):
            client.post(URL, json=other)
        said = "\n".join(map(str, run.drifts))
    except CassetteError as error:
        said = str(error)

    assert said
    hidden = secret.partition("@")[0] if "://" in secret else secret
    pieces = {hidden[start : start + 9] for start in range(12, len(hidden) - 9)}
    assert [piece for piece in pieces if piece in said and "PRIVATE" not in piece] == []
    assert revealed(tmp_path, secret) == []
