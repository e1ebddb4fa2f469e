"""What prompts say about a target language: the words that `prompts/` itself does not know."""

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_regen.prompts.values import OutputMode

__all__ = ["Wording"]


@dataclass(frozen=True, slots=True)
class Wording:
    """The words of one language and profile; constant, so that system prompts stay identical."""

    title: str
    """Language, version and libraries in a few words, e.g. ``C# 13 for .NET 9``."""
    object_noun: str
    """What an object type becomes: ``class``."""
    rules: tuple[str, ...]
    """One sentence each: attributes, nullability, enums, what must not be written."""
    begin_delimiter: str
    """The line before the members of a continuation page."""
    end_delimiter: str
    """The line after the members of a continuation page."""
    fence: str
    """Info string of the code block to answer in."""
    examples: Mapping[OutputMode, str]
    """A short correct page per mode, about a type that no real document has."""
    field_characters: int
    """What the code of one field takes beyond its names, its type and its description."""
    value_characters: int
    """What the code of one enum value takes beyond its names."""
