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


_PRIVATE_NAMES = (
    "key",
    "token",
    "secret",
    "passwd",
    "password",
    "pwd",
    "credential",
    "credentials",
    "signature",
    "sig",
    "auth",
    "session",
    "sessionid",
)
_BEHIND = re.compile(
    # Quotes may be escaped, as in JSON within JSON.
    r"""\\*["']?[ \t]*(?:[:=]|%3[Dd])[ \t]*\\*["']?([A-Za-z0-9_+/.~=%-]{16,})"""
)
_WORDY = re.compile(r"[A-Za-z]+(?:[-_./ ]+[A-Za-z]+)*[-_./]*[0-9]{0,4}")
_SHORTEST = 16
"""Characters: below, nothing is long enough to be a credential."""
_WITH_BLANKS = frozenset({"private-key", "bearer-token", "basic-credentials", "url-password"})
"""Kinds that hold blanks or may be shorter."""
_BITS = 3.0
"""Shannon bits a character: below stand words, repetitions and counters."""


def is_private_name(name: str) -> bool:
    """Whether a field of this name is there to hold a credential: ``api_key``, ``authToken``."""
    return name.lower().endswith(_PRIVATE_NAMES)


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
    long = _long_words(text)
    found = [name for name, shape in _possible(text, long) if shape.search(text)]
    if _assigned(text, long):
        found.append(ASSIGNED)
    return tuple(found)


def scrub_text(text: str) -> str:
    """Return ``text`` with every credential replaced by the name of its kind."""
    long = _long_words(text)
    for name, shape in _possible(text, long):
        text = shape.sub(f"[{name}]", text)
    for start, end in reversed(_assigned(text, long)):
        text = f"{text[:start]}[{ASSIGNED}]{text[end:]}"
    return text


def _assigned(text: str, long: str) -> list[tuple[int, int]]:
    """Return where random values stand behind private names.

    Names are found one by one: a pattern that looks for all of them takes ten times as long.
    """
    if not any(map(str.isdigit, long)):
        return []
    lowered = text.lower()
    if len(lowered) != len(text):
        # A few letters have a lower case of another length; places would not be the same.
        lowered = "".join(one.lower() if len(one.lower()) == 1 else one for one in text)
    found = set()
    for name in _PRIVATE_NAMES:
        at = lowered.find(name)
        while at >= 0:
            match = _BEHIND.match(text, at + len(name))
            if match and looks_random(match[1]):
                found.add(match.span(1))
            at = lowered.find(name, at + 1)
    return sorted(found)


def _possible(text: str, long: str) -> list[tuple[str, re.Pattern[str]]]:
    """Return the shapes whose mark stands in ``text``, or in its long words."""
    return [
        (name, shape)
        for name, marks, shape in SECRET_SHAPES
        if (name in _WITH_BLANKS or long)
        and any(mark in (text if name in _WITH_BLANKS else long) for mark in marks)
    ]


def _long_words(text: str) -> str:
    # Prose has few, and a credential is one: seventy marks need not be looked for in all of it.
    return " ".join([word for word in text.split() if len(word) >= _SHORTEST])
