"""Python, as ``languages.base.Language`` describes a target language."""

import re
from collections.abc import Iterator, Mapping, Sequence

from pytest_regen.documents.ir import EnumValue, FieldIR, TypeExpr, TypeIR
from pytest_regen.languages.base import (
    AbsenceFault,
    Declaration,
    HeaderLine,
    Member,
    Nouns,
    RuleSubject,
    SourceFacts,
    StitchedType,
    Syntax,
    TypeRef,
    Wording,
)
from pytest_regen.languages.python import acceptance, names, rules, spelling, wording, writer
from pytest_regen.languages.runner import Runner
from pytest_regen.prompts.values import OutputMode
from pytest_regen.regions.markers import Comment
from pytest_regen.validation.issues import Issue, Weakness


class Python:
    """Python 3.11: pydantic models, dataclasses or TypedDicts.

    The parts that parse are imported when first used: prompts and documents need names and
    spellings only, not the grammar.
    """

    name: str = "python"
    suffix: str = ".py"
    comment: Comment = Comment("#")
    fence_tags: frozenset[str] = frozenset({"py", "py3", "python", "python3"})
    reserved_type_names: frozenset[str] = names.RESERVED_TYPE_NAMES
    object_kinds: frozenset[str] = frozenset({"class"})
    nouns: Nouns = wording.NOUNS
    syntax: Syntax = Syntax(
        code_signs=frozenset("=[]{}()"),
        attribute_line=re.compile(r"@.*"),
        # A member ends with its line, unless a bracket is open or a comma goes on.
        member_end=re.compile(r"(?:^|[^\s(\[{,])[ \t]*(?:#.*)?$"),
        declares=re.compile(r"^[ \t]*(?:class|import|from|\w+[ \t]*[:=])", re.MULTILINE),
    )
    has_unions: bool = True
    redeclared: str = "take it out, or give it another name"

    def type_name(self, schema_name: str, *, is_root: bool) -> str:
        """Return a legal name for a schema's type, in PascalCase."""
        return names.type_name(schema_name, is_root=is_root)

    def member_names(self, type_: TypeIR) -> dict[str | int, str]:
        """Return an identifier for each field or enum value, all of them different."""
        return names.member_names(type_)

    def has_enum_member(self, value: str) -> bool:
        """Return whether a member of an enum can stand for ``value`` on the wire: any can."""
        return True

    def is_legal_type_name(self, name: str) -> bool:
        """Return whether a type may be declared as ``name``."""
        return names.is_identifier(name)

    def spell(self, field: FieldIR, *, profile: str = "default") -> str:
        """Return the spelling of the field's type that the prompts of a profile ask for."""
        return spelling.spell(field, profile=profile)

    def show_type(self, reference: TypeRef) -> str:
        """Return a type as the source spells it."""
        return acceptance.show_type(reference)

    def write_page(
        self, type_: TypeIR, units: Sequence[EnumValue], mode: OutputMode, *, profile: str
    ) -> str:
        """Return the code of one page as its prompt asks for it, without a fence."""
        return writer.write_page(type_, units, mode, profile=profile)

    def accepts(
        self, expression: TypeExpr, spelled: TypeRef, declared: Mapping[str, Declaration]
    ) -> bool:
        """Return whether ``spelled`` can hold every value of ``expression``, null aside."""
        return acceptance.accepts(expression, spelled, declared)

    def is_known(self, reference: TypeRef) -> bool:
        """Return whether a type of that name exists: one that does not is told where it is used."""
        return True

    def header(self, *, namespace: str, profile: str) -> str:
        """Return imports and base classes: what stands before the first boundary.

        Args:
            namespace: not used: a module is called as its file.
            profile: decides what is imported.

        Raises:
            UsageError: Python has no such profile.
        """
        del namespace
        return wording.header(profile)

    def missing_in_header(
        self, outside: str, blocks: Mapping[str, str], *, profile: str
    ) -> Sequence[HeaderLine]:
        """Return the imports that a file lacks although its blocks need them."""
        return wording.missing_in_header(outside, blocks, profile=profile)

    def wording(self, profile: str) -> Wording:
        """Return what prompts say about Python.

        Raises:
            UsageError: Python has no such profile.
        """
        return wording.wording(profile)

    def read(self, code: str) -> SourceFacts:
        """Return what ``code`` declares and where it is illegal."""
        from pytest_regen.languages.python.source import read

        return read(code)

    def stitch(self, outputs: Sequence[str], *, name: str, is_enum: bool) -> StitchedType:
        """Join the pages of one type into one declaration, by syntax tree."""
        from pytest_regen.languages.python.pages import stitch

        return stitch(outputs, name=name, is_enum=is_enum)

    def unwrap_page(self, code: str, mode: OutputMode) -> str:
        """Return the members of a continuation page without what was put around them."""
        from pytest_regen.languages.python.pages import unwrap_page

        return unwrap_page(code, mode)

    def split(
        self, code: str, *, name: str, units: Sequence[Sequence[str | int]]
    ) -> tuple[str, ...]:
        """Return the pages of a declaration: the way back from ``stitch``."""
        from pytest_regen.languages.python.pages import split

        return split(code, name=name, units=units)

    def illegality(self, code: str) -> int:
        """Return how far ``code`` is from a page of generated code; 0 is legal."""
        from pytest_regen.languages.python.pages import illegality

        return illegality(code)

    def leaves(self, code: str) -> tuple[str, ...]:
        """Return the tokens and comments of ``code``, and where its blocks begin and end."""
        from pytest_regen.languages.python.pages import leaves

        return leaves(code)

    def missing_wire_name(self, member: Member, wire: str, *, is_enum: bool) -> str:
        """Return what ``member`` lacks to carry ``wire``."""
        return rules.missing_wire_name(member, wire, is_enum=is_enum)

    def absence_fault(self, field: FieldIR, member: Member) -> AbsenceFault | None:
        """Return what is wrong about null and absence: ``None`` in the type, the default."""
        return rules.absence_fault(field, member)

    def rules(self, subject: RuleSubject) -> Iterator[Issue]:
        """Yield what is wrong with a type that other languages have no word for."""
        return rules.rules(subject)

    def weakens(self, type_: TypeIR, old: str, new: str) -> Iterator[Weakness]:
        """Return by what the code of a type is tested less than the code that it replaces."""
        from pytest_regen.languages.python.guard import weakens

        return weakens(type_, old, new)

    def runner(self, profile: str) -> Runner | None:
        """Return what runs the code of a profile."""
        from pytest_regen.languages.python.runner import PythonRunner

        return PythonRunner(profile)
