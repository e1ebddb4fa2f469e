"""TypeScript, as the rest of the package asks for it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

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
from pytest_regen.languages.runner import Runner
from pytest_regen.languages.typescript import names, spelling
from pytest_regen.languages.typescript.wording import NOUNS, check_profile, wording
from pytest_regen.languages.typescript.writer import write_page
from pytest_regen.prompts.values import OutputMode
from pytest_regen.regions.markers import Comment
from pytest_regen.validation.issues import Issue, Weakness

_IMPORT_ZOD: Final = 'import { z } from "zod";'
_IMPORTS_ZOD: Final = re.compile(
    r"^\s*import\s*(?:\{[^}]*\bz\b[^}]*\}|(?:\*\s*as\s+)?z\b)[^;\n]*[\"']zod(?:/\w+)*[\"']",
    re.MULTILINE,
)
_USES_ZOD: Final = re.compile(r"\bz\s*\.")
_IMPORT_ADVICE: Final = "put the line back at the top of the file"


class TypeScript:
    """TypeScript, as ``languages.base.Language`` describes it.

    Modules that parse are imported when they are used: prompts and documents need no grammar.
    """

    name: str = "typescript"
    suffix: str = ".ts"
    comment: Comment = Comment("//")
    fence_tags: frozenset[str] = frozenset({"cts", "mts", "ts", "tsx", "typescript"})
    reserved_type_names: frozenset[str] = names.RESERVED_TYPE_NAMES
    object_kinds: frozenset[str] = frozenset({"interface", "object type", "schema"})
    nouns: Nouns = NOUNS
    syntax: Syntax = Syntax(
        comment_marks=("/*", "*/", "* "),
        attribute_line=re.compile(r"/\*\*.*\*/|get .*\{"),
        # After a blank line, a brace, a semicolon or a comma, another member begins.
        member_end=re.compile(r"(?:^|[{};,=|]|\*/)\s*(?://.*)?$"),
        declares=re.compile(r"\b(?:interface|type|enum|class|const)\b"),
    )
    has_unions: bool = True
    redeclared: str = "take it out, or give it another name"

    def type_name(self, schema_name: str, *, is_root: bool) -> str:
        """Return a legal name for a schema's type, in PascalCase."""
        return names.type_name(schema_name, is_root=is_root)

    def member_names(self, type_: TypeIR) -> dict[str | int, str]:
        """Return how code names each field or value: as a property, or as a literal."""
        return names.member_names(type_)

    def has_enum_member(self, value: str) -> bool:
        """Return whether a value can be a literal: any text can."""
        del value
        return True

    def is_legal_type_name(self, name: str) -> bool:
        """Return whether a type may be declared as ``name``."""
        return names.is_type_identifier(name)

    def spell(self, field: FieldIR, *, profile: str = "default") -> str:
        """Return the type, or the schema, that the prompts of a profile ask for."""
        return spelling.spell(field, profile=profile)

    def write_page(
        self, type_: TypeIR, units: Sequence[EnumValue], mode: OutputMode, *, profile: str
    ) -> str:
        """Return the code of one page as its prompt asks for it, without a fence."""
        check_profile(profile)
        return write_page(type_, units, mode, profile=profile)

    def header(self, *, namespace: str, profile: str) -> str:
        """Return the import that schemas need; a module has no namespace.

        Raises:
            UsageError: TypeScript has no such profile.
        """
        del namespace
        check_profile(profile)
        return _IMPORT_ZOD if profile == "zod" else ""

    def weakens(self, type_: TypeIR, old: str, new: str) -> Iterator[Weakness]:
        """Return by what the code of a type is tested less than the code that it replaces."""
        from pytest_regen.languages.typescript.guard import weakens

        return weakens(type_, old, new)

    def runner(self, profile: str) -> Runner | None:
        """Return what runs the code of a profile."""
        from pytest_regen.languages.typescript.runner import TypeScriptRunner

        return TypeScriptRunner(profile)

    def wording(self, profile: str) -> Wording:
        """Return what prompts say about TypeScript.

        Raises:
            UsageError: TypeScript has no such profile.
        """
        return wording(profile)

    def show_type(self, reference: TypeRef) -> str:
        """Return a type, or a schema, as the source spells it."""
        from pytest_regen.languages.typescript.types import show_type

        return show_type(reference)

    def accepts(
        self, expression: TypeExpr, spelled: TypeRef, declared: Mapping[str, Declaration]
    ) -> bool:
        """Return whether ``spelled`` holds the values of ``expression``, null aside."""
        from pytest_regen.languages.typescript.types import accepts

        del declared
        return accepts(expression, spelled)

    def is_known(self, reference: TypeRef) -> bool:
        """Return whether a type of that name exists without being declared in the source."""
        from pytest_regen.languages.typescript.types import is_known

        return is_known(reference)

    def missing_in_header(
        self, outside: str, blocks: Mapping[str, str], *, profile: str
    ) -> Sequence[HeaderLine]:
        """Return the import of zod where it is gone."""
        if profile != "zod" or _IMPORTS_ZOD.search(outside):
            return ()
        for name, text in blocks.items():
            if _USES_ZOD.search(text):
                return (HeaderLine(_IMPORT_ZOD, "z", name, _IMPORT_ADVICE),)
        return ()

    def read(self, code: str) -> SourceFacts:
        """Return what ``code`` declares and where it is illegal."""
        from pytest_regen.languages.typescript.reader import read

        return read(code)

    def stitch(self, outputs: Sequence[str], *, name: str, is_enum: bool) -> StitchedType:
        """Join the pages of one type into one declaration, by syntax tree."""
        from pytest_regen.languages.typescript.pages import stitch

        return stitch(outputs, name=name, is_enum=is_enum)

    def unwrap_page(self, code: str, mode: OutputMode) -> str:
        """Return the members of a continuation page without what was put around them."""
        from pytest_regen.languages.typescript.pages import unwrap_page

        return unwrap_page(code, mode)

    def split(
        self, code: str, *, name: str, units: Sequence[Sequence[str | int]]
    ) -> tuple[str, ...]:
        """Return the pages of a declaration: the way back from ``stitch``."""
        from pytest_regen.languages.typescript.pages import split

        return split(code, name=name, units=units)

    def illegality(self, code: str) -> int:
        """Return how far ``code`` is from a page of generated code; 0 is legal."""
        from pytest_regen.languages.typescript.pages import illegality

        return illegality(code)

    def leaves(self, code: str) -> tuple[str, ...]:
        """Return the tokens and comments of ``code``, without what a formatter is free about."""
        from pytest_regen.languages.typescript.pages import leaves

        return leaves(code)

    def missing_wire_name(self, member: Member, wire: str, *, is_enum: bool) -> str:
        """Return what ``member`` lacks to carry ``wire``."""
        from pytest_regen.languages.typescript.rules import missing_wire_name

        return missing_wire_name(member, wire, is_enum=is_enum)

    def absence_fault(self, field: FieldIR, member: Member) -> AbsenceFault | None:
        """Return what is wrong about null and absence: the question mark, ``null``."""
        from pytest_regen.languages.typescript.rules import absence_fault

        return absence_fault(field, member)

    def rules(self, subject: RuleSubject) -> Iterator[Issue]:
        """Yield what is wrong with a type that other languages have no word for."""
        from pytest_regen.languages.typescript.rules import rules

        return rules(subject)
