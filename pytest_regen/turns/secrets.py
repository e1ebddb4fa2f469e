"""Shapes of credentials, and text without them. A leaf: standard library only."""

import math
import re
from collections import Counter
from typing import Final

__all__ = [
    "ASSIGNED",
    "SECRET_SHAPES",
    "SecretShape",
    "find_secrets",
    "is_private_name",
    "looks_random",
    "scrub_text",
]

SecretShape = tuple[str, tuple[str, ...], re.Pattern[str]]

_WORD_START = r"(?<![A-Za-z0-9])"

ASSIGNED: Final = "assigned-secret"
"""The kind of what has no shape of its own, but is random and stands behind ``key=``."""


def _prefixed(name: str, marks: str, rest: str) -> SecretShape:
    """Return the shape of a token that starts with one of ``marks``, separated by blanks."""
    starts = tuple(marks.split())
    either = "|".join(re.escape(start) for start in starts)
    return name, starts, re.compile(rf"{_WORD_START}(?:{either}){rest}")


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
        re.compile(_WORD_START + r"sk-(?!ant-)(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,}"),
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
    _prefixed("groq-key", "gsk_", r"[A-Za-z0-9]{20,}"),
    _prefixed("xai-key", "xai-", r"[A-Za-z0-9]{20,}"),
    _prefixed("perplexity-key", "pplx-", r"[A-Za-z0-9]{20,}"),
    _prefixed("replicate-token", "r8_", r"[A-Za-z0-9]{20,}"),
    _prefixed("langsmith-key", "lsv2_pt_ lsv2_sk_", r"[A-Za-z0-9_]{20,}"),
    _prefixed("sendgrid-key", "SG.", r"[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    _prefixed("twilio-key", "SK AC", r"[0-9a-f]{32}(?![0-9a-zA-Z])"),
    _prefixed("mailgun-key", "key-", r"[0-9a-f]{32}"),
    _prefixed("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", r"[0-9a-f]{32,}"),
    _prefixed("databricks-token", "dapi", r"[0-9a-f]{32}"),
    _prefixed("shopify-token", "shpat_ shpca_ shppa_ shpss_", r"[0-9a-fA-F]{32}"),
    _prefixed("square-token", "sq0atp- sq0csp- sq0idp-", r"[A-Za-z0-9_-]{22,}"),
    _prefixed("vault-token", "hvs. hvb. hvr.", r"[A-Za-z0-9_-]{20,}"),
    _prefixed("linear-key", "lin_api_ lin_oauth_", r"[A-Za-z0-9]{30,}"),
    _prefixed("notion-token", "ntn_ secret_", r"[A-Za-z0-9]{40,}"),
    _prefixed("docker-token", "dckr_pat_ dckr_oat_", r"[A-Za-z0-9_-]{20,}"),
    _prefixed("atlassian-token", "ATATT3", r"[A-Za-z0-9_=-]{20,}"),
    _prefixed("postman-key", "PMAK-", r"[0-9a-f]{24}-[0-9a-f]{34}"),
    _prefixed("newrelic-key", "NRAK-", r"[A-Z0-9]{20,}"),
    _prefixed("grafana-token", "glsa_ glc_", r"[A-Za-z0-9_+/=]{20,}"),
    _prefixed("sentry-token", "sntrys_ sntryu_", r"[A-Za-z0-9_+/=.-]{20,}"),
    _prefixed("supabase-token", "sbp_", r"[0-9a-f]{40}"),
    _prefixed("airtable-token", "pat", r"[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    _prefixed("age-key", "AGE-SECRET-KEY-1", r"[0-9A-Z]{50,}"),
    _prefixed("planetscale-token", "pscale_tkn_ pscale_pw_", r"[A-Za-z0-9_.-]{20,}"),
    _prefixed("pulumi-token", "pul-", r"[0-9a-f]{40}"),
    _prefixed("rubygems-key", "rubygems_", r"[0-9a-f]{48}"),
    _prefixed("doppler-token", "dp.pt. dp.st. dp.ct. dp.sa.", r"[A-Za-z0-9._-]{20,}"),
    _prefixed("figma-token", "figd_", r"[A-Za-z0-9_-]{20,}"),
    _prefixed("easypost-key", "EZAK EZTK", r"[A-Za-z0-9]{40,}"),
    _prefixed("dropbox-token", "sl.", r"[A-Za-z0-9_-]{60,}"),
    (
        "telegram-token",
        (":AA",),
        re.compile(r"(?<![0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{32,}"),
    ),
    (
        "slack-webhook",
        ("hooks.slack.com",),
        re.compile(r"hooks\.slack\.com/services/[A-Za-z0-9/]{20,}"),
    ),
    (
        "discord-webhook",
        ("/api/webhooks/",),
        re.compile(r"/api/webhooks/[0-9]{10,}/[A-Za-z0-9_-]{30,}"),
    ),
    (
        "url-password",
        ("://",),
        re.compile(r"(?<=://)[^\s/:@\"'\\\[\]]{1,80}:[^\s/:@\"'\\]{3,200}(?=@)"),
    ),
    (
        "azure-key",
        ("AccountKey=", "SharedAccessKey="),
        re.compile(r"(?<=Key=)[A-Za-z0-9+/]{40,}={0,2}"),
    ),
)
"""Of each kind of credential its name, what must stand in a text for it to be there at all, and
its pattern. The middle one makes ordinary text cheap. Order matters: the more specific first."""


_PRIVATE_NAME = (
    r"(?:key|token|secret|passw(?:or)?d|pwd|credentials?|signature|sig|auth|session(?:id)?)"
)
_BEHIND = re.compile(
    # Quotes may be escaped, as in JSON within JSON.
    _PRIVATE_NAME + r"""\\*["']?[ \t]*(?:[:=]|%3[Dd])[ \t]*\\*["']?([A-Za-z0-9_+/.~=%-]{16,})""",
    re.IGNORECASE,
)
_ENDS_PRIVATE = re.compile(_PRIVATE_NAME + r"\Z", re.IGNORECASE)
_WORDY = re.compile(r"[A-Za-z]+(?:[-_./ ]+[A-Za-z]+)*[-_./]*[0-9]{0,4}")
_SHORTEST = 16
_BITS = 3.0
"""Shannon bits a character: below stand words, repetitions and counters."""


def is_private_name(name: str) -> bool:
    """Whether a field of this name is there to hold a credential: ``api_key``, ``authToken``."""
    return _ENDS_PRIVATE.search(name) is not None


def looks_random(value: str) -> bool:
    """Whether a text is so irregular that somebody must have drawn it."""
    if len(value) < _SHORTEST or _WORDY.fullmatch(value):
        return False
    if not (any(map(str.isdigit, value)) and any(map(str.isalpha, value))):
        return False
    counts = Counter(value).values()
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts) >= _BITS


def find_secrets(text: str) -> tuple[str, ...]:
    """Return the names of the kinds of credential that ``text`` holds, never the values."""
    found = [name for name, shape in _possible(text) if shape.search(text)]
    if any(looks_random(match[1]) for match in _BEHIND.finditer(text)):
        found.append(ASSIGNED)
    return tuple(found)


def scrub_text(text: str) -> str:
    """Return ``text`` with every credential replaced by the name of its kind."""
    for name, shape in _possible(text):
        text = shape.sub(f"[{name}]", text)
    return _BEHIND.sub(_without_value, text)


def _without_value(match: re.Match[str]) -> str:
    if not looks_random(match[1]):
        return match[0]
    return match[0][: match.start(1) - match.start()] + f"[{ASSIGNED}]"


def _possible(text: str) -> list[tuple[str, re.Pattern[str]]]:
    """Return the shapes whose mark stands in ``text``."""
    return [
        (name, shape) for name, marks, shape in SECRET_SHAPES if any(mark in text for mark in marks)
    ]
