"""Credentials in a text, found and replaced. A leaf: standard library only."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from pytest_regen.turns.encodings import hidden_parts, unescaped
from pytest_regen.turns.secret_shapes import SECRET_SHAPES, SecretShape

__all__ = [
    "ASSIGNED",
    "find_secrets",
    "is_password_of",
    "is_private_name",
    "is_signed_thought",
    "looks_random",
    "scrub_text",
]

ASSIGNED: Final = "assigned-secret"
"""The kind of what has no shape of its own, but is random and stands behind ``key=``."""

_PRIVATE_NAMES = (
    "key",
    "token",
    "secret",
    "passwd",
    "password",
    "passphrase",
    "pwd",
    "credential",
    "credentials",
    "signature",
    "sig",
    "auth",
    "authorization",
    "session",
    "sessionid",
)
_PASS = re.compile(r"(?:^|[^A-Za-z])(?i:pass)$|[a-z0-9]P(?:ass|ASS)$")
"""``DB_PASS`` and ``dbPass``, and neither ``compass`` nor ``bypass``."""
_PASSWORDS = ("password", "passwd", "passphrase", "pwd")
_STEMS: Final = {
    "key": "",
    "token": "",
    "secret": "",
    "pass": "word|wd|phrase",
    "pwd": "",
    "credential": "",
    "sig": "nature",
    "auth": "orization",
    "session": "id",
}
"""What private names begin with, and how they go on: few have to be looked for in all of a text."""
_NAMES: Final = {stem: re.compile(f"{stem}(?:{rest})?") for stem, rest in _STEMS.items()}
_SIGNS = "[A-Za-z0-9_+/.~=%-]"
_VALUE = f"({_SIGNS}{{16,512}})"
"""What is looked at of a value. Bounded: of many names in a row each would be read to the end."""
_REST = re.compile(f"{_SIGNS}*")
_BEHIND = re.compile(
    # What closes a name, in code, JSON or Markdown, and the type it may be declared with.
    r"""["'`*\])]{0,4}(?:[ \t]*:[ \t]*&?[A-Za-z]{3,12}(?=[ \t]*=))?"""
    r"""[ \t]*(?:=>|:=|[:=>]|%3[Dd]|[ \t]is[ \t])[ \t]*"""
    # What opens a value; a function that is given a name and what to take instead; a scheme.
    r"""["'`*({]{0,4}(?:[\w.]{2,30}\(["'][^"'\n]{1,60}["'],[ ]?["'])?"""
    r"""(?:(?i:token|apikey|api-key|key|bot|digest|sso-key)[ ])?""" + _VALUE
)
_PATTERNS: Final = (
    # Of a command; as .netrc has it; in an address in the place of a user.
    (
        re.compile(
            r"(?<![\w-])--[A-Za-z][\w-]{0,40}?(?i:key|token|secret|password|passwd|pwd|auth)"
            rf"[ \t]+[\"']?{_VALUE}"
        ),
        "--",
    ),
    (re.compile(rf"password[ \t]+{_VALUE}"), "password "),
    (re.compile(rf"://{_VALUE}(?=@)"), "://"),
)
"""Where else a random value is a credential, each with what must stand there."""
_PASSWORD = re.compile(r"""["'`]?(?:=|[ \t]*(?:=>|:)[ \t]*["'`])["'`]?([^\s"'`<>&;,]{8,200})""")
_PLACEHOLDER = re.compile(r"[$%]?[<{\[(].*[>}\])]|[$%]\w+%?|[*x.•]+", re.DOTALL)
_TOKEN = re.compile(f"{_SIGNS}{{16,}}")
_SIGNED_THOUGHT = re.compile(r"E[g-v][A-Za-z0-9+/]{30,}={0,2}")
"""How the Messages API signs a thinking block, in base64. It opens nothing, and a conversation goes
on only with it: the block has to be sent back as it came."""
_WORDS = re.compile(r"[A-Za-z0-9]+")
_START: Final = 2
"""Characters of a word by which it is told that no credential begins so."""
_BLANKED: Final = tuple(shape for shape in SECRET_SHAPES if shape.has_blanks)
_ORDER: Final = {shape: number for number, shape in enumerate(SECRET_SHAPES)}
_ANYWHERE: Final = tuple(
    shape
    for shape in SECRET_SHAPES
    if not shape.has_blanks
    and (shape.ahead != 0 or not all(mark[:_START].isalnum() for mark in shape.marks))
)
"""Kinds that do not begin a word with their mark."""
_BEGUN: Final = tuple(shape for shape in SECRET_SHAPES if shape not in (*_BLANKED, *_ANYWHERE))
_BY_START: Final = {
    start: tuple(shape for shape in _BEGUN if any(mark.startswith(start) for mark in shape.marks))
    for start in {mark[:_START] for shape in _BEGUN for mark in shape.marks}
}
_WORDY = re.compile(r"[A-Za-z]+(?:[-_./ ]+[A-Za-z]+)*[-_./]*[0-9]{0,4}")
_CODE = re.compile(r"[A-Za-z_]+(?:[0-9]{1,3}[A-Za-z_]*)?(?:\.[A-Za-z_]+(?:[0-9]{1,3}[A-Za-z_]*)?)+")
"""``usage.cache_write_5m_tokens``: a name with dots in it."""
_SHORTEST = 16
"""Characters: below, no word is long enough to be a credential without being named as one."""
_SHORT = re.compile("[:=]")
"""What stands in a shorter text that holds one: ``pwd=``, or the ``://`` of an address."""
_SHORTEST_PASSWORD = 4
_DEEPEST = 6
"""Times that a credential is looked for inside what is encoded inside what is encoded."""
_BITS = 3.0
"""Shannon bits a character: below stand words, repetitions and counters."""


@lru_cache(maxsize=1024)
def is_private_name(name: str) -> bool:
    """Whether a field of this name is there to hold a credential: ``api_key``, ``authToken``."""
    return name.lower().endswith(_PRIVATE_NAMES) or _PASS.search(name) is not None


def is_signed_thought(name: str, value: str) -> bool:
    """Whether a field holds the signature of a thinking block, which is no credential."""
    return name == "signature" and _SIGNED_THOUGHT.fullmatch(value) is not None


def is_password_of(name: str, value: str) -> bool:
    """Whether a field of this name holds a password or a token.

    Behind ``password`` stands one of any length, if it has a digit or a sign and no blank and is
    no placeholder; behind ``api_key`` and the like what looks random.
    """
    if len(value) < _SHORTEST_PASSWORD or not is_private_name(name):
        return False
    if is_signed_thought(name, value):
        return False
    if name.lower().endswith(_PASSWORDS):
        return (
            not any(map(str.isspace, value))
            and not value.replace("-", "").replace("_", "").isalpha()
            and _PLACEHOLDER.fullmatch(value) is None
        )
    # With the name of a scheme: "Token ...".
    *scheme, last = value.split(" ")
    return len(scheme) <= 1 and _TOKEN.fullmatch(last) is not None and looks_random(last)


def looks_random(value: str) -> bool:
    """Whether a text is so irregular that somebody must have drawn it."""
    if len(value) < _SHORTEST or _WORDY.fullmatch(value) or _CODE.fullmatch(value):
        return False
    if not (any(map(str.isdigit, value)) and any(map(str.isalpha, value))):
        return False
    counts = Counter(value).values()
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts) >= _BITS


def find_secrets(text: str) -> tuple[str, ...]:
    """Return the names of the kinds of credential that ``text`` holds, never the values.

    They are also found in what is escaped in it, as in JSON, in base64 or percent-encoded.
    """
    return tuple(dict.fromkeys(kind for edit in _edits(text, _DEEPEST) for kind in edit.kinds))


def scrub_text(text: str) -> str:
    """Return ``text`` with every credential replaced by the name of its kind."""
    edits = _edits(text, _DEEPEST)
    return _edited(text, edits) if edits else text


class _Edit(NamedTuple):
    """A part of a text that is to be replaced."""

    start: int
    end: int
    text: str
    kinds: tuple[str, ...]


def _edits(text: str, deepest: int) -> list[_Edit]:
    """Return what is to be replaced, in order and without overlaps."""
    if len(text) < _SHORTEST and not _SHORT.search(text):
        return []
    view = unescaped(text) if deepest else None
    edits: list[_Edit] = []
    if view is not None:
        # First: where a credential is escaped in part, the rest alone would not be all of it.
        within = _edits(view.text, deepest - 1)
        if within:
            place = view.places()
            edits = [one._replace(start=place(one.start), end=place(one.end)) for one in within]
            text = _blanked(text, edits)
    long = _long_words(text)
    for shape in _possible(text, long):
        for start, end in shape.spans(text):
            # Between two marks of one kind there may be one credential.
            if "\0" not in text[start:end]:
                edits.append(_Edit(start, end, f"[{shape.name}]", (shape.name,)))
                text = _blanked(text, edits[-1:])
    if view is None:
        found = [_Edit(*span, f"[{ASSIGNED}]", (ASSIGNED,)) for span in _assigned(text, long)]
        edits += found
        edits += _encoded(_blanked(text, found), long, deepest)
    return sorted(edits)


def _encoded(text: str, long: str, deepest: int) -> Iterator[_Edit]:
    if not deepest:
        return
    for hidden in hidden_parts(text, long, lambda plain: bool(_edits(plain, deepest - 1))):
        within = _edits(hidden.plain, deepest - 1)
        if within:
            clean = hidden.encode(_edited(hidden.plain, within))
            kinds = tuple(kind for edit in within for kind in edit.kinds)
            yield _Edit(hidden.start, hidden.end, clean, kinds)


def _edited(text: str, edits: Iterable[_Edit]) -> str:
    pieces, at = [], 0
    for edit in edits:
        pieces += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*pieces, text[at:]])


def _blanked(text: str, edits: Iterable[_Edit]) -> str:
    """Return a text of the same length that says nothing where it is to be replaced."""
    for start, end, *_ in edits:
        text = text[:start] + "\0" * (end - start) + text[end:]
    return text


def _assigned(text: str, long: str) -> list[tuple[int, int]]:
    """Return where random values stand behind private names, in order and without overlaps.

    Names are found one by one: a pattern that looks for all of them takes ten times as long.
    """
    lowered = text.lower()
    if len(lowered) != len(text):
        # A few letters have a lower case of another length; places would not be the same.
        lowered = "".join(one.lower() if len(one.lower()) == 1 else one for one in text)
    is_long = any(map(str.isdigit, long))
    stems = _STEMS if is_long else ("pass", "pwd")
    found = {span for stem in stems for span in _behind(text, lowered, stem)}
    for pattern, mark in _PATTERNS if is_long else ():
        if mark in lowered:
            matches = pattern.finditer(text)
            found.update(match.span(1) for match in matches if looks_random(match[1]))
    kept: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if not kept or start >= kept[-1][1]:
            rest = _REST.match(text, end)
            kept.append((start, rest.end() if rest else end))
    return kept


def _behind(text: str, lowered: str, stem: str) -> Iterator[tuple[int, int]]:
    """Yield where a random value stands behind a name that begins with ``stem``."""
    at = lowered.find(stem)
    while at >= 0:
        match = _NAMES[stem].match(lowered, at)
        name, end = (match[0], match.end()) if match else (stem, at)
        value = _BEHIND.match(text, end)
        if value and looks_random(value[1]):
            # As a field of JSON; in an address the same name signs something else.
            field = name if text[at - 1 : at] in {'"', "'"} else ""
            is_named = name != "pass" or _PASS.search(text[max(0, at - 1) : end])
            if is_named and not is_signed_thought(field, value[1]):
                yield value.span(1)
        elif name in _PASSWORDS:
            value = _PASSWORD.match(text, end)
            if value and _is_drawn(value[1]):
                yield value.span(1)
        at = lowered.find(stem, at + 1)


def _is_drawn(value: str) -> bool:
    """Whether what stands behind ``password=`` in a text is one, and neither code nor prose."""
    digits = sum(map(str.isdigit, value))
    return (
        any(map(str.islower, value))
        and any(map(str.isupper, value))
        and (digits > 1 or (digits == 1 and any(sign in value for sign in "!@#$%^*?~|")))
        and not any(sign in value for sign in "([{")
        and _PLACEHOLDER.fullmatch(value) is None
    )


def _possible(text: str, long: str) -> list[SecretShape]:
    """Return the shapes whose mark stands in ``text``, or in its long words, in their order."""
    found = {shape for shape in _BLANKED if any(mark in text for mark in shape.marks)}
    if long:
        # A hundred marks need not be looked for where no word begins as they do.
        starts = {word[:_START] for word in _WORDS.findall(long)}
        begun = [shape for start in starts & _BY_START.keys() for shape in _BY_START[start]]
        for shape in (*_ANYWHERE, *begun):
            if any(mark in long for mark in shape.marks):
                found.add(shape)
    return sorted(found, key=_ORDER.__getitem__) if found else []


def _long_words(text: str) -> str:
    # Prose has few, and a credential is one: seventy marks need not be looked for in all of it.
    return " ".join([word for word in text.split() if len(word) >= _SHORTEST])
