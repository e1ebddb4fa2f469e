"""What a rule looks at: one type, what its block declares, and what the rest of the source does."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from pytest_regen.documents.ir import IR, EnumValue, FieldIR, TypeIR
from pytest_regen.languages import Language, base
from pytest_regen.text import in_quotes
from pytest_regen.validation.issues import Issue
from pytest_regen.validation.pieces import PageMap


def wire_of(member: base.Member) -> str:
    """Return the name of a property on the wire: its own, where none is written."""
    return member.name if member.wire_name is None else str(member.wire_name)


@dataclass(frozen=True)
class Surroundings:
    """What all types of a source share: the IR, the language, and what the source declares."""

    ir: IR
    language: Language
    profile: str
    declarations: tuple[base.Declaration, ...]
    """Everything that the source declares, outside of the boundaries too."""
    aliases: frozenset[str]
    """Other names that the source gives to types."""

    @cached_property
    def types(self) -> Mapping[str, TypeIR]:
        """The types of the IR by name."""
        return {type_.name: type_ for type_ in self.ir.types}

    @cached_property
    def nouns(self) -> base.Nouns:
        """What the profile calls things."""
        return self.language.wording(self.profile).nouns

    @cached_property
    def declarations_by_name(self) -> Mapping[str, base.Declaration]:
        """The first declaration of each name."""
        # Backwards, because of equal keys the last stays.
        return {entry.name: entry for entry in reversed(self.declarations)}

    def exists(self, reference: base.TypeRef) -> bool:
        """Return whether something declares the type, or nothing has to."""
        name = reference.name
        is_declared = name in self.declarations_by_name or name in self.aliases
        return is_declared or name in self.types or self.language.is_known(reference)


@dataclass(frozen=True)
class Subject:
    """One type under validation."""

    type: TypeIR
    facts: base.SourceFacts
    """Of its block; empty where the source has none."""
    main: tuple[base.Declaration, ...]
    """The declarations of the type itself: one, or the parts of a partial class."""
    first_line: int
    around: Surroundings
    pages: PageMap

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
        return Issue.of(
            code,
            message,
            type_name=self.type.name,
            detail=detail,
            page=page if page or line is None else self.pages.page_of_line(line),
            line=None if line is None else line + self.first_line - 1,
            field=None if unit is None or self.type.kind == "alias" else str(unit),
            excerpt=None if line is None else self.pages.excerpt(line),
            finding=finding,
        )

    def unit_of(self, member: base.Member) -> EnumValue | None:
        """Return the field or value of the type that a member stands for, if there is one.

        A member that is given no name on the wire has its own name there.
        """
        wire = member.name if member.wire_name is None else member.wire_name
        return wire if wire in self.names else None

    def fault(self, fault: base.SyntaxFault | base.PageFault, *, line: int | None) -> Issue:
        """Return the issue of illegal code; it is one of the field that its member names, if any.

        Only the text is searched, because there is no tree of illegal code.
        """
        unit = None
        if self.pages.pages and fault.in_member and line is not None:
            # With the attributes above it, because they hold the name on the wire.
            lines = self.pages.text.split("\n")
            # A file that is no text may count its lines otherwise.
            first = min(line - 1, len(lines))
            is_attribute = self.around.language.syntax.attribute_line.fullmatch
            while first > 0 and is_attribute(lines[first - 1].strip()):
                first -= 1
            text = "\n".join(lines[first:line])
            words = {*re.findall(r"\w+", text)}
            by_name = (unit for unit, name in self.names.items() if name in words)
            # What stands in quotes comes first, because it is the name on the wire itself.
            quoted = (unit for unit in self.names if f'"{unit}"' in text)
            unit = next(chain(quoted, by_name), None)
        page = fault.page if isinstance(fault, base.PageFault) else None
        return self.issue(fault.code, fault.message, line=line, page=page, unit=unit)

    def naming_issue(self, member: base.Member, message: str) -> Issue:
        """Return the issue of a member that must have another name, with the one to use."""
        unit = self.unit_of(member)
        proposed = None if unit is None else self.names[unit]
        detail = f"call this one {proposed!r}" if proposed not in {None, member.name} else None
        return self.issue("DUPLICATE_PROPERTY", message, line=member.line, unit=unit, detail=detail)

    def repeated(
        self, code: str, noun: str, unit: EnumValue, first: base.Member, member: base.Member
    ) -> Issue:
        """Return the issue of a field or value that ``member`` carries after ``first`` did.

        A page that writes what another page was asked for must leave it out, as the message says.
        """
        owner, page = self.pages.page_of_unit.get(unit), self.pages.page_of_line(member.line)
        message = f"{noun} {in_quotes(unit)} is carried again by {member.name!r}"
        detail: str | None = f"{first.name!r} carries it already; one of the two is wrong"
        finding = f"these {noun}s are written more than once; write each of them once"
        if owner is not None and page not in {None, owner}:
            message = f"{noun} {in_quotes(unit)} belongs to page {owner}: do not write it here"
            finding, detail = f"these {noun}s belong to page {owner}: do not write them here", None
        return self.issue(
            code, message, line=member.line, unit=unit, detail=detail, finding=finding
        )

    def missing_types(
        self,
        reference: base.TypeRef,
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
        # Backwards and back, because each name is told once, where it stands first.
        missing = {
            inner.name: inner
            for inner in reversed([*reference.walk()])
            if inner.name not in known and not self.around.exists(inner)
        }
        for inner in reversed(missing.values()):
            spelled = f"{inner.qualifier}.{inner.name}" if inner.qualifier else inner.name
            detail = advice or f"declared types: {', '.join(sorted(self.around.types))}"
            yield self.issue(
                "UNDECLARED_TYPE",
                f"{where} uses type {spelled!r}, which is not declared",
                line=inner.line or reference.line or line,
                unit=unit,
                detail=detail[:1000],
            )

    def matches(self) -> Iterator[tuple[FieldIR, base.Member]]:
        """Yield each field of the type with the first member that carries it."""
        for field in self.type.fields:
            if carriers := self.carriers.get(field.json_name):
                yield field, carriers[0]

    @property
    def kinds(self) -> frozenset[str]:
        """What it may be declared as: as its own kind, or, of an object, what holds fields."""
        is_object = self.type.kind == "object"
        return self.around.language.object_kinds if is_object else frozenset({self.type.kind})

    @property
    def first_page(self) -> int | None:
        """The page that declares the type; ``None`` where no pages are known."""
        return 1 if self.pages.pages else None

    @cached_property
    def names(self) -> Mapping[str | int, str]:
        """The identifier that prompts propose for each field or value."""
        return self.around.language.member_names(self.type)

    @cached_property
    def carriers(self) -> Mapping[EnumValue, Sequence[base.Member]]:
        """Members by what they are on the wire, those that no serializer sees left out.

        Of several, the one whose page was asked for the field comes first.
        """
        carriers: dict[EnumValue, list[base.Member]] = {}
        kinds = {type(value) for value in self.type.enum_values}
        for member in self.members:
            wire, number = member.wire_name, member.number
            unit: EnumValue = wire_of(member)
            if self.type.kind != "enum":
                if not member.is_serialized:
                    continue
            elif not member.name:
                unit = "" if wire is None else wire
            elif not isinstance(wire, str):
                # The number counts where values are numbers, or where both are and it is written.
                is_number = int in kinds and (wire is not None or str not in kinds)
                unit = number if is_number and number is not None else member.name
            carriers.setdefault(unit, []).append(member)
        for unit, owner in self.pages.page_of_unit.items():
            pages = [self.pages.page_of_line(member.line) for member in carriers.get(unit, ())]
            if owner in pages[1:]:
                carriers[unit].insert(0, carriers[unit].pop(pages.index(owner)))
        return carriers

    @cached_property
    def members(self) -> tuple[base.Member, ...]:
        """Members of the type; a positional parameter that a property repeats is left out.

        Of a type that is declared twice, only the first declaration counts, but for partial ones.
        What other types of the source hand down stands on the line that names the type.
        """
        parts = [part for part in self.main if part is self.main[0] or part.is_partial]
        members = [member for part in parts for member in part.members]
        bases = [parent.name for part in parts for parent in part.bases]
        # Because a model may write a base type for the fields that several types of an API share.
        for name in bases:  # It grows, because a base may have one itself.
            base_type = self.around.declarations_by_name.get(name)
            if base_type is not None and bases.count(name) == 1:
                declared = {wire_of(member) for member in members}
                bases += [parent.name for parent in base_type.bases]
                # On the line that names the type, because its page is to blame, and no other.
                members += [
                    replace(member, line=parts[0].name_line, end_line=parts[0].name_line, faults=())
                    for member in base_type.members
                    if wire_of(member) not in declared
                ]
        repeated = {member.name for member in members if member.kind == "property"}
        return tuple(
            member
            for member in members
            if not (member.kind == "parameter" and member.name in repeated)
        )
