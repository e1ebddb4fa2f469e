"""Shapes of credentials: what each kind looks like, wherever it occurs.

Each is written from its vendor's documentation or examples. The rules of gitleaks and the plugins
of detect-secrets are not used: neither is available as a package without its scanner
(``benchmarks/secrets.py`` runs both beside this).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

_WORD_START = r"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f]{2}))"
"""At the start, or after something other than a letter or digit, even percent-encoded."""
_END = r"(?![A-Za-z0-9])"
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_MIXED = r"(?=[A-Za-z_-]{0,60}[0-9])(?=[a-z0-9_-]{0,60}[A-Z])(?=[A-Z0-9_-]{0,60}[a-z])"
"""Letters of both cases and digits: random, not a name."""
_OPTIONS = r"(?:[ \t][^\n]{0,400}?)?"
_ARGUMENT = r"[\"']?([^\s\"'`|\\\[][^\s\"'`|\\]{2,200})"


@dataclass(frozen=True, eq=False)
class SecretShape:
    """One kind of credential.

    Not slotted: a pattern is compiled when its mark is first found, most of them never.
    """

    name: str
    marks: tuple[str, ...]
    """Texts of which one must occur; searching for them is far faster than any pattern, which makes
    ordinary text cheap."""
    regex: str
    ahead: int = 0
    """Characters from the start of a match to its mark. Negative if the mark comes before the part
    to replace."""
    has_blanks: bool = False
    """Whether it may contain blanks or be shorter than other kinds."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The pattern, compiled. If it has a group, that is the part to replace."""
        return re.compile(self.regex)

    def spans(self, text: str, mark: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the spans of credentials of this kind, in order, whose mark is in this part."""
        pattern, at = self.pattern, text.find(mark, start, end)
        while at >= 0:
            match = pattern.match(text, max(0, at - self.ahead))
            if match:
                yield match.span(pattern.groups)
            at = text.find(mark, match.end() if match and match.end() > at else at + 1, end)


def _shape(
    name: str, marks: str, regex: str, *, ahead: int = 0, has_blanks: bool = False
) -> SecretShape:
    """Return a shape that starts where a word does; ``marks`` are separated by commas."""
    return SecretShape(name, tuple(marks.split(",")), _WORD_START + regex, ahead, has_blanks)


def _prefix(name: str, marks: str, behind: str) -> SecretShape:
    """Return the shape of a token that starts with one of ``marks``, separated by blanks."""
    starts = marks.split()
    either = "|".join(re.escape(start) for start in starts)
    return _shape(name, ",".join(starts), f"(?:{either}){behind}")


SECRET_SHAPES: Final[tuple[SecretShape, ...]] = (
    SecretShape(
        "private-key",
        ("-----BEGIN ",),
        # Line ends may be real or escaped. A missing end marker does not hide the key; an end
        # marker after another key's beginning belongs to that one. Atomic, not a possessive group:
        # Python 3.11.2, which Debian 12 has, matches less by those.
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?>[^-]*(?:-(?!----(?:BEGIN|END) )[^-]*)*)-----END [A-Z0-9 ]{0,40}PRIVATE KEY"
        r"(?: BLOCK)?-----|(?:[A-Za-z0-9+/=\s]|\\+[rn])*)",
        has_blanks=True,
    ),
    _prefix("anthropic-key", "sk-ant-", r"[A-Za-z0-9_-]{8,}"),
    _prefix("openai-key", "sk-", r"(?!ant-)(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,}"),
    _prefix("openai-key", "sess-", rf"[A-Za-z0-9]{{36,}}{_END}"),
    _shape(
        "bearer-token",
        "Bearer,bearer,BEARER",
        r"(?i:bearer)[ +\t]+[A-Za-z0-9._~+/=-]{16,}",
        has_blanks=True,
    ),
    _shape(
        "basic-credentials",
        "Basic,basic,BASIC",
        # A long word of prose is not base64, which has capital letters.
        r"(?i:basic)[ \t]+(?![a-z]+\b)[A-Za-z0-9+/]{20,}={0,2}",
        has_blanks=True,
    ),
    # An id of exactly this length: in base64 of silence the same letters continue.
    _prefix("aws-key", "AKIA ASIA ABIA ACCA", rf"[A-Z0-9]{{16}}{_END}"),
    # The base64 of protocol buffers that begin with the same fields.
    _prefix("aws-session-token", "IQoJb3JpZ2luX2Vj FwoGZXIvYXdz", r"[A-Za-z0-9+/]{80,}={0,2}"),
    _prefix("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{20,}"),
    _prefix("github-token", "github_pat_", r"[A-Za-z0-9_]{22,}"),
    _prefix(
        "gitlab-token",
        "glpat- glptt- gldt- glrt- glcbt- glft- glimt- gloas- glsoat- glffct- glagent- glwt-",
        r"[A-Za-z0-9_.-]{16,}",
    ),
    _prefix("gitlab-token", "GR1348941", r"[A-Za-z0-9_-]{18,}"),
    _shape("slack-token", "xox", r"xox[a-eoprs](?:\.xox[bp])?-[A-Za-z0-9%-]{10,}"),
    _prefix("slack-token", "xapp- xwfp-", r"[A-Za-z0-9-]{20,}"),
    _prefix("google-key", "AIza", r"[A-Za-z0-9_-]{35}"),
    _prefix("google-oauth", "ya29.", r"[A-Za-z0-9_-]{20,}"),
    _prefix("google-oauth", "1//0", r"[A-Za-z0-9_-]{30,}"),
    _prefix("stripe-key", "sk_live_ rk_live_ sk_test_ rk_test_", r"[A-Za-z0-9]{16,}"),
    _prefix("stripe-key", "sk_org_live_ sk_org_test_", r"[A-Za-z0-9]{16,}"),
    _prefix("webhook-secret", "whsec_", r"[A-Za-z0-9+/]{24,}={0,2}"),
    _prefix("npm-token", "npm_", r"[A-Za-z0-9]{36}"),
    _prefix("pypi-token", "pypi-", r"[A-Za-z0-9_-]{32,}"),
    _prefix("huggingface-token", "hf_ api_org_", r"[A-Za-z0-9]{30,}"),
    _prefix("mapbox-token", "sk.eyJ tk.eyJ", r"[A-Za-z0-9_-]{16,1000}\.[A-Za-z0-9_-]{16,}"),
    _prefix("1password-token", "ops_eyJ", r"[A-Za-z0-9+/_-]{40,}={0,2}"),
    # Encrypted: a head, a key that may be empty, a vector, the text, a tag.
    _prefix(
        "jwe",
        "eyJ",
        r"[A-Za-z0-9_-]{8,2000}+\.[A-Za-z0-9_-]{0,2000}+\.[A-Za-z0-9_-]{10,100}+"
        r"\.[A-Za-z0-9_-]{4,}+\.[A-Za-z0-9_-]{16,}",
    ),
    _prefix("jwt", "eyJ", r"[A-Za-z0-9_-]{8,2000}+\.eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}"),
    _prefix("groq-key", "gsk_", r"[A-Za-z0-9]{20,}"),
    _prefix("xai-key", "xai-", r"[A-Za-z0-9]{20,}"),
    _prefix("perplexity-key", "pplx-", r"[A-Za-z0-9]{20,}"),
    _prefix("replicate-token", "r8_", r"[A-Za-z0-9]{20,}"),
    _prefix("langsmith-key", "lsv2_pt_ lsv2_sk_ ls__", r"[A-Za-z0-9_]{20,}"),
    _prefix("sendgrid-key", "SG.", r"[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    _prefix("twilio-key", "SK", r"[0-9a-f]{32}"),
    _prefix("mailgun-key", "key-", r"[0-9a-f]{32}"),
    _prefix("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", r"[0-9a-f]{32,}"),
    _prefix("databricks-token", "dapi dose dkea", r"[0-9a-f]{32}"),
    _prefix("shopify-token", "shpat_ shpca_ shppa_ shpss_ shptka_", r"[0-9a-fA-F]{32}"),
    _prefix("square-token", "sq0atp- sq0csp-", r"[A-Za-z0-9_-]{22,}"),
    _prefix("vault-token", "hvs. hvb. hvr.", r"[A-Za-z0-9_-]{20,}"),
    _prefix("linear-key", "lin_api_ lin_oauth_ lin_wh_", r"[A-Za-z0-9]{30,}"),
    _prefix("notion-token", "ntn_ secret_", r"[A-Za-z0-9]{40,}"),
    _prefix("docker-token", "dckr_pat_ dckr_oat_", r"[A-Za-z0-9_-]{20,}"),
    _prefix("atlassian-token", "ATATT3 ATCTT3", r"[A-Za-z0-9_=-]{20,}"),
    _prefix("bitbucket-password", "ATBB", rf"[A-Za-z0-9]{{32}}{_END}"),
    _prefix("trello-token", "ATTA", r"[0-9a-f]{60,}[0-9A-F]*"),
    _prefix("postman-key", "PMAK-", r"[0-9a-f]{24}-[0-9a-f]{34}"),
    _prefix("postman-key", "PMAT-", r"[A-Z0-9]{26}"),
    _prefix("newrelic-key", "NRAK- NRII- NRIQ- NRRA- NRJS- NRSP-", r"[A-Za-z0-9_-]{19,}"),
    _shape("newrelic-key", "NRAL", rf"[0-9a-z]{{36}}NRAL{_END}", ahead=36),
    _prefix("grafana-token", "glsa_ glc_", r"[A-Za-z0-9_+/=]{20,}"),
    _prefix("sentry-token", "sntrys_ sntryu_ sntrya_ sntryi_", r"[A-Za-z0-9_+/=.-]{20,}"),
    _prefix("supabase-token", "sbp_", r"[0-9a-f]{40}"),
    _prefix("supabase-token", "sb_secret_", r"[A-Za-z0-9_-]{20,}"),
    _prefix("airtable-token", "pat", r"[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    _prefix("harness-token", "pat. sat.", r"[A-Za-z0-9_-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}"),
    _prefix("hubspot-token", "pat-na pat-eu pat-ap", rf"\d{{1,2}}-{_UUID}"),
    _prefix("age-key", "AGE-SECRET-KEY-1", r"[0-9A-Z]{50,}"),
    _prefix("planetscale-token", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[A-Za-z0-9_.=-]{20,}"),
    _prefix("pulumi-token", "pul-", r"[0-9a-f]{40}"),
    _prefix("rubygems-key", "rubygems_", r"[0-9a-f]{48}"),
    _prefix(
        "doppler-token", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", r"[A-Za-z0-9._-]{20,}"
    ),
    _prefix("figma-token", "figd_ figdr_ figo_ figu_ figh_", r"[A-Za-z0-9_-]{20,}"),
    _prefix("easypost-key", "EZAK EZTK", r"[A-Za-z0-9]{40,}"),
    _prefix("dropbox-token", "sl.", r"(?:u\.)?[A-Za-z0-9_-]{60,}"),
    _prefix("google-client-secret", "GOCSPX-", r"[A-Za-z0-9_-]{20,}"),
    _prefix("gemini-key", "AQ.Ab8", r"[A-Za-z0-9_-]{20,}"),
    # The base64 of "BedrockAPIKey-", and of "bedrock.amazonaws.com" behind the longer name.
    _prefix("bedrock-key", "ABSKQmVkcm9ja0FQSUtleS", r"[A-Za-z0-9+/_-]{20,}={0,2}"),
    _prefix("bedrock-key", "ABSK", r"[A-Za-z0-9+/_-]{100,}={0,2}"),
    _prefix("bedrock-key", "bedrock-api-key-", r"[A-Za-z0-9+/_%-]{20,}={0,2}"),
    _prefix("nvidia-key", "nvapi-", r"[A-Za-z0-9_-]{20,}"),
    _prefix("pinecone-key", "pcsk_", r"[A-Za-z0-9_]{20,}"),
    _prefix("tavily-key", "tvly-", r"[A-Za-z0-9_-]{20,}"),
    _prefix("elevenlabs-key", "sk_", r"[0-9a-f]{40,}"),
    _prefix("cartesia-key", "sk_car_", r"[A-Za-z0-9_-]{20,}"),
    _prefix("fireworks-key", "fw_", r"(?=[a-z]{0,60}[A-Z0-9])[A-Za-z0-9]{20,}"),
    # Slugs in addresses begin with these two letters as well, but are in lower case.
    _prefix("voyage-key", "pa-", rf"{_MIXED}[A-Za-z0-9_-]{{40,}}"),
    _prefix("cerebras-key", "csk-", r"[a-z0-9]{40,}"),
    _prefix("together-key", "tgp_v1_", r"[A-Za-z0-9_-]{30,}"),
    _prefix("llamacloud-key", "llx-", r"[A-Za-z0-9_-]{30,}"),
    _prefix("anyscale-key", "esecret_", r"[A-Za-z0-9]{20,}"),
    _prefix("runpod-key", "rpa_", r"[A-Z0-9]{30,}[A-Za-z0-9]*"),
    _prefix("jina-key", "jina_", r"[A-Za-z0-9_-]{40,}"),
    _prefix("firecrawl-key", "fc-", rf"[0-9a-f]{{32}}{_END}"),
    _prefix("mem0-key", "m0-", rf"(?=[A-Za-z]{{0,60}}[0-9])[A-Za-z0-9]{{40}}{_END}"),
    _prefix("e2b-key", "e2b_", r"[0-9a-f]{40}"),
    _prefix("apify-token", "apify_api_ apify_proxy_", r"[A-Za-z0-9]{30,}"),
    _prefix("browserbase-key", "bb_live_ bb_test_", r"[A-Za-z0-9_-]{20,}"),
    _prefix("logfire-token", "pylf_v", r"\d_[a-z]{2,8}_[A-Za-z0-9]{30,}"),
    _prefix("wandb-key", "wandb_v", r"\d_[A-Za-z0-9_]{30,}"),
    _prefix("cursor-key", "key_ crsr_", rf"[0-9a-f]{{64,}}{_END}"),
    _prefix("neon-key", "napi_", r"[a-z0-9]{40,}"),
    _prefix("vercel-token", "vcp_ vci_ vca_ vcr_ vck_", rf"[A-Za-z0-9]{{24,}}{_END}"),
    _prefix("vercel-token", "vercel_blob_rw_", r"[A-Za-z0-9]+_[A-Za-z0-9]{20,}"),
    _prefix("netlify-token", "nfp_ nfc_ nfo_ nfb_ nfu_", rf"[A-Za-z0-9]{{36}}{_END}"),
    _prefix("flyio-token", "fo1_ fm1_ fm1a_ fm1r_ fm2_", r"[A-Za-z0-9+/=_-]{40,}"),
    _prefix("heroku-key", "HRKU-", r"(?:AA[A-Za-z0-9_-]{50,}|" + _UUID + ")"),
    _prefix("render-key", "rnd_", rf"[A-Za-z0-9]{{26,}}{_END}"),
    _prefix("resend-key", "re_", rf"[A-Za-z0-9]{{6,10}}_[A-Za-z0-9]{{20,28}}{_END}"),
    _prefix("tailscale-key", "tskey-", r"[a-z]{3,10}-[A-Za-z0-9]{6,}-[A-Za-z0-9]{16,}"),
    _prefix("buildkite-token", "bkua_ bkct_ bkpt_", r"[0-9a-zA-Z]{30,}"),
    _prefix("circleci-token", "CCIPAT_ CCIPRJ_", r"[A-Za-z0-9]{20,}_[0-9a-f]{40}"),
    _prefix("sonar-token", "squ_ sqp_ sqa_", r"[0-9a-f]{40}"),
    _prefix("snyk-token", "snyk_uat. snyk_sat.", r"[A-Za-z0-9._-]{20,}"),
    _prefix("sourcegraph-token", "sgp_ slk_ sgd_", r"(?:[0-9a-f]{16}_|local_)?[A-Za-z0-9]{40,}"),
    _prefix("dynatrace-token", "dt0", r"[a-z]\d\d\.[A-Z0-9]{8,24}\.[A-Z0-9]{40,}"),
    _prefix("honeycomb-key", "hca hcx hcb", r"[a-z]{2}_[a-z0-9]{50,}"),
    _prefix("axiom-token", "xaat- xapt-", _UUID),
    _prefix("posthog-key", "phx_ phs_", r"[A-Za-z0-9]{30,}"),
    _prefix("launchdarkly-key", "sdk- api-", _UUID),
    _prefix("statsig-key", "secret-", rf"(?=[A-Za-z]{{0,60}}[0-9])[A-Za-z0-9]{{40,}}{_END}"),
    _prefix("contentful-token", "CFPAT-", r"[A-Za-z0-9_-]{40,}"),
    _prefix("readme-key", "rdme_", r"[a-z0-9]{60,}"),
    _prefix("typeform-token", "tfp_", r"[A-Za-z0-9_.=-]{40,}"),
    _prefix("shippo-token", "shippo_live_ shippo_test_", r"[0-9a-f]{40}"),
    _prefix("duffel-token", "duffel_test_ duffel_live_", r"[A-Za-z0-9_=-]{40,}"),
    _prefix("brevo-key", "xkeysib- xsmtpsib-", r"[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    _prefix("mailersend-key", "mlsn.", r"[0-9a-f]{60,}"),
    _prefix("mandrill-key", "md-", rf"(?=[a-z_-]{{0,60}}[A-Z0-9])[A-Za-z0-9_-]{{22}}{_END}"),
    _prefix("klaviyo-key", "pk_", rf"[0-9a-f]{{34}}{_END}"),
    _prefix("clickup-token", "pk_", r"[0-9]{5,12}_[A-Z0-9]{32}"),
    _prefix("telnyx-key", "KEY", r"[0-9A-F]{32}_[A-Za-z0-9]{20,}"),
    _prefix("flutterwave-key", "FLWSECK-", r"[0-9a-zA-Z]{30,}-X"),
    _prefix("flutterwave-key", "FLWSECK_TEST-", r"[0-9a-zA-Z]{12,}(?:-X)?"),
    _prefix("paddle-key", "pdl_", r"(?:live|sdbx)_[a-z]+_[a-z0-9]{20,}_[A-Za-z0-9_]{16,}"),
    _prefix("paypal-token", "A21AA", r"[A-Za-z0-9_-]{60,}"),
    _prefix("braintree-token", "access_token$", r"[a-z]+\$[a-z0-9]{16}\$[0-9a-f]{32}"),
    _prefix("plaid-token", "access-sandbox- access-development- access-production-", _UUID),
    _prefix("persona-key", "persona_", rf"[a-z]+_{_UUID}"),
    _prefix("prefect-key", "pnu_ pnb_", rf"[A-Za-z0-9]{{36}}{_END}"),
    _prefix("infracost-key", "ico-", rf"[A-Za-z0-9]{{32}}{_END}"),
    _prefix("octopus-key", "API-", rf"(?=[A-Z]{{0,60}}[0-9])[A-Z0-9]{{25,40}}{_END}"),
    _prefix("nuget-key", "oy2", rf"[a-z0-9]{{43}}{_END}"),
    _prefix("clojars-token", "CLOJARS_", r"[0-9a-z]{50,}"),
    _prefix("crates-token", "cio", rf"(?=[A-Za-z]{{0,60}}[0-9])[A-Za-z0-9]{{32}}{_END}"),
    _prefix("packagist-token", "packagist_", r"[a-z]{3}_[0-9a-f]{60,}"),
    _prefix("artifactory-key", "AKCp", r"[A-Za-z0-9]{60,}"),
    # The base64 of "reftkn:", and of "tok:".
    _prefix("artifactory-token", "cmVmdGtu", r"[A-Za-z0-9]{40,}={0,2}"),
    _prefix("intercom-token", "dG9rO", r"[A-Za-z0-9+/]{40,}={0,2}"),
    _prefix("openshift-token", "sha256~", r"[A-Za-z0-9_-]{40,}"),
    _shape("okta-token", "SSWS", r"SSWS[ +\t]+[A-Za-z0-9_-]{30,}", has_blanks=True),
    _prefix("alibaba-key", "LTAI", rf"(?=[A-Za-z]{{0,60}}[0-9])[A-Za-z0-9]{{12,26}}{_END}"),
    _prefix("tencent-key", "AKID", rf"(?=[A-Za-z]{{0,60}}[0-9])[A-Za-z0-9]{{32}}{_END}"),
    _prefix("yandex-key", "AQVN", r"[A-Za-z0-9_-]{35,}"),
    _prefix("yandex-key", "y0_ y1_", r"[A-Za-z0-9_-]{50,}"),
    _prefix("yandex-key", "t1.", r"[A-Za-z0-9_-]{20,}={0,2}\.[A-Za-z0-9_-]{80,}"),
    _prefix("scaleway-key", "SCW", rf"(?=[A-Z]{{0,60}}[0-9])[A-Z0-9]{{17}}{_END}"),
    _prefix("spaces-key", "DO00", rf"[A-Z0-9]{{16}}{_END}"),
    _prefix("salesforce-session", "00D", r"[A-Za-z0-9]{12,15}![A-Za-z0-9._]{80,}"),
    _prefix("square-token", "EAAA", rf"[A-Za-z0-9_-]{{60}}{_END}"),
    # "Z" is an escape in them, so every one contains some of these pairs.
    _prefix("facebook-token", "EAA", r"(?=[0-9A-Za-z]{0,90}Z[A-D])[0-9A-Za-z]{90,}"),
    _prefix("facebook-token", "EAACEdEose0cBA", r"[0-9A-Za-z]{20,}"),
    _prefix("mercadopago-token", "APP_USR- TEST-", r"\d{16}-\d{6}-[0-9a-f]{32}-\d{5,12}"),
    _prefix("adyen-key", "AQE", r"[A-Za-z0-9+/]{20,}={1,2}-[A-Za-z0-9+/=_.~{}&%-]{20,}"),
    _prefix("unkey-key", "unkey_", r"[A-Za-z0-9_]{16,}"),
    _prefix("adafruit-key", "aio_", rf"(?=[A-Za-z]{{0,60}}[0-9])[A-Za-z0-9]{{28}}{_END}"),
    _prefix("adobe-secret", "p8e- p8e_", r"[A-Za-z0-9_-]{30,}"),
    _prefix("frameio-token", "fio-u-", r"[A-Za-z0-9_=-]{50,}"),
    _prefix("stackhawk-key", "hawk.", r"[A-Za-z0-9_-]{20}\.[A-Za-z0-9_-]{20}"),
    _prefix("defined-token", "dnkey-", r"[A-Za-z0-9=_-]{26}-[A-Za-z0-9=_-]{50,}"),
    _prefix("scalingo-token", "tk-us- tk-eu-", r"[A-Za-z0-9_-]{40,}"),
    _prefix("modal-token", "ak- as-", rf"{_MIXED}[A-Za-z0-9]{{22}}{_END}"),
    _prefix("browser-use-key", "bu_", rf"{_MIXED}[A-Za-z0-9_-]{{43}}{_END}"),
    _prefix("context7-key", "ctx7sk-", _UUID),
    _prefix("chroma-key", "ck-", rf"{_MIXED}[A-Za-z0-9]{{44}}{_END}"),
    _prefix("brave-key", "BSA", rf"{_MIXED}[A-Za-z0-9_-]{{28}}{_END}"),
    _prefix("1password-secret-key", "A3-", r"[A-Z0-9]{6}(?:-[A-Z0-9]{5,6}){5}"),
    _prefix("instagram-token", "IGQV IGAA", rf"{_MIXED}[A-Za-z0-9_-]{{90,}}"),
    _prefix("llama-key", "LLM|", r"[0-9]{10,20}\|[A-Za-z0-9_-]{20,}"),
    _prefix("onfido-token", "api_live. api_sandbox.", r"[A-Za-z0-9_-]{11}\.[A-Za-z0-9_-]{32}"),
    _prefix("retool-token", "retool_01", r"[A-Za-z0-9]{20,}"),
    _prefix("svix-token", "sk_ testsk_", rf"{_MIXED}[A-Za-z0-9_-]{{32,}}(?:\.[a-z]{{2,3}})?"),
    _prefix("lob-key", "live_ test_", rf"[0-9a-f]{{35}}{_END}"),
    _prefix("mergify-key", "mka_", r"[A-Za-z0-9]{40,}"),
    _prefix("deno-token", "ddp_ ddo_", r"[A-Za-z0-9]{36,}"),
    _prefix("valtown-token", "vtwn_", r"[A-Za-z0-9]{30,}"),
    _prefix("stytch-secret", "secret-live- secret-test-", r"[A-Za-z0-9_-]{30,}={0,2}"),
    _prefix("polar-token", "polar_oat_ polar_pat_", r"[A-Za-z0-9_]{30,}"),
    _prefix("confluent-secret", "cflt", rf"{_MIXED}[A-Za-z0-9+/]{{60,}}"),
    _prefix("thunderstore-token", "tss_", r"[A-Za-z0-9]{40,}"),
    _prefix("beamer-token", "b_", rf"{_MIXED}[A-Za-z0-9=_-]{{44}}{_END}"),
    _prefix("twitter-token", "A" * 20, r"A{0,3}[A-Za-z0-9]{15,40}%(?:2[BF]|3D)[A-Za-z0-9%]{30,}"),
    _prefix("intra42-secret", "s-s4t2ud- s-s4t2af-", r"[0-9a-f]{64}"),
    _prefix("django-key", "django-insecure-", r"[^\s\"'`\\]{30,}"),
    _shape("fcm-key", ":APA91b", r"[A-Za-z0-9_-]{11}:APA91b[A-Za-z0-9_-]{100,}", ahead=11),
    _prefix("samsara-token", "samsara_api_", r"[A-Za-z0-9]{25,}"),
    _prefix("mongodb-secret", "mdb_sa_sk_", r"[A-Za-z0-9_-]{35,}"),
    _prefix("pubnub-key", "sec-c-", r"(?:[A-Za-z0-9+/]{40,}={0,2}|" + _UUID + ")"),
    _prefix("zuplo-key", "zpka_", r"[a-z0-9]{30,}_[a-z0-9]{8}"),
    _prefix("inngest-key", "signkey-", r"[a-z]+-[0-9a-f]{60,}"),
    _prefix("rootly-token", "rootly_", r"[0-9a-f]{60,}"),
    _prefix("wakatime-key", "waka_", _UUID),
    _prefix("onesignal-key", "os_v2_", r"(?:app|org)_[a-z2-7]{80,}"),
    _prefix("checkly-key", "cu_", rf"[0-9a-f]{{32}}{_END}"),
    _prefix("settlemint-token", "sm_aat_ sm_pat_ sm_sat_", r"[A-Za-z0-9]{16,}"),
    _prefix("clickhouse-key", "4b1d", rf"(?=[0-9a-z]{{0,60}}[A-Z])[A-Za-z0-9]{{38}}{_END}"),
    _prefix("cloudflare-key", "v1.0-", r"[0-9a-f]{24}-[0-9a-f]{100,}"),
    # A user in base64 (digits), a time, a signature.
    _prefix(
        "discord-token",
        "MT Mj Mz ND NT Nj Nz OD OT",
        r"[A-Za-z0-9]{20,26}\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,}",
    ),
    _shape("asana-token", "0/,1/,2/", r"[012]/[0-9]{10,20}(?:/[0-9]{10,20})?:[0-9a-f]{32}"),
    _shape(
        "terraform-token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{40,}", ahead=14
    ),
    _shape("mailchimp-key", "-us", r"[0-9a-f]{32}-us[0-9]{1,2}", ahead=32),
    _shape("azure-secret", "Q~", r"[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34}", ahead=4),
    _shape("azure-key", "JQQJ99", r"[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{20,}", ahead=52),
    _shape("azure-devops-token", "AZDO", rf"[A-Za-z0-9]{{76}}AZDO[A-Za-z0-9]{{4}}{_END}", ahead=76),
    _shape("maxmind-key", "_mmk", rf"[A-Za-z0-9]{{6}}_[A-Za-z0-9]{{29}}_mmk{_END}", ahead=36),
    _shape(
        "rapidapi-key", "jsn", rf"[0-9a-z]{{10}}msh[0-9a-z]{{23}}jsn[0-9a-z]{{12}}{_END}", ahead=36
    ),
    _shape("deepl-key", ":fx", rf"{_UUID}:fx{_END}", ahead=36),
    # From htpasswd files, shadow files or databases: hashes can be attacked offline.
    _shape(
        "password-hash",
        "$",
        r"(?<![$\w])\$(?:(?:apr1|1|5|6|7|y)\$[./A-Za-z0-9$=,]{20,200}|2[aby]\$\d\d\$[./A-Za-z0-9]{53}"
        r"|(?:argon2\w*|scrypt|pbkdf2[\w-]*)\$[./A-Za-z0-9$=,+-]{30,300})",
    ),
    # As Django, and as Werkzeug writes them.
    _prefix(
        "password-hash",
        "pbkdf2_sha pbkdf2:sha scrypt:",
        r"[0-9:$]{3,30}\$[^\s$\"'\\]{1,80}\$[A-Za-z0-9+/]{20,}={0,2}",
    ),
    _shape("password-hash", "{S", r"\{(?:SHA|SSHA|SMD5)\}[A-Za-z0-9+/]{20,}={0,2}"),
    SecretShape(
        "putty-key",
        ("Private-Lines: ",),
        r"[0-9]+(?:\s+|\\+[rn])+(?:[A-Za-z0-9+/=\s]|\\+[rn])+",
        -len("Private-Lines: "),
        has_blanks=True,
    ),
    *(
        SecretShape(
            "telegram-token",
            (":AA",),
            rf"(?<![0-9])[0-9]{{{digits}}}:AA[A-Za-z0-9_-]{{32,}}",
            digits,
        )
        for digits in (8, 9, 10)
    ),
    # Also by the path alone, because requests are compared without their host.
    SecretShape(
        "slack-webhook",
        ("hooks.slack.com", "/services/T"),
        r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/]{20,}"
        r"|/services/T[A-Z0-9]{6,}/B[A-Z0-9]{6,}/[A-Za-z0-9]{16,}",
    ),
    SecretShape(
        "discord-webhook", ("/api/webhooks/",), r"/api/webhooks/[0-9]{10,}/[A-Za-z0-9_-]{30,}"
    ),
    SecretShape(
        "teams-webhook",
        ("/webhookb2/", "/IncomingWebhook/"),
        rf"(?:/webhookb2/{_UUID}@{_UUID})?/IncomingWebhook/[0-9a-zA-Z]{{32}}/{_UUID}",
    ),
    SecretShape("zapier-webhook", ("/hooks/catch/",), r"/hooks/catch/[0-9]{4,12}/[A-Za-z0-9]{6,}"),
    SecretShape(
        "url-password",
        ("://",),
        # A port is not a password, nor is what follows it.
        r"[^\s/:@\"'\\\[\]<>]{0,80}:(?![0-9]{1,5}[?#])[^\s/\"'\\<>]{3,200}(?=@)",
        -len("://"),
        has_blanks=True,
    ),
    *(
        SecretShape("command-password", marks, regex, has_blanks=True)
        for marks, regex in (
            (
                ("curl ", "wget "),
                rf"\w+{_OPTIONS}[ \t](?:-u|--(?:proxy-)?user)[ =]?[\"']?[^\s:\"'@]+:{_ARGUMENT}",
            ),
            (("sshpass ",), rf"sshpass[ \t]+-p[ \t]*{_ARGUMENT}"),
            (("docker login ", "podman login "), rf"\w+ login{_OPTIONS}[ \t]-p[ \t]+{_ARGUMENT}"),
            (("redis-cli ",), rf"redis-cli{_OPTIONS}[ \t]-a[ \t]+{_ARGUMENT}"),
            (
                ("mysql ", "mysqldump ", "mysqladmin ", "mariadb "),
                rf"\w+{_OPTIONS}[ \t]-p(?!assw|ort|rot|ipe){_ARGUMENT}",
            ),
            (
                ("htpasswd -",),
                rf"htpasswd[ \t]+-\w*b\w*[ \t]+\S{{1,200}}[ \t]+\S{{1,100}}[ \t]+{_ARGUMENT}",
            ),
            (
                ("IDENTIFIED BY '", "WITH PASSWORD '", "WITH PASSWORD = '"),
                r"(?:IDENTIFIED BY|WITH PASSWORD(?: =)?) '([^'\s\\\[][^'\s\\]{2,200})'",
            ),
            (("net user ",), rf"net user[ \t]+\S{{1,100}}[ \t]+{_ARGUMENT}(?=[ \t]+/add)"),
            (
                ("machine ",),
                r"machine\s{1,20}\S{1,200}\.\S{1,200}\s{1,20}login\s{1,20}\S{1,100}\s{1,20}password\s+"
                + _ARGUMENT,
            ),
            (("::add-mask::",), rf"::add-mask::{_ARGUMENT}"),
        )
    ),
    # A line of .pgpass: a server, its port, a database, a user.
    SecretShape(
        "database-password",
        (":5432:",),
        r"[^\s:]{1,100}:[^\s:]{1,100}:([^\s:\"',\\\[][^\s:\"',\\]{3,200})",
        -len(":5432:"),
        has_blanks=True,
    ),
    SecretShape(
        "database-password",
        ("jdbc:oracle:", "sqlplus "),
        r"(?:jdbc:oracle:(?:thin|oci\d?):|sqlplus (?:-\w+ )?)[^/\s@\"']{1,100}"
        r"/([^\s@\"'/]{3,200})(?=@)",
        has_blanks=True,
    ),
    *(
        SecretShape("azure-key", (mark,), r"[A-Za-z0-9+/]{40,}={0,2}", -len(mark))
        for mark in ("AccountKey=", "AccessKey=")
    ),
)
"""All shapes; order matters: the more specific ones first."""
