"""Types of the IR in C#: the spelling that prompts ask for, and every spelling that is right.

``docs/csharp.md`` holds the same rules as a table, which the tests execute.
"""

from collections.abc import Mapping
from typing import Any, Final

from pytest_regen.documents.ir import ArrayOf, FieldIR, MapOf, Ref, Scalar, TypeExpr
from pytest_regen.languages.csharp.keywords import KNOWN_TYPES, word_set
from pytest_regen.languages.facts import TypeRef

__all__ = [
    "accepted",
    "accepts",
    "canonical_name",
    "is_collection",
    "is_known",
    "is_reference",
    "must_be_nullable",
    "spell",
]

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
        "currency": ("decimal",),
        "decimal": ("decimal",),
        "double": ("double",),
        "float": ("float", "double"),
        "int32": ("int", "long", "double", "decimal"),
        "int64": ("long", "decimal"),
        "money": ("decimal",),
    },
    "boolean": {"": ("bool",)},
    "any": {"": ("JsonElement", "JsonNode", "object", "dynamic")},
}
"""Kind and format to what holds every such value; the first is what prompts ask for."""

_SAME_FORMAT: Final[Mapping[str, str]] = {
    "base64": "byte",
    "datetime": "date-time",
    "full-date": "date",
    "guid": "uuid",
    "iri": "uri",
    "uri-reference": "uri",
    "url": "uri",
}

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
            return accepted(expression)[0]


def accepted(scalar: Scalar) -> tuple[str, ...]:
    """Return the spellings that hold every value of ``scalar``, the preferred one first."""
    formats = _SCALARS[scalar.kind]
    wanted = (scalar.format or "").lower()
    return formats.get(_SAME_FORMAT.get(wanted, wanted), formats[""])


def must_be_nullable(field: FieldIR) -> bool:
    """Return whether the field needs ``?``: a value may be absent, or ``null``."""
    return field.nullable or not field.required


def accepts(expression: TypeExpr, spelled: TypeRef) -> bool:
    """Return whether ``spelled`` can hold every value of ``expression``, nullability aside."""
    match expression:
        case Ref(name=name):
            return spelled.name == name and not spelled.args
        case ArrayOf(items=items):
            return _is_sequence(spelled) and accepts(items, spelled.args[0])
        case MapOf(values=values):
            return _is_map(spelled, values)
        case Scalar():
            return canonical_name(spelled) in accepted(expression)


def _is_sequence(spelled: TypeRef) -> bool:
    """Return whether ``spelled`` is written as a JSON array; ``byte[]`` is written as text."""
    if spelled.name not in _SEQUENCES or len(spelled.args) != 1:
        return False
    return canonical_name(spelled) != "byte[]"


def _is_map(spelled: TypeRef, values: TypeExpr) -> bool:
    if spelled.name == "JsonObject":
        return isinstance(values, Scalar) and values.kind == "any"
    if spelled.name not in _MAPS or len(spelled.args) != 2:  # noqa: PLR2004 - key and value
        return False
    key, value = spelled.args
    return canonical_name(key) == "string" and not key.nullable and accepts(values, value)


def canonical_name(spelled: TypeRef) -> str:
    """Return the keyword for what has one, ``byte[]`` for bytes, else the text without ``?``."""
    if spelled.name == "[]" and canonical_name(spelled.args[0]) == "byte":
        return "byte[]" if not spelled.args[0].nullable else "byte?[]"
    if spelled.args:
        return str(spelled).rstrip("?")
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
