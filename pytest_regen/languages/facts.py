"""What a source declares, read from its syntax tree: values that every language fills in.

Lines count from 1 in the text that was read; callers shift them to where the text stands.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

__all__ = [
    "Attribute",
    "Converter",
    "Declaration",
    "DeclarationKind",
    "Member",
    "MemberKind",
    "SourceFacts",
    "SyntaxFault",
    "TypeRef",
]

DeclarationKind = Literal["class", "record", "struct", "interface", "enum", "delegate"]
MemberKind = Literal["property", "field", "parameter", "enum_member"]


@dataclass(frozen=True, slots=True)
class TypeRef:
    """A type as the source spells it, taken apart.

    ``Dictionary<string, Foo[]?>?`` is ``Dictionary`` with the arguments ``string`` and a nullable
    ``[]`` of ``Foo``, itself nullable.
    """

    name: str
    """Simple name without qualifier; ``[]`` for an array, whose element is the only argument."""
    args: tuple["TypeRef", ...] = ()
    nullable: bool = False
    qualifier: str = ""
    """What stands before the last dot, e.g. ``System.Collections.Generic``."""
    line: int = 0
    is_wrapped: bool = False
    """Whether null was allowed by a wrapper, ``Nullable<T>``, which does not take every type."""

    def __str__(self) -> str:
        if self.is_wrapped:
            return f"Nullable<{replace(self, nullable=False, is_wrapped=False)}>"
        mark = "?" if self.nullable else ""
        if self.name in ("[]", "*"):
            return f"{self.args[0]}{self.name}{mark}"
        if self.name == "ref":
            return f"ref {self.args[0]}"
        dotted = f"{self.qualifier}.{self.name}" if self.qualifier else self.name
        inner = f"<{', '.join(map(str, self.args))}>" if self.args else ""
        return f"{dotted}{inner}{mark}"

    def walk(self) -> Iterator["TypeRef"]:
        """Yield this reference and all that stand inside it."""
        yield self
        for arg in self.args:
            yield from arg.walk()


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute or decorator: its simple name and its literal arguments, decoded."""

    name: str
    """Simple name without qualifier and without the ``Attribute`` suffix."""
    arguments: tuple[str | int | bool | None, ...] = ()
    """String, number and ``nameof`` arguments in order; ``None`` for any other expression.

    What sets a property of the attribute, ``Name = …``, is no argument."""
    line: int = 0
    types: tuple[TypeRef, ...] = ()
    """The types that its arguments name, as ``typeof(Flag)`` does."""
    options: tuple[tuple[str, str], ...] = ()
    """Constants among the arguments: the name of the argument, "" for a positional one, and the
    simple name of the constant."""


@dataclass(frozen=True, slots=True)
class Converter:
    """What a type or member names to read and write its values in place of the serializer."""

    text: str
    """As it stands in the source, e.g. ``[JsonConverter(typeof(JsonStringEnumConverter))]``."""
    reads: Literal["text", "numbers", "nothing", "unknown"]
    """What it makes enum values of; ``nothing``: the serializer does not take it at all."""
    of: str | None = None
    """The only enum that it is for, where it says so."""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Member:
    """A property, field, positional parameter or enum member."""

    name: str
    """The identifier, without ``@``."""
    kind: MemberKind
    line: int
    end_line: int
    wire_name: str | int | None
    """What stands on the wire: the decoded JSON name, or an enum member's string or number.
    ``None`` where the source does not say."""
    number: int | None = None
    """The number of an enum member, written or counted on; ``None`` where it cannot be told."""
    type: TypeRef | None = None
    is_required: bool = False
    """Whether the declaration itself demands a value: ``required``, a positional parameter."""
    has_initializer: bool = False
    """Whether a non-null initial value is given or promised (``= new()``, ``= default!``)."""
    attributes: tuple[Attribute, ...] = ()
    is_serialized: bool = True
    """Whether a serializer sees it; a private, static, computed or ignored one it does not."""
    unread: str | None = None
    """Why nothing is ever read into it, in words that follow its name: ``has no set or init``."""
    hint: str | None = None
    """What was written to give it a name on the wire, and does not."""
    is_public: bool = True
    converter: Converter | None = None
    faults: tuple["SyntaxFault", ...] = ()
    """What a compiler refuses about it."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """A type that the source declares."""

    name: str
    kind: DeclarationKind
    line: int
    """First line, attributes and documentation comment included."""
    end_line: int
    members: tuple[Member, ...] = ()
    attributes: tuple[Attribute, ...] = ()
    outer: str | None = None
    """Name of the type it is nested in."""
    is_partial: bool = False
    type_parameters: tuple[str, ...] = ()
    bases: tuple[TypeRef, ...] = ()
    name_line: int = 0
    """The line on which the name stands."""
    is_public: bool = True
    """Whether other public types may use it: it is public, and what it is nested in is."""
    is_value: bool = False
    """Whether it is copied where it is assigned, and never null: a struct, an enum."""
    is_numeric: bool = False
    """Whether it is an enum that is numbers on the wire unless a converter says otherwise."""
    converter: Converter | None = None
    faults: tuple["SyntaxFault", ...] = ()
    """What a compiler refuses about it, and why a serializer could not create it."""


@dataclass(frozen=True, slots=True)
class SyntaxFault:
    """A place where the source is not legal in its language, or of no use to a serializer."""

    line: int
    message: str
    code: Literal[
        "SYNTAX", "INVALID_IDENTIFIER", "ARTIFACT", "REVIEW", "MISSING_CLASS", "ENUM_MEMBER"
    ] = "SYNTAX"
    in_member: bool = True
    """Whether the member on that line is at fault; else the fault is one of the whole text."""


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """All that was read from one piece of source."""

    declarations: tuple[Declaration, ...] = ()
    """In source order, nested ones after the one they stand in."""
    faults: tuple[SyntaxFault, ...] = ()
    stray_lines: tuple[int, ...] = ()
    """Lines of top-level code that is no declaration: prose, statements, loose members."""
    unread: frozenset[str] = frozenset()
    """Words and strings of a source whose syntax could not be made out, comments left aside: what
    may stand there without having been read. Empty where everything was read."""
    aliases: frozenset[str] = frozenset()
    """Other names that it gives to types, as ``using Text = System.String;`` does."""
