"""Words of C# and names of its standard library that generated code must not take."""

from typing import Final

__all__ = ["KEYWORDS", "KNOWN_TYPES", "RESERVED_TYPE_NAMES", "TYPE_KEYWORDS", "word_set"]


def word_set(text: str) -> frozenset[str]:
    """Return the words of ``text``: tables of names are written as text, to be read."""
    return frozenset(text.split())


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
