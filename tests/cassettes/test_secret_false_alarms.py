"""What is no credential stays as it is: real recordings, ids, hashes, images, code and prose."""

import json
import random
import uuid
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml
from planted_secrets import HEX, MIXED
from tables import each

from pytest_regen.cassettes import read_cassette
from pytest_regen.cassettes.interactions import Interaction
from pytest_regen.cassettes.recording import clean_exchange
from pytest_regen.cassettes.scrubbing import clean_body, credentials_across_events, scrub_value
from pytest_regen.cassettes.upkeep.check import check_cassettes
from pytest_regen.credentials.search import find_secrets

ROOT = Path(__file__).parents[2]
FOLDERS = [ROOT / "cassettes", ROOT / "examples", ROOT.parent / "shared/data/anthropic-cassettes"]
PUBLIC = sorted((ROOT.parent / "shared/data/recordings").glob("*.yaml"))
"""Of many vendors, with signatures of models, audio, images; looked through: no credential."""
RECORDINGS = [
    path
    for folder in FOLDERS
    for path in sorted(folder.rglob("*.yaml"))
    if "interactions:" in path.read_text("utf-8")
]
CODE = sorted((ROOT / "pytest_regen" / "cassettes").rglob("*.py"))
PROSE = sorted((ROOT / "docs").glob("*.md"))


@each("path", RECORDINGS, ids=lambda path: path.stem)
def test_recordings_stay_as_they_are(path: Path) -> None:
    """Those of the examples, and eight of the real API by other projects."""
    file = read_cassette(path)

    assert file is not None
    for stored in file.interactions:
        found = stored.interaction
        assert clean_body(found.request_body) == found.request_body
        assert clean_body(found.response_body) == found.response_body
        assert not found.is_stream or not credentials_across_events(found.response_body.decode())
    assert "SECRET" not in [one.code for one in check_cassettes([path])]


def test_public_recordings_are_in_order() -> None:
    """No credential is reported, and no header as one but that of a cookie; none is broken."""
    if not PUBLIC:
        pytest.skip("the public recordings are not here")

    found = [one for one in check_cassettes(PUBLIC) if one.severity == "error"]

    assert [str(one) for one in found if "'cookie'" not in one.message] == []
    assert len(found) <= 1


def folded_cassette(folder: Path, before: int, field: str) -> Path:
    body = f'{{"words": "{"w" * before}\u00e9", {field}}}'
    sent = {"method": "POST", "uri": "http://a.test/", "body": "{}", "headers": {}}
    answer = {"status": {"code": 200, "message": "OK"}, "headers": {}, "body": {"string": body}}
    path = folder / "folded.yaml"
    whole = {"interactions": [{"request": sent, "response": answer}], "version": 1}
    path.write_text(yaml.safe_dump(whole), "utf-8")
    assert "\\\n" in path.read_text("utf-8")
    return path


@each("before", range(80))
def test_a_line_that_is_folded_is_read_whole(before: int, tmp_path: Path) -> None:
    """YAML breaks long texts anywhere, between the quote and the name of a signature too."""
    signature = (
        "EmucHl0ZXN0LXJlZ2VuLWVtdWxhdG9ySBs32kevd1IBwxLl8e/FUxhYalSXA7+voS+gfGxJWWZ4lr/bnn=="
    )
    path = folded_cassette(tmp_path, before, f'"signature": "{signature}"')
    assert "SECRET" not in [one.code for one in check_cassettes([path])]

    path = folded_cassette(tmp_path, before, '"api_key": "x9Kq2Lw8Zr4Tn6Vb1Mc3Pd5Sf7Gh0Jy"')
    assert "SECRET" in [one.code for one in check_cassettes([path])]


@each("path", [*CODE, *PROSE], ids=lambda path: path.name)
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


@pytest.mark.parametrize(
    "query",
    [
        *(f"{name}={MIXED[:36]}" for name in ("pageToken", "cursor", "after", "startingToken")),
        *("list-type=2&key=images/photo_0001.jpg", "code=DE&state=BY", "session_id=" + UUIDS[0]),
    ],
)
def test_addresses_of_pages_and_files_stay_apart(query: str) -> None:
    """A cursor opens nothing: neither the address nor the answer that repeats it is changed."""
    value = query.rpartition("=")[2]
    url = f"https://api.example.org/items?{query}"
    said = json.dumps({"next": value}).encode()

    kept = clean_exchange(Interaction("GET", url, {}, b"", 200, "OK", {}, said))

    assert value in unquote(kept.uri)
    assert kept.response_body == said


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


@each(
    "value",
    [
        {"required": ["password", "email2fa"]},
        {"password": {"type": "string", "minLength": 8}},
        {"password": "must be 8 characters or more"},
        {"password": "${DB_PASSWORD}"},
        {"token": "This is step 2 of the whole work"},
        {"key": "primary", "value": "some_value_1234567890"},
        {"max_tokens": 30_000, "stop_tokens": ["a1B2c3D4e5F6g7H8"]},
        {"expires": "2026-01-02T03:04:05.678901Z", "session": "2026-01-02T03:04:05Z"},
        {"signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pk"},
        {"text": "a basic internationalization of bearer bonds; see pa-senate-passes-a-bill-on-it"},
        {"code": "cache_write_5m_tokens=usage.cache_write_5m_tokens"},
        {"url": "https://example.org:8080?email=joe@example.org"},
        {"prompt_cache_key": "project-cache-e2e-4711-a1B2c3D4"},
        *(
            {name: "Ch9tb2RlbHMvdmVvLTMuMS1nZW5lcmF0ZS1wcmV2"}
            for name in (
                *("nextPageToken", "continuation_token", "$skiptoken"),
                *("page_key", "LastEvaluatedKey", "ExclusiveStartKey"),
            )
        ),
        {"Key": "logs/2026/11/part-00000-2fa62b61-064d-449f-8c1e-0123456789ab.snappy.parquet"},
        {"text": "<Key>logs/2026/11/part-00000-2fa62b61-064d-449f.snappy.parquet</Key>"},
        {"dsn": "https://99631f8b1a2c4d5e99631f8b1a2c4d5e@o1.ingest.sentry.io/1"},
        {"text": '<label for="password">Password</label><th class="password">Minimum 8</th>'},
        {"text": '<xs:element name="password" type="xs:string"/><password>required</password>'},
        {"text": "DB_PASSWORD=${DB_PASSWORD} PASSWORD=Config.password TOKEN=$(cat token)"},
        {"text": "machine learning login with password authentication; docker login -p $TOKEN"},
        {"text": "max_tokens: 30000 author: 12345678901234567890"},
        {"text": "see https://example.org/a/b?key=value or https://example.org:8080/@user"},
        {"text": "password = newPassword2 mysql -u root -p app; see SECRET_KEY below"},
        {"text": "Authorization: AWS4-HMAC-SHA256; the session-key rotation-of-2026-11 policy"},
        {"text": "set('password', 'getpass(prompt)'); --password when it must be, --passphrase x"},
        {"text": "api_key: AbstractSingletonProxyFactoryBean; PASSWORD = 'required' is no SQL"},
        {"sessionId": "2fa62b61-064d-449f-8c1e-0123456789ab"},
        {"resource-key": "5bdbe824-1b45-4c52-9455-1fa2ca81b7ed"},
        {"api_key": "phc_C44vUK9R1J6HYVdfJarTEPqVAoRPJzMXzFcj"},
        {"sdp": "v=0\r\na=ice-ufrag:YnNx\r\na=ice-pwd:jIsRuXZmV9Yq00qk4a33Xe\r\na=setup:actpass"},
        {"arguments": '{"key":"99631f.application/pdf","query":"all of it"}'},
        *(
            {"headers": {"x-api-key": one, "authorization": f"Bearer {one}"}, "api_key": one}
            for one in ("sk-...", "sk-test-dummy-key-1234567890", "sk-ant-api03-xxxxxxxxxxxxxxxx")
        ),
        {"url": "postgresql://postgres:password@localhost:5432/db"},
        # Fields of protocol buffers in a row, as in a recording of xAI by pydantic-ai.
        {"raw": "\x101https://www.python.org/download/releases/3.0R@https://en.wikibooks.org/"},
        {"sid": "AC" + HEX[:32], "app": "sq0idp-" + MIXED[:22], "key_id": "rzp_live_" + MIXED[:14]},
        {"token": "0xdAC17F958D2ee523a2206206994597C13D831ec7"},
        {"deploy_key": f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{MIXED[:43]}"},
        {"forgotPassword": "Vergessen?", "password": "パスワードをお忘れですか"},
        {"reset": {"password": "/account/password/new"}},
        {"file": "C:\\new\\table\\bin\\notes.txt and C:\\Users\\name\\task-list-of-the-week"},
    ],
    ids=str,
)
def test_what_only_resembles_one_stays(value: object) -> None:
    assert scrub_value(value) is value
    assert clean_body(f"data: {json.dumps(value)}\n\n".encode()).decode() == (
        f"data: {json.dumps(value)}\n\n"
    )
