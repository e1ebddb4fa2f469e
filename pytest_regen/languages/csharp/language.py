"""C# as a target language."""

from collections.abc import Mapping, Sequence

from pytest_regen.documents.ir import FieldIR, TypeExpr, TypeIR
from pytest_regen.languages.base import Stitched
from pytest_regen.languages.csharp import names, types
from pytest_regen.languages.csharp.keywords import RESERVED_TYPE_NAMES
from pytest_regen.languages.csharp.wording import wording
from pytest_regen.languages.facts import SourceFacts, TypeRef
from pytest_regen.languages.wording import Wording
from pytest_regen.prompts.values import OutputMode

__all__ = ["CSharp"]


class CSharp:
    """C#, as ``languages.base.Language`` describes it.

    The parts that parse are imported when first used: prompts and documents need names and
    spellings only, not the grammar.
    """

    name: str = "csharp"
    suffix: str = ".cs"
    comment: str = "//"
    fence_tags: frozenset[str] = frozenset({"c#", "cs", "csharp"})
    reserved_type_names: frozenset[str] = RESERVED_TYPE_NAMES

    def type_name(self, schema_name: str, *, is_root: bool) -> str:
        """Return a legal name for a schema's type; a root's ends in ``DataObject``, once."""
        return names.type_name(schema_name, is_root=is_root)

    def member_name(self, wire_name: str | int, *, owner: str) -> str:
        """Return a legal PascalCase identifier for a field or enum value of ``owner``."""
        return names.member_name(wire_name, owner=owner)

    def member_names(self, type_: TypeIR) -> dict[str | int, str]:
        """Return an identifier for each field or enum value, all of them different."""
        return names.member_names(type_)

    def has_enum_member(self, value: str) -> bool:
        """Return whether a member of an enum can stand for ``value`` on the wire.

        The converter of System.Text.Json refuses an enum with a member whose name is empty, or
        begins or ends with white space (dotnet/runtime#107367).
        """
        return bool(value) and value == value.strip()

    def is_legal_type_name(self, name: str) -> bool:
        """Return whether a type may be declared as ``name``."""
        return names.is_type_identifier(name)

    def spell(self, field: FieldIR) -> str:
        """Return the spelling of the field's type that prompts ask for, ``?`` included."""
        return types.spell(field)

    def accepts(self, expression: TypeExpr, spelled: TypeRef) -> bool:
        """Return whether ``spelled`` can hold every value of ``expression``, nullability aside."""
        return types.accepts(expression, spelled)

    def is_known(self, reference: TypeRef) -> bool:
        """Return whether a type of that name exists without being declared in the source."""
        return types.is_known(reference)

    def header(self, *, namespace: str, profile: str) -> str:
        """Return usings and namespace: what stands before the first boundary."""
        from pytest_regen.languages.csharp.header import header  # noqa: PLC0415 - see the class

        return header(namespace=namespace, profile=profile)

    def missing_in_header(
        self, outside: str, blocks: Mapping[str, str], *, profile: str
    ) -> Sequence[tuple[str, str, str]]:
        """Return the usings that a file lacks although its blocks need them."""
        from pytest_regen.languages.csharp.header import missing_in_header  # noqa: PLC0415 - see the class

        return missing_in_header(outside, blocks, profile=profile)

    def wording(self, profile: str) -> Wording:
        """Return what prompts say about C#.

        Raises:
            UsageError: C# has no such profile.
        """
        return wording(profile)

    def read(self, code: str) -> SourceFacts:
        """Return what ``code`` declares and where it is illegal."""
        from pytest_regen.languages.csharp.reader import read  # noqa: PLC0415 - see the class

        return read(code)

    def mended(self, code: str) -> str:
        """Return ``code`` with the smallest changes that make it more legal; lines do not move."""
        from pytest_regen.languages.csharp.reader import mended  # noqa: PLC0415 - see the class

        return mended(code)

    def stitch(self, outputs: Sequence[str], *, name: str, is_enum: bool) -> Stitched:
        """Join the pages of one type into one declaration, by syntax tree."""
        from pytest_regen.languages.csharp.pages import stitch  # noqa: PLC0415 - see the class

        return stitch(outputs, name=name, is_enum=is_enum)

    def unwrap_page(self, code: str, mode: OutputMode) -> str:
        """Return the members of a continuation page without what was put around them."""
        from pytest_regen.languages.csharp.pages import (  # noqa: PLC0415 - see the class
            unwrap_page,
        )

        return unwrap_page(code, mode)

    def split(
        self, code: str, *, name: str, units: Sequence[Sequence[str | int]]
    ) -> tuple[str, ...]:
        """Return the pages of a declaration: the way back from ``stitch``."""
        from pytest_regen.languages.csharp.splitting import (  # noqa: PLC0415 - see the class
            split,
        )

        return split(code, name=name, units=units)

    def illegality(self, code: str) -> int:
        """Return how far ``code`` is from a page of generated code; 0 is legal."""
        from pytest_regen.languages.csharp.weighing import (  # noqa: PLC0415 - see the class
            illegality,
        )

        return illegality(code)

    def leaves(self, code: str) -> tuple[str, ...]:
        """Return the tokens and comments of ``code``, without the white space between them."""
        from pytest_regen.languages.csharp.weighing import leaves  # noqa: PLC0415 - see the class

        return leaves(code)
