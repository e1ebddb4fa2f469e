"""Signatures, public keys, references and binary data come through byte for byte."""

import base64
import json
import math
import random
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from planted_secrets import HEX, KINDS, MIXED, NEWER, UPPER, core
from tables import each

from pytest_regen.cassettes.files.format import interaction_text
from pytest_regen.cassettes.files.writer import check_text
from pytest_regen.cassettes.interactions import Interaction
from pytest_regen.cassettes.recording import clean_exchange
from pytest_regen.cassettes.scrubbing import clean_body, scrub_query, scrub_value
from pytest_regen.credentials.search import find_secrets, scrub_text

URL = "https://api.example/v1/models/m:generate"
JSON = {"content-type": ("application/json",)}
SSE = {"content-type": ("text/event-stream",)}
DRAWN = random.Random(20261122)


def opaque(size: int = 300) -> str:
    return base64.b64encode(DRAWN.randbytes(size)).decode()


def for_addresses(size: int = 300) -> str:
    return base64.urlsafe_b64encode(DRAWN.randbytes(size)).decode().rstrip("=")


SHAPES: dict[str, Callable[[str], Any]] = {
    "Anthropic thinking": lambda v: {"type": "thinking", "thinking": "Hm.", "signature": v},
    "Anthropic search": lambda v: {"encrypted_content": v, "encrypted_index": v},
    "Gemini": lambda v: {"parts": [{"text": "Hm.", "thoughtSignature": v}]},
    "Gemini as OpenAI": lambda v: {"extra_content": {"google": {"thought_signature": v}}},
    "OpenAI": lambda v: {"type": "reasoning", "encrypted_content": v, "summary": []},
    "Bedrock": lambda v: {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": v}}},
    "OpenRouter": lambda v: {"reasoning_details": [{"type": "reasoning.text", "signature": v}]},
    "of a cache": lambda v: {"prompt_cache_key": v, "nextPageToken": v},
}
VALUES = [opaque(), for_addresses(), opaque(1_500), DRAWN.randbytes(32).hex()]


def as_json(value: object) -> bytes:
    return json.dumps(value).encode()


def in_text(value: object) -> bytes:
    return json.dumps({"arguments": json.dumps([value])}).encode()


def events(value: object) -> bytes:
    said = [{"delta": "x"}, value, {"delta": "y"}]
    return b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in said)


@each("write", [as_json, in_text, events])
@each("make", SHAPES.values(), ids=SHAPES)
def test_it_is_written_as_it_came(
    make: Callable[[str], Any], write: Callable[[Any], bytes]
) -> None:
    """In a request and an answer, in an event, as JSON in JSON; the file may be written."""
    for value in VALUES:
        body = write(make(value))
        headers = SSE if write is events else JSON

        kept = clean_exchange(Interaction("POST", URL, JSON, body, 200, "OK", headers, body))

        assert (kept.request_body, kept.response_body) == (body, body)
        assert check_text(Path("c.yaml"), interaction_text(kept))


@each("make", SHAPES.values(), ids=SHAPES)
def test_a_credential_in_its_place_is_none(make: Callable[[str], Any]) -> None:
    """What has the shape of a credential is replaced behind these names, too."""
    for kind in ("anthropic", "github", "openai", "slack", "stripe", "jwt"):
        body = as_json(make(KINDS[kind]))

        assert core(KINDS[kind]) not in clean_body(body).decode(), kind


@pytest.mark.parametrize(
    ("draw", "joint", "starts"),
    [
        (opaque, "/", ["AKIA", "ASIA", "SK", "EAA", "LTAI", "oy2", "AIza"]),
        (opaque, "+", ["AKIA", "eyJ", "AC", "EAAA", "dG9rO"]),
        (for_addresses, "-", ["sk-", "pa-", "key-", "AIza", "xai-", "pul-"]),
        (for_addresses, "_", ["ghp_", "hf_", "r8_", "fw_", "sk_", "re_", "npm_"]),
    ],
)
def test_letters_in_the_middle_of_it_are_left_alone(
    draw: Callable[[int], str], joint: str, starts: list[str]
) -> None:
    """By chance base64 holds what credentials begin with, behind a sign of its alphabet."""
    for start in starts:
        for rest in (MIXED[:60], HEX[:32], UPPER[:16], "A" * 60):
            before = draw(60).translate(str.maketrans("-_", "xy"))
            for value in (f"{before}{joint}{start}{rest}", f"{before}{joint}{start}{rest}{before}"):
                assert find_secrets(value) == (), (start, rest)
                assert scrub_value({"signature": value}) == {"signature": value}


def test_a_signature_of_an_address_opens_it() -> None:
    """There it stands for a key: whoever has the address may fetch what it names."""
    for name in ("signature", "sig", "X-Amz-Signature", "X-Goog-Signature"):
        text = f"see https://files.example/a?Expires=17&{name}={DRAWN.randbytes(32).hex()}&b=1"

        assert find_secrets(text) == ("assigned-secret",), name


VAPID = "BNcRdreALRFXTkOOUHK1EtK2wtaz5Ry4YfYCA_0QTpQtUbVlUls0VJXg7A8u-Ts1XbjhazAkj7I99e8QcYP7DkM"
PUBLIC = [
    ("key", "10.1016/j.proeng.2011.12.430_b3"),
    ("key", "2023033112515499393_j_cmam-2022-0160_ref_001"),
    ("key", "vaswani2017attention"),
    ("key", "checkout.payment.v2.errors.card_declined3"),
    ("key", "pkg:npm/%40angular/animation@12.3.1"),
    ("citation_key", "vaswani2017attention"),
    ("series_key", "M.U2.EUR.RT0.MM.EURIBOR3MD_.HSTA"),
    ("data-sitekey", "0x4AAAAAAADnPIDROrmt1Wwj"),
    ("applicationServerKey", VAPID),
    ("peerPublicKey", "q7Rt9ZxP2mKw4LsV8nq7Rt9ZxP2mKw4LsV8nq7Rt9Zw="),
    ("NEXT_PUBLIC_SEARCH_API_KEY", HEX[:32]),
    ("clientKey", "live_O9V83YY3OI2QY5MN9P7XNA86K018RO8C"),
    ("fileKey", "aBcDeF1234567890GhIjKl"),
]
"""Names with values of scholarly, package, language and statistics APIs, pages and app."""
PLACES: dict[str, Callable[[str, str], str]] = {
    "JSON": lambda name, value: json.dumps({"items": [{name: value}]}),
    "JSON in JSON": lambda name, value: json.dumps({"a": json.dumps({name: value})}),
    "text": lambda name, value: f"see {name}: {value} there",
    "code": lambda name, value: f'read({name}="{value}")',
    "HTML": lambda name, value: f'<div class="x" {name}="{value}" data-action="login"></div>',
    "YAML": lambda name, value: f"a:\n  {name}: {value}\n  b: 1\n",
    "CSV": lambda name, value: f"id,{name},day\n7,{value},2\n",
    "XML": lambda name, value: f"<a><{name}>{value}</{name}></a>",
    "form": lambda name, value: urlencode({"a": "b", name: value}),
    "event": lambda name, value: f"data: {json.dumps({name: value})}\n\n",
    "address": lambda name, value: f"see https://a.example/x?y=1&{urlencode({name: value})}",
}


@each("place", PLACES)
@each("name,value", PUBLIC)
def test_a_public_key_stays(name: str, value: str, place: str) -> None:
    """Only a value with the shape of a credential is one behind ``key`` alone."""
    body = PLACES[place](name, value).encode()

    assert clean_body(body) == body


@each("name,value", PUBLIC)
def test_a_public_key_stays_in_a_query(name: str, value: str) -> None:
    assert scrub_query(urlencode({name: value})) != scrub_query(urlencode({name: "other/one.txt"}))


@each("place", PLACES)
def test_a_key_with_a_shape_goes(place: str) -> None:
    """Whatever its name, and a key without one goes from an address."""
    for kind in ("google", "openai", "github"):
        body = PLACES[place]("key", KINDS[kind]).encode()
        assert core(KINDS[kind]).encode() not in clean_body(body), kind


@pytest.mark.parametrize(
    "value",
    ["x", "test-key", "fake_maps_key", KINDS["google"], HEX[:32], MIXED[:20], f"1234-{HEX[:25]}"],
)
def test_a_key_of_an_address_goes(value: str) -> None:
    """It is what many APIs take; in replay another one may be sent."""
    assert scrub_query(f"key={value}") == "key=[scrubbed]"


def binary_data() -> Iterator[tuple[str, bytes]]:
    draw = random.Random(20261123)
    for loud in (0.5, 10, 50, 300, 20_000):
        for size in (400, 1_600, 7_000):
            tones = [draw.uniform(0.01, 0.2) for _ in range(3)]
            levels = (
                loud * (0.3 * draw.gauss(0, 1) + sum(math.sin(at * tone) for tone in tones) / 3)
                for at in range(size)
            )
            limited = (max(-32_768, min(32_767, int(level))) for level in levels)
            yield f"audio {loud}", struct.pack(f"<{size}h", *limited)
    for size in (64, 800, 3_200, 13_000):
        for share in (0.02, 0.1, 0.5):
            dots = (draw.randrange(256) if draw.random() < share else 0 for _ in range(size))
            yield f"bitmap {share}", bytes(dots)
        numbers = [draw.gauss(0, 0.05) for _ in range(size // 4)]
        yield "tensor", struct.pack(f"<{len(numbers)}f", *numbers)
        yield "PNG", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + zlib.compress(draw.randbytes(size))


DATA = list(binary_data())


@pytest.mark.parametrize(
    ("encode", "padding", "width"),
    [
        (base64.b64encode, "=", 0),
        (base64.b64encode, "=", 76),
        (base64.urlsafe_b64encode, "", 0),
    ],
)
def test_binary_data_stays(encode: Callable[[bytes], bytes], padding: str, width: int) -> None:
    """In base64 of both alphabets, in one line and folded: no shape stands inside by chance."""
    altered = []
    for kind, data in DATA:
        text = encode(data).decode()
        text = text if padding else text.rstrip("=")
        if width:
            text = "\n".join(text[at : at + width] for at in range(0, len(text), width))
        for body in (
            json.dumps({"data": text}),
            f"data: {json.dumps({'inlineData': {'mimeType': 'audio/pcm', 'data': text}})}\n\n",
            json.dumps({"url": f"data:application/octet-stream;base64,{text}"}),
            text,
        ):
            altered += [kind] if clean_body(body.encode()) != body.encode() else []

    assert altered == []


@each("secret", [KINDS["github"], KINDS["aws"], NEWER["fireworks"], NEWER["voyage"]])
@each("text", ["a/b/{}", "x_{}", "x-{}", "{}\nand more", "one\n{}\ntwo", "{0}\n{0}", "n={};"])
def test_a_credential_beside_words_is_no_data(secret: str, text: str) -> None:
    assert core(secret) not in scrub_text(text.format(secret))
