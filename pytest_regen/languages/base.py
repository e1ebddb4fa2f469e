"""What the rest of the package asks of a target language; one implementation per language."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from pytest_regen.documents.ir import EnumValue, FieldIR, TypeExpr, TypeIR
from pytest_regen.errors import UsageError
from pytest_regen.languages.runner import Runner
from pytest_regen.prompts.values import OutputMode
from pytest_regen.regions.markers import Comment
from pytest_regen.validation.issues import Issue, Weakness

# --- what a source declares ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TypeRef:
    """A type as the source spells it, taken apart: a name, and what it is applied to.

    ``Map<text, Foo[]?>?`` is ``Map`` with the arguments ``text`` and a nullable ``[]`` of ``Foo``,
    itself nullable. ``Language.show_type`` puts it together again.
    """

    name: str
    """Simple name without qualifier; ``[]`` for an array, whose element is the only argument."""
    args: tuple["TypeRef", ...] = ()
    nullable: bool = False
    qualifier: str = ""
    """What stands before the last dot of the name."""
    line: int = 0
    is_wrapped: bool = False
    """Whether null was allowed by a wrapper that does not take every type."""

    def walk(self) -> Iterator["TypeRef"]:
        """Yield this reference and all that stand inside it."""
        yield self
        for arg in self.args:
            yield from arg.walk()


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute or decorator: its simple name and its literal arguments, decoded."""

    name: str
    """Simple name, without qualifier."""
    arguments: tuple[str | int | bool | None, ...] = ()
    """String and number arguments and names in order; ``None`` for any other expression. Named
    arguments are left out."""
    line: int = 0
    types: tuple[TypeRef, ...] = ()
    """The types that its arguments name."""
    text: str = ""
    """Its arguments as they stand in the source."""


@dataclass(frozen=True, slots=True)
class Member:
    """A property, field, positional parameter or enum member."""

    name: str
    """The identifier, without what marks it as one."""
    kind: str
    """As the language calls it. A ``parameter`` counts only where no ``property`` repeats it."""
    line: int
    end_line: int
    wire_name: str | int | None
    """What stands on the wire: the decoded JSON name, or an enum member's string or number.
    ``None`` where the source does not say."""
    number: int | None = None
    """The number of an enum member, written or counted up; ``None`` where it is unknown."""
    type: TypeRef | None = None
    is_required: bool = False
    """Whether the declaration itself demands a value: a keyword, a positional parameter."""
    has_initializer: bool = False
    """Whether a non-null initial value is given or promised."""
    attributes: tuple[Attribute, ...] = ()
    is_serialized: bool = True
    """Whether a serializer sees it; a private, static, computed or ignored one it does not."""
    unread: str | None = None
    """Why nothing is ever read into it, in words that follow its name."""
    is_public: bool = True
    faults: tuple["SyntaxFault", ...] = ()
    """What a compiler refuses about it."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """A type that the source declares."""

    name: str
    kind: str
    """As the language calls it; an enum is always ``enum``."""
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
    faults: tuple["SyntaxFault", ...] = ()
    """What a compiler refuses about it, and why a serializer could not create it."""


@dataclass(frozen=True, slots=True)
class SyntaxFault:
    """A place where the source is not legal in its language, or of no use to a serializer."""

    line: int
    message: str
    code: str = "SYNTAX"
    in_member: bool = True
    """Whether the member on that line is at fault; else the fault is one of the whole text."""


# Weakly referenced, because facts are remembered only as long as a store uses them.
@dataclass(frozen=True, slots=True, weakref_slot=True)
class SourceFacts:
    """All that was read from one piece of source."""

    declarations: tuple[Declaration, ...] = ()
    """In source order, nested ones after the one they stand in."""
    faults: tuple[SyntaxFault, ...] = ()
    aliases: frozenset[str] = frozenset()
    """Other names that it gives to types."""
    heads: tuple[int, ...] = ()
    """Lines of what may stand at the top of a file only: imports, a namespace."""


# --- words ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Nouns:
    """What things are called in messages and prompts."""

    object: str = "class"
    """What an object type is declared as."""
    enum: str = "enum"
    member: str = "field"
    """What stands for a field of the document in an object type."""
    value: str = "member"
    """What stands for a value in an enum."""


@dataclass(frozen=True, slots=True)
class Syntax:
    """How code looks, for decisions that its text alone must allow, without a syntax tree."""

    code_signs: frozenset[str] = frozenset(";{}[]=<>")
    """Characters that a sentence of prose does not have."""
    comment_marks: tuple[str, ...] = ()
    """What lines of other comments than ``Language.comment`` begin with."""
    attribute_line: re.Pattern[str] = re.compile(r"(?!)")
    """Matches a whole line, blanks around it aside, that says something of the next one."""
    declares: re.Pattern[str] = re.compile(r"\S")
    """Found in a text that may declare something; a text without it is not read."""


@dataclass(frozen=True, slots=True)
class Wording:
    """What prompts say about a language in one profile; constant: a system prompt is cached."""

    title: str
    """Language, version and libraries in a few words."""
    nouns: Nouns
    rules: tuple[str, ...]
    """One sentence each: names on the wire, null and absence, enums, what must not be written."""
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


def check_profile(profile: str, profiles: Sequence[str], language: str) -> None:
    """Raise ``UsageError`` where a language has no such profile."""
    if profile not in profiles:
        raise UsageError(
            f"unknown profile {profile!r} for {language}",
            why="the profile decides what prompts ask for and what types are declared as",
            hint=f"use --profile with one of: {', '.join(profiles)}",
        )


class HeaderLine(NamedTuple):
    """A line of the header that a file lacks although a block needs it."""

    line: str
    word: str
    """A name that needs it."""
    type_name: str
    """The type whose block uses that name."""
    advice: str
    """What to do about it, in a sentence for people."""


class AbsenceFault(NamedTuple):
    """What is wrong about how a member treats null and absence."""

    message: str
    """About the one member."""
    finding: str
    """The same of several members, without their names; see ``Issue.finding``."""


def with_article(noun: str) -> str:
    """Return ``a class``, ``an enum``."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def describe_absence(field: FieldIR) -> str:
    """Return in words whether a field may be null or left out; the words follow its name."""
    if field.nullable:
        return "may be null" + ("" if field.required else " and is optional")
    return f"is {'required and never null' if field.required else 'optional'}"


# --- pages ---------------------------------------------------------------------------------------


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


# --- the language --------------------------------------------------------------------------------


class Later:
    """A method of a language that is a function of one of its modules, imported when it is called.

    Whoever writes prompts or reads documents needs names and spellings, but no grammar.

    Args:
        module: below ``pytest_regen.languages``.
        function: in that module; by default it is called as the method.
    """

    def __init__(self, module: str, function: str = "") -> None:
        self._module, self._function = f"pytest_regen.languages.{module}", function

    @classmethod
    def each(cls, module: str, count: int) -> Iterator["Later"]:
        """Yield so many methods, each called as its function."""
        # Without names, because each learns its own from the class that it is assigned in.
        return (cls(module) for _ in range(count))

    def __set_name__(self, owner: type, name: str) -> None:
        """Take the name of the method where no other is known."""
        self._function = self._function or name

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call the function: it gets no ``self``, because this is no descriptor."""
        # Looked up at each call, because importlib keeps modules: a cache here would gain nothing.
        return getattr(import_module(self._module), self._function)(*args, **options)


class Language(Protocol):
    """One target language.

    ``LanguageConformance`` in ``pytest_regen.testing`` checks what is promised here.
    """

    name: str
    suffix: str
    """Of a source file, with the dot."""
    comment: Comment
    """The comment that boundaries are written as."""
    fence_tags: frozenset[str]
    """Info strings of a code fence that mean this language, in lower case."""
    reserved_type_names: frozenset[str]
    """Names that a generated type must not take."""
    object_kinds: frozenset[str]
    """Kinds of declarations that can hold the fields of an object."""
    nouns: Nouns
    syntax: Syntax
    has_unions: bool
    """Whether a member can be one of several types; else such schemas are read as one type."""
    redeclared: str
    """What to do about a type that is declared outside of its block too."""

    def type_name(self, schema_name: str, *, is_root: bool) -> str:
        """Return a legal name for the type of a schema called ``schema_name``."""

    def member_names(self, type_: TypeIR) -> dict[str | int, str]:
        """Return an identifier for each field or enum value, all of them different."""

    def has_enum_member(self, value: str) -> bool:
        """Return whether a member of an enum can stand for ``value`` on the wire."""

    def is_legal_type_name(self, name: str) -> bool:
        """Return whether a type may be declared as ``name``."""

    def spell(self, field: FieldIR, *, profile: str = "default") -> str:
        """Return the spelling of the field's type that the prompts of a profile ask for."""

    def show_type(self, reference: TypeRef) -> str:
        """Return a type as the source spells it."""

    def write_page(
        self, type_: TypeIR, units: Sequence[EnumValue], mode: OutputMode, *, profile: str
    ) -> str:
        """Return the code of one page as its prompt asks for it, without a fence.

        Args:
            type_: the whole type.
            units: the JSON names or enum values that the page must contain, in order.
            mode: the shape of the answer.
            profile: of the store.
        """

    def accepts(
        self, expression: TypeExpr, spelled: TypeRef, declared: Mapping[str, Declaration]
    ) -> bool:
        """Return whether ``spelled`` can hold every value of ``expression``, null aside.

        Args:
            expression: what the document allows.
            spelled: what the source says.
            declared: what the source declares; look up single names in it, for a type is validated
                again whenever what was looked up for it has changed.
        """

    def is_known(self, reference: TypeRef) -> bool:
        """Return whether a type of that name exists without being declared in the source."""

    def header(self, *, namespace: str, profile: str) -> str:
        """Return the text that stands before the first boundary, without a final blank line."""

    def missing_in_header(
        self, outside: str, blocks: Mapping[str, str], *, profile: str
    ) -> Sequence[HeaderLine]:
        """Return the lines of the header that a file lacks although its blocks need them.

        Args:
            outside: the file with its blocks blank.
            blocks: type name to the text of its block.
            profile: of the store.
        """

    def wording(self, profile: str) -> Wording:
        """Return what prompts say about the language.

        Raises:
            UsageError: the language has no such profile.
        """

    def read(self, code: str) -> SourceFacts:
        """Return what ``code`` declares and where it is illegal."""

    def stitch(self, outputs: Sequence[str], *, name: str, is_enum: bool) -> StitchedType:
        """Join the pages of one type into one declaration, by syntax tree."""

    def unwrap_page(self, code: str, mode: OutputMode) -> str:
        """Return the members of a continuation page without what was put around them."""

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

    def illegality(self, code: str) -> int:
        """Return how far ``code`` is from a page of generated code.

        0 means declarations, members or enum values and nothing else; more is worse.
        """

    def leaves(self, code: str) -> tuple[str, ...]:
        """Return the tokens and comments of ``code``, without the white space between them."""

    def missing_wire_name(self, member: Member, wire: str, *, is_enum: bool) -> str:
        """Return what ``member`` lacks to carry ``wire``: what has to be written on it."""

    def absence_fault(self, field: FieldIR, member: Member) -> AbsenceFault | None:
        """Return what is wrong about how the member of a field treats null and absence."""

    def rules(self, subject: Any) -> Iterator[Issue]:
        """Yield what else is wrong with a type, by rules that only this language has.

        Args:
            subject: the type under validation, a ``validation.subject.Subject``, which stands on
                languages itself. Its lines count in its block.
        """

    def weakens(self, type_: TypeIR, old: str, new: str) -> Iterable[Weakness]:
        """Return by what the code of a type is tested less than the code that it replaces.

        What validation finds in the new code alone is left to it: a type that takes too much, a
        value that is missing. By default nothing.

        Args:
            type_: what both must be.
            old: the code of the type that stands, with all of its pages.
            new: the same with the candidate in it; lines of weaknesses count in it.
        """
        return ()

    def runner(self, profile: str) -> Runner | None:
        """Return what runs the code of a profile; ``None``, as by default, where nothing does."""
        return None
