"""Importing turns costs nothing, and secrets have shapes."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_regen.credentials.search import find_secrets, scrub_text

HEAVY = ("pydantic", "anthropic", "genai_prices", "httpx2", "vcr", "yaml", "pytest")


def test_importing_turns_imports_nothing_heavy() -> None:
    """The package, its providers made, loads no SDK, no price list and no pydantic."""
    code = (
        "import sys\n"
        "from pytest_regen.turns import *\n"
        "AnthropicProvider(); DryRunProvider(); ScriptedProvider([]); CallableProvider(str)\n"
        "print(*{name.split('.')[0] for name in sys.modules})\n"
    )

    loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()

    assert not set(HEAVY) & set(loaded)


PLANTED = {
    "anthropic-key": "sk-ant-api03-" + "a1B2c3D4" * 5,
    "openai-key": "sk-proj-" + "Zz9" * 12,
    "bearer-token": "Bearer abcdefghijklmnop.qrstuv",
    "basic-credentials": "Basic dXNlcjpwYXNzd29yZDEyMzQ1Njc4OTA=",
    "aws-key": "AKIAIOSFODNN7EXAMPLE",
    "github-token": "ghp_" + "a" * 36,
    "gitlab-token": "glpat-" + "y" * 20,
    "slack-token": "xoxb-1234567890-abcdef",
    "google-key": "AIza" + "b" * 35,
    "google-oauth": "ya29." + "c" * 30,
    "stripe-key": "sk_live_" + "d" * 24,
    "npm-token": "npm_" + "e" * 36,
    "pypi-token": "pypi-" + "f" * 40,
    "huggingface-token": "hf_" + "g" * 34,
    "jwt": "eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeKKF2QT4",
    "private-key": "-----BEGIN RSA PRIVATE KEY-----\nMIIB\nOg==\n-----END RSA PRIVATE KEY-----",
}


@pytest.mark.parametrize("kind", PLANTED)
@given(before=st.sampled_from(["", " ", '"', "=", "\n", "key:"]), after=st.sampled_from(["", '"']))
def test_a_credential_is_found_and_replaced_by_its_kind(kind: str, before: str, after: str) -> None:
    """Whatever stands around it, nothing of it stays."""
    planted = PLANTED[kind]
    text = f"{before}{planted}{after}"

    assert kind in find_secrets(text)
    assert planted not in scrub_text(text)
    assert not find_secrets(scrub_text(text))


@pytest.mark.parametrize(
    "text",
    [
        "public class Skill { }",
        "ask-anthropic-about-it",
        "task-management-system-overview-and-more",
        "the bearer of bad news arrived",
        "basic authentication is described below",
        "-----BEGIN PUBLIC KEY-----",
        "GET /v1/keys/{key}",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    """Prompts about APIs speak of keys without holding any."""
    assert scrub_text(text) == text
