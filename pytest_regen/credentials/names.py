"""Names and values: which fields hold a credential, and which values only stand for one.

Standard library only.
"""

import itertools
import math
import re
from collections import Counter
from functools import lru_cache
from typing import Final

PASSWORDS: Final = (
    # The last two are OAuth's, RFC 6749, section 2.3.1.
    *("password", "passwd", "passphrase", "passcode", "pwd", "client_secret", "clientsecret"),
    # In other languages, as in names of fields: with and without accents.
    *("passwort", "kennwort", "wachtwoord", "passord", "lösenord", "losenord", "adgangskode"),
    *("motdepasse", "mot_de_passe", "mot de passe", "contraseña", "contrasena", "contrasenha"),
    *("senha", "hasło", "haslo", "salasana", "jelszó", "jelszo", "lozinka", "şifre", "parola"),
    *("пароль", "密码", "密碼", "口令", "パスワード", "비밀번호"),
)
"""Ends of names of fields that hold a password, in lower case: any value there is private."""
PRIVATE_NAMES: Final = (
    *("key", "token", "secret", "credential", "credentials", "auth", "authorization"),
    *("authentication", "session", "sessionid", "private_key_id", "privatekeyid"),
    *("secret_key_base", "secretkeybase"),
    *PASSWORDS,
)
"""Ends of names of fields that hold a credential, in lower case."""
_PASS = re.compile(r"(?:^|[^A-Za-z])(?i:pass|pw|mdp|clave|heslo|sifre)$|[a-z0-9]P(?:ass|ASS|W|w)$")
"""``DB_PASS`` and ``dbPass``, but not ``compass`` or ``bypass``."""
_CODES: Final = frozenset(
    {"code", "codeverifier", "devicecode", "samlresponse", "assertion", "ticket", "jwt", "otp"}
    | {"hmac", "bearer", "sid", "session", "sessionid", "appid"}
)
"""Parameters for logging in or staying so, which also have other uses: ``?code=DE``."""
_PUBLIC_KEYS: Final = """
    cache idempotency partition routing sort primary foreign resource storage object s3 index group
    dedup deduplication lookup translation row range shard message page next continuation cursor
    start evaluated public pub publishable site vapid applicationserver cite citation bib bibtex
    reference entry item collection document record place location station stop taxon species
    dataset usage i18n locale label string text term field column attribute property dimension
    series metric feature node component style file asset image issue author package module version
    tag flag composite natural unique hash client searchonlyapi
"""
"""What the keys of places, pages, entries and repetitions are of, and those that are published."""
_PUBLIC_TOKENS: Final = """
    page next continuation cursor sync delta pagination paging resume resumption skip start starting
    scroll offset idempotency clientrequest eos bos pad
"""
_HARMLESS: Final = (
    *(f"{what}key" for what in _PUBLIC_KEYS.split()),
    *(f"{what}token" for what in _PUBLIC_TOKENS.split()),
    *("forgotpassword", "forgottenpassword", "lostpassword", "showpassword", "hidepassword"),
    # From descriptions of media streams (SDP): valid for one call only.
    "icepwd",
)
_SEPARATORS = re.compile(r"[-_.\s]+")
_JOINTS = re.compile(r"[-_./+=~%:@ ]+")
_SIGNS = "[A-Za-z0-9_+/.~=%-]"
_TOKEN = re.compile(f"{_SIGNS}{{16,}}")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{0,22}", re.IGNORECASE)
"""Or its beginning, because folded base64 is also read line by line."""
_HEX = re.compile(r"[0-9a-f]{32,}\Z|[0-9A-F]{32,}\Z")
_WORDY = re.compile(r"[A-Za-z]+(?:[-_./ ]+[A-Za-z]+)*[-_./]*[0-9]{0,4}")
_CODE = re.compile(
    r"(?:[a-z_]+[0-9]{1,3}[a-z_]*|[A-Za-z_]+)(?:\.(?:[a-z_]+[0-9]{1,3}[a-z_]*|[A-Za-z_]+))+"
)
"""``usage.cache_write_5m_tokens``: a name with dots in it."""
_PUBLISHED = re.compile(
    r"phc_|pk_live_|pk_test_|pk\.eyJ|AWS4-HMAC-SHA256"
    r"|ssh-|ecdsa-|AAAA[BCE][23]N|0x[0-9A-Fa-f]{40}\Z"
)
"""Keys that vendors call public, for use in web pages; the name of a scheme; public keys of SSH;
addresses of tokens and accounts in a chain."""
_ENTRY = re.compile(
    # A file, the key of a citation, an id with words, a path with a folder.
    r".*[\w)-]\.[A-Za-z][A-Za-z0-9]{0,7}|[A-Za-z-]+(?:19|20)\d\d[A-Za-z]+"
    r"|\d+(?:[_-][a-z0-9]+){3,}|(?:[\w =~-]*/)*[a-z]{3,}[_-]?/[\w /=~-]*",
    re.DOTALL,
)
_SHORTEST: Final = 16
"""In characters: a shorter word is a credential only if it is named as one."""
_SHORTEST_PASSWORD: Final = 4
_SHORTEST_MIXED: Final = 8
# In Shannon bits per character, because words, repetitions and counters have less.
_BITS: Final = 3.0

_WRAPPED = re.compile(r"[$%@#]{0,2}[<{\[(«].*[>}\])»]+|[$%]\w+%?|\{\{.*\}\}", re.DOTALL)
_MASK = re.compile(r"[*xX.•·#_?\-…0]+")
"""``****``, ``xxxx-xxxx``, ``…``: masked values."""
_GONE = re.compile(
    # ``sk-...``, ``ntn_***``, ``Token <token>``, ``Discogs token=REDACTED``: what was taken out.
    r"\.{3}|…|[*•·#]{3,}|(?<=[-_=: ])(?:[xX]{3,}|[<{\[(][A-Za-z_ .-]{3,}[>}\])]|"
    r"(?i:redacted|scrubbed|filtered|masked|hidden|removed))(?![A-Za-z0-9])"
)
_PARTS_LEFT = re.compile(r"[A-Za-z0-9+/~!@%^&]+")
_NAME = re.compile(r"(?:[A-Za-z]* )?(?:[A-Za-z]+_)+(?i:key|token|secret)")
"""``Bearer my_service_api_key``: the name of a credential."""
_PIECES = re.compile(r"[A-Za-z]+|[0-9]+|[*•·#…]+|\.{3}")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_STAND_INS_TEXT: Final = """
    redacted scrubbed filtered masked hidden removed placeholder dummy fake mock mocked stub
    changeme bogus none null test testing tests tester foo bar baz your my todo replace insert
    omitted sanitized sanitised obfuscated anonymized anonymised example sample invalid unused
    xxx whatever something dontcare notneeded
"""
_STAND_INS: Final = frozenset(_STAND_INS_TEXT.split())
"""Words that mark a placeholder, among words of these two lists."""
_FILLERS_TEXT: Final = """
    a an and api app apikey as auth authorization authentication azure aws anthropic openai
    gemini google mistral groq cohere bearer basic ci client cookie credential credentials csrf
    default demo dev development env for from goes header here id in is it key keys live local
    me model must name no not of on only or org organization organisation pass password project
    proj provider real recording replay x secret service session set sk ant some string the this
    to token unit user username value vcr with openrouter hf huggingface deepseek access admin
    private public be used pk rk v but any valid key1 key2 shared long enough very super account
"""
_FILLERS: Final = frozenset(_FILLERS_TEXT.split())
_SEQUENCES: Final = ("0123456789012345678901234567890", "abcdefghijklmnopqrstuvwxyz")
_LABELS_TEXT: Final = """
    string required optional nullable password text hidden number integer boolean object array
    secret visible invalid incorrect missing empty none null true false undefined unknown
    forgotten reset changed expired weak strong medium plaintext bcrypt argon scrypt default
    disabled enabled credential credentials keyring prompt vault encrypted hashed username email
    input value label field placeholder changeme example protected denied failed wrong mismatch
    generated random unchanged provided supplied rejected accepted
"""
_LABELS: Final = frozenset(_LABELS_TEXT.split())
"""Words that follow ``password`` without being one: types, labels, results of checks."""
_SENTENCE_TEXT: Final = """
    a an and are as at be but by can cannot characters do does enter for forgot from has have
    here if in is it least length letters least long minimum must my new no not of on one or our
    password passwords please required reset should that the their this to too use user valid
    was were will with you your
"""
_SENTENCE: Final = frozenset(_SENTENCE_TEXT.split())
"""Words of sentences about passwords; generated passphrases do not use them."""
_NO_PASSWORD = re.compile(r"^(?:/[a-z_-]+)+/?$|^https?://[^@]*$|[\u0530-\u1dff\u2e80-\uffdf]")
"""Addresses where one is set, and words of scripts in which passwords cannot be typed."""
_FEWEST_WORDS: Final = 3
_SHORTEST_WORD: Final = 6
_SHORTEST_MASK: Final = 3
_LONGEST_PLACEHOLDER: Final = 120


@lru_cache(maxsize=1024)
def is_private_name(name: str) -> bool:
    """Whether a field of this name holds a credential: ``api_key``, ``authToken``.

    Signatures do not count: they prove an origin and grant no access. A conversation continues only
    with the signatures of its model, so they have to stay unchanged.
    """
    lower = name.lower()
    return (
        lower.endswith(PRIVATE_NAMES) or _PASS.search(name) is not None
    ) and not is_harmless_name(name)


@lru_cache(maxsize=1024)
def is_harmless_name(name: str) -> bool:
    """Whether a name only looks like that of a credential: ``prompt_cache_key``, ``pageToken``.

    Frameworks put variables named ``NEXT_PUBLIC_...`` into web pages.
    """
    plain = _SEPARATORS.sub("", name.lower())
    return plain.endswith(_HARMLESS) or "public" in plain


def is_password_of(name: str, value: str) -> bool:
    """Whether a field of this name holds a password or a token.

    After ``password`` any value counts, unless it is a placeholder, a label or a sentence; after
    ``api_key`` and the like, a value that looks random. ``key`` alone names entries of all sorts,
    so it needs a value with the shape of a credential.
    """
    lower = name.lower()
    if len(value) < _SHORTEST_PASSWORD or lower == "key" or not is_private_name(name):
        return False
    if is_placeholder(value):
        return False
    if lower.endswith(PASSWORDS):
        if value.lower().endswith(PASSWORDS) or _NO_PASSWORD.search(value):
            return False
        words = value.split()
        if len(words) > 1:
            is_phrase = len(words) >= _FEWEST_WORDS and all(map(str.isalnum, words))
            return is_phrase and not _SENTENCE.intersection(map(str.lower, words))
        letters = value.replace("-", "").replace("_", "")
        parts = {part.lower() for part in re.split(r"[-_]", value)}
        return not letters.isalpha() or (len(value) >= _SHORTEST_WORD and not parts & _LABELS)
    if _PASS.search(name) and is_mixed(value):
        return True
    # With a scheme in front: "Token ...".
    *scheme, last = value.split(" ")
    is_id = lower.endswith(("session", "sessionid")) and is_uuid(last)
    if len(scheme) > 1 or _TOKEN.fullmatch(last) is None or is_id or is_placeholder(last):
        return False
    return is_drawn(last)


def is_entry(value: str) -> bool:
    """Whether a value is a path or a reference, like the key of an object in a store."""
    has_parts = any(sign in value for sign in ".:/@ ")
    is_plain = has_parts and not any(map(is_mixed, _JOINTS.split(value)))
    return is_plain or _ENTRY.fullmatch(value) is not None


def is_mixed(value: str) -> bool:
    """Whether a short value changes between cases and digits more often than names do.

    ``newPassword2`` changes at every fourth letter, random values at every second.
    """
    if len(value) < _SHORTEST_MIXED or not any(map(str.isdigit, value)):
        return False
    return changes_often(value) and any(map(str.isalpha, value))


def changes_often(value: str) -> bool:
    """Whether two of five characters differ in class (case, digit, sign) from the one before."""
    return _changes(value) * 5 >= len(value) * 2


def _changes(value: str) -> int:
    signs = [(sign.islower(), sign.isupper(), sign.isdigit()) for sign in value]
    return sum(before != after for before, after in itertools.pairwise(signs))


def is_one_time_code(name: str, value: str) -> bool:
    """Whether a parameter of an address or form is for logging in or staying so.

    Its name may mean anything (``code=DE``), so its value must look random and not be an id.
    """
    plain = _SEPARATORS.sub("", name.lower())
    if plain == "key":
        is_one = _HEX.match(value) or (value.isalnum() and changes_often(value)) or is_uuid(value)
        return bool(is_one) and looks_random(value)
    return plain in _CODES and looks_random(value) and not is_uuid(value)


def is_uuid(value: str) -> bool:
    """Whether a value is a UUID: the name of a session, not the key to it."""
    return _UUID.fullmatch(value) is not None


def is_drawn(value: str) -> bool:
    """Whether a value behind a private name was drawn at random, be it of letters alone.

    One in thirty random strings of twenty letters and digits has no digit. Of the letters of
    ``AbstractFactoryBean`` few are capitals, and those of ``HTTPServer`` stand together.
    """
    if len(value) < _SHORTEST or not (value.isascii() and value.isalpha()):
        return looks_random(value)
    large, changes = sum(map(str.isupper, value)), _changes(value)
    is_even = len(value) <= large * 3 <= len(value) * 2
    return changes * 5 >= len(value) * 2 or (is_even and changes * 4 >= len(value))


@lru_cache(maxsize=1024)
def looks_random(value: str) -> bool:
    """Whether a text is so irregular that it must have been generated."""
    if len(value) < _SHORTEST or _WORDY.fullmatch(value) or _CODE.fullmatch(value):
        return False
    if not (any(map(str.isdigit, value)) and any(map(str.isalpha, value))):
        return False
    # A name or a path: words with only numbers between them.
    pieces = _JOINTS.split(value)
    has_word = any(len(piece) >= _SHORTEST_WORD and piece.islower() for piece in pieces)
    is_spelt = all(len(piece) <= _SHORTEST_WORD or piece.isalpha() for piece in pieces)
    if _PUBLISHED.match(value) or (has_word and is_spelt):
        return False
    counts = Counter(value).values()
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts) >= _BITS


@lru_cache(maxsize=1024)
def is_placeholder(value: str) -> bool:
    """Whether a value only stands in for a credential: ``<token>``, ``***``, ``sk-fake-1``.

    It consists only of words, masks and counters, and one of them marks it as a placeholder; beside
    a mask less may be left of the credential than a short password has. A value with any longer
    random part is not one.
    """
    if not value or _WRAPPED.fullmatch(value) or _MASK.fullmatch(value):
        return True
    if len(value) > _LONGEST_PLACEHOLDER:
        return False
    masked, masks = _GONE.subn(" ", value)
    left = [part for part in _PARTS_LEFT.findall(masked) if part.lower() not in _FILLERS]
    if (masks and sum(map(len, left)) < _SHORTEST_MIXED) or _NAME.fullmatch(value):
        return True
    says_so = False
    for piece in _PIECES.findall(_CAMEL.sub(" ", value)):
        word = piece.lower()
        if word in _STAND_INS or (len(word) >= _SHORTEST_MASK and _MASK.fullmatch(word)):
            says_so = True
        elif not (
            word in _FILLERS
            or (word.isdigit() and len(word) < _SHORTEST_MASK)
            or (len(word) >= _SHORTEST_MASK and any(word in sequence for sequence in _SEQUENCES))
        ):
            return False
    return says_so
