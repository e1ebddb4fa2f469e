"""What is no credential stays as it is: real recordings, ids, hashes, images, code and prose."""

import base64
import json
import random
import uuid
from pathlib import Path

import pytest
import yaml

from pytest_regen.cassettes import read_cassette
from pytest_regen.cassettes.recording import clean_body
from pytest_regen.cassettes.scrubbing import hidden_in_stream, scrub_value
from pytest_regen.cassettes.upkeep.checking import Limits, check_cassettes
from pytest_regen.turns.secrets import find_secrets

ROOT = Path(__file__).parents[2]
FOLDERS = [ROOT / "cassettes", ROOT / "examples", ROOT.parent / "shared/data/anthropic-cassettes"]
RECORDINGS = [
    path
    for folder in FOLDERS
    for path in sorted(folder.rglob("*.yaml"))
    if "interactions:" in path.read_text("utf-8")
]
CODE = sorted((ROOT / "pytest_regen" / "cassettes").rglob("*.py"))
PROSE = sorted((ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_recordings_stay_as_they_are(path: Path) -> None:
    """Those of the examples, and eight of the real API by other projects."""
    file = read_cassette(path)

    assert file is not None
    for stored in file.interactions:
        found = stored.interaction
        assert clean_body(found.request_body) == found.request_body
        assert clean_body(found.response_body) == found.response_body
        assert not found.is_stream or not hidden_in_stream(found.response_body.decode())
    assert "SECRET" not in [one.code for one in check_cassettes([path], Limits())]


def folded_cassette(folder: Path, before: int, field: str) -> Path:
    """Write a cassette as PyYAML does, with ``field`` behind so many letters of an answer."""
    body = f'{{"words": "{"w" * before}\u00e9", {field}}}'
    sent = {"method": "POST", "uri": "http://a.test/", "body": "{}", "headers": {}}
    answer = {"status": {"code": 200, "message": "OK"}, "headers": {}, "body": {"string": body}}
    path = folder / "folded.yaml"
    whole = {"interactions": [{"request": sent, "response": answer}], "version": 1}
    path.write_text(yaml.safe_dump(whole), "utf-8")
    assert "\\\n" in path.read_text("utf-8")
    return path


@pytest.mark.parametrize("before", range(80))
def test_a_signature_that_is_folded_is_none(before: int, tmp_path: Path) -> None:
    """YAML breaks long texts anywhere, between the quote and the name of a signature too."""
    signature = (
        "EmucHl0ZXN0LXJlZ2VuLWVtdWxhdG9ySBs32kevd1IBwxLl8e/FUxhYalSXA7+voS+gfGxJWWZ4lr/bnn=="
    )
    path = folded_cassette(tmp_path, before, f'"signature": "{signature}"')

    assert "SECRET" not in [one.code for one in check_cassettes([path], Limits())]


@pytest.mark.parametrize("before", range(80))
def test_a_credential_that_is_folded_is_found(before: int, tmp_path: Path) -> None:
    """Wherever the line ends, before its name, behind it or nowhere near."""
    path = folded_cassette(tmp_path, before, '"api_key": "x9Kq2Lw8Zr4Tn6Vb1Mc3Pd5Sf7Gh0Jy"')

    assert "SECRET" in [one.code for one in check_cassettes([path], Limits())]


@pytest.mark.parametrize("path", [*CODE, *PROSE], ids=lambda path: path.name)
def test_code_and_prose_stay_as_they_are(path: Path) -> None:
    """They speak of keys and tokens all the time, in plain and as JSON within JSON."""
    text = path.read_text("utf-8")

    for one in (text, json.dumps({"a": text}), json.dumps([json.dumps([text])])):
        assert find_secrets(one) == ()


DRAWN = random.Random(20260102)
UUIDS = [str(uuid.UUID(bytes=DRAWN.randbytes(16))) for _ in range(50)]
HASHES = [DRAWN.randbytes(size).hex() for size in (16, 20, 32, 64) for _ in range(20)]
IDS = [
    f"{start}_01{''.join(DRAWN.choices('ABCDEFGHJKabcdefghjk123456789', k=22))}"
    for start in ("msg", "toolu", "req", "srvtoolu", "file", "call", "chatcmpl", "resp", "run")
    for _ in range(10)
]


def test_ids_and_hashes_stay_as_they_are() -> None:
    """As values, names and words, wherever no name says that they are credentials."""
    for one in (*UUIDS, *HASHES, *IDS):
        value = {
            "id": one,
            "tool_use_id": one,
            "session_id": one,
            "sha": f"sha256:{one}",
            one: f"see {one}, or https://example.org/{one}/a?b={one}",
            "list": [one, one],
        }
        assert scrub_value(value) is value
        assert scrub_value([json.dumps(value)]) == [json.dumps(value)]


@pytest.mark.parametrize("size", [1_000, 60_000])
def test_images_stay_as_they_are(size: int) -> None:
    """In base64 of either alphabet, in one line and in many."""
    data = DRAWN.randbytes(size)

    for text in (
        base64.b64encode(data).decode(),
        base64.urlsafe_b64encode(data).decode(),
        base64.encodebytes(data).decode(),
    ):
        assert scrub_value({"data": text}) == {"data": text}


@pytest.mark.parametrize(
    "value",
    [
        {"required": ["password", "email2fa"]},
        {"password": {"type": "string", "minLength": 8}},
        {"password": "required"},
        {"password": "must be 8 characters or more"},
        {"password": "${DB_PASSWORD}"},
        {"password": "********"},
        {"password": "[assigned-secret]"},
        {"token": "This is step 2 of the whole work"},
        {"key": "primary", "value": "some_value_1234567890"},
        {"max_tokens": 30_000, "stop_tokens": ["a1B2c3D4e5F6g7H8"]},
        {"expires": "2026-01-02T03:04:05.678901Z", "session": "2026-01-02T03:04:05Z"},
        {"signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pk"},
        {"text": "a basic internationalization of bearer bonds; see pa-senate-passes-a-bill-on-it"},
        {"code": "cache_write_5m_tokens=usage.cache_write_5m_tokens"},
        {"url": "https://example.org:8080?email=joe@example.org"},
        {"file": "C:\\new\\table\\bin\\notes.txt and C:\\Users\\name\\task-list-of-the-week"},
    ],
    ids=str,
)
def test_what_only_resembles_one_stays(value: object) -> None:
    """Names of fields, placeholders, prose, times, paths."""
    assert scrub_value(value) is value
    assert clean_body(f"data: {json.dumps(value)}\n\n".encode()).decode() == (
        f"data: {json.dumps(value)}\n\n"
    )
