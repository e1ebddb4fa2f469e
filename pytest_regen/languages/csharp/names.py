"""Names of the wire as C# identifiers that read well, are legal and stay apart."""

import re
import unicodedata
from functools import cache
from typing import Final

from pytest_regen.documents.ir import TypeIR
from pytest_regen.languages.names import SYMBOLS, capitalise, shorten, split_words, word_set

KEYWORDS: Final = word_set(
    """
    abstract as base bool break byte case catch char checked class const continue decimal default
    delegate do double else enum event explicit extern false finally fixed float for foreach goto
    if implicit in int interface internal is lock long namespace new null object operator out
    override params private protected public readonly ref return sbyte sealed short sizeof
    stackalloc static string struct switch this throw true try typeof uint ulong unchecked unsafe
    ushort using virtual void volatile while
    """
)
"""Reserved everywhere. The grammar takes ``int class`` without a word, so the table is ours."""

TYPE_KEYWORDS: Final = word_set(
    "dynamic extension file nint nuint partial record required scoped var where"
)
"""Contextual words that a type must not be called, legal as they are for a member."""

RESERVED_TYPE_NAMES: Final = word_set(
    """
    Action Activator Array Attribute Boolean Buffer Byte Char Console Convert DateOnly DateTime
    DateTimeKind DateTimeOffset Decimal Delegate Dictionary Double Enum Environment EventArgs
    Exception Func Guid HashSet ICollection IDictionary IEnumerable IList IReadOnlyCollection
    IReadOnlyDictionary IReadOnlyList ImmutableArray ImmutableDictionary ImmutableList Int16 Int32
    Int64 JsonArray JsonConverter JsonDocument JsonElement JsonException JsonNode JsonObject
    JsonSerializer JsonSerializerOptions JsonStringEnumConverter JsonValue KeyValuePair Lazy List
    Math Microsoft Nullable Object Predicate Queue Random SByte Single Stack String StringBuilder
    System Task TimeOnly TimeSpan TimeZoneInfo Tuple Type UInt16 UInt32 UInt64 Uri ValueTask
    ValueTuple ValueType Void
    """
)
"""Names a generated type must not take: code that means the standard one would stop compiling."""

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
        name = shorten(_pascal(wire_name, "Value"), wire_name, MAX_LENGTH)
    # Because the compiler takes no member that is called as its class, or hides an inherited one.
    return f"{name}Value" if name == owner or name in _INHERITED else name


def member_names(type_: TypeIR) -> dict[str | int, str]:
    """Return an identifier for each field or enum value of ``type_``, all of them different.

    Where several would be called the same, the first keeps the name and the others are numbered;
    a label that the document gives an enum value (``enum_names``) is used instead of the value.
    """
    labels: dict[str | int, str | int] = {unit: unit for unit in type_.units}
    if type_.enum_names and len(type_.enum_names) == len(type_.enum_values):
        labels.update(zip(type_.enum_values, type_.enum_names, strict=True))
    names = {unit: member_name(label, owner=type_.name) for unit, label in labels.items()}
    first_choices, taken = frozenset(names.values()), set[str]()
    for unit, name in names.items():
        free, number = name, 2
        while free in taken or (free != name and free in first_choices):
            free, number = f"{name}{number}", number + 1
        taken.add(free)
        names[unit] = free
    return names


def type_name(schema_name: str, *, is_root: bool) -> str:
    """Return a legal name for the type of a schema; a root's ends in ``DataObject``, once.

    A name that is already in PascalCase keeps its capitals.
    """
    name = schema_name if _PASCAL.fullmatch(schema_name) else _pascal(schema_name, "Type")
    name = shorten(name, schema_name, MAX_LENGTH)
    if is_root:
        return name if name.endswith(ROOT_SUFFIX) else f"{name}{ROOT_SUFFIX}"
    return f"{name}Model" if name in RESERVED_TYPE_NAMES else name


def is_identifier(text: str) -> bool:
    """Return whether ``text`` may name a member: legal characters, no keyword but after ``@``."""
    bare = text.removeprefix("@")
    is_legal = bool(bare) and _is_legal(bare[0], is_first=True) and all(map(_is_legal, bare))
    return is_legal and (bare not in KEYWORDS or text.startswith("@"))


def is_type_identifier(text: str) -> bool:
    """Return whether ``text`` may name a type."""
    return is_identifier(text) and text not in TYPE_KEYWORDS


@cache
def _is_legal(char: str, *, is_first: bool = False) -> bool:
    """Return whether C# allows ``char``; it knows no characters above the basic plane."""
    kinds = {"Lu", "Ll", "Lt", "Lm", "Lo", "Nl"}
    if not is_first:
        kinds |= {"Mn", "Mc", "Nd", "Pc"}
    is_plain = ord(char) <= _BASIC_PLANE and unicodedata.category(char) in kinds
    return is_plain or char == "_"


def _pascal(text: str, prefix: str) -> str:
    """Return the words of ``text`` in PascalCase; ``prefix`` stands before a leading digit."""
    text = unicodedata.normalize("NFC", text)
    words = ["Minus" if text[0] == "-" else "Plus"] if _LEADING_SIGN.match(text) else []
    words += [capitalise(word, _is_legal) for word in split_words(text, _is_legal, _WORD)]
    symbols = (SYMBOLS.get(char, "").capitalize() or f"U{ord(char):04X}" for char in text)
    words = words or [*symbols] or ["Empty"]
    name = words[0]
    for word in words[1:]:
        name += f"_{word}" if name[-1].isdigit() and word[0].isdigit() else word
    return name if _is_legal(name[0], is_first=True) else f"{prefix}{name}"
