"""What a model made to be sent back (signatures, encrypted thoughts) passes as it came."""

import base64
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from planted_secrets import HEX, KINDS, MIXED, UPPER, core
from tables import each

from pytest_regen.cassettes.files.format import interaction_text
from pytest_regen.cassettes.files.writer import check_text
from pytest_regen.cassettes.interactions import Interaction
from pytest_regen.cassettes.recording import clean_exchange
from pytest_regen.cassettes.scrubbing import clean_body, scrub_value
from pytest_regen.credentials.search import find_secrets

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
    "Anthropic redacted": lambda v: {"type": "redacted_thinking", "data": v},
    "Anthropic search": lambda v: {"encrypted_content": v, "encrypted_index": v},
    "Gemini": lambda v: {"parts": [{"text": "Hm.", "thoughtSignature": v}]},
    "Gemini as OpenAI": lambda v: {"extra_content": {"google": {"thought_signature": v}}},
    "OpenAI": lambda v: {"type": "reasoning", "encrypted_content": v, "summary": []},
    "Bedrock": lambda v: {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": v}}},
    "Bedrock redacted": lambda v: {"reasoningContent": {"redactedContent": v}},
    "OpenRouter": lambda v: {"reasoning_details": [{"type": "reasoning.text", "signature": v}]},
    "OpenRouter encrypted": lambda v: {"reasoning_details": [{"data": v, "format": "google"}]},
    "Vercel": lambda v: {"providerMetadata": {"bedrock": {"signature": v}}},
    "another": lambda v: {"reasoning_signature": v, "thinkingSignature": v},
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
