"""TypeScript, as the rest of the package asks for it."""

import re
from collections.abc import Sequence

from pytest_regen.documents.ir import EnumValue, FieldIR, TypeIR
from pytest_regen.languages.base import (
    Comment,
    Nouns,
    Syntax,
    Wording,
)
from pytest_regen.languages.runner import Runner
from pytest_regen.languages.typescript import names, spelling
from pytest_regen.languages.typescript.wording import NOUNS, check_profile, wording
from pytest_regen.languages.typescript.writer import write_page
from pytest_regen.prompts.values import OutputMode

__all__ = ["TypeScript"]


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
        return 'import { z } from "zod";' if profile == "zod" else ""

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
