"""Whatever stands before and behind a credential, and however it is encoded, it is found."""

import base64
import html
import json
import runpy
import string
import time
import urllib.parse
import zlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from planted_secrets import (
    DOCUMENTED,
    IN_CONTEXT,
    KINDS,
    MIXED,
    NAMED,
    NEWER,
    PLANTED,
    UNLISTED,
    core,
)
from tables import each

from pytest_regen.cassettes.files.format import interaction_text
from pytest_regen.cassettes.files.writer import check_text
from pytest_regen.cassettes.interactions import Interaction, request_key
from pytest_regen.cassettes.recording import clean_exchange
from pytest_regen.cassettes.scrubbing import clean_body, credentials_across_events
from pytest_regen.credentials.search import find_secrets, scrub_text

EVERY = {**KINDS, **NEWER, **NAMED, **UNLISTED, **DOCUMENTED}
URL = "https://api.anthropic.com/v1/messages"
JSON = {"content-type": ("application/json",)}
SSE = {"content-type": ("text/event-stream",)}

BEFORE = (
    *("", "\n", "\t", "\r\n", "\b", "\f", "\0", "\x1b[31m", "\x1b[0m", "\u200b", "\u2028", "密"),
    *"\"'`([{<>=:/,;.&?#@-_+\\é",
    *(r"\n", r"\\n", r"\t", r"\u000a", r"\x0a", r"\033[1m", "C:\\", "a/b/", "x-", "x_"),
    *("X_", "1X_", "AB1-", "--", "s3://"),
    *("%0A", "%20", "&quot;", "&#10;", "&amp;"),
)
BEHIND = (
    *("", "\n", "\0", "\x1b[0m", "\u200b", "密", r"\n", "\\", " x", "%20", "&quot;"),
    *"\"'`)]}<>,;",
)
WRITTEN: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "JSON": lambda text: json.dumps({"a": [text]}),
    "JSON in JSON in JSON": lambda text: json.dumps([json.dumps([json.dumps([text])])]),
    "Python": lambda text: repr({"b": text}),
    "XML": lambda text: f"<a>{html.escape(text)}</a>",
    "all escaped": lambda text: "".join(f"\\u{ord(letter):04x}" for letter in text),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 behind a path": lambda text: f"data/x/{base64.b64encode(text.encode()).decode()}",
    "base64 of UTF-16": lambda text: base64.b64encode(text.encode("utf-16-le")).decode(),
    "base64 of zlib": lambda text: base64.b64encode(zlib.compress(text.encode())).decode(),
}


NEIGHBOURS = [*((one, "") for one in BEFORE), *(("", one) for one in BEHIND)]


@each("write", WRITTEN.values(), ids=WRITTEN)
@each("number", range(len(EVERY)), ids=list(EVERY))
@pytest.mark.parametrize(
    ("first", "others"), [(4, 24), pytest.param(1, 1, marks=pytest.mark.sweep)]
)
def test_every_neighbour(number: int, write: Callable[[str], str], first: int, others: int) -> None:
    """A line end, an escape, a quote, a colour, a path: in plain and in written text.

    In every run each of the first kinds with every other neighbour, the others with every twelfth.
    """
    secret = list(EVERY.values())[number]
    step = first if number < len(PLANTED) else others
    for before, behind in NEIGHBOURS[number % step :: step]:
        text = write(f"{before}{secret}{behind}")

        clean = scrub_text(text)

        assert find_secrets(text), (before, behind)
        assert core(secret) not in clean, (before, behind)
        assert find_secrets(clean) == (), (before, behind)
        assert clean != text, (before, behind)


def body_of(value: object, form: str) -> bytes:
    text = json.dumps(value, ensure_ascii=form != "letters kept", allow_nan=False)
    if form in {"events", "lines"}:
        text = f"data: {text}\n\n" if form == "events" else f"{text}\n" * 2
    return text.encode("utf-8", "replace")


DELTAS: dict[str, Callable[[str], dict[str, Any]]] = {
    "text": lambda piece: {"type": "text_delta", "text": piece},
    "input of a tool": lambda piece: {"type": "input_json_delta", "partial_json": piece},
}


def stream(pieces: tuple[str, ...], kind: str, *, index: int = 1) -> str:
    event = {"type": "content_block_delta"}
    events = [{**event, "index": index - 1, "delta": DELTAS[kind]('{"a": "x')}]
    events += [{**event, "index": index, "delta": DELTAS[kind](one)} for one in pieces]
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events)


@each("kind", DELTAS)
@each("secret", [*PLANTED.values(), *NAMED.values()], ids=[*PLANTED, *NAMED])
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.sweep), 3])
def test_pieces_of_a_stream(secret: str, kind: str, step: int) -> None:
    """Cut anywhere, in text or in the JSON of a tool's input, all of it is gone or refused."""
    for number, before in enumerate(("", "cat\n", "密")):
        text = before + secret
        whole = text if kind == "text" else json.dumps({"cmd": text})
        for cut in range(1 + number % step, len(whole), step):
            said = stream((whole[:cut], whole[cut:]), kind)
            if credentials_across_events(said):
                continue
            kept = clean_exchange(
                Interaction("POST", URL, JSON, b"{}", 200, "OK", SSE, said.encode())
            ).response_body.decode()
            pieces = [json.loads(line[6:])["delta"] for line in kept.split("\n") if "data" in line]
            joined = "".join(list(piece.values())[1] for piece in pieces[1:])
            assert core(secret) not in joined
            assert not find_secrets(joined)


@each("secret", IN_CONTEXT.values(), ids=IN_CONTEXT)
def test_what_only_its_context_tells(secret: str) -> None:
    """A column of a table, a name in another language: alone, as JSON, in JSON, in an event."""
    for body in (
        secret.encode(),
        body_of({"said": secret}, "escaped"),
        body_of([json.dumps({"said": secret})], "letters kept"),
        body_of({"delta": {"text": secret}}, "events"),
    ):
        kept = clean_exchange(Interaction("POST", URL, JSON, body, 200, "OK", JSON, body))

        for part in (kept.request_body, kept.response_body):
            assert core(secret).encode() not in part, body
            assert find_secrets(part.decode()) == (), body
        assert check_text(Path("c.yaml"), interaction_text(kept))


@each(
    "text",
    ["export API_KEY={}", "api_key = {}", 'sent {{"api_key": "{}"}}', "deploy --token {} --now"],
)
def test_a_key_of_letters_alone(text: str) -> None:
    """One in thirty has no digit; what stands behind such a name as a word or in code stays."""
    for value in ("aTtTCjUFcJgfrZIxgTsDypMi", "wnYjDAklZPMUfKNlxYqNiIoA"):
        assert value not in scrub_text(text.format(value))
    for value in ("AbstractSingletonProxyFactoryBean", "HTTPServerOfEverySubsystem", "SOME_NAME"):
        assert scrub_text(text.format(value)) == text.format(value)


@pytest.mark.parametrize(
    "value",
    [
        {"password": "correcthorsebattery"},
        {"passphrase": "correct horse battery staple"},
        {"db_password": "swordfish"},
        {"client_secret": "swordfish"},
        {"Passwort": "geheimnis"},
        {"senha": "abracadabra1"},
        {"text": json.dumps({"password": "swordfish", "user": "joe"})},
        {"log": 'sent {"password": "swordfish"} to the server'},
    ],
    ids=str,
)
def test_a_password_of_letters_alone(value: dict[str, str]) -> None:
    """Behind its name one needs no digit, and a phrase may have blanks."""
    body = json.dumps(value).encode()

    clean = clean_body(body).decode()

    for word in ("horse", "swordfish", "geheimnis", "abracadabra"):
        assert word not in clean


NAMED_FIELDS: list[Any] = [
    {"password": "hG7kL9!qW2$zX4cV8b1N"},
    {"user": "joe", "password": "Tr0ub4dor&3"},
    {"dbPassword": "hunter2"},
    {"name": "API_KEY", "value": MIXED[:32]},
    {"Value": MIXED[:32], "Key": "API_KEY"},
    {"api_keys": ["", MIXED[:32]]},
    {"headers": [["x-api-key", MIXED[:32]]]},
    {"args": ["deploy", "--api-key", MIXED[:32], "--now"]},
    {"Authorization": f"Token {MIXED[:32]}"},
    {"env": {"DB_PASS": MIXED[:18]}},
]


@each("depth", [0, 1, 2])
@each("form", ["escaped", "events", "lines"])
@each("value", NAMED_FIELDS, ids=str)
def test_fields_named_for_what_they_hold(value: Any, form: str, depth: int) -> None:
    """What has no shape is known by the name of its field, of its label, or by its flag."""
    hidden = next(
        one for one in (MIXED[:18], "hG7kL9", "Tr0ub4dor", "hunter2") if one in json.dumps(value)
    )
    for _ in range(depth):
        value = {"inner": json.dumps(value)}
    body = body_of(value, form)

    kept = clean_exchange(Interaction("POST", URL, JSON, body, 200, "OK", JSON, body))

    assert hidden not in interaction_text(kept)
    assert request_key("POST", URL, body) == kept.key


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("user[password]", "hunter2hunter"),
        ("pass", "hgklqWzxvbNM"),
        ("code", MIXED[:40]),
        ("SAMLResponse", base64.b64encode(MIXED[:70].encode()).decode()),
        ("ticket", f"ST-{MIXED[:30]}"),
    ],
)
def test_what_a_form_logs_in_with(name: str, value: str) -> None:
    """Nested fields, codes and tickets; as a parameter of an address they are kept no less."""
    body = urlencode({"a": "b", name: value}).encode()
    url = f"{URL}?{urlencode({name: value})}"

    kept = clean_exchange(
        Interaction("POST", url, JSON, body, 302, "", {"location": (url,)}, value.encode())
    )

    assert value not in interaction_text(kept)
    assert request_key("POST", url, body) == kept.key


@settings(max_examples=3, phases=[Phase.generate], derandomize=True)
@given(drawn=st.data())
def test_the_formats_that_vendors_document(drawn: st.DataObject) -> None:
    """Each is found in prose, alone or behind its name; what only resembles one is not."""
    path = Path(__file__).parents[2] / "benchmarks" / "credential_kinds.py"
    kinds = SimpleNamespace(**runpy.run_path(str(path)))
    texts = {
        **{kind: kinds.drawn(form).map("see {} here".format) for kind, form in kinds.KINDS.items()},
        **{
            kind: kinds.drawn(form).map(f"export {name}={{}}".format)
            for kind, (name, form) in kinds.NAMED_KINDS.items()
        },
    }
    unlike = {kind: kinds.drawn(form) for kind, form in kinds.INNOCENT.items()}

    missed = [kind for kind, text in texts.items() if not find_secrets(drawn.draw(text))]
    false = [kind for kind, text in unlike.items() if find_secrets(drawn.draw(text))]

    assert (missed, false) == ([], [])


ENCODED: dict[str, Callable[[str], str]] = {
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 for addresses": lambda text: base64.urlsafe_b64encode(f"??>{text}".encode()).decode(),
    "base64 of mail": lambda text: base64.encodebytes(text.encode() * 3).decode(),
    "form": lambda text: urllib.parse.urlencode({"a": "b", "x": text, "c": "d"}),
    "address": lambda text: f"https://x.invalid/?u={urllib.parse.quote(text, safe='')}",
    "base64 twice": lambda text: base64.b64encode(base64.b64encode(text.encode())).decode(),
    "base64 between bytes": lambda text: base64.b64encode(
        b"\x00\xff" * 50 + text.encode() + b"\xfe" * 50
    ).decode(),
}


@each("encode", ENCODED.values(), ids=ENCODED)
@each("secret", KINDS.values(), ids=KINDS)
def test_forty_kinds_however_they_are_encoded(secret: str, encode: Callable[[str], str]) -> None:
    """Found, replaced where it stands, and what is clean is left as it is."""
    text = encode(f"before it {secret} and after")
    harmless = encode("before it nothing and after, as long as the rest of it is long enough")

    clean = scrub_text(text)

    assert find_secrets(text)
    assert find_secrets(clean) == ()
    assert scrub_text(clean) == clean
    assert scrub_text(harmless) == harmless


def test_what_is_encoded_many_times_ends() -> None:
    """Nobody can make the search last by putting one thing into another for ever."""
    text = PLANTED["anthropic"]
    for _ in range(25):
        text = base64.b64encode(text.encode()).decode()

    assert find_secrets(text + "%25" * 20_000) == ()


PIECES = [
    *("password=", "eyJ-", "a/", "--key ", "%41", "\\", "&#", "key,a\n"),
    *("-----BEGIN PRIVATE KEY-----", "curl -u ", '"password":"a', "<key>token</key><string>"),
    *("machine a login b ", "token: |\n "),
]


def spent_on(text: str) -> float:
    began = time.process_time()
    find_secrets(text)
    return time.process_time() - began


@each("piece", PIECES)
def test_what_is_repeated_takes_no_longer_a_character(piece: str) -> None:
    """A text of names, marks or escapes is searched in linear time, or in no time at all."""
    long = spent_on(piece * (40_000 // len(piece)))

    assert long < 1 or long < 40 * spent_on(piece * (4_000 // len(piece)))


TEXTS = st.one_of(
    st.text(max_size=80),
    st.builds(
        lambda name, sign, value: f"{name}{sign}{value}",
        st.sampled_from(["api_key", "password", "signature", "Passwort", "prompt_cache_key"]),
        st.sampled_from(["=", ": ", '": "', " is ", ",x\n"]),
        st.text(string.ascii_letters + string.digits + "-_ .", max_size=40),
    ),
    st.sampled_from([*KINDS.values(), *UNLISTED.values()]),
)


@given(pieces=st.lists(TEXTS, max_size=4), joint=st.sampled_from([" ", "\n", '"', "&", ","]))
@example(pieces=['PASSORD":"', "sk-ant-00000001", '"'], joint="&")
def test_a_search_and_a_replacement_agree(pieces: list[str], joint: str) -> None:
    """What is clean is not changed; what was cleaned holds nothing, and is not changed again."""
    text = joint.join(pieces)

    clean = scrub_text(text)

    assert (clean == text) == (find_secrets(text) == ())
    assert find_secrets(clean) == ()
    assert scrub_text(clean) == clean


@pytest.mark.parametrize(
    ("uri", "server", "stored"),
    [
        ("http://127.0.0.1:40001/v1/messages", "pytest-regen-emulator", "http://emulator.invalid"),
        ("http://127.0.0.1:40001/v1/messages", "uvicorn", "http://loopback.invalid"),
        ("http://localhost:1/v1/messages", "", "http://loopback.invalid"),
        ("https://api.anthropic.com/v1/messages", "cloudflare", "https://api.anthropic.com"),
        ("https://user:password1@gateway.example/v1/messages", "", "https://gateway.example"),
    ],
)
def test_the_stored_host_is_stable(uri: str, server: str, stored: str) -> None:
    """Neither a port that differs in each run nor a password is in the file; who answered is."""
    answered = {"server": (server,)}
    kept = clean_exchange(Interaction("POST", uri, {}, b"{}", 200, "OK", answered, b"{}"))

    assert kept.uri == f"{stored}/v1/messages"
