"""Which C# types hold which values of a document, how they are spelled and shown."""

from collections.abc import Mapping
from typing import Final

from pytest_regen.documents.ir import ArrayOf, FieldIR, MapOf, Ref, Scalar, TypeExpr, UnionOf
from pytest_regen.languages.base import TypeRef
from pytest_regen.languages.csharp.names import RESERVED_TYPE_NAMES
from pytest_regen.languages.names import word_set

_KEYWORDS = word_set(
    """
    bool byte char decimal double dynamic float int long nint nuint object sbyte short string uint
    ulong ushort void
    """
)
_OTHER_TYPES = word_set(
    """
    BigInteger Collection ConcurrentDictionary ICloneable IComparable IEquatable
    IImmutableDictionary IImmutableList IJsonOnDeserialized IJsonOnSerialized IPAddress
    IReadOnlySet ISet IValidatableObject ImmutableHashSet ImmutableSortedDictionary
    JsonNumberEnumConverter ObservableCollection Regex
    SortedDictionary SortedSet Version
    """
)
_KNOWN: Final = _KEYWORDS | _OTHER_TYPES | (RESERVED_TYPE_NAMES - {"Microsoft", "System"})
"""Types that exist without being declared in the source."""

_ALIASES: Final[Mapping[str, str]] = {
    **{name: name.lower() for name in word_set("Byte Char Decimal Double Object SByte String")},
    "Boolean": "bool",
    "Int16": "short",
    "Int32": "int",
    "Int64": "long",
    "Single": "float",
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
        # No float, because it keeps seven digits.
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
_ANY: Final = Scalar(kind="any")


def show_type(reference: TypeRef) -> str:
    """Return a type as the source spells it, but for ``Nullable<int>``, which is ``int?``."""
    mark = "?" if reference.nullable else ""
    if reference.name.startswith("["):
        return f"{show_type(reference.args[0])}{reference.name}{mark}"
    dotted = f"{reference.qualifier}.{reference.name}" if reference.qualifier else reference.name
    inner = f"<{', '.join(map(show_type, reference.args))}>" if reference.args else ""
    return f"{dotted}{inner}{mark}"


def spell(field: FieldIR) -> str:
    """Return the spelling that prompts ask for: ``IReadOnlyList<long>?``-like, ``?`` included.

    An integer without a format is ``long``, or ``int`` where its constraints fit 32 bits.
    """
    spelled, limits = _spelling(field.type), field.constraints
    if spelled == "long" and accepts(field.type, TypeRef("int")):
        pairs = ("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")
        bounds = [limits.get(name, limits.get(instead)) for name, instead in pairs]
        # ``exclusiveMinimum: true`` (OpenAPI 3.0) is no bound.
        numbers = [
            bound for bound in bounds if bound is not True and isinstance(bound, int | float)
        ]
        if len(numbers) == len(pairs) and all(-(2**31) <= number < 2**31 for number in numbers):
            spelled = "int"
    return f"{spelled}?" if must_be_nullable(field) else spelled


def _spelling(expression: TypeExpr) -> str:
    match expression:
        case Ref(name=name):
            return name
        case ArrayOf(items=items):
            return f"IReadOnlyList<{_spelling(items)}>"
        case MapOf(values=values):
            return f"IReadOnlyDictionary<string, {_spelling(values)}>"
        case Scalar() | UnionOf():
            return _spellings_of(expression)[0]


def _spellings_of(expression: Scalar | UnionOf) -> tuple[str, ...]:
    """Return the spellings that hold every value, the preferred one first."""
    # A union was read for another language: what holds every value holds each option.
    scalar = expression if isinstance(expression, Scalar) else _ANY
    formats = _SCALARS[scalar.kind]
    return formats.get(scalar.format_family, formats[""])


def must_be_nullable(field: FieldIR) -> bool:
    """Return whether the field needs ``?``: a value may be absent, or ``null``."""
    return field.nullable or not field.required


def accepts(expression: TypeExpr, spelled: TypeRef) -> bool:
    """Return whether ``spelled`` can hold every value of ``expression``, nullability aside."""
    name, args = spelled.name, spelled.args
    match expression:
        case Ref():
            return name == expression.name and not args
        case ArrayOf(items=items):
            # No ``byte[]``, because the serializer writes it as text.
            is_array = name in _SEQUENCES and len(args) == 1 and plain(spelled) != "byte[]"
            return is_array and accepts(items, args[0])
        case MapOf(values=values) if name == "JsonObject":
            return values == _ANY
        case MapOf(values=values):
            is_map = name in _MAPS and len(args) == len(("key", "value"))
            is_key = is_map and plain(args[0]) == "string" and not args[0].nullable
            return is_key and accepts(values, args[1])
        case Scalar() | UnionOf():
            return plain(spelled) in _spellings_of(expression)


def plain(spelled: TypeRef) -> str:
    """Return the keyword for what has one, ``byte[]`` for bytes, else the text without ``?``."""
    if spelled.name == "[]" and plain(spelled.args[0]) == "byte" and not spelled.args[0].nullable:
        return "byte[]"
    if spelled.args:
        return show_type(spelled).rstrip("?")
    return _ALIASES.get(spelled.name, spelled.name)


def is_known(reference: TypeRef) -> bool:
    """Return whether a type of that name exists without being declared in the source."""
    if reference.qualifier:
        root = reference.qualifier.removeprefix("global::").split(".")[0]
        return root in {"System", "Microsoft", "Newtonsoft"}
    # What is no identifier is an array, a tuple or a pointer.
    return reference.name in _KNOWN or not reference.name.isidentifier()
