"""Shapes of credentials, and text without them. A leaf: standard library only."""

import re
from typing import Final

__all__ = ["SECRET_SHAPES", "SecretShape", "find_secrets", "scrub_text"]

SecretShape = tuple[str, tuple[str, ...], re.Pattern[str]]

_WORD_START = r"(?<![A-Za-z0-9])"

SECRET_SHAPES: Final[tuple[SecretShape, ...]] = (
    (
        "private-key",
        ("PRIVATE KEY",),
        # Line ends may be real or, inside JSON, escaped. An end that is missing hides nothing.
        re.compile(
            r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
            r"(?:.*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|(?:[A-Za-z0-9+/=\s]|\\[rn])*)",
            re.DOTALL,
        ),
    ),
    ("anthropic-key", ("sk-ant-",), re.compile(_WORD_START + r"sk-ant-[A-Za-z0-9_-]{8,}")),
    (
        "openai-key",
        ("sk-",),
        re.compile(_WORD_START + r"sk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,}"),
    ),
    ("bearer-token", ("earer", "EARER"), re.compile(r"(?i:\bbearer)[ +]+[A-Za-z0-9._~+/=-]{16,}")),
    (
        "basic-credentials",
        ("asic ", "ASIC "),
        re.compile(r"(?i:\bbasic) +[A-Za-z0-9+/]{20,}={0,2}"),
    ),
    (
        "aws-key",
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        re.compile(_WORD_START + r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ),
    (
        "github-token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        re.compile(_WORD_START + r"(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{22,})"),
    ),
    ("gitlab-token", ("glpat-",), re.compile(_WORD_START + r"glpat-[A-Za-z0-9_-]{16,}")),
    ("slack-token", ("xox",), re.compile(_WORD_START + r"xox[abeoprs]-[A-Za-z0-9-]{10,}")),
    ("google-key", ("AIza",), re.compile(_WORD_START + r"AIza[A-Za-z0-9_-]{35}")),
    ("google-oauth", ("ya29.",), re.compile(_WORD_START + r"ya29\.[A-Za-z0-9_-]{20,}")),
    (
        "stripe-key",
        ("k_live_", "k_test_"),
        re.compile(_WORD_START + r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    ),
    ("npm-token", ("npm_",), re.compile(_WORD_START + r"npm_[A-Za-z0-9]{36}")),
    ("pypi-token", ("pypi-",), re.compile(_WORD_START + r"pypi-[A-Za-z0-9_-]{32,}")),
    ("huggingface-token", ("hf_",), re.compile(_WORD_START + r"hf_[A-Za-z0-9]{30,}")),
    (
        "jwt",
        ("eyJ",),
        re.compile(_WORD_START + r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    ),
)
"""Of each kind of credential its name, what must stand in a text for it to be there at all, and
its pattern. The middle one makes ordinary text cheap. Order matters: the more specific first."""


def find_secrets(text: str) -> tuple[str, ...]:
    """Return the names of the kinds of credential that ``text`` holds, never the values."""
    return tuple(name for name, shape in _possible(text) if shape.search(text))


def scrub_text(text: str) -> str:
    """Return ``text`` with every credential replaced by the name of its kind."""
    for name, shape in _possible(text):
        text = shape.sub(f"[{name}]", text)
    return text


def _possible(text: str) -> list[tuple[str, re.Pattern[str]]]:
    """Return the shapes whose mark stands in ``text``."""
    return [
        (name, shape) for name, marks, shape in SECRET_SHAPES if any(mark in text for mark in marks)
    ]
