"""Which headers a cassette stores, and what is removed from those it stores.

Of an answer all are stored but secrets and what only described the transfer: a client may page by
``link``, follow ``location``, pace itself by rate limits. Of a request few are stored: they are not
compared, and would differ with every client and machine.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final
from urllib.parse import unquote, urlsplit

from pytest_regen.cassettes import scrubbing
from pytest_regen.cassettes.interactions import Headers, Interaction, by_lower_name, has_body
from pytest_regen.credentials.names import is_password_of, is_private_name, looks_random
from pytest_regen.credentials.search import ASSIGNED, scrub_text
from pytest_regen.errors import UsageError
from pytest_regen.turns.wire import EMULATOR_NAME

_REQUEST_HEADERS: Final = frozenset(
    {"accept", "anthropic-beta", "anthropic-version", "content-type"}
)

_PRIVATE: Final = frozenset(
    {"authorization", "x-api-key", "api-key", "proxy-authorization", "cookie", "openai-project"}
)
_ACCOUNT = re.compile(
    r"(?:.*-)?(?:organi[sz]ation|org|account|tenant|workspace|user-project)(?:-(?:id|name|uuid))?"
)
"""Names of headers that identify an account: ``anthropic-organization-id``,
``x-goog-user-project``."""

_TRANSFER: Final = frozenset(
    {
        "connection",
        "content-encoding",
        "content-length",
        "keep-alive",
        "proxy-authenticate",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that describe one transfer only; the length is replaced by that of the stored body.
https://www.rfc-editor.org/rfc/rfc9110#section-7.6.1"""

_PARAMETER = re.compile(r"""(?<=[?&#;])([^\s=&#;<>"]{1,100})=([^\s&#;<>",]+)""")
_USER = re.compile(r"(?<=//)[^/?#@\s]*@")
_LONG_AGO = re.compile(r"\b(?:19)?[6-9]\d\b")
"""A year of the last century; no other number in a date is above 59."""
_PATTERN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A header's name (RFC 9110) or a pattern for names; ``*`` is allowed in both."""
_SHORTEST = 4
_PLAIN_WORDS = frozenset({"true", "false", "none", "null"})
"""``access-control-allow-credentials: true``."""
# Replaces a credential whose value is known. What replaces a cookie also replaces its copies,
# because a page may hold one, and a form may send it back.
_IN_USE: Final = "[key]"


@dataclass(frozen=True, slots=True)
class HeaderRules:
    """What a project says about headers: names, or patterns with ``*``, in any case."""

    keep: Sequence[str] = ()
    """Further request headers to store."""
    drop: Sequence[str] = ()
    """Headers of requests and answers not to store."""

    def __post_init__(self) -> None:
        options: dict[str, object] = {"keep_headers": self.keep, "drop_headers": self.drop}
        for option, names in options.items():
            # A text alone is refused, because it would be taken for a list of its letters.
            listed = names if isinstance(names, Iterable) and not isinstance(names, str) else [None]
            if not all(isinstance(name, str) and _PATTERN.fullmatch(name) for name in listed):
                raise UsageError(
                    f"{option}: {names!r} is not a list of header names",
                    why="a name is made of letters, digits and '-'; '*' stands for any of them",
                    hint=f'for example {option} = ["x-feature", "x-trace-*"]',
                )

    def keeps(self, name: str) -> bool:
        """Whether to store a request header (its name in lower case) beside the usual ones."""
        return not is_private_header(name) and _is_listed(name, self.keep)

    def drops(self, name: str) -> bool:
        """Whether to drop a header (its name in lower case).

        ``content-type`` is always stored: without it an answer cannot be read.
        """
        return name != "content-type" and _is_listed(name, self.drop)


def _is_listed(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern.lower()) for pattern in patterns)


def is_private_header(name: str) -> bool:
    """Whether a header holds a credential or identifies an account, going by its name.

    ``set-cookie`` does not count: it is stored without its value.
    """
    name = name.lower()
    # An idempotency key is not secret.
    return _is_dropped(name) or (is_private_name(name) and "idempot" not in name)


def keep_request_headers(
    headers: Mapping[str, Iterable[str]], rules: HeaderRules, literal: tuple[str, ...] = ()
) -> dict[str, tuple[str, ...]]:
    """Return the request headers that a cassette stores, by name."""
    stored = {}
    for name, values in by_lower_name(headers).items():
        if (name in _REQUEST_HEADERS or rules.keeps(name)) and not rules.drops(name):
            stored[name] = tuple(_clean(name, value, literal) for value in values)
    return dict(sorted(stored.items()))


def keep_response_headers(
    answer: Interaction, rules: HeaderRules, literal: tuple[str, ...]
) -> dict[str, tuple[str, ...]]:
    """Return the headers of an answer that a cassette stores, by name.

    If the server's port changes from run to run, as a local one's does, addresses at that server
    are stored as the recording names it. Of an answer that may have no body, ``content-length`` is
    stored as it came.

    Args:
        answer: its headers are true of the body as it is stored.
        rules: what the project says.
        literal: credentials in use, whatever their shape.
    """
    lower, is_bodyless = answer.response_headers, not has_body(answer.method, answer.status)
    parts = urlsplit(answer.uri)
    origin = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    stable = "{}://{}".format(*scrubbing.stable_origin(answer.uri, lower))
    stored: dict[str, tuple[str, ...]] = {}
    for name, values in lower.items():
        if name == "content-length" and is_bodyless:
            stored[name] = values
        elif not (name in _TRANSFER or _is_dropped(name) or rules.drops(name)):
            stored[name] = tuple(
                _clean(name, _replace_origin(_USER.sub("", value), origin, stable), literal)
                for value in _blank_cookies(name, values)
            )
    if scrubbing.is_emulated(lower):
        stored["server"] = (EMULATOR_NAME,)
    return dict(sorted(stored.items()))


def public_headers(
    headers: Mapping[str, Sequence[str]], literal: tuple[str, ...] = ()
) -> dict[str, tuple[str, ...]]:
    """Return headers as another recorder stores them (all, in their case), without credentials."""
    public = {}
    for spelling, values in headers.items():
        name = spelling.lower()
        if not _is_dropped(name):
            blanked = _blank_cookies(name, values)
            public[spelling] = tuple(_clean(name, value, literal) for value in blanked)
    return public


def holds_credential(name: str, values: Iterable[str]) -> bool:
    """Whether a recording should not hold this header (its name in lower case) as it is."""
    if name != "set-cookie":
        return _is_dropped(name)
    pairs = (value.partition(";")[0].strip() for value in values)
    return any(pair and not pair.endswith(("=", _IN_USE)) for pair in pairs)


def identifies_account(name: str) -> bool:
    """Whether a header (its name in lower case) identifies an account but grants no access."""
    return name == "openai-project" or _ACCOUNT.fullmatch(name) is not None


def _is_dropped(name: str) -> bool:
    """Whether to drop a header; of those that hand out a token only the value is replaced."""
    return name in _PRIVATE or identifies_account(name)


def _clean(name: str, value: str, literal: tuple[str, ...]) -> str:
    """Return the value of a stored header without credentials."""
    # Not by their names alone, because many keys are not secret: those of a cache or a partition.
    is_named = is_private_header(name) and not name.endswith(("key", "sig", "signature"))
    says_little = value.isdigit() or value.lower() in _PLAIN_WORDS or len(value) < _SHORTEST
    if is_password_of(name, value) or (is_named and not says_little):
        return f"[{ASSIGNED}]"
    return scrubbing.scrub_literal(_without_credentials(value), literal)


def public_address(uri: str, literal: tuple[str, ...] = ()) -> str:
    """Return an address without credentials, otherwise unchanged."""
    return scrubbing.scrub_literal(_without_credentials(uri), literal)


def _without_credentials(value: str) -> str:
    """Return a text without users, passwords and private parameters of the addresses in it."""
    if "//" in value:
        value = _USER.sub("", value)
    return _PARAMETER.sub(_without_credential, value) if "=" in value else value


def _without_credential(pair: re.Match[str]) -> str:
    name, value = unquote(pair[1]).rstrip("]"), unquote(pair[2])
    # As the following request will be stored, in which all of these lose their values.
    is_one = scrubbing.is_private_parameter(name, value) and (
        is_private_name(name) or looks_random(value) or name.lower().endswith(("sig", "signature"))
    )
    clean = "[scrubbed]" if is_one else scrub_text(value)
    return pair[0] if clean == value else f"{pair[1]}={scrubbing.quoted(clean)}"


# Addresses at the server that was asked


def _replace_origin(value: str, origin: str, other: str) -> str:
    """Return a value that names another server where it named ``origin``."""
    if origin == other or "//" not in value:
        return value
    return re.sub(re.escape(origin) + r"(?![\w.:-])", lambda _: other, value)


def at_origin(headers: Headers, recorded: str, asks_now: str) -> Headers:
    """Return recorded headers for a client whose server now has another port.

    Args:
        headers: as recorded.
        recorded: the address that was recorded.
        asks_now: the address that is asked for now.
    """
    if not recorded.partition("//")[2].partition("/")[0].endswith(".invalid"):
        return headers
    now, then = urlsplit(asks_now), urlsplit(recorded)
    origin = f"{then.scheme}://{then.netloc}"
    other = f"{now.scheme}://{now.netloc.rpartition('@')[2]}"
    return {
        name: tuple(_replace_origin(value, origin, other) for value in values)
        for name, values in headers.items()
    }


# Cookies


def _blank_cookies(name: str, values: Sequence[str]) -> Sequence[str]:
    """Return the values of a header; of ``set-cookie`` without those of the cookies.

    Also without an expiry that could pass before replay.
    """
    if name != "set-cookie":
        return values
    blanked = []
    # Scrubbed first, because a credential may contain the signs that split a cookie.
    for cookie in map(scrub_text, values):
        pair, *attributes = cookie.split(";")
        label, sign, value = pair.partition("=")
        # A cookie may have no name.
        blank = label if sign else ""
        blank += sign + (_IN_USE if (value if sign else label).strip() else value)
        for attribute in attributes:
            kind, _, day = attribute.partition("=")
            # A day long ago stays, because with it servers delete a cookie.
            if kind.strip().lower() != "expires" or _LONG_AGO.search(day):
                blank += f";{attribute}"
        blanked.append(blank)
    return blanked
