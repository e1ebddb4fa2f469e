"""Bodies and addresses without credentials, and addresses as they are stored."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qsl, quote, quote_plus, unquote, unquote_plus, urlsplit, urlunsplit

from pytest_regen.cassettes.json_bodies import change_body, leaves, rewrite_texts, text_pairs
from pytest_regen.credentials import names, search
from pytest_regen.credentials.encodings import letters_in
from pytest_regen.credentials.shapes import SECRET_SHAPES
from pytest_regen.strict_json import json_or_none
from pytest_regen.turns.wire import EMULATOR_NAME, sse_data

_PRIVATE_WORD = re.compile(
    "keys?|tokens?|secret|password|sig(?:nature)?|credentials?|auth", re.IGNORECASE
)
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

_LABELS: Final = frozenset({"name", "key", "header", "field", "label", "variable", "parameter"})
_VALUES: Final = frozenset({"value", "val", "default"})
_SEVERAL = re.compile(
    r"(?:(?:api|access|secret|private|auth|refresh)[-_ ]?(?:key|token)|secret|passwd|password)s$",
    re.IGNORECASE,
)
_SAYS_NOTHING: Final = frozenset({float, int, bool, type(None)})
"""Types of JSON values without text."""
# In bytes. Of a larger image or film the letters are searched first, because it has few.
_LARGE: Final = 1 << 16
# In characters. A shorter text is not searched, because no kind of credential is as short.
_SHORTEST: Final = 8
_OPENING: Final = ("{", "[")
_CLOSING: Final = ("}", "]")
_JSON_LINE = re.compile(r"^((?:data:)?[ \t]*)([\[{].*[\]}])(?=[ \t]*\r?$)", re.MULTILINE)
"""An event of a stream, or a line of JSON."""
# Only fields of a login form, because elsewhere these words say how a test ended.
_PASSWORD_FIELDS: Final = frozenset({"pass", "pw"})
_FORM_PAIR = re.compile(r"((?:^|(?<=&))([^=&]+)=)([^&]+)")

_KINDS = "|".join([*{shape.name for shape in SECRET_SHAPES}, search.ASSIGNED, "key", "scrubbed"])
_ENCODED_KIND = re.compile(f"%5B({_KINDS})%5D", re.IGNORECASE)
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost", "0.0.0.0"})  # noqa: S104 - compared


def is_emulated(headers: Mapping[str, Iterable[str]]) -> bool:
    """Whether the emulator gave this answer."""
    return any(
        name.lower() == "server" and any(EMULATOR_NAME in value for value in values)
        for name, values in headers.items()
    )


def scrub_value(value: Any, literal: tuple[str, ...] = ()) -> Any:
    """Return a JSON value with every credential in its keys and strings replaced.

    Args:
        value: the value; the same object is returned if it holds no credential.
        literal: credentials in use, whatever their shape.
    """
    clean = _scrub(value, partial(scrub_literal, literal=literal))
    return value if clean == value else clean


def clean_body(body: bytes, literal: tuple[str, ...] = ()) -> bytes:
    """Return a decoded body without credentials.

    Args:
        body: JSON, text or anything else.
        literal: credentials in use, whatever their shape.
    """
    scrub = partial(scrub_value, literal=literal)
    try:
        return change_body(body, scrub, partial(scrub_lines, literal=literal))
    except UnicodeDecodeError:
        if len(body) > _LARGE:
            letters = letters_in(body)
            if scrub_literal(letters, literal) == letters:
                return body
        # Latin-1 maps every byte to itself, so that shapes are found between binary data.
        return scrub_literal(body.decode("latin-1"), literal).encode("latin-1")


def secrets_in(body: bytes) -> tuple[search.Secret, ...]:
    """Return the credentials that would be replaced in a decoded body."""
    value = json_or_none(body)
    if value is None:
        try:
            text = body.decode()
        except UnicodeDecodeError:
            # Of an image or a film only these, because the rest is drawn by chance.
            text = letters_in(body)
        pairs = [(text, scrub_lines(text))]
    else:
        clean = _scrub(value, search.scrub_text)
        pairs = [] if clean == value else list(text_pairs(value, clean))
    return tuple(
        secret
        for text, clean_text in pairs
        if text != clean_text
        for secret in search.secrets_with_values(text) or (search.Secret(search.ASSIGNED, text),)
    )


def _scrub(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(_within(value, change)) if len(value) >= _SHORTEST else value
    if isinstance(value, Mapping):
        # A member may name another one: ``{"name": "API_KEY", "value": ...}``.
        labels = (i for n, i in value.items() if isinstance(i, str) and str(n).lower() in _LABELS)
        label = next(filter(names.is_private_name, labels), "")
        by_label = {name: label for name in value if label and str(name).lower() in _VALUES}
        return {
            _scrub(str(name), change): _member(by_label.get(name, str(name)), item, change)
            for name, item in value.items()
        }
    if isinstance(value, list | tuple):
        if _SAYS_NOTHING.issuperset(map(type, value)):
            return value  # embeddings: looking at millions of numbers one by one would take seconds
        kinds = [""]
        for name in value[:-1]:
            # The first of a pair, or the flag of a command. A list of names is no pair: there even
            # what follows ``password`` must look random.
            is_name = (
                isinstance(name, str) and name.lower() != "key" and names.is_private_name(name)
            )
            kinds.append("secret" if is_name and (len(value) == 2 or name[0] == "-") else "")
        return [_member(name, item, change) for name, item in zip(kinds, value, strict=True)]
    return value


def _member(name: str, item: Any, change: Callable[[str], str]) -> Any:
    if isinstance(item, str) and names.is_private_name(name):
        if names.is_password_of(name, item):
            return f"[{search.ASSIGNED}]"
        # Read together with its name, as the file will show it, so that what a search of the file
        # would find is replaced here.
        before = f'"{name}": "'
        clean = _scrub(before + item, change)
        return clean.removeprefix(before) if clean.startswith(before) else _scrub(item, change)
    if isinstance(item, list) and _SEVERAL.search(name):
        return [_member(name[:-1], member, change) for member in item]
    return _scrub(item, change)


def _within(text: str, change: Callable[[str], str]) -> str:
    """Return text that is itself JSON with its members scrubbed; any other text unchanged."""
    if text[:1] not in _OPENING or text[-1:] not in _CLOSING:
        return text
    body = text.encode("utf-8", "surrogatepass")
    value = json_or_none(body)
    if value is None:
        return text
    return rewrite_texts(body, value, _scrub(value, change)).decode("utf-8", "surrogatepass")


def scrub_lines(text: str, literal: tuple[str, ...] = ()) -> str:
    """Return a body other than JSON without credentials: lines of JSON, events, forms, prose.

    Args:
        text: the body.
        literal: credentials in use, whatever their shape.
    """

    def clean(line: re.Match[str]) -> str:
        return line[1] + _within(line[2], partial(scrub_literal, literal=literal))

    lined = _JSON_LINE.sub(clean, text) if "{" in text or "[" in text else text
    if "=" in lined and not any(map(str.isspace, lined)):
        lined = _FORM_PAIR.sub(_without_credential, lined)
    return scrub_literal(lined, literal)


def _without_credential(pair: re.Match[str]) -> str:
    # As Rails and PHP nest them: ``user[password]``.
    name, value = unquote_plus(pair[2]).rstrip("]"), unquote_plus(pair[3])
    kind = "password" if name.lower() in _PASSWORD_FIELDS else name
    if names.is_password_of(kind, value) or names.is_one_time_code(name, value):
        return f"{pair[1]}[{search.ASSIGNED}]"
    # In a form a plus is a blank, so words have to be separated before the search.
    clean = search.scrub_text(value) if "+" in pair[3] else value
    return pair[0] if clean == value else f"{pair[1]}{quote_plus(clean, safe='/:=@[]')}"


def scrub_literal(text: str, literal: tuple[str, ...]) -> str:
    """Return ``text`` without anything shaped like a credential and without those in use.

    Shapes first: replay, which has no key at hand, must arrive at the same text.
    """
    text = search.scrub_text(text)
    for secret in literal:
        text = text.replace(secret, "[key]")
    return text


def credentials_across_events(text: str, literal: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the kinds of credential that a stream splits across several events.

    If a key is cut after its first letters, only the first piece would be replaced, and the rest,
    which looks like nothing, would be stored.

    Args:
        text: server-sent events of any API: what several events hold at one path is one text.
        literal: credentials in use, whatever their shape.
    """
    places: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for data in sse_data(text):
        found_at: list[tuple[str, Any]] = [("$", data)]
        with suppress(ValueError, RecursionError):  # because an event may be any text
            found_at = list(leaves(json.loads(data)))
        # Different blocks and choices are different texts, even if they arrive in turns.
        numbers = [f"{path}={leaf}" for path, leaf in found_at if path.endswith(".index")]
        for path, leaf in found_at:
            if isinstance(leaf, str):
                places[path, *numbers].append(leaf)
    change = partial(scrub_literal, literal=literal)
    kinds: list[str] = []
    for pieces in places.values():
        whole = "".join(pieces)
        in_whole = [
            *search.find_secrets(whole),
            *("key-in-use" for secret in literal if secret in whole),
        ]
        # Only what scrubbing piece by piece would not remove.
        if in_whole and change(whole) != "".join(map(change, pieces)):
            kinds += in_whole
        # A tool's input is JSON in pieces: a name may be in one piece, its value in another.
        scrubbed = "".join(_scrub(piece, change) for piece in pieces)
        if scrubbed.startswith(_OPENING):
            body = scrubbed.encode("utf-8", "surrogatepass")
            kinds += (secret.kind for secret in secrets_in(body))
    return tuple(dict.fromkeys(kinds))


def stable_uri(
    uri: str, response_headers: Mapping[str, Iterable[str]], literal: tuple[str, ...] = ()
) -> str:
    """Return the address as stored: independent of a local server's port, without credentials."""
    parts = urlsplit(uri)
    origin = stable_origin(uri, response_headers)
    path, query = scrub_path(parts.path, literal), scrub_query(parts.query, literal)
    return urlunsplit((*origin, path, query, ""))


def stable_origin(uri: str, response_headers: Mapping[str, Iterable[str]]) -> tuple[str, str]:
    """Return the scheme and the server of an address as they are stored."""
    parts = urlsplit(uri)
    host = parts.hostname or ""
    if is_emulated(response_headers):
        return "http", "emulator.invalid"
    if host in _LOOPBACK or host.startswith("127."):
        return "http", "loopback.invalid"
    return parts.scheme, parts.netloc.rpartition("@")[2]


def scrub_path(path: str, literal: tuple[str, ...] = ()) -> str:
    """Return a path without credentials, percent-encoded ones included."""
    plain = unquote(path)
    clean = scrub_literal(plain, literal)
    if clean != plain:
        return quoted(clean)
    # A client that follows an address from a cassette may encode the placeholder.
    return _ENCODED_KIND.sub(r"[\1]", path) if "%5" in path else path


def quoted(clean: str) -> str:
    """Return a scrubbed text as a part of an address.

    Brackets stay, so that what stands for a credential ends where its value did.
    """
    return quote(clean, safe="/[]")


def is_private_parameter(name: str, value: str) -> bool:
    """Whether a parameter of an address holds a credential.

    The name decides, whatever the value, except for names with other uses: ``key`` may name a file,
    and addresses that differ in it ask for different things.
    """
    if names.is_one_time_code(name, value):
        return True
    if names.is_harmless_name(name) or (name.lower() == "key" and names.is_entry(value)):
        return False
    return names.is_private_name(name) or any(map(_PRIVATE_WORD.fullmatch, _WORDS.findall(name)))


def scrub_query(query: str, literal: tuple[str, ...] = ()) -> str:
    """Return a query without credentials.

    Each value is searched decoded, because the encoded whole shows no end of one inside a value.
    """
    pairs = []
    for name, value in parse_qsl(query, keep_blank_values=True):
        is_private = is_private_parameter(name, value)
        clean = "[scrubbed]" if is_private else scrub_literal(value, literal)
        pairs.append(f"{quote(scrub_literal(name, literal))}={quoted(clean)}")
    return "&".join(pairs)
