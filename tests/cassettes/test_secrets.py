"""No credential reaches the disk, wherever it stood."""

import base64
import string
import time
import urllib.parse
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from planted_secrets import KINDS, PLANTED, UNLISTED
from tables import each

from pytest_regen.cassettes.interactions import Interaction
from pytest_regen.cassettes.recording import clean_exchange
from pytest_regen.credentials.search import find_secrets, scrub_text

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
