"""Shapes of credentials: what each kind looks like, wherever it stands. A leaf."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

__all__ = ["SECRET_SHAPES", "SecretShape"]

_WORD_START = r"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f]{2}))"
"""Nothing before it, or what is no letter, or one that is percent-encoded."""


class SecretShape(NamedTuple):
    """One kind of credential."""

    name: str
    marks: tuple[str, ...]
    """What must stand in a text for it to be there at all. Makes ordinary text cheap: one of them
    is found far faster than any pattern."""
    pattern: re.Pattern[str]
    ahead: int | None = 0
    """Characters from the start of a match to its mark; ``None`` where that varies. Negative where
    the mark stands before what is to be replaced."""
    has_blanks: bool = False
    """Whether it may hold blanks, or be shorter than any other."""

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where credentials of this kind stand, those of one mark after those of another."""
        if self.ahead is None:
            yield from (match.span() for match in self.pattern.finditer(text))
            return
        for mark in self.marks:
            at = text.find(mark)
            while at >= 0:
                match = self.pattern.match(text, max(0, at - self.ahead))
                if match:
                    yield match.span()
                at = text.find(mark, match.end() if match and match.end() > at else at + 1)


def _shape(
    name: str, marks: str, pattern: str, *, ahead: int | None = 0, has_blanks: bool = False
) -> SecretShape:
    """Return the shape of what starts where a word does; ``marks`` are separated by commas."""
    compiled = re.compile(_WORD_START + pattern)
    return SecretShape(name, tuple(marks.split(",")), compiled, ahead, has_blanks)


def _prefixed(name: str, marks: str, rest: str) -> SecretShape:
    """Return the shape of a token that starts with one of ``marks``, separated by blanks."""
    starts = marks.split()
    either = "|".join(re.escape(start) for start in starts)
    return _shape(name, ",".join(starts), f"(?:{either}){rest}")


SECRET_SHAPES: Final[tuple[SecretShape, ...]] = (
    SecretShape(
        "private-key",
        ("-----BEGIN ",),
        # Line ends may be real or escaped. An end that is missing hides nothing.
        re.compile(
            r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
            r"(?:.*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|(?:[A-Za-z0-9+/=\s]|\\+[rn])*)",
            re.DOTALL,
        ),
        has_blanks=True,
    ),
    _prefixed("anthropic-key", "sk-ant-", r"[A-Za-z0-9_-]{8,}"),
    _prefixed("openai-key", "sk-", r"(?!ant-)(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,}"),
    _shape(
        "bearer-token",
        "Bearer,bearer,BEARER",
        r"(?i:bearer)[ +\t]+[A-Za-z0-9._~+/=-]{16,}",
        has_blanks=True,
    ),
    _shape(
        "basic-credentials",
        "Basic,basic,BASIC",
        # A long word of prose is no base64, which has large letters.
        r"(?i:basic)[ \t]+(?![a-z]+\b)[A-Za-z0-9+/]{20,}={0,2}",
        has_blanks=True,
    ),
    _prefixed("aws-key", "AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}"),
    _prefixed("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{20,}"),
    _prefixed("github-token", "github_pat_", r"[A-Za-z0-9_]{22,}"),
    _prefixed("gitlab-token", "glpat-", r"[A-Za-z0-9_-]{16,}"),
    _shape("slack-token", "xox", r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    _prefixed("google-key", "AIza", r"[A-Za-z0-9_-]{35}"),
    _prefixed("google-oauth", "ya29.", r"[A-Za-z0-9_-]{20,}"),
    _prefixed("stripe-key", "sk_live_ rk_live_ sk_test_ rk_test_", r"[A-Za-z0-9]{16,}"),
    _prefixed("npm-token", "npm_", r"[A-Za-z0-9]{36}"),
    _prefixed("pypi-token", "pypi-", r"[A-Za-z0-9_-]{32,}"),
    _prefixed("huggingface-token", "hf_", r"[A-Za-z0-9]{30,}"),
    _prefixed("jwt", "eyJ", r"[A-Za-z0-9_-]{8,2000}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    _prefixed("groq-key", "gsk_", r"[A-Za-z0-9]{20,}"),
    _prefixed("xai-key", "xai-", r"[A-Za-z0-9]{20,}"),
    _prefixed("perplexity-key", "pplx-", r"[A-Za-z0-9]{20,}"),
    _prefixed("replicate-token", "r8_", r"[A-Za-z0-9]{20,}"),
    _prefixed("langsmith-key", "lsv2_pt_ lsv2_sk_", r"[A-Za-z0-9_]{20,}"),
    _prefixed("sendgrid-key", "SG.", r"[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    _prefixed("twilio-key", "SK AC", r"[0-9a-f]{32}"),
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
    _prefixed("google-client-secret", "GOCSPX-", r"[A-Za-z0-9_-]{20,}"),
    _prefixed("gemini-key", "AQ.Ab8", r"[A-Za-z0-9_-]{20,}"),
    # The base64 of "BedrockAPIKey-", and of "bedrock.amazonaws.com" behind the longer name.
    _prefixed("bedrock-key", "ABSKQmVkcm9ja0FQSUtleS", r"[A-Za-z0-9+/_-]{20,}={0,2}"),
    _prefixed("bedrock-key", "bedrock-api-key-", r"[A-Za-z0-9+/_%-]{20,}={0,2}"),
    _prefixed("nvidia-key", "nvapi-", r"[A-Za-z0-9_-]{20,}"),
    _prefixed("pinecone-key", "pcsk_", r"[A-Za-z0-9_]{20,}"),
    _prefixed("tavily-key", "tvly-", r"[A-Za-z0-9_-]{20,}"),
    _prefixed("elevenlabs-key", "sk_", r"[0-9a-f]{40,}"),
    _prefixed("fireworks-key", "fw_", r"(?=[a-z]*[A-Z0-9])[A-Za-z0-9]{20,}"),
    # A slug in an address begins with these two letters as well, but is in small ones.
    _prefixed("voyage-key", "pa-", r"(?=[a-z0-9_-]*[A-Z])(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{40,}"),
    _shape(
        "terraform-token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{40,}", ahead=14
    ),
    _shape("mailchimp-key", "-us", r"[0-9a-f]{32}-us[0-9]{1,2}", ahead=32),
    SecretShape(
        "putty-key",
        ("Private-Lines: ",),
        re.compile(r"[0-9]+(?:\s+|\\+[rn])+(?:[A-Za-z0-9+/=\s]|\\+[rn])+"),
        -len("Private-Lines: "),
        has_blanks=True,
    ),
    SecretShape(
        "telegram-token",
        (":AA",),
        re.compile(r"(?<![0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{32,}"),
        None,
    ),
    # By the path alone, too: a request is compared without its host.
    SecretShape(
        "slack-webhook",
        ("hooks.slack.com", "/services/T"),
        re.compile(
            r"hooks\.slack\.com/services/[A-Za-z0-9/]{20,}"
            r"|/services/T[A-Z0-9]{6,}/B[A-Z0-9]{6,}/[A-Za-z0-9]{16,}"
        ),
    ),
    SecretShape(
        "discord-webhook",
        ("/api/webhooks/",),
        re.compile(r"/api/webhooks/[0-9]{10,}/[A-Za-z0-9_-]{30,}"),
    ),
    SecretShape(
        "url-password",
        ("://",),
        # A port is no password, nor is what follows it.
        re.compile(r"[^\s/:@\"'\\\[\]<>]{0,80}:(?![0-9]{1,5}[?#])[^\s/\"'\\<>]{3,200}(?=@)"),
        -len("://"),
        has_blanks=True,
    ),
    *(
        SecretShape("azure-key", (mark,), re.compile(r"[A-Za-z0-9+/]{40,}={0,2}"), -len(mark))
        for mark in ("AccountKey=", "AccessKey=")
    ),
)
"""Of each kind its shape. Order matters: the more specific first."""
