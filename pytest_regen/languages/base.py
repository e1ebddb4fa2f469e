"""What the rest of the package asks of a target language; one implementation per language."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from pytest_regen.documents.ir import FieldIR, TypeExpr, TypeIR
from pytest_regen.prompts.values import OutputMode

__all__ = [
    "Attribute",
    "Converter",
    "Declaration",
    "DeclarationKind",
    "Language",
    "Member",
    "MemberKind",
    "PageFault",
    "SourceFacts",
    "StitchedType",
    "SyntaxFault",
    "TypeRef",
    "Wording",
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


@dataclass(frozen=True, slots=True)
class PageFault:
    """Why one page cannot stand where it must: found by parsing the page alone."""

    page: int
    line: int
    """Counts from 1 in the page's own output."""
    code: str
    message: str
    in_member: bool = True
    """Whether the member on that line is at fault; else the fault is one of the whole page."""


@dataclass(frozen=True, slots=True)
class StitchedType:
    """The pages of one type as one declaration."""

    text: str
    line_pages: tuple[int, ...]
    """For each line of ``text``, the page it came from (counts from 1)."""
    faults: tuple[PageFault, ...] = ()
    """Pages that are no legal piece; their text is kept all the same, so that nothing is lost."""
    page_lines: tuple[int, ...] = ()
    """For each line of ``text``, the line of that page's output it came from (counts from 1)."""


class Language(Protocol):
    """One target language."""

    name: str
    suffix: str
    """Of a source file, with the dot."""
    comment: str
    """What starts a line comment; boundaries are written with it."""
    fence_tags: frozenset[str]
    """Info strings of a code fence that mean this language, in lower case."""
    reserved_type_names: frozenset[str]
    """Names that a generated type must not take."""

    def type_name(self, schema_name: str, *, is_root: bool) -> str:
        """Return a legal name for the type of a schema called ``schema_name``."""
        ...

    def member_name(self, wire_name: str | int, *, owner: str) -> str:
        """Return a legal identifier for a field or enum value of the type ``owner``."""
        ...

    def member_names(self, type_: TypeIR) -> dict[str | int, str]:
        """Return an identifier for each field or enum value, all of them different."""
        ...

    def has_enum_member(self, value: str) -> bool:
        """Return whether a member of an enum can stand for ``value`` on the wire."""
        ...

    def is_legal_type_name(self, name: str) -> bool:
        """Return whether a type may be declared as ``name``."""
        ...

    def spell(self, field: FieldIR) -> str:
        """Return the spelling of the field's type that prompts ask for."""
        ...

    def accepts(self, expression: TypeExpr, spelled: TypeRef) -> bool:
        """Return whether ``spelled`` can hold every value of ``expression``, nullability aside."""
        ...

    def is_known(self, reference: TypeRef) -> bool:
        """Return whether a type of that name exists without being declared in the source."""
        ...

    def header(self, *, namespace: str, profile: str) -> str:
        """Return the text that stands before the first boundary, without a final blank line."""
        ...

    def missing_in_header(
        self, outside: str, blocks: Mapping[str, str], *, profile: str
    ) -> Sequence[tuple[str, str, str]]:
        """Return the lines of the header that a file lacks although its blocks need them.

        Args:
            outside: the file with its blocks blank.
            blocks: type name to the text of its block.
            profile: of the store.

        Returns:
            For each: the line, a name that needs it, and the type whose block uses that name.
        """
        ...

    def wording(self, profile: str) -> Wording:
        """Return what prompts say about the language.

        Raises:
            UsageError: the language has no such profile.
        """
        ...

    def read(self, code: str) -> SourceFacts:
        """Return what ``code`` declares and where it is illegal."""
        ...

    def mended(self, code: str) -> str:
        """Return ``code`` with the smallest changes that make it more legal; lines do not move."""
        ...

    def stitch(self, outputs: Sequence[str], *, name: str, is_enum: bool) -> StitchedType:
        """Join the pages of one type into one declaration, by syntax tree."""
        ...

    def unwrap_page(self, code: str, mode: OutputMode) -> str:
        """Return the members of a continuation page without what was put around them."""
        ...

    def split(
        self, code: str, *, name: str, units: Sequence[Sequence[str | int]]
    ) -> tuple[str, ...]:
        """Return the pages of a declaration: the way back from ``stitch``.

        Args:
            code: the whole declaration.
            name: of the type.
            units: for each page, the JSON names or enum values it asks for.

        Raises:
            SourceError: the declaration cannot be taken apart.
        """
        ...

    def illegality(self, code: str) -> int:
        """Return how far ``code`` is from a page of generated code.

        0 means declarations, members or enum values and nothing else; more is worse.
        """
        ...

    def leaves(self, code: str) -> tuple[str, ...]:
        """Return the tokens and comments of ``code``, without the white space between them."""
        ...
