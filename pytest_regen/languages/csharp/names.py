"""Names of the wire as C# identifiers that read well, are legal and stay apart."""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from pytest_regen.documents.ir import (
    ArrayOf,
    FieldIR,
    MapOf,
    Ref,
    Scalar,
    TypeExpr,
    TypeIR,
    UnionOf,
)
from pytest_regen.languages.base import Declaration, TypeRef
from pytest_regen.languages.names import shorten, split_words, word_set

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

_OTHER_TYPES = word_set(
    """
    BigInteger BitArray Collection ConcurrentBag ConcurrentDictionary CultureInfo DayOfWeek DBNull
    FrozenDictionary FrozenSet Half HttpStatusCode IComparable ICloneable IConvertible IDisposable
    IAsyncEnumerable IEqualityComparer IComparer IEquatable IFormattable IImmutableDictionary
    IImmutableList IOrderedEnumerable IParsable IQueryable IReadOnlySet ISet ISpanParsable
    IValidatableObject INotifyPropertyChanged ImmutableHashSet ImmutableSortedDictionary Index
    Int128 IntPtr IPAddress LinkedList Memory MemoryStream ObservableCollection
    PropertyChangedEventHandler Range ReadOnlyCollection ReadOnlyDictionary ReadOnlyMemory
    ReadOnlySpan Regex SortedDictionary SortedList SortedSet Span Stream UInt128 UIntPtr Version
    WeakReference JsonCommentHandling JsonConverterFactory JsonNamingPolicy JsonNumberEnumConverter
    JsonNumberHandling JsonProperty JsonSerializerContext JsonValueKind Utf8JsonReader
    Utf8JsonWriter EventHandler Comparison Converter CancellationToken IReadOnlyCollection
    IEnumerator IGrouping ILookup Lookup
    """
)

_PREDEFINED = word_set(
    """
    bool byte char decimal double dynamic float int long nint nuint object sbyte short string uint
    ulong ushort void
    """
)

KNOWN_TYPES: Final = _PREDEFINED | _OTHER_TYPES | (RESERVED_TYPE_NAMES - {"Microsoft", "System"})
"""Types that exist without being declared in the source."""


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
        name = shorten(_pascal(wire_name, "Value"), wire_name, MAX_LENGTH)
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
            wanted[unit] = _add_number(name, taken)
        seen.add(wanted[unit])
    return wanted


def _add_number(name: str, taken: Counter[str]) -> str:
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
    name = shorten(name, schema_name, MAX_LENGTH)
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
    words += [_capitalise(word) for word in _words(text)]
    words = words or [_symbol(char) for char in text] or ["Empty"]
    name = words[0]
    for word in words[1:]:
        name += f"_{word}" if name[-1].isdigit() and word[0].isdigit() else word
    return name if _starts(name[0]) else f"{prefix}{name}"


def _words(text: str) -> list[str]:
    """Return the words of ``text``, without a character that C# does not allow."""
    return split_words(text, _continues, _WORD)


def _capitalise(word: str) -> str:
    """Return ``word`` with a capital first letter; ``ID`` is ``Id``."""
    first, rest = word[:1].upper(), word[1:]
    if not _has_legal_characters(first):
        first = word[:1]
    is_acronym = word.isascii() and (word.isupper() or word[:-1].isupper())
    return first + (rest.lower() if is_acronym else rest)


def _symbol(char: str) -> str:
    return _SYMBOLS.get(char) or f"U{ord(char):04X}"


_ALIASES: Final[Mapping[str, str]] = {
    "Boolean": "bool",
    "Byte": "byte",
    "Char": "char",
    "Decimal": "decimal",
    "Double": "double",
    "Int16": "short",
    "Int32": "int",
    "Int64": "long",
    "Object": "object",
    "SByte": "sbyte",
    "Single": "float",
    "String": "string",
    "UInt16": "ushort",
    "UInt32": "uint",
    "UInt64": "ulong",
}

_SCALARS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "string": {
        "": ("string",),
        "byte": ("byte[]", "string"),
        "date": ("DateOnly", "DateTime", "string"),
        "date-time": ("DateTimeOffset", "DateTime", "string"),
        # The serializer reads no ISO 8601 duration into a TimeSpan; text loses nothing.
        "duration": ("string", "TimeSpan"),
        "time": ("TimeOnly", "TimeSpan", "string"),
        "uri": ("Uri", "string"),
        "uuid": ("Guid", "string"),
    },
    "integer": {
        # Sizes, counters and times outgrow 32 bits, and an overflow is an exception.
        "": ("long", "int"),
        "int8": ("sbyte", "short", "int", "long"),
        "int16": ("short", "int", "long"),
        "int32": ("int", "long"),
        "int64": ("long",),
        "uint8": ("byte", "short", "ushort", "int", "uint", "long", "ulong"),
        "uint16": ("ushort", "int", "uint", "long", "ulong"),
        "uint32": ("uint", "long", "ulong"),
        "uint64": ("ulong",),
    },
    "number": {
        "": ("double", "decimal"),
        "decimal": ("decimal",),
        "double": ("double",),
        "float": ("float", "double"),
        "int32": ("int", "long", "double", "decimal"),
        "int64": ("long", "decimal"),
    },
    "boolean": {"": ("bool",)},
    "any": {"": ("JsonElement", "JsonNode", "object", "dynamic")},
}
"""Kind and format to what holds every such value; the first is what prompts ask for."""

_SEQUENCES: Final = word_set(
    """
    Collection ICollection IEnumerable IImmutableList IList IReadOnlyCollection IReadOnlyList
    ImmutableArray ImmutableList List ObservableCollection []
    """
)
"""What keeps every element of a JSON array, in order. Sets do not."""

_MAPS: Final = word_set(
    """
    ConcurrentDictionary Dictionary FrozenDictionary IDictionary IImmutableDictionary
    IReadOnlyDictionary ImmutableDictionary ImmutableSortedDictionary SortedDictionary
    """
)
_INT: Final = TypeRef("int")
_ANY: Final = Scalar(kind="any")
_OTHER_COLLECTIONS: Final = word_set(
    """
    ConcurrentBag FrozenSet HashSet IAsyncEnumerable ISet ImmutableHashSet KeyedCollection
    LinkedList Queue ReadOnlyCollection ReadOnlyDictionary SortedList SortedSet Stack
    """
)
_REFERENCES: Final = word_set(
    """
    JsonArray JsonDocument JsonNode JsonObject JsonValue Uri Version dynamic object string
    """
)
"""Known types that are null by themselves: ``Nullable<T>`` does not take them."""
_STANDARD = ("System", "Microsoft", "Newtonsoft")


def show_type(reference: TypeRef) -> str:
    """Return a type as the source spells it."""
    if reference.is_wrapped:
        return f"Nullable<{show_type(replace(reference, nullable=False, is_wrapped=False))}>"
    mark = "?" if reference.nullable else ""
    if reference.name in ("[]", "*"):
        return f"{show_type(reference.args[0])}{reference.name}{mark}"
    if reference.name == "ref":
        return f"ref {show_type(reference.args[0])}"
    dotted = f"{reference.qualifier}.{reference.name}" if reference.qualifier else reference.name
    inner = f"<{', '.join(map(show_type, reference.args))}>" if reference.args else ""
    return f"{dotted}{inner}{mark}"


def spell(field: FieldIR) -> str:
    """Return the spelling that prompts ask for: ``IReadOnlyList<long>?``-like, ``?`` included.

    An integer without a format is ``long``, or ``int`` where its constraints fit 32 bits.
    """
    spelled = _spelling(field.type)
    if spelled == "long" and accepts(field.type, _INT) and _fits_32_bits(field.constraints):
        spelled = "int"
    return f"{spelled}?" if must_be_nullable(field) else spelled


def _fits_32_bits(constraints: Mapping[str, Any]) -> bool:
    """Return whether both bounds are given, and no value between them needs more than 32 bits."""
    return all(
        any(_is_in_32_bits(constraints.get(name)) for name in names)
        for names in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))
    )


def _is_in_32_bits(bound: object) -> bool:
    # ``exclusiveMinimum: true`` (OpenAPI 3.0) is no bound but says how ``minimum`` is meant.
    if isinstance(bound, bool) or not isinstance(bound, int | float):
        return False
    return -(2**31) <= bound < 2**31


def _spelling(expression: TypeExpr) -> str:
    match expression:
        case Ref(name=name):
            return name
        case ArrayOf(items=items):
            return f"IReadOnlyList<{_spelling(items)}>"
        case MapOf(values=values):
            return f"IReadOnlyDictionary<string, {_spelling(values)}>"
        case Scalar():
            return spellings_of(expression)[0]
        case UnionOf():  # Read for another language: what holds every value holds each option.
            return spellings_of(_ANY)[0]


def spellings_of(scalar: Scalar) -> tuple[str, ...]:
    """Return the spellings that hold every value of ``scalar``, the preferred one first."""
    formats = _SCALARS[scalar.kind]
    return formats.get(scalar.format_family, formats[""])


def must_be_nullable(field: FieldIR) -> bool:
    """Return whether the field needs ``?``: a value may be absent, or ``null``."""
    return field.nullable or not field.required


def accepts(
    expression: TypeExpr,
    spelled: TypeRef,
    declared: Mapping[str, Declaration] = MappingProxyType({}),
) -> bool:
    """Return whether ``spelled`` can hold every value of ``expression``, nullability aside.

    Args:
        expression: what the document allows.
        spelled: what the source says.
        declared: what the source declares: ``Nullable<T>`` takes none of it but structs and enums.
    """
    for part in spelled.walk():
        if part.is_wrapped and part.name in declared and not declared[part.name].is_value:
            return False
    match expression:
        case Ref(name=name):
            return spelled.name == name and not spelled.args
        case ArrayOf(items=items):
            return _is_sequence(spelled) and accepts(items, spelled.args[0])
        case MapOf(values=values):
            return _is_map(spelled, values)
        case Scalar():
            return canonical_name(spelled) in spellings_of(expression)
        case UnionOf():
            return canonical_name(spelled) in spellings_of(_ANY)


def _is_sequence(spelled: TypeRef) -> bool:
    """Return whether ``spelled`` is written as a JSON array; ``byte[]`` is written as text."""
    if spelled.name not in _SEQUENCES or len(spelled.args) != 1:
        return False
    return canonical_name(spelled) != "byte[]"


def _is_map(spelled: TypeRef, values: TypeExpr) -> bool:
    if spelled.name == "JsonObject":
        return isinstance(values, Scalar) and values.kind == "any"
    if spelled.name not in _MAPS or len(spelled.args) != 2:  # key and value
        return False
    key, value = spelled.args
    return canonical_name(key) == "string" and not key.nullable and accepts(values, value)


def canonical_name(spelled: TypeRef) -> str:
    """Return the keyword for what has one, ``byte[]`` for bytes, else the text without ``?``."""
    if spelled.name == "[]" and canonical_name(spelled.args[0]) == "byte":
        return "byte[]" if not spelled.args[0].nullable else "byte?[]"
    if spelled.args:
        return show_type(spelled).rstrip("?")
    return _ALIASES.get(spelled.name, spelled.name)


def is_collection(reference: TypeRef) -> bool:
    """Return whether the serializer reads what derives from ``reference`` as array or map."""
    return reference.name in _SEQUENCES | _MAPS | _OTHER_COLLECTIONS


def is_reference(reference: TypeRef) -> bool:
    """Return whether the type is known to be null by itself: a text, a collection."""
    if reference.name == "ImmutableArray":
        return False
    return is_collection(reference) or canonical_name(reference).rstrip("?") in _REFERENCES


def is_known(reference: TypeRef) -> bool:
    """Return whether a type of that name exists without being declared in the source."""
    if reference.name.startswith("[") or reference.name in {"()", "*", "ref"}:
        return True
    root = reference.qualifier.removeprefix("global::").split(".")[0]
    if reference.qualifier:
        return root in _STANDARD
    return reference.name in KNOWN_TYPES
