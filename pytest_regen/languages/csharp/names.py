"""Names of the wire as C# identifiers that read well, are legal and stay apart."""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Final

from pytest_regen.documents.ir import TypeIR
from pytest_regen.languages.csharp.keywords import (
    KEYWORDS,
    RESERVED_TYPE_NAMES,
    TYPE_KEYWORDS,
    word_set,
)

__all__ = [
    "ROOT_SUFFIX",
    "is_identifier",
    "is_type_identifier",
    "member_name",
    "member_names",
    "type_name",
]

ROOT_SUFFIX: Final = "DataObject"
MAX_LENGTH: Final = 120
"""Longer names are cut and told apart by a hash; the compiler's own limit is 511."""

_BASIC_PLANE: Final = 0xFFFF

_INHERITED: Final = word_set(
    """
    Clone Deconstruct EqualityContract Equals Finalize GetHashCode GetType MemberwiseClone
    PrintMembers ReferenceEquals ToString
    """
)
"""Members that every class or record has already."""

_SYMBOLS: Final[Mapping[str, str]] = {
    "!": "Not",
    "#": "Hash",
    "$": "Dollar",
    "%": "Percent",
    "&": "And",
    "*": "Star",
    "+": "Plus",
    ",": "Comma",
    "-": "Minus",
    ".": "Dot",
    "/": "Slash",
    ":": "Colon",
    ";": "Semicolon",
    "<": "Less",
    "=": "Equal",
    ">": "Greater",
    "?": "Question",
    "@": "At",
    "\\": "Backslash",
    "^": "Caret",
    "_": "Underscore",
    "|": "Or",
    "~": "Tilde",
    " ": "Space",
}
_LEADING_SIGN = re.compile(r"[+-](?=\w)")
_PASCAL = re.compile(r"[A-Z][A-Za-z0-9]*")
_WORD = re.compile(
    r"[A-Z]{3,}(?=[Vv][0-9])"  # the TLS of TLSv1.2, the ANNOTATION of ANNOTATIONV2; not of IPv4
    r"|[A-Z]{2,}s(?![a-z])"  # the URLs of URLsSeen
    r"|[A-Z]+(?=[A-Z][a-z])"  # the XML of XMLReader
    r"|[A-Z]?[a-z]+|[A-Z]+|[0-9]+"
)


def member_name(wire_name: str | int, *, owner: str) -> str:
    """Return a legal identifier for a field or enum value of the type ``owner``."""
    if isinstance(wire_name, int):
        name = f"ValueMinus{-wire_name}" if wire_name < 0 else f"Value{wire_name}"
    else:
        name = _bounded(_pascal(wire_name, "Value"), wire_name)
    return f"{name}Value" if name == owner or name in _INHERITED else name


def member_names(type_: TypeIR) -> dict[str | int, str]:
    """Return an identifier for each field or enum value of ``type_``, all of them different.

    Where several would be called the same, the first keeps the name and the others are numbered;
    a label that the document gives an enum value (``enum_names``) is used instead of the value.
    """
    labels: dict[str | int, str | int] = {unit: unit for unit in type_.units}
    if type_.enum_names and len(type_.enum_names) == len(type_.enum_values):
        labels.update(zip(type_.enum_values, type_.enum_names, strict=True))
    wanted = {unit: member_name(label, owner=type_.name) for unit, label in labels.items()}
    taken = Counter(wanted.values())
    seen: set[str] = set()
    for unit, name in wanted.items():
        if name in seen:
            wanted[unit] = _numbered(name, taken)
        seen.add(wanted[unit])
    return wanted


def _numbered(name: str, taken: Counter[str]) -> str:
    """Return ``name`` with the first number that nothing else has, and take it."""
    number = 2
    while f"{name}{number}" in taken:
        number += 1
    taken[f"{name}{number}"] = 1
    return f"{name}{number}"


def type_name(schema_name: str, *, is_root: bool) -> str:
    """Return a legal name for the type of a schema; a root's ends in ``DataObject``, once.

    A name that is already in PascalCase keeps its capitals.
    """
    name = schema_name if _PASCAL.fullmatch(schema_name) else _pascal(schema_name, "Type")
    name = _bounded(name, schema_name)
    if is_root:
        return name if name.endswith(ROOT_SUFFIX) else f"{name}{ROOT_SUFFIX}"
    return f"{name}Model" if name in RESERVED_TYPE_NAMES else name


def is_identifier(text: str) -> bool:
    """Return whether ``text`` may name a member: legal characters, no keyword but after ``@``."""
    bare = text.removeprefix("@")
    return _has_legal_characters(bare) and (bare not in KEYWORDS or text.startswith("@"))


def is_type_identifier(text: str) -> bool:
    """Return whether ``text`` may name a type."""
    return is_identifier(text) and text not in TYPE_KEYWORDS


def _has_legal_characters(text: str) -> bool:
    if text.isascii():
        return text.isidentifier()
    return bool(text) and _starts(text[0]) and all(_continues(char) for char in text)


def _starts(char: str) -> bool:
    return char == "_" or _continues(char, first=True)


@cache
def _continues(char: str, *, first: bool = False) -> bool:
    """Return whether C# allows ``char``; it knows no characters above the basic plane."""
    category = unicodedata.category(char)
    kinds = {"Lu", "Ll", "Lt", "Lm", "Lo", "Nl"}
    if not first:
        kinds |= {"Mn", "Mc", "Nd", "Pc"}
    return ord(char) <= _BASIC_PLANE and category in kinds


def _pascal(text: str, prefix: str) -> str:
    """Return the words of ``text`` in PascalCase; ``prefix`` stands before a leading digit."""
    text = unicodedata.normalize("NFC", text)
    words = ["Minus" if text[0] == "-" else "Plus"] if _LEADING_SIGN.match(text) else []
    words += [_capitalised(word) for word in _words(text)]
    words = words or [_symbol(char) for char in text] or ["Empty"]
    name = words[0]
    for word in words[1:]:
        name += f"_{word}" if name[-1].isdigit() and word[0].isdigit() else word
    return name if _starts(name[0]) else f"{prefix}{name}"


def _words(text: str) -> list[str]:
    """Return the words of ``text``, without a character that C# does not allow."""
    legal = "".join(" " if char == "_" or not _continues(char) else char for char in text)
    # Capitals tell words apart only in ASCII; elsewhere a word is a run of letters.
    runs = legal.split()
    return [word for run in runs for word in (_WORD.findall(run) if run.isascii() else [run])]


def _capitalised(word: str) -> str:
    """Return ``word`` with a capital first letter; ``ID`` is ``Id``."""
    first, rest = word[:1].upper(), word[1:]
    if not _has_legal_characters(first):
        first = word[:1]
    is_acronym = word.isascii() and (word.isupper() or word[:-1].isupper())
    return first + (rest.lower() if is_acronym else rest)


def _symbol(char: str) -> str:
    return _SYMBOLS.get(char) or f"U{ord(char):04X}"


def _bounded(name: str, original: str) -> str:
    if len(name) <= MAX_LENGTH:
        return name
    digest = hashlib.sha256(original.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{name[: MAX_LENGTH - 9]}_{digest}"
