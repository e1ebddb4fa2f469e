"""What stands before the first boundary of a C# source: nullable context, usings, namespace."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pytest_regen.errors import UsageError

__all__ = ["PROFILES", "header", "missing_in_header"]

_USINGS = (
    "System",
    "System.Collections.Generic",
    "System.Text.Json",
    "System.Text.Json.Serialization",
)

PROFILES: dict[str, tuple[str, ...]] = {
    "default": ("System.ComponentModel", "System.ComponentModel.DataAnnotations"),
    # Nullable, Required and Description come from the schema generator here: with the usings of
    # the default profile beside it, [Required] would be ambiguous. PrimaryKey is the SDK's.
    "xchange": ("Json.Schema.Generation", "Xchange.Connector.SDK.CacheWriter"),
}
"""Where each profile's attributes come from, beside what both use."""


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_TYPES: Final[Mapping[str, frozenset[str]]] = {
    "System": _set("DateOnly DateTime DateTimeOffset Guid TimeOnly TimeSpan Uri Version"),
    "System.Collections.Generic": _set(
        "Dictionary HashSet ICollection IDictionary IEnumerable IList IReadOnlyCollection "
        "IReadOnlyDictionary IReadOnlyList IReadOnlySet ISet LinkedList List SortedDictionary "
        "SortedSet"
    ),
    "System.Text.Json": _set("JsonDocument JsonElement JsonSerializerOptions"),
    "System.Text.Json.Serialization": _set(
        "JsonIgnoreCondition JsonNumberHandling JsonStringEnumConverter JsonUnmappedMemberHandling"
    ),
}
"""Types that generated code is likely to use, by namespace."""

_ATTRIBUTES: Final[Mapping[str, frozenset[str]]] = {
    "System": _set("Flags Obsolete"),
    "System.Text.Json.Serialization": _set(
        "JsonConstructor JsonConverter JsonDerivedType JsonExtensionData JsonIgnore JsonInclude "
        "JsonNumberHandling JsonObjectCreationHandling JsonPolymorphic JsonPropertyName "
        "JsonPropertyOrder JsonRequired JsonStringEnumMemberName JsonUnmappedMemberHandling"
    ),
    "System.ComponentModel": _set("Browsable Category DefaultValue Description"),
    "System.ComponentModel.DataAnnotations": _set(
        "Display EmailAddress Key MaxLength MinLength Phone Range RegularExpression Required "
        "StringLength Url"
    ),
    "Json.Schema.Generation": _set("Description Nullable Required"),
    "Xchange.Connector.SDK.CacheWriter": _set("PrimaryKey"),
}
"""Attributes likewise, without their suffix."""

_NAMESPACE = re.compile(r"@?[^\W\d]\w*(\.@?[^\W\d]\w*)*")


def header(*, namespace: str, profile: str) -> str:
    """Return the lines before the first boundary, without a final line end.

    Args:
        namespace: a dotted name, or "" for the global namespace.
        profile: ``default`` (base class library only) or ``xchange``.

    Raises:
        UsageError: the namespace is no dotted name, or the profile is unknown.
    """
    if profile not in PROFILES:
        raise UsageError(
            f"C# has no profile {profile!r}",
            hint=f"use one of: {', '.join(sorted(PROFILES))}",
        )
    if namespace and _NAMESPACE.fullmatch(namespace) is None:
        raise UsageError(
            f"{namespace!r} is no C# namespace",
            hint="use identifiers joined by dots, e.g. --namespace Acme.Projects",
        )
    usings = sorted((*_USINGS, *PROFILES[profile]), key=_system_first)
    lines = ["#nullable enable", "", *(f"using {using};" for using in usings)]
    if namespace:
        lines += ["", f"namespace {namespace};"]
    return "\n".join(lines)


def missing_in_header(
    outside: str, blocks: Mapping[str, str], *, profile: str
) -> Sequence[tuple[str, str, str]]:
    """Return the usings of the header that are gone although a block needs them.

    See ``Language.missing_in_header``. Qualified names need none, and a global using of the file
    itself will do.
    """
    gone = [using for using in (*_USINGS, *PROFILES.get(profile, ())) if not _has(outside, using)]
    if not gone:
        return ()
    from pytest_regen.languages.csharp.weighing import leaves  # noqa: PLC0415 - loads the grammar

    aliases = set(re.findall(r"^[ \t]*(?:global\s+)?using\s+(\w+)\s*=", outside, re.MULTILINE))
    found: dict[str, tuple[str, str, str]] = {}
    for name, text in blocks.items():
        for is_attribute, word in _unqualified(leaves(text)):
            for using in gone:
                known = (_ATTRIBUTES if is_attribute else _TYPES).get(using, frozenset())
                plain = word.removesuffix("Attribute") if is_attribute else word
                if plain in known and word not in aliases:
                    found.setdefault(using, (f"using {using};", word, name))
    return tuple(found[using] for using in gone if using in found)


def _has(outside: str, using: str) -> bool:
    dotted = r"\s*\.\s*".join(map(re.escape, using.split(".")))
    pattern = rf"^[ \t\ufeff]*(?:global\s+)?using\s+(?:global::)?{dotted}\s*;"
    return re.search(pattern, outside, re.MULTILINE) is not None


def _unqualified(tokens: Sequence[str]) -> Iterator[tuple[bool, str]]:
    """Yield each word that may name an attribute (first value true) or a type."""
    for before, word, after in zip(("", *tokens), tokens, (*tokens[1:], ""), strict=False):
        if not word[:1].isalpha() or before in {".", "::"}:
            continue
        if before in {"[", ":"} or (before == "," and after in {"(", "]", ","}):
            yield True, word
        if after not in {"{", "=", ";", "=>", "("}:  # Else it is a member's own name.
            yield False, word


def _system_first(using: str) -> tuple[bool, str]:
    return not using.startswith("System"), using
