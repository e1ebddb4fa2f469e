"""What a rule looks at: one type, what its block declares, and what the rest of the source does."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final, Literal, TypeVar

from pytest_regen.documents.ir import IR, EnumValue, FieldIR, TypeIR
from pytest_regen.languages import Language
from pytest_regen.languages.base import Declaration, Member, Nouns, SourceFacts, TypeRef
from pytest_regen.text import in_quotes
from pytest_regen.validation.issues import Issue
from pytest_regen.validation.pieces import PageMap

_ILLEGAL_TEXT: Final = frozenset({"ARTIFACT", "INVALID_IDENTIFIER", "SYNTAX"})


def wire_of(member: Member) -> str:
    """Return the name of a property on the wire: its own, where none is written."""
    return member.name if member.wire_name is None else str(member.wire_name)


T = TypeVar("T")

Lookup = tuple[Literal["declared", "used", "all"], str]
"""What a rule asked of the rest of the source: who declares a name, who uses it, or everything."""

EVERYTHING: Final[Lookup] = ("all", "")


class _Watched(Mapping[str, T]):
    """A mapping that notes which names are looked up in it."""

    def __init__(
        self, data: Mapping[str, T], what: Literal["declared", "used"], lookups: set[Lookup]
    ) -> None:
        self._data = data
        self._what = what
        self._lookups = lookups

    def __getitem__(self, name: str) -> T:
        self._lookups.add((self._what, name))
        return self._data[name]

    def __iter__(self) -> Iterator[str]:
        self._lookups.add(EVERYTHING)
        return iter(self._data)

    def __len__(self) -> int:
        self._lookups.add(EVERYTHING)
        return len(self._data)


@dataclass(frozen=True)
class TypesOfIR:
    """What rules ask about the IR; made once for all states of a source."""

    ir: IR

    @cached_property
    def types(self) -> Mapping[str, TypeIR]:
        """The types by name."""
        return {type_.name: type_ for type_ in self.ir.types}

    @cached_property
    def owners(self) -> Mapping[str, Sequence[str]]:
        """JSON name of a field to the types that have it."""
        found: dict[str, list[str]] = {}
        for type_ in self.ir.types:
            for field in type_.fields:
                found.setdefault(field.json_name, []).append(type_.name)
        return found

    @cached_property
    def repeated(self) -> frozenset[str]:
        """Names that several types have."""
        names = Counter(type_.name for type_ in self.ir.types)
        return frozenset(name for name, count in names.items() if count > 1)


class Surroundings:
    """What all types of a source share: the IR, the language, and what the source declares.

    What rules ask of the source is noted in ``lookups``: whoever keeps what was found in a type
    knows by them when it no longer holds.
    """

    def __init__(
        self,
        of_ir: TypesOfIR,
        language: Language,
        profile: str,
        declarations: Sequence[Declaration],
        aliases: Collection[str],
    ) -> None:
        self.ir = of_ir.ir
        self.types = of_ir.types
        self.owners = of_ir.owners
        """JSON name of a field to the types that have it."""
        self.repeated = of_ir.repeated
        """Names that several types of the IR have."""
        self.language = language
        self.profile = profile
        self.lookups: set[Lookup] = set()
        """What was asked since it was last cleared."""
        self._declarations = tuple(declarations)
        self._declared = {entry.name for entry in declarations} | set(aliases)
        self._top_level = {entry.name for entry in declarations if entry.outer is None}

    @property
    def declarations(self) -> tuple[Declaration, ...]:
        """Everything that the source declares, outside of the boundaries too."""
        self.lookups.add(EVERYTHING)
        return self._declarations

    @cached_property
    def nouns(self) -> Nouns:
        """What the profile calls things."""
        return self.language.wording(self.profile).nouns

    @cached_property
    def declarations_by_name(self) -> Mapping[str, Declaration]:
        """The first declaration of each name."""
        first = {entry.name: entry for entry in reversed(self._declarations)}
        return _Watched(first, "declared", self.lookups)

    @cached_property
    def uses(self) -> Mapping[str, Sequence[tuple[Declaration, Member]]]:
        """Name of a type to the serialized members whose types name it, wherever they stand."""
        found: dict[str, list[tuple[Declaration, Member]]] = {}
        for entry in self._declarations:
            for member in entry.members:
                if member.type is not None and member.is_serialized:
                    for name in {part.name for part in member.type.walk()}:
                        found.setdefault(name, []).append((entry, member))
        return _Watched(found, "used", self.lookups)

    def is_top_level(self, name: str) -> bool:
        """Return whether a block, or the text around them, declares the name at its top level."""
        self.lookups.add(("declared", name))
        return name in self._top_level

    def exists(self, reference: TypeRef) -> bool:
        """Return whether something declares the type, or nothing has to."""
        self.lookups.add(("declared", reference.name))
        is_here = reference.name in self._declared or reference.name in self.types
        return is_here or self.language.is_known(reference)


@dataclass(frozen=True)
class Subject:
    """One type under validation."""

    type: TypeIR
    facts: SourceFacts
    """Of its block; empty where the source has none."""
    main: tuple[Declaration, ...]
    """The declarations of the type itself: one, or the parts of a partial class."""
    first_line: int
    around: Surroundings
    pages: PageMap | None = None

    def issue(
        self,
        code: str,
        message: str,
        *,
        line: int | None = None,
        page: int | None = None,
        unit: EnumValue | None = None,
        detail: str | None = None,
        finding: str | None = None,
    ) -> Issue:
        """Return an issue of this type; ``line`` counts from the first line of its block.

        Without a page, it is put on the one that wrote the line.
        """
        excerpt = None
        if line is not None and self.pages is not None:
            page = page or self.pages.page_of_line(line)
            excerpt = self.pages.excerpt(line)
        return Issue.of(
            code,
            message,
            type_name=self.type.name,
            detail=detail,
            page=page,
            line=None if line is None else line + self.first_line - 1,
            field=None if unit is None else str(unit),
            excerpt=excerpt,
            finding=finding,
        )

    def repeated(
        self, code: str, noun: str, unit: EnumValue, first: Member, member: Member
    ) -> Issue:
        """Return the issue of a field or value that ``member`` carries after ``first`` did.

        A page that writes what another page was asked for must leave it out, as the message says.
        """
        asked, line = self.page_of_unit(unit), member.line
        issue = self.issue(
            code,
            f"{noun} {in_quotes(unit)} is carried again by {member.name!r}",
            line=line,
            unit=unit,
            detail=f"{first.name!r} carries it already; one of the two is wrong",
            finding=f"these {noun}s are written more than once; write each of them once",
        )
        if asked is None or issue.page is None or issue.page == asked:
            return issue
        return replace(
            issue,
            message=f"{noun} {in_quotes(unit)} belongs to page {asked}: do not write it here",
            detail=None,
            finding=f"these {noun}s belong to page {asked}: do not write them here",
        )

    def unit_of(self, member: Member) -> EnumValue | None:
        """Return the field or value of the type that a member stands for, if there is one.

        A member that is given no name on the wire has its own name there.
        """
        wire = member.name if member.wire_name is None else member.wire_name
        return wire if wire in self.names else None

    def naming_issue(self, member: Member, message: str) -> Issue:
        """Return the issue of a member that must have another name, with the one to use."""
        unit = self.unit_of(member)
        proposed = None if unit is None else self.names[unit]
        detail = f"call this one {proposed!r}" if proposed not in {None, member.name} else None
        return self.issue("DUPLICATE_PROPERTY", message, line=member.line, unit=unit, detail=detail)

    def missing_types(
        self,
        reference: TypeRef,
        known: frozenset[str],
        where: str,
        unit: EnumValue | None = None,
        *,
        line: int,
        advice: str = "",
    ) -> Iterator[Issue]:
        """Yield the types in ``reference`` that exist nowhere.

        Args:
            reference: a type as the source names it.
            known: names that exist all the same, such as type parameters.
            where: what uses it, as a message begins.
            unit: the field or value at fault.
            line: where that stands, if the reference does not say where it does.
            advice: what to do about it; else the declared types are listed.
        """
        around, reported = self.around, set(known)
        for inner in reference.walk():
            if inner.name in reported or around.exists(inner):
                continue
            reported.add(inner.name)
            spelled = f"{inner.qualifier}.{inner.name}" if inner.qualifier else inner.name
            message = f"{where} uses type {spelled!r}, which is not declared"
            detail = advice or f"declared types: {', '.join(sorted(around.types))}"
            yield self.issue(
                "UNDECLARED_TYPE",
                message,
                line=inner.line or reference.line or line,
                unit=unit,
                detail=detail[:1000],
            )

    def matches(self) -> Iterator[tuple[FieldIR, Member]]:
        """Yield each field of the type with the first member that carries it."""
        for field in self.type.fields:
            if found := self.carriers.get(field.json_name):
                yield field, found[0]

    @property
    def first_page(self) -> int | None:
        """The page that declares the type; ``None`` where no pages are known."""
        return 1 if self.pages else None

    def unit_at(self, line: int) -> EnumValue | None:
        """Return the field or value whose member stands on a line of the block, if it can be found.

        For illegal code: the text around the line is searched, not a tree.
        """
        if self.pages is None or line is None:
            return None
        return self.pages.unit_at(line, self.names)

    def page_of_unit(self, unit: EnumValue) -> int | None:
        """Return the page that was asked for a field or value, if pages are known."""
        return None if self.pages is None else self.pages.page_of_unit(unit)

    def is_silent(self, unit: EnumValue) -> bool:
        """Return whether a unit may be missing only because its whole page is, or is illegal."""
        number = self.page_of_unit(unit)
        return self.pages is not None and number in self.pages.silent | self.illegal_pages

    @cached_property
    def names(self) -> Mapping[str | int, str]:
        """The identifier that prompts propose for each field or value."""
        return self.around.language.member_names(self.type)

    @cached_property
    def carriers(self) -> Mapping[str, Sequence[Member]]:
        """Serialized members by the name they have on the wire.

        Of several, the one whose page was asked for the field comes first.
        """
        found: dict[str, list[Member]] = {}
        for member in self.members:
            if member.is_serialized:
                found.setdefault(wire_of(member), []).append(member)
        for wire, members in found.items():
            if len(members) > 1:
                members.sort(key=partial(self.is_out_of_place, wire))
        return found

    def is_out_of_place(self, unit: EnumValue, member: Member) -> bool:
        """Return whether another page was asked for the field than the one that wrote it."""
        asked = self.page_of_unit(unit)
        if asked is None or self.pages is None:
            return False
        return self.pages.page_of_line(member.line) != asked

    @cached_property
    def members(self) -> tuple[Member, ...]:
        """Members of the type; a positional parameter that a property repeats is left out.

        Of a type that is declared twice, only the first declaration counts, but for partial ones.
        What other types of the source hand down stands on the line that names the type.
        """
        parts = [part for part in self.main if part is self.main[0] or part.is_partial]
        members = [member for part in parts for member in part.members]
        bases = [base.name for part in parts for base in part.bases]
        for name in bases:  # It grows: a base may have one itself.
            base_type = self.around.declarations_by_name.get(name)
            if base_type is not None and bases.count(name) == 1:
                own = {wire_of(member) for member in members}
                bases += [base.name for base in base_type.bases]
                members += [
                    replace(member, line=parts[0].name_line, end_line=parts[0].name_line, faults=())
                    for member in base_type.members
                    if wire_of(member) not in own
                ]
        repeated = {member.name for member in members if member.kind == "property"}
        return tuple(
            member
            for member in members
            if not (member.kind == "parameter" and member.name in repeated)
        )

    @cached_property
    def illegal_pages(self) -> frozenset[int]:
        """Which of several pages are illegal alone; their text is in the block all the same."""
        if self.pages is None or not self.pages.is_broken:
            return frozenset()
        faults = self.pages.stitched.faults
        return frozenset(
            # Whatever is wrong with page 1, nothing declares the type.
            fault.page
            for fault in faults
            if fault.code in _ILLEGAL_TEXT or fault.page == 1
        )
