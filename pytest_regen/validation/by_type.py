"""Validation of a source, type by type: block-local findings, file-wide symbols."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_regen.documents.ir import IR, TypeIR
from pytest_regen.languages import Language, find_language
from pytest_regen.languages.base import Declaration, SourceFacts
from pytest_regen.validation import rules_members, rules_types
from pytest_regen.validation import rules_types as types
from pytest_regen.validation.issues import Issue, ValidationResult
from pytest_regen.validation.pieces import PageMap, PageText, Piece, Split, read_text, split
from pytest_regen.validation.rules_types import reviews, unfixable
from pytest_regen.validation.subject import Subject, Surroundings

__all__ = ["validate_by_type", "validate_generated_code", "validate_split"]


Pages = Mapping[str, Sequence[PageText]]


def validate_generated_code(
    source: str, ir: IR | Mapping[str, Any], *, profile: str = "default"
) -> ValidationResult:
    """Return what is wrong with an assembled source, in the order of its lines.

    Args:
        source: what ``assemble`` returns, or any source of the language with or without boundaries.
        ir: the value of ``ir.json``, as a mapping or a model.
        profile: the profile the source was generated for.

    Raises:
        pydantic.ValidationError: ``ir`` is no IR.
        UsageError: the language of the IR is unknown.
    """
    results = validate_by_type(source, ir, profile=profile)
    issues = [issue for result in results.values() for issue in result.issues]
    return ValidationResult.of(sorted(issues, key=lambda issue: issue.line or 0))


def validate_by_type(
    source: str,
    ir: IR | Mapping[str, Any],
    *,
    pages: Pages | None = None,
    profile: str = "default",
) -> dict[str, ValidationResult]:
    """Return what is wrong with each type.

    Args:
        source: see ``validate_generated_code``. Without boundaries it is split by declaration.
        ir: the value of ``ir.json``, as a mapping or a model.
        pages: the stored pages by type name; given, each issue is put on the page at fault, and
            pages are checked for what only they show.
        profile: the profile the source was generated for.

    Returns:
        A result for each type of the IR, in its order, then for each block that the IR has no type
        for.

    Raises:
        pydantic.ValidationError: ``ir`` is no IR.
        UsageError: the language of the IR is unknown.
    """
    model = IR.of(ir)
    return validate_split(split(source, model.language), model, pages=pages, profile=profile)


def validate_split(
    found: Split, ir: IR, *, pages: Pages | None = None, profile: str = "default"
) -> dict[str, ValidationResult]:
    """Return what is wrong with each type of a source that was already split."""
    around = _surroundings(found, ir, find_language(ir.language), profile)
    pieces = {piece.name: piece for piece in reversed(found.pieces)}
    results: dict[str, ValidationResult] = {}
    for type_ in ir.types:
        subject = _subject(type_, pieces, found, around, (pages or {}).get(type_.name))
        results[type_.name] = ValidationResult.of(_ordered(_issues(subject)))
    for piece in found.pieces:
        if piece.name not in around.types:
            results.setdefault(piece.name, _foreign(piece, around))
    return results


def _surroundings(found: Split, ir: IR, language: Language, profile: str) -> Surroundings:
    declarations = [
        *found.outside,
        *(e for piece in found.pieces for e in piece.facts.declarations),
    ]
    owners: dict[str, list[str]] = {}
    names = Counter(type_.name for type_ in ir.types)
    for type_ in ir.types:
        for field in type_.fields:
            owners.setdefault(field.json_name, []).append(type_.name)
    return Surroundings(
        ir=ir,
        language=language,
        profile=profile,
        declared=frozenset(entry.name for entry in declarations) | found.aliases,
        top_level=frozenset(entry.name for entry in declarations if entry.outer is None),
        types={type_.name: type_ for type_ in ir.types},
        owners=owners,
        repeated=frozenset(name for name, count in names.items() if count > 1),
        declarations=tuple(declarations),
    )


def _subject(
    type_: TypeIR,
    pieces: Mapping[str, Piece],
    found: Split,
    around: Surroundings,
    pages: Sequence[PageText] | None,
) -> Subject:
    """Return a type with its own block, or with the block it is nested in."""
    piece = pieces.get(type_.name)
    facts = piece.facts if piece else SourceFacts(unread=found.unread)
    if piece is None and type_ is around.ir.types[0]:
        facts = replace(facts, faults=found.homeless)
    first_line = piece.first_line if piece else 1
    main = _declared(facts.declarations, type_.name)
    if not main and not facts.faults:
        host, elsewhere = _elsewhere(type_.name, found)
        if elsewhere:
            main, facts, first_line = elsewhere, SourceFacts(elsewhere), host
    text = piece.text if piece else ""
    mapped = None
    if pages:
        is_enum = type_.kind == "enum"
        mapped = PageMap(
            pages, language=around.ir.language, name=type_.name, is_enum=is_enum, text=text
        )
    return Subject(type_, facts, main, first_line, around, mapped)


def _declared(declarations: Sequence[Declaration], name: str) -> tuple[Declaration, ...]:
    """Return the declarations of a type: those at the top level, or else the nested ones."""
    named = [entry for entry in declarations if entry.name == name]
    top = tuple(entry for entry in named if entry.outer is None)
    return top or tuple(named)


def _elsewhere(name: str, found: Split) -> tuple[int, tuple[Declaration, ...]]:
    """Return where else a type is declared: nested in another block, or outside of all."""
    for piece in found.pieces:
        nested = [entry for entry in piece.facts.declarations if entry.name == name and entry.outer]
        if nested:
            return piece.first_line, tuple(nested)
    return 1, tuple(entry for entry in found.outside if entry.name == name)


def _issues(subject: Subject) -> Iterator[Issue]:
    yield from unfixable(subject.type, subject.around)
    yield from reviews(subject)
    yield from rules_types.page_outputs(subject)
    yield from rules_types.illegal_pages(subject)
    if subject.pages and subject.pages.is_broken:
        around_faults = _around_faults(subject, subject.pages)
        if around_faults is None:
            return
        subject = around_faults
    yield from rules_types.text_faults(subject)
    yield from types.foreign_types(subject)
    if not (subject.pages and 1 in subject.pages.silent):
        yield from types.declared_once(subject)
    subject = _with_stand_in(subject)
    if not types.is_right_kind(subject):
        return
    yield from types.undeclared_types(subject)
    yield from types.refusals(subject)
    yield from types.less_open(subject)
    yield from rules_members.duplicate_names(subject)
    if subject.type.kind == "enum":
        yield from rules_members.enum_values(subject)
    else:
        yield from rules_members.field_presence(subject)
        yield from rules_members.field_types(subject)
    yield from subject.around.language.rules(subject)


def _around_faults(subject: Subject, pages: PageMap) -> Subject | None:
    """Return the type as it is read without its illegal pages; ``None`` if it cannot be.

    The grammar's recovery from one page's fault would reach into the pages after it.
    """
    readable = pages.readable()
    if readable is None:
        return None
    language = subject.around.ir.language
    facts = read_text(language, readable.text)
    unread = set(facts.unread)
    for page in readable.illegal:
        unread |= read_text(language, page.output).unread
    faults = facts.faults + tuple(
        replace(fault, line=line)
        for line, place in readable.lines.items()
        for fault in subject.facts.faults
        if fault.line == place and pages.page_of_line(fault.line) in subject.illegal_pages
    )
    return replace(
        subject,
        facts=replace(facts, unread=frozenset(unread), faults=faults),
        main=_declared(facts.declarations, subject.type.name),
        lines=readable.lines,
    )


def _with_stand_in(subject: Subject) -> Subject:
    """Return the type with the declaration that took its place, so that its members are judged."""
    instead = types.stands_in(subject)
    if instead is None:
        return subject
    return replace(subject, main=(instead,))


def _foreign(piece: Piece, around: Surroundings) -> ValidationResult:
    """Return the result of a block that the IR has no type for."""
    facts, before = piece.facts, piece.first_line - 1
    line = facts.declarations[0].name_line if facts.declarations else 1
    known = ", ".join(around.types)[:500]
    foreign = Issue.of(
        "FOREIGN_TYPE",
        f"the IR has no type {piece.name!r}",
        type_name=piece.name,
        line=line + before,
        detail=f"types of the IR: {known}",
    )
    faults = [
        Issue.of(fault.code, fault.message, type_name=piece.name, line=fault.line + before)
        for fault in facts.faults
    ]
    return ValidationResult.of([foreign, *faults])


def _ordered(issues: Iterator[Issue]) -> list[Issue]:
    """Return issues by line, those without one first, equal ones once."""
    return sorted(dict.fromkeys(issues), key=lambda issue: issue.line or 0)
