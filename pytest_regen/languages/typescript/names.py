"""Names of the wire in TypeScript: properties keep them, types are called in PascalCase."""

import re
import unicodedata
from typing import Final

from pytest_regen.documents.ir import TypeIR
from pytest_regen.languages.names import capitalise, shorten, split_words, word_set
from pytest_regen.text import quoted

_UTILITIES: Final = word_set(
    """
    Awaited Capitalize ConstructorParameters Exclude Extract InstanceType Lowercase NoInfer
    NonNullable Omit OmitThisParameter Parameters Partial Pick Readonly Record Required
    ReturnType ThisParameterType ThisType Uncapitalize Uppercase
    """
)
_STANDARD: Final = word_set(
    """
    Array ArrayBuffer ArrayLike AsyncIterable AsyncIterator Atomics BigInt Boolean Buffer
    DataView Date Error Function Generator Infinity Intl Iterable IterableIterator Iterator JSON
    Map Math NaN Number Object Promise PromiseLike PropertyKey Proxy ReadonlyArray ReadonlyMap
    ReadonlySet Reflect RegExp Set String Symbol URL Uint8Array WeakMap WeakRef WeakSet
    """
)
RESERVED_TYPE_NAMES: Final = _UTILITIES | _STANDARD
"""Names that a generated type must not take: code that means the standard one would mean it."""

_PREDEFINED: Final = word_set(
    """
    any bigint boolean false never null number object string symbol true undefined unknown void
    """
)
KNOWN_TYPES: Final = _PREDEFINED | RESERVED_TYPE_NAMES
"""Types that exist without being declared in the source."""

_KEYWORDS: Final = word_set(
    """
    arguments as async await break case catch class const continue debugger declare default
    delete do else enum eval export extends false finally for from function get if implements
    import in infer instanceof interface is keyof let new of package private protected public
    readonly return set static super switch this throw true try type typeof unique var while
    with yield z
    """
)

_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_PASCAL: Final = re.compile(r"[A-Z][A-Za-z0-9]*")
_MAX_LENGTH: Final = 100
"""Longer names are cut and told apart by a hash."""


def property_name(wire: str) -> str:
    """Return a property as code names it: its JSON name, in quotes where it is no identifier."""
    return wire if _IDENTIFIER.fullmatch(wire) else quoted(wire)


def member_names(type_: TypeIR) -> dict[str | int, str]:
    """Return how code names each field or value: a property, or the literal of a value."""
    if type_.kind == "enum":
        return {value: quoted(value) for value in type_.enum_values}
    return {name: property_name(str(name)) for name in type_.units}


def type_name(schema_name: str, *, is_root: bool) -> str:
    """Return a legal name for the type of a schema, in PascalCase; a root is called like others."""
    del is_root
    text = unicodedata.normalize("NFC", schema_name)
    if not _PASCAL.fullmatch(text):
        words = split_words(text, _is_letter_or_digit)
        points = "".join(f"U{ord(character):04X}" for character in text)
        text = "".join(capitalise(word, str.isidentifier) for word in words) or points or "Empty"
    text = text if text[0] in "_$" or text[0].isidentifier() else f"Type{text}"
    text = shorten(text, schema_name, _MAX_LENGTH)
    # Because other code of the file that says Map or Date means the standard one.
    return f"{text}Model" if text in RESERVED_TYPE_NAMES or text in _KEYWORDS else text


def is_type_identifier(text: str) -> bool:
    """Return whether ``text`` may name a type, and a constant beside it."""
    # A constant too, because zod's schema and its type have one name.
    is_legal = bool(text) and all(map(_is_letter_or_digit, text)) and not text[0].isdigit()
    return is_legal and text not in _KEYWORDS | _PREDEFINED


def _is_letter_or_digit(character: str) -> bool:
    return character == "$" or f"a{character}".isidentifier()
