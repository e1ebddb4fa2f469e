"""What the rest of the package asks of a target language; one implementation per language."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pytest_regen.documents.ir import FieldIR, TypeExpr, TypeIR
from pytest_regen.languages.facts import SourceFacts, TypeRef
from pytest_regen.languages.wording import Wording
from pytest_regen.prompts.values import OutputMode

__all__ = ["Language", "PageFault", "Stitched"]


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
class Stitched:
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

    def stitch(self, outputs: Sequence[str], *, name: str, is_enum: bool) -> Stitched:
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
