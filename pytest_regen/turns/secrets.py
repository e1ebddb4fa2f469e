"""Shapes of credentials, and text without them. A leaf: standard library only."""

import re
from typing import Final

__all__ = ["SECRET_SHAPES", "SecretShape", "find_secrets", "scrub_text"]

SecretShape = tuple[str, re.Pattern[str]]

_WORD_START = r"(?<![A-Za-z0-9])"

SECRET_SHAPES: Final[tuple[SecretShape, ...]] = (
    (
        "private-key",
        # Line ends may be real or, inside JSON, escaped. An end that is missing hides nothing.
        re.compile(
            r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
            r"(?:.*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|(?:[A-Za-z0-9+/=\s]|\\[rn])*)",
            re.DOTALL,
        ),
    ),
    ("anthropic-key", re.compile(_WORD_START + r"sk-ant-[A-Za-z0-9_-]{8,}")),
    ("openai-key", re.compile(_WORD_START + r"sk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,}")),
    ("bearer-token", re.compile(r"(?i:\bbearer)[ +]+[A-Za-z0-9._~+/=-]{16,}")),
    ("basic-credentials", re.compile(r"(?i:\bbasic) +[A-Za-z0-9+/]{20,}={0,2}")),
    ("aws-key", re.compile(_WORD_START + r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])")),
    (
        "github-token",
        re.compile(_WORD_START + r"(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{22,})"),
    ),
    ("gitlab-token", re.compile(_WORD_START + r"glpat-[A-Za-z0-9_-]{16,}")),
    ("slack-token", re.compile(_WORD_START + r"xox[abeoprs]-[A-Za-z0-9-]{10,}")),
    ("google-key", re.compile(_WORD_START + r"AIza[A-Za-z0-9_-]{35}")),
    ("google-oauth", re.compile(_WORD_START + r"ya29\.[A-Za-z0-9_-]{20,}")),
    ("stripe-key", re.compile(_WORD_START + r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}")),
    ("npm-token", re.compile(_WORD_START + r"npm_[A-Za-z0-9]{36}")),
    ("pypi-token", re.compile(_WORD_START + r"pypi-[A-Za-z0-9_-]{32,}")),
    ("huggingface-token", re.compile(_WORD_START + r"hf_[A-Za-z0-9]{30,}")),
    (
        "jwt",
        re.compile(_WORD_START + r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    ),
)
"""Name and pattern of each kind of credential. Order matters: the more specific first."""


def find_secrets(text: str) -> tuple[str, ...]:
    """Return the names of the kinds of credential that ``text`` holds, never the values."""
    return tuple(name for name, shape in SECRET_SHAPES if shape.search(text))


def scrub_text(text: str) -> str:
    """Return ``text`` with every credential replaced by the name of its kind."""
    for name, shape in SECRET_SHAPES:
        text = shape.sub(f"[{name}]", text)
    return text
