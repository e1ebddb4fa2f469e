"""TypeScript, as the rest of the package asks for it."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from pytest_regen.languages.base import HeaderLine, Later, Nouns, Syntax
from pytest_regen.languages.typescript import names, spelling
from pytest_regen.languages.typescript.wording import NOUNS, wording
from pytest_regen.languages.typescript.writer import write_page
from pytest_regen.regions.markers import Comment

_IMPORT_ZOD: Final = 'import { z } from "zod";'
_IMPORTS_ZOD: Final = re.compile(
    r"^\s*import\s*(?:\{[^}]*\bz\b[^}]*\}|(?:\*\s*as\s+)?z\b)[^;\n]*[\"']zod(?:/\w+)*[\"']",
    re.MULTILINE,
)
_USES_ZOD: Final = re.compile(r"\bz\s*\.")
_IMPORT_ADVICE: Final = "put the line back at the top of the file"


class TypeScript:
    """TypeScript, as ``languages.base.Language`` describes it."""

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
        declares=re.compile(r"\b(?:interface|type|enum|class|const)\b"),
    )
    has_unions: bool = True
    redeclared: str = "take it out, or give it another name"

    type_name = staticmethod(names.type_name)
    member_names = staticmethod(names.member_names)
    is_legal_type_name = staticmethod(names.is_type_identifier)
    spell = staticmethod(spelling.spell)
    wording = staticmethod(wording)
    write_page = staticmethod(write_page)
    accepts, show_type, is_known = Later.each("typescript.types", 3)
    read = Later("typescript.reader")
    stitch, unwrap_page, split, illegality, leaves = Later.each("typescript.pages", 5)
    missing_wire_name, absence_fault, rules = Later.each("typescript.rules", 3)
    weakens = Later("typescript.guard")
    runner = Later("typescript.runner", "TypeScriptRunner")

    def has_enum_member(self, value: str) -> bool:
        """Return whether a value can be a literal: any text can."""
        return True

    def header(self, *, namespace: str, profile: str) -> str:
        """Return the import that schemas need; a module has no namespace.

        Raises:
            UsageError: TypeScript has no such profile.
        """
        wording(profile)  # raises where there is no such profile
        return _IMPORT_ZOD if profile == "zod" else ""

    def missing_in_header(
        self, outside: str, blocks: Mapping[str, str], *, profile: str
    ) -> Sequence[HeaderLine]:
        """Return the import of zod where it is gone."""
        if profile != "zod" or _IMPORTS_ZOD.search(outside):
            return ()
        # Of one block, because the line that is missing is the same for all.
        user = next((name for name, text in blocks.items() if _USES_ZOD.search(text)), None)
        return (HeaderLine(_IMPORT_ZOD, "z", user, _IMPORT_ADVICE),) if user else ()
