"""Public keys, references and binary data come through byte for byte, whatever they resemble."""

import base64
import json
import math
import random
import struct
import zlib
from collections.abc import Callable, Iterator
from urllib.parse import urlencode

import pytest
from planted_secrets import HEX, KINDS, MIXED, NEWER, core
from tables import each

from pytest_regen.cassettes.scrubbing import clean_body, scrub_query
from pytest_regen.credentials.search import scrub_text

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
