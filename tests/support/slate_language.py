"""Slate, a small target language for tests: lines, comments behind ``#``, nothing of .NET.

    module acme.kites

    record KiteDataObject
      kite_id "kite_id": whole
      tail "tail-colour": Colour?
      knots "knots": list(text)?
    end

    choice Colour
      sky "sky-blue"
      moss "moss green"
    end

A field that may be absent or null ends in ``?``. It is installed as a user's own language would be:
``install`` writes the metadata of a distribution with the entry point.
"""

# ruff: noqa: D102 - what each method is for, ``Language`` says

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from reference_writer_request import parse_request

from pytest_regen.documents.ir import (
    ArrayOf,
    EnumValue,
    FieldIR,
    MapOf,
    Ref,
    Scalar,
    TypeExpr,
    TypeIR,
    UnionOf,
)
from pytest_regen.errors import SourceError, UsageError
from pytest_regen.languages.base import (
    AbsenceFault,
    Declaration,
    HeaderLine,
    Member,
    Nouns,
    PageFault,
    SourceFacts,
    StitchedType,
    Syntax,
    SyntaxFault,
    TypeRef,
    Wording,
    describe_absence,
)
from pytest_regen.prompts.values import OutputMode
from pytest_regen.regions.markers import Comment
from pytest_regen.validation.issues import Issue

_SCALARS: Final = {
    "string": "text",
    "integer": "whole",
    "number": "real",
    "boolean": "flag",
    "any": "anything",
}
_KNOWN: Final = frozenset({"list", "map", *_SCALARS.values()})
_WORDS: Final = frozenset({"record", "choice", "end", "module", *_KNOWN})
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPENS: Final = re.compile(rf"(?P<kind>record|choice) (?P<name>{_NAME.pattern})")
_MODULE: Final = re.compile(r"module [\w.]+")
_TEXT: Final = r'"(?:\\.|[^"\\])*"'
_FIELD: Final = re.compile(rf"(?P<name>{_NAME.pattern})(?: (?P<wire>{_TEXT}))?: (?P<type>\S.*)")
_VALUE: Final = re.compile(rf"(?P<name>{_NAME.pattern})(?: (?P<wire>{_TEXT}|-?\d+))?")
_TOKEN: Final = re.compile(rf"{_TEXT}|\w+|\S")


@dataclass(slots=True)
class _Open:
    """A declaration that is being read."""

    kind: str
    name: str
    line: int
    members: list[Member]


class Slate:
    """Slate, as ``languages.base.Language`` describes it."""

    name = "slate"
    suffix = ".slate"
    comment = Comment("#")
    fence_tags = frozenset({"slate", "slt"})
    reserved_type_names = frozenset({"List", "Map"})
    object_kinds = frozenset({"record"})
    nouns = Nouns(object="record", enum="choice", member="line", value="line")
    syntax = Syntax(code_signs=frozenset('":?'))
    has_unions = False
    redeclared = "take it out"

    # --- names and types ---------------------------------------------------------------------

    def type_name(self, schema_name: str, *, is_root: bool) -> str:
        words = re.findall("[A-Za-z0-9]+", schema_name)
        name = "".join(word[:1].upper() + word[1:] for word in words)
        name = name if name[:1].isalpha() else f"T{name}"
        return f"{name}Root" if is_root or name in self.reserved_type_names else name

    def member_names(self, type_: TypeIR) -> dict[str | int, str]:
        found: dict[str | int, str] = {}
        for unit in type_.units:
            plain = name = _member_name(unit)
            number = 2
            while name in found.values():
                name, number = f"{plain}_{number}", number + 1
            found[unit] = name
        return found

    def has_enum_member(self, value: str) -> bool:
        return bool(value)

    def is_legal_type_name(self, name: str) -> bool:
        return _NAME.fullmatch(name) is not None and name not in _WORDS

    def spell(self, field: FieldIR, *, profile: str = "default") -> str:
        del profile
        mark = "?" if field.nullable or not field.required else ""
        return _spelling(field.type) + mark

    def show_type(self, reference: TypeRef) -> str:
        inner = f"({self.show_type(reference.args[0])})" if reference.args else ""
        return reference.name + inner + "?" * reference.nullable

    def write_page(
        self, type_: TypeIR, units: Sequence[EnumValue], mode: OutputMode, *, profile: str
    ) -> str:
        self.wording(profile)
        names = self.member_names(type_)
        lines = [f"  {names[unit]} {json.dumps(unit)}" for unit in units]
        if type_.kind == "object":
            spelled = {field.json_name: self.spell(field) for field in type_.fields}
            lines = [f"{line}: {spelled[str(at)]}" for line, at in zip(lines, units, strict=True)]
        if mode in {"fields_only", "enum_values_only"}:
            return "\n".join(("# BEGIN_FIELDS", *lines, "# END_FIELDS"))
        word = "choice" if type_.kind == "enum" else "record"
        return "\n".join((f"{word} {type_.name}", *lines, "end"))

    def accepts(
        self, expression: TypeExpr, spelled: TypeRef, declared: Mapping[str, Declaration]
    ) -> bool:
        match expression, spelled:
            case ArrayOf(items=inner), TypeRef(name="list", args=(item,)):
                return self.accepts(inner, item, declared)
            case MapOf(values=inner), TypeRef(name="map", args=(value,)):
                return self.accepts(inner, value, declared)
            case ((ArrayOf() | MapOf()), _):
                return False
        return self.show_type(replace(spelled, nullable=False)) == _spelling(expression)

    def is_known(self, reference: TypeRef) -> bool:
        return reference.name in _KNOWN

    # --- what stands around types ---------------------------------------------------------------

    def header(self, *, namespace: str, profile: str) -> str:
        self.wording(profile)
        return f"module {namespace}" if namespace else ""

    def missing_in_header(
        self, outside: str, blocks: Mapping[str, str], *, profile: str
    ) -> Sequence[HeaderLine]:
        del outside, blocks, profile
        return ()

    def wording(self, profile: str) -> Wording:
        if profile != "default":
            raise UsageError(f"Slate has no profile {profile!r}", hint="leave --profile out")
        return Wording(
            title="Slate",
            nouns=self.nouns,
            rules=(
                'Write each field as identifier "json_name": type on a line of its own.',
                'Write each value as identifier "value", or identifier and the number.',
            ),
            begin_delimiter="# BEGIN_FIELDS",
            end_delimiter="# END_FIELDS",
            fence="slate",
            examples={
                "full_class": 'record KiteRoot\n  kite_id "kite_id": whole\nend',
                "class_only": 'record KiteString\n  metres "metres": real\nend',
                "fields_only": '# BEGIN_FIELDS\n  knots "knots": list(text)?\n# END_FIELDS',
                "enum_only": 'choice KiteColour\n  sky_blue "sky-blue"\nend',
                "enum_values_only": '# BEGIN_FIELDS\n  moss "moss green"\n# END_FIELDS',
            },
            field_characters=8,
            value_characters=6,
        )

    # --- reading --------------------------------------------------------------------------------

    def read(self, code: str) -> SourceFacts:
        found: list[Declaration] = []
        faults: list[SyntaxFault] = []
        opened: _Open | None = None
        for number, line in _lines(code):
            starts = _OPENS.fullmatch(line)
            member = _member(line, number, opened.kind) if opened else None
            if starts and opened is None:
                opened = _Open(starts["kind"], starts["name"], number, [])
            elif line == "end" and opened is not None:
                found.append(_declaration(opened, number))
                opened = None
            elif member is not None and opened is not None:
                opened.members.append(member)
            elif opened is not None or not _MODULE.fullmatch(line):
                faults.append(SyntaxFault(number, f"this is no line of Slate: {line[:60]!r}"))
        if opened is not None:
            faults.append(
                SyntaxFault(opened.line, f"{opened.name!r} has no 'end'", in_member=False)
            )
            found.append(_declaration(opened, len(code.split("\n"))))
        return SourceFacts(tuple(found), tuple(faults))

    def _declared_kind(self, code: str, name: str) -> tuple[str, int] | None:
        for number, line in _lines(code):
            starts = _OPENS.fullmatch(line)
            if starts and starts["name"] == name:
                return _kind(starts["kind"]), number
        return None

    def illegality(self, code: str) -> int:
        lines = [line for _, line in _lines(code)]
        if not lines:
            return len(code) + 1
        bare = min(
            sum(len(line) + 1 for line in lines if not _member(line, 1, kind))
            for kind in ("record", "choice")
        )
        rows = code.split("\n")
        whole = sum(len(rows[fault.line - 1]) + 1 for fault in self.read(code).faults)
        return min(bare, whole)

    def leaves(self, code: str) -> tuple[str, ...]:
        found: list[str] = []
        for line in map(str.strip, code.splitlines()):
            found += [line] if line.startswith("#") else _TOKEN.findall(line)
        return tuple(found)

    # --- pages ------------------------------------------------------------------------------------

    def stitch(self, outputs: Sequence[str], *, name: str, is_enum: bool) -> StitchedType:
        pages = [_numbered(output) for output in outputs]
        head = pages[0] if pages else []
        kind = self._declared_kind(outputs[0], name) if outputs else None
        faults: list[PageFault] = []
        if len(pages) > 1 and kind is None:
            faults.append(PageFault(1, 1, "MISSING_CLASS", f"the page declares no {name!r}"))
        word = "choice" if is_enum or (kind and kind[0] == "enum") else "record"
        at = next((i for i in reversed(range(len(head))) if head[i][1] == "end"), len(head))
        lines = [(1, number, text) for number, text in head[:at]]
        for page, own in enumerate(pages[1:], 2):
            for number, text in own:
                plain = text.strip()
                if plain in {"# BEGIN_FIELDS", "# END_FIELDS"}:
                    continue
                if plain and not plain.startswith("#") and not _member(plain, 1, word):
                    message = f"this is no line of a {word}: {plain[:60]!r}"
                    faults.append(PageFault(page, number, "SYNTAX", message))
                lines.append((page, number, f"  {plain}" if plain else ""))
        lines += [(1, number, text) for number, text in head[at:]]
        return StitchedType(
            text="\n".join(text for _, _, text in lines),
            line_pages=tuple(page for page, _, _ in lines),
            faults=tuple(faults),
            page_lines=tuple(number for _, number, _ in lines),
        )

    def unwrap_page(self, code: str, mode: OutputMode) -> str:
        del mode
        return "\n".join(text for _, text in _numbered(code) if "_FIELDS" not in text)

    def split(
        self, code: str, *, name: str, units: Sequence[Sequence[str | int]]
    ) -> tuple[str, ...]:
        if len(units) <= 1:
            return (code,)
        own = [entry for entry in self.read(code).declarations if entry.name == name]
        page_of = {unit: page for page, asked in enumerate(units) for unit in asked}
        pages: list[list[str]] = [[] for _ in units]
        lines = code.split("\n")
        taken: set[int] = set()
        for member in own[0].members if own else ():
            page = page_of.get(member.wire_name or "", 0)
            if page:
                pages[page].append(lines[member.line - 1])
                taken.add(member.line)
        if not all(pages[1:]):
            raise SourceError(f"{name} cannot be taken apart", hint="restore its lines")
        pages[0] = [line for at, line in enumerate(lines, 1) if at not in taken]
        return tuple("\n".join(page) for page in pages)

    # --- rules ------------------------------------------------------------------------------------

    def missing_wire_name(self, member: Member, wire: str, *, is_enum: bool) -> str:
        del member, is_enum
        return f"its name on the wire: write {json.dumps(wire)} after it"

    def absence_fault(self, field: FieldIR, member: Member) -> AbsenceFault | None:
        wants = field.nullable or not field.required
        if member.type is None or member.type.nullable == wants:
            return None
        state = describe_absence(field)
        return AbsenceFault(
            f"{member.name!r} must be {self.spell(field)!r}: the field {state}",
            f"the type of each of these fields {'lacks' if wants else 'must not have'} a '?'",
        )

    def rules(self, subject: Any) -> Iterator[Issue]:
        del subject
        return iter(())


class MisspeltSlate(Slate):
    """Slate whose prompts ask for ``text`` where a field is an integer, which is wrong."""

    def spell(self, field: FieldIR, *, profile: str = "default") -> str:
        return super().spell(field, profile=profile).replace("whole", "text")


def answer(messages: Sequence[Mapping[str, str]]) -> str:
    """Return what a model should answer to a request for a page."""
    system, *rest = (message["content"] for message in messages)
    body = {"system": system, "messages": [{"role": "user", "content": rest[0]}]}
    page = parse_request(body)
    lines = [
        f"  {unit.identifier} {json.dumps(unit.wire)}" + (f": {unit.type}" if unit.type else "")
        for unit in page.units
    ]
    if page.is_first:
        word = "choice" if page.is_enum else "record"
        lines = [f"{word} {page.type_name}", *lines, "end"]
    else:
        lines = ["# BEGIN_FIELDS", *lines, "# END_FIELDS"]
    return "\n".join(("```slate", *lines, "```"))


def install(
    folder: Path,
    *,
    name: str = "slate",
    value: str = "slate_language:Slate",
    distribution: str = "slate-lang",
) -> None:
    """Write the metadata of a distribution whose entry point leads to a language."""
    info = folder / f"{distribution.replace('-', '_')}-1.2.dist-info"
    info.mkdir(parents=True)
    metadata = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n"
    (info / "METADATA").write_text(metadata, "utf-8")
    entry = f"[pytest_regen.languages]\n{name} = {value}\n"
    (info / "entry_points.txt").write_text(entry, "utf-8")


def _member_name(wire_name: str | int) -> str:
    name = "_".join(re.findall("[a-z0-9]+", str(wire_name).lower()))
    return name if name[:1].isalpha() and name not in _WORDS else f"f_{name}"


def _spelling(expression: TypeExpr) -> str:
    match expression:
        case Ref(name=name):
            return name
        case ArrayOf(items=inner):
            return f"list({_spelling(inner)})"
        case MapOf(values=inner):
            return f"map({_spelling(inner)})"
        case Scalar(kind=kind):
            return _SCALARS[kind]
        case UnionOf():
            return _SCALARS["any"]


def _lines(code: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that say something, without white space around them."""
    for number, line in enumerate(code.removeprefix("\ufeff").split("\n"), 1):
        plain = line.strip()
        if plain and not plain.startswith("#"):
            yield number, plain


def _numbered(output: str) -> list[tuple[int, str]]:
    """Return the lines of a page with their numbers, blank ones around it left out."""
    lines = output.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    found = [(number, line.rstrip()) for number, line in enumerate(lines, 1)]
    while found and not found[0][1]:
        found.pop(0)
    while found and not found[-1][1]:
        found.pop()
    return found


def _member(line: str, number: int, kind: str) -> Member | None:
    match = (_FIELD if kind == "record" else _VALUE).fullmatch(line)
    if match is None or match["name"] in _WORDS:
        return None
    try:
        wire = None if match["wire"] is None else json.loads(match["wire"])
    except ValueError:
        return None
    if kind != "record":
        number_ = wire if isinstance(wire, int) else None
        return Member(match["name"], "value", number, number, wire, number=number_)
    type_ = _type(match["type"])
    if type_ is None:
        return None
    return Member(match["name"], "field", number, number, wire, type=type_)


def _type(text: str) -> TypeRef | None:
    """Return the type that ``text`` spells; ``None`` if it spells none."""
    plain = text.removesuffix("?")
    is_nullable = plain != text
    if plain.startswith(("list(", "map(")) and plain.endswith(")"):
        name, _, rest = plain.partition("(")
        inner = _type(rest[:-1])
        return inner and TypeRef(name, (inner,), nullable=is_nullable)
    return TypeRef(plain, nullable=is_nullable) if _NAME.fullmatch(plain) else None


def _kind(word: str) -> str:
    return "enum" if word == "choice" else word


def _declaration(opened: _Open, end: int) -> Declaration:
    return Declaration(
        opened.name,
        _kind(opened.kind),
        opened.line,
        end,
        tuple(opened.members),
        name_line=opened.line,
    )
