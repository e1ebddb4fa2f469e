"""Python, as ``languages.base.Language`` describes a target language."""

import re

from pytest_regen.languages.base import Later, Nouns, Syntax, TypeRef
from pytest_regen.languages.python import acceptance, names, rules, spelling, wording, writer
from pytest_regen.regions.markers import Comment


class Python:
    """Python 3.11: pydantic models, dataclasses or TypedDicts."""

    name: str = "python"
    suffix: str = ".py"
    comment: Comment = Comment("#")
    fence_tags: frozenset[str] = frozenset({"py", "py3", "python", "python3"})
    reserved_type_names: frozenset[str] = names.RESERVED_TYPE_NAMES
    object_kinds: frozenset[str] = frozenset(
        {"class", "plain class", names.MODEL, names.DATACLASS, names.KEYS}
    )
    nouns: Nouns = wording.NOUNS
    syntax: Syntax = Syntax(
        code_signs=frozenset("=[]{}()"),
        attribute_line=re.compile(r"@.*"),
        declares=re.compile(r"^[ \t]*(?:class|import|from|\w+[ \t]*[:=])", re.MULTILINE),
    )
    has_unions: bool = True
    redeclared: str = "take it out, or give it another name"

    type_name = staticmethod(names.type_name)
    member_names = staticmethod(names.member_names)
    is_legal_type_name = staticmethod(names.is_identifier)
    spell = staticmethod(spelling.spell)
    show_type = staticmethod(acceptance.show_type)
    accepts = staticmethod(acceptance.accepts)
    write_page = staticmethod(writer.write_page)
    wording = staticmethod(wording.wording)
    missing_wire_name = staticmethod(rules.missing_wire_name)
    absence_fault = staticmethod(rules.absence_fault)
    rules = staticmethod(rules.rules)
    header, missing_in_header = Later.each("python.header", 2)
    read = Later("python.source")
    stitch, unwrap_page, split, illegality, leaves = Later.each("python.pages", 5)
    weakens = Later("python.guard")
    runner = Later("python.runner", "PythonRunner")

    def has_enum_member(self, value: str) -> bool:
        """Return whether a member of an enum can stand for ``value`` on the wire: any can."""
        return True

    def is_known(self, reference: TypeRef) -> bool:
        """Return whether a type of that name exists: one that does not is told where it is used."""
        return True
