"""Finding and replacing credentials in text. Standard library only."""

import re
import string
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from pytest_regen.credentials import encodings, names
from pytest_regen.credentials.shapes import SECRET_SHAPES, SecretShape

ASSIGNED: Final = "assigned-secret"
"""The kind of random values without a shape of their own, found after ``key=``."""

_OF_PASSWORDS: Final = (*names.PASSWORDS, "pass", "_pw")
_SIGNATURES: Final = ("signature", "sig")
"""A signature grants access only as part of an address."""
_NAMES: Final = (*names.PRIVATE_NAMES, "pass", "_pw", *_SIGNATURES)
"""Ends of private names that are searched in texts."""
_CORE_OF: Final = {name: min((core for core in _NAMES if core in name), key=len) for name in _NAMES}
"""The shortest private name within each: few texts hold ``pass``, so most are looked for once."""
_CORES: Final = frozenset(_CORE_OF.values())
_SIGNS = "[A-Za-z0-9_+/.~=%-]"
_VALUE = f"({_SIGNS}{{16,512}})"
"""The part of a value that is examined. Bounded, because with many names in a row each value would
be read to the end of the text."""
_REST = re.compile(f"{_SIGNS}*")
_IS = r"[ \t](?:is|ist|lautet|est|es)[ \t]"
_ATTRIBUTE = (
    r"""(?:["'][ \t]+(?:[\w-]{1,30}=["'][^"'<>]{0,60}["'][ \t]+){0,4}"""
    r"""(?i:value|val|default|content)(?=[ \t]*=)|["']?\r?\n[ \t]+value(?=:[ \t])"""
    r"""|"[ \t]*\{[^{}]{0,300}?\bdefault(?=[ \t]*=)"""
    r"""|"[ \t]*,\s{0,20}"(?i:value|val|default)(?="[ \t]*:))?"""
)
"""As in XML, YAML, Terraform, JSON: the name is that of an attribute or a block with the value."""
_BLOCK = r"(?:[|>][+-]?\r?\n[ \t]+)?"
"""A YAML text that begins in the next line."""
_BEHIND = re.compile(
    # The end of a name in code, JSON or Markdown, and the type it may be declared with.
    _ATTRIBUTE + r"""["'`*\])]{0,4}(?:[ \t]*:[ \t]*&?[A-Za-z]{3,12}(?=[ \t]*=))?"""
    rf"""[ \t]*(?:=>|:=|[:=>]|%3[Dd]|{_IS})[ \t]*{_BLOCK}(?:<[a-z]{{1,10}}>)?"""
    # The start of a value; a function with a name and a default; a scheme.
    r"""["'`*({]{0,4}(?:[\w.]{2,30}\(["'][^"'\n]{1,60}["'],[ ]?["'])?"""
    r"""(?:(?i:token|apikey|api-key|key|bot|digest|sso-key)[ ]|base64:)?""" + _VALUE
)
_FLAG: Final = "--pass"
_PATTERNS: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    # An option of a command; a line of .netrc; the user part of an address.
    (
        re.compile(
            r"(?<![\w-])--(?=[A-Za-z])[\w-]{0,40}?"
            r"(?i:key|token|secret|password|passwd|passphrase|pwd|auth)"
            rf"[ \t]+[\"']?{_VALUE}"
        ),
        "--",
    ),
    (re.compile(rf"password[ \t]+{_VALUE}"), "password "),
    (re.compile(r"--pass(?:word|phrase|wd)[ \t]+[\"']?([^\s\"'`<>&;,]{8,200})"), _FLAG),
    (re.compile(rf"(?i:cookie)[\"']?:[ \t]*[\w.-]{{1,60}}={_VALUE}"), "cookie"),
    # Except those of Sentry, which appear in web pages. Without a slash, because with one it is a
    # page, and the sign behind it begins something else.
    (re.compile(rf"://{_VALUE.replace('/', '')}(?=@(?!o[0-9]+\.ingest\.))"), "://"),
)
"""Other places where a random value is a credential, each with a text that must occur."""
_PASSWORD = re.compile(
    rf"""({_ATTRIBUTE})["'`]?(?:[ \t]*(?:=>|[:=])[ \t]*|\((?=["']))"""
    rf"""{_BLOCK}["'`]?([^\s"'`<>&;,]{{8,200}})"""
)
_ELEMENT = re.compile(
    # XML: the text of an element, or of the next one, as in property lists.
    r"(?:\s[^<>]{0,200})?>\s{0,20}(?:<!\[CDATA\[)?([^<>\s][^<>]{2,500}?)\s{0,20}(?:\]\]>)?</"
    r"|</(?:key|name|th|td|dt)>\s{0,40}(?:<(?:string|value|td|dd)>\s{0,40}){1,2}"
    r"([^<>\s][^<>]{2,500})</",
    re.IGNORECASE,
)
_TAG = re.compile(
    r"<(?:[A-Za-z][\w-]{0,30}:)?[\w.-]{0,60}\Z|<(?:key|name|th|td|dt)>[\w .-]{0,60}\Z",
    re.IGNORECASE,
)
_VARIABLE = re.compile(rf"[ \t]+[\"']?{_VALUE}")
_VARIABLE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[_-][A-Za-z0-9]+)+")
"""As in Dockerfiles, fish, Windows, cookie files: ``ENV API_KEY ...``."""
_ARGUMENT = re.compile(r"""["'][ ]?,[ ]?["']([^\s"'`]{8,500})["'][ ]?\)""")
"""A function with a name and its value: ``define("DB_PASSWORD", "...")``."""
_MEMBER = re.compile(r'"[ \t]*:[ \t]*"([^"\\\n]{4,200})"')
"""JSON in a text, in which passwords are recognized as in JSON itself."""
_PAIR = re.compile(r"""=([^\s"'`<>&;,]{4,200})""")
_ADDRESS = re.compile(r"[?&;][A-Za-z0-9_. -]{0,60}\Z")
"""Text before a name that is one of several in an address or connection string."""
_LONGEST_NAME: Final = 64
_NAME_BEFORE = re.compile(r"[A-Za-z0-9_.-]*\Z")
_OF_KEYS = re.compile(
    r"(?i:api|access|account|admin|auth|app|client|encryption|licen[sc]e|master|private|secret"
    r"|my|our|your|service|shared|signing|subscription)[ \t]\Z"
)
_WORDS = re.compile(r"[A-Za-z0-9]+[^A-Za-z0-9]?")
"""Words, each with the character after it."""
_START: Final = 2
"""How many characters of a word are enough to exclude most marks."""


_MARKS: Final[defaultdict[str, list[tuple[str, SecretShape]]]] = defaultdict(list)
"""Marks with their shapes by their first word (``ghp_``) or its start (``AK``).

So the words in a text, computed once, tell which of two hundred marks have to be searched. Those
inside of words stand at ``""``, those that may have blanks at ``" "``.
"""
for _shape in SECRET_SHAPES:
    for _mark in _shape.marks:
        _word = " " if _shape.has_blanks else ""
        if not (_word or _shape.ahead) and (_first := _WORDS.match(_mark)):
            _word = _mark[:_START] if _first[0].isalnum() else _first[0]
        _MARKS[_word].append((_mark, _shape))
_BEHIND_BACKSLASH = re.compile(r"\\[abefnrtuvxNLPU0_]\S{15,80}")
"""A long word whose first letter was read as one of an escape, as in a path of Windows."""
_DEFAULTS: Final = frozenset({"password", "passwd", "pass", "postgres", "guest", "pwd", "mysql"})
"""Passwords of examples and of local databases."""
# In characters, because a mark of no more occurs in encoded data by chance.
_WEAK: Final = 5
_LETTERS: Final = string.ascii_letters + string.digits
_ALPHABETS: Final = (f"{_LETTERS}-_", f"{_LETTERS}+/")
_BESIDE: Final = 100
"""How many characters of encoded data are looked at on either side of a shape."""
# No word fits two of these, because a search that tries both would take for ever.
_PART = "(?:[A-Z]?[a-z0-9]+|[A-Z]{2}[A-Z0-9]*|[A-Z])"
_SLUG = re.compile(rf"[-_+/]?(?:{_PART}(?:[-_+/]{_PART})*[-_+/]?)?")
"""What may stand beside a credential in one word: a path, a name, as in ``PROD_AKIA…``."""
# Because fewer characters beside a credential say nothing about what they are: ``id9aAB1-AKIA…``.
_LEAST_DATA: Final = 24
_FOLD = re.compile(
    # Between two lines of base64: of 64 characters in PEM, 76 in mail.
    r"(?<=[A-Za-z0-9+/_-]{60})(?<![A-Za-z0-9+/_-]{81})"
    r"(?:\r?\n|(?:\\r)?\\n)[ \t]*(?=[A-Za-z0-9+/_-]*=*(?:[\r\n\\\"]|\Z))"
)
_FEWEST_COLUMNS: Final = 2
_SHORTEST = 16
"""Characters: below, no word is long enough to be a credential without being named as one."""
_SHORT = re.compile("[:=]")
"""What a shorter text needs to hold one: ``pwd=``, or the ``://`` of an address."""
_ROUNDS = 3
"""How often a text is searched again after something in it was replaced."""
_DEEPEST = 7
"""How many levels of encoding inside encoding are searched."""


def find_secrets(text: str) -> tuple[str, ...]:
    """Return the names of the kinds of credential that ``text`` holds, never the values.

    Text that is escaped, in base64 or percent-encoded is searched, too.
    """
    return tuple(dict.fromkeys(kind for edit in _edits(text, _DEEPEST) for kind in edit.kinds))


class Secret(NamedTuple):
    """A credential in a text. Only for hashing and placing it; its value is never shown."""

    kind: str
    value: str
    """Its text as it stands there, escaped or encoded."""
    start: int = 0


def secrets_with_values(text: str) -> tuple[Secret, ...]:
    """Return each credential of ``text``; use ``find_secrets`` for what is shown or written."""
    return tuple(
        Secret(kind, text[edit.start : edit.end], edit.start)
        for edit in _edits(text, _DEEPEST)
        for kind in edit.kinds
    )


def scrub_text(text: str) -> str:
    """Return ``text`` with every credential replaced by the name of its kind."""
    for _ in range(_ROUNDS):
        edits = _edits(text, _DEEPEST)
        if not edits:
            break
        # What is left around a replacement may now read as a credential itself.
        text = _apply(text, edits)
    return text


def _edits(text: str, deepest: int) -> list[encodings.Edit]:
    """Return the replacements, in order and without overlaps.

    Texts are remembered, because most recordings have the same lines, and because a conversation
    sends its images once more with each turn.
    """
    if len(text) <= _SHORT_LINE:
        return _edits_of_line(text, deepest)
    if _LARGE <= len(text) <= _LARGEST_KEPT:
        return _edits_of_large(text, deepest)
    return _search(text, deepest)


def _search(text: str, deepest: int) -> list[encodings.Edit]:
    if len(text) < _SHORTEST and not _SHORT.search(text):
        return []
    unescaped = encodings.unescape(text) if deepest else text
    # A character is always shorter than its escape.
    has_escapes = len(unescaped) < len(text)
    edits: list[encodings.Edit] = []
    if has_escapes:
        # Escapes first: of a credential that is partly escaped, the plain rest would be incomplete.
        within = _edits(unescaped, deepest - 1)
        if within:
            place = encodings.escaped_places(text)
            edits = [edit._replace(start=place(edit.start), end=place(edit.end)) for edit in within]
            text = _blank(text, edits)
        parts = [match.span() for match in _BEHIND_BACKSLASH.finditer(text)]
        if not parts:
            return edits
    else:
        parts = _outside_large_base64(text)
    lean = " ".join([text[start:end] for start, end in parts])
    long = _long_words(lean)
    for shape, marks in _possible(lean, long):
        for mark in marks:
            # All matches of one mark at once, because each step copies the whole text.
            matches = [
                encodings.Edit(start, end, f"[{shape.name}]", (shape.name,))
                for part in parts
                for start, end in shape.spans(text, mark, *part)
                if "\0" not in text[start:end] and _is_real(text, shape, start, end)
            ]
            edits += matches
            text = _blank(text, matches)
    if has_escapes:
        return sorted(edits)
    assigned = _assigned_edits(text, lean, long)
    edits += assigned
    text = _blank(text, assigned)
    if deepest:
        words = long if len(parts) == 1 and not edits else _long_words(text)

        def clean(plain: str) -> tuple[str, tuple[str, ...]] | None:
            within = _edits(plain, deepest - 1)
            kinds = tuple(kind for edit in within for kind in edit.kinds)
            return (_apply(plain, within), kinds) if within else None

        encoded = (
            *encodings.base64_edits(text, words, clean),
            *encodings.percent_edits(text, clean),
        )
        edits += encodings.without_overlaps(encoded)
    return sorted(edits)


_SHORT_LINE: Final = 1_000
_LARGEST_KEPT: Final = 1 << 22
_edits_of_line = lru_cache(maxsize=1 << 14)(_search)
_edits_of_large = lru_cache(maxsize=8)(_search)


def _apply(text: str, edits: Sequence[encodings.Edit]) -> str:
    pieces, at = [], 0
    for edit in edits:
        pieces += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*pieces, text[at:]])


def _blank(text: str, edits: Sequence[encodings.Edit]) -> str:
    """Return a text of the same length with NULs in place of what is to be replaced."""
    blanks = [edit._replace(text="\0" * (edit.end - edit.start)) for edit in sorted(edits)]
    return _apply(text, blanks) if blanks else text


def _assigned_edits(text: str, lean: str, long: str) -> list[encodings.Edit]:
    """Return the replacements of random values after private names, without overlaps.

    Names are searched one by one: a single pattern for all of them takes ten times as long.

    Args:
        text: the text.
        lean: the same without embedded files in base64, which hold no names.
        long: its long words.
    """
    seen = lean.lower()
    cores = {core for core in _CORES if core in seen}
    endings = [
        name
        for name in (_NAMES if long else _OF_PASSWORDS)
        if _CORE_OF[name] in cores and (name in cores or name in seen)
    ]
    patterns = [
        pattern for pattern in _PATTERNS if pattern[1] in seen and (long or pattern[1] == _FLAG)
    ]
    # The only letter whose lower case is two characters would shift all later positions.
    lowered = text.replace("\u0130", "I").lower() if endings else ""
    candidates: set[tuple[int, int]] = set()
    for name in endings:
        end = 0
        while (at := lowered.find(name, end)) >= 0:
            end = at + len(name)
            if text[end : end + 1].isalnum():
                continue
            span = _value_behind(text, end, name) or _span_in_markup(text, at, end)
            if span and _is_named(text, at, end, name, span):
                candidates.add(span)
            elif not span and text[end : end + 2].lstrip(" ")[:1] in _CELL_ENDS:
                candidates.update(_column(text, at, end))
    for pattern, _ in patterns:
        matches = pattern.finditer(text)
        candidates.update(m.span(1) for m in matches if names.is_drawn(m[1]) or _is_password(m[1]))
    # To the end of the value, of which only the start was examined.
    whole = (
        (start, m.end() if (m := _REST.match(text, end)) else end) for start, end in candidates
    )
    return encodings.without_overlaps(
        encodings.Edit(*span, f"[{ASSIGNED}]", (ASSIGNED,)) for span in whole
    )


def _is_real(text: str, shape: SecretShape, start: int, end: int) -> bool:
    """Whether a match of a shape is a credential: not a placeholder, and not a part of base64."""
    match = text[start:end]
    if shape.name == "url-password" or shape.pattern.groups:
        password = match.partition(":")[2] if shape.name == "url-password" else match
        is_example = password.lower() in _DEFAULTS or password.startswith("$")
        return not (is_example or names.is_placeholder(password))
    if min(map(len, shape.marks)) <= _WEAK and _is_in_data(text, start, end):
        return False
    mark = next(filter(match.startswith, shape.marks), "")
    return not names.is_placeholder(match.removeprefix(mark))


def _is_in_data(text: str, start: int, end: int) -> bool:
    """Whether a shape is only a part of base64 data, in one line or folded.

    More of its alphabet stands beside it then, and not as words.
    """
    match = text[start:end].rstrip("=")
    end = start + len(match)
    before = _FOLD.sub("", text[max(0, start - _BESIDE) : start]).rpartition("%")[2]
    behind = _FOLD.sub("", text[start : end + _BESIDE])[len(match) :]
    sides = (
        side
        for signs in _ALPHABETS
        if not match.strip(signs)
        for side in (
            before[len(before.rstrip(signs)) :],
            behind[: len(behind) - len(behind.lstrip(signs))],
        )
    )
    return any(len(side) >= _LEAST_DATA and not _SLUG.fullmatch(side) for side in sides)


_CELL_ENDS: Final = frozenset({",", ";", "\t", "|", '"', "\r", "\n"})
_DELIMITERS: Final = (",", ";", "\t", "|")
_HEADING = re.compile(r'[ \t]*"?[ \t]*[^\W\d][\w .-]{0,40}"?[ \t\r]*')
_LONGEST_ROW: Final = 2_000
_MOST_ROWS: Final = 200


def _column(text: str, at: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the credentials in the column of this name, in a table whose rows are lines."""
    start = text.rfind("\n", max(0, at - _LONGEST_ROW), at) + 1
    stop = text.find("\n", end, start + _LONGEST_ROW)
    if stop < 0:
        return
    row = text[start:stop]
    delimiter = max(_DELIMITERS, key=row.count)
    headings = row.split(delimiter)
    column = row.count(delimiter, 0, at - start)
    # Text before a table may share its first line. In Markdown a line begins and ends with a bar.
    titles = [heading for heading in headings[1:] if delimiter != "|" or heading.strip()]
    if len(headings) < _FEWEST_COLUMNS or not all(map(_HEADING.fullmatch, titles)):
        return
    name = headings[column].strip(' \t\r"')
    for _ in range(_MOST_ROWS if names.is_private_name(name) else 0):
        start, stop = stop + 1, text.find("\n", stop + 1, stop + _LONGEST_ROW)
        stop = stop if stop >= 0 else min(len(text), start + _LONGEST_ROW)
        cells = text[start:stop].split(delimiter)
        if len(cells) != len(headings):
            return
        value = cells[column].strip(' \t\r"')
        if names.is_private_name(value):
            # Another heading: its rows belong to that one.
            return
        if names.is_password_of(name, value):
            before = start + sum(len(cell) + 1 for cell in cells[:column])
            value_at = before + cells[column].index(value)
            yield value_at, value_at + len(value)


def _value_behind(text: str, end: int, name: str) -> tuple[int, int] | None:
    """Return the span of the value that this name makes a credential, if there is one."""
    value = _BEHIND.match(text, end)
    if value and names.is_drawn(value[1]):
        is_id = name in {"session", "sessionid"} and names.is_uuid(value[1])
        return None if is_id or names.is_placeholder(value[1]) else value.span(1)
    if name not in _OF_PASSWORDS:
        value = _PASSWORD.match(text, end)
        if value and value[1] and names.is_mixed(value[2]):
            return value.span(2)
        # A value rich in symbols, as frameworks generate: ``SECRET_KEY=b$!2``.
        value = _SIGNED.match(text, end)
        if value is None:
            return None
        # The next parameter and percent-encoded bytes do not count as symbols.
        signs = sum(map(_QUOTED.sub("", value[1]).count, "!@#$%^&*"))
        digits = sum(map(str.isdigit, value[1]))
        enough = signs >= (2 if names.is_mixed(value[1]) else 4)
        return value.span(1) if enough and digits > 1 else None
    kind = name if name in {"pass", "_pw"} else "password"
    is_parameter = _ADDRESS.search(text, max(0, end - _LONGEST_NAME), end)
    value = _MEMBER.match(text, end) or (_PAIR.match(text, end) if is_parameter else None)
    if value:
        return value.span(1) if names.is_password_of(kind, value[1]) else None
    value = _PASSWORD.match(text, end)
    if value is None:
        return None
    # Of a shell variable the value is not code, so that fewer signs of chance suffice.
    is_variable, word = text[end] == "=" and text[end - 1].isupper(), value[2]
    has_both = any(map(str.isdigit, word)) and any(map(str.isalpha, word))
    is_literal = (has_both or names.changes_often(word)) and not any(
        sign in word for sign in "([{$.\\"
    )
    is_one = is_variable and is_literal and names.is_password_of("password", word)
    return value.span(2) if is_one or _is_password(word) else None


def _span_in_markup(text: str, at: int, end: int) -> tuple[int, int] | None:
    """Return the span of a credential in an XML element or after a variable, if there is one."""
    if text.rfind("<", max(0, at - _LONGEST_NAME), at) >= 0:
        element = _ELEMENT.match(text, end)
        tag = element and _TAG.search(text, max(0, at - _LONGEST_NAME), at)
        if element and tag:
            number = 1 if element[1] else 2
            name = tag[0].lstrip("<").rpartition(":")[2].rpartition(">")[2] + text[at:end]
            return element.span(number) if names.is_password_of(name, element[number]) else None
    value = _ARGUMENT.match(text, end)
    if value:
        is_password = text[at:end].lower().endswith(names.PASSWORDS) and _is_password(value[1])
        is_one = not names.is_placeholder(value[1]) and (
            is_password or names.looks_random(value[1])
        )
        return value.span(1) if is_one else None
    value = _VARIABLE.match(text, end)
    if value and names.looks_random(value[1]) and not names.is_placeholder(value[1]):
        name = _name_before(text, at, end)
        return value.span(1) if _VARIABLE_NAME.fullmatch(name) else None
    return None


def _name_before(text: str, at: int, end: int) -> str:
    """Return the whole name that ends at ``end``, of which a part was found."""
    before = _NAME_BEFORE.search(text, max(0, at - _LONGEST_NAME), at)
    return f"{before[0] if before else ''}{text[at:end]}"


_SIGNED = re.compile(
    r"""["']?[ \t]*[:=][ \t]*["']?([A-Za-z0-9!@#$%^&*(_=+)-]{24,200})(?=["'\s]|\Z)"""
)
_QUOTED = re.compile(r"&[\w.-]*=|%[0-9A-Fa-f]{2}")


def _is_named(text: str, at: int, end: int, name: str, span: tuple[int, int]) -> bool:
    """Whether the whole name around the part that was found is private.

    ``key`` alone is not, except in an address, behind ``API``, or with the default of a variable.
    """
    if name in _SIGNATURES:
        return _ADDRESS.search(text, max(0, at - _LONGEST_NAME), end) is not None
    whole = _name_before(text, at, end)
    if whole.lower() == "key":
        start = max(0, at - _LONGEST_NAME)
        if _ADDRESS.search(text, start, end):
            return names.is_one_time_code(name, text[slice(*span)])
        return _OF_KEYS.search(text, start, at) is not None or "," in text[end : span[0]]
    if name in {"pass", "_pw", "credential"}:
        return names.is_private_name(whole)
    return not names.is_harmless_name(whole)


@lru_cache(maxsize=1024)
def _is_password(value: str) -> bool:
    """Whether the value after ``password=`` in a text is a password, not code or prose."""
    if any(sign in value for sign in "([{") or names.is_placeholder(value):
        return False
    if _SCATTERED.match(value):
        return True
    digits = sum(map(str.isdigit, value))
    has_sign = any(sign in value for sign in "!@#$%^*?~|")
    has_cases = any(map(str.islower, value)) and any(map(str.isupper, value))
    return has_cases and (digits > 1 or names.is_mixed(value) or (digits == 1 and has_sign))


_SCATTERED = re.compile(r"(?=[a-z0-9]{10})[a-z]*[0-9]+[a-z]+[0-9][a-z0-9]*(?![A-Z_])")
"""Letters with digits at two places or more."""


def _possible(text: str, long: str) -> list[tuple[SecretShape, list[str]]]:
    """Return the shapes whose marks occur in ``text`` or its long words, in their order."""
    occurring = [mark for mark in _MARKS[" "] if mark[0] in text]
    if long:
        words = set(_WORDS.findall(long))
        keys = {"", *words, *(word[:_START] for word in words)}
        begun = [mark for key in _MARKS.keys() & keys for mark in _MARKS[key]]
        occurring += [mark for mark in begun if mark[0] in long]
    marks: defaultdict[SecretShape, list[str]] = defaultdict(list)
    for mark, shape in occurring:
        marks[shape].append(mark)
    return sorted(marks.items(), key=lambda item: SECRET_SHAPES.index(item[0]))


def _outside_large_base64(text: str) -> list[tuple[int, int]]:
    """Return the spans of a text without the inside of large files in base64.

    That saves time: no name stands inside, and what the file hides is searched after decoding.
    """
    if len(text) < _LARGE:
        return [(0, len(text))]
    # One byte for each character, so that what is found in one has its place in the other.
    data, spans, at = text.encode("latin-1", "replace"), [], 0
    for start, end in encodings.runs(data.translate(_DIGITS), _LARGE):
        # Words that are joined in an address have more joints.
        if (
            sum(data.count(joint, start, end) for joint in (b"+", b"/", b"-", b"_")) * 8
            < end - start
        ):
            spans.append((at, start + _KEPT_OF_LARGE))
            at = end - _KEPT_OF_LARGE
    return [*spans, (at, len(text))]


_LARGE: Final = 1 << 14
_KEPT_OF_LARGE: Final = 128
_NO_BLANKS: Final = encodings.shade_table(lambda sign: not (sign.isascii() and sign.isspace()))
_DIGITS: Final = encodings.shade_table(
    lambda sign: sign.isascii() and (sign.isalnum() or sign in "+/-_")
)


def _long_words(text: str) -> str:
    # A credential is a long word, and prose has few of those, so only they are searched.
    if len(text) < _LARGE:
        return " ".join([word for word in text.split() if len(word) >= _SHORTEST])
    # The same for ASCII blanks, ten times as fast.
    data = text.encode("utf-8", "surrogatepass")
    spans = encodings.runs(data.translate(_NO_BLANKS), _SHORTEST)
    return b" ".join([data[start:end] for start, end in spans]).decode("utf-8", "surrogatepass")
