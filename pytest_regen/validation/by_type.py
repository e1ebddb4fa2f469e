"""Validation of a source, type by type: block-local findings, file-wide symbols."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_regen.documents.ir import IR, TypeIR, referenced_names
from pytest_regen.languages import find_language
from pytest_regen.languages.base import Declaration, SourceFacts
from pytest_regen.validation import rules_members, rules_types
from pytest_regen.validation import rules_types as types
from pytest_regen.validation.issues import IMPORT_FAILED, Issue, ValidationResult
from pytest_regen.validation.pieces import (
    PageMap,
    PageText,
    Piece,
    Split,
    split,
    without_illegal_pages,
)
from pytest_regen.validation.rules_types import reviews, unfixable
from pytest_regen.validation.subject import (
    EVERYTHING,
    Lookup,
    Subject,
    Surroundings,
    TypesOfIR,
)

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
    # Imported here because running stands on stores, which this module knows nothing of.
    from pytest_regen.validation.behaviour import run_source

    read = split(source, model.language)
    text, read = without_illegal_pages(source, read, pages or {}, model)
    found = run_source(text, read, model, profile)
    return dict(validate_split(found, model, pages=pages, profile=profile).results)


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What was found in one type, and what it depends on."""

    piece: Piece | None
    """Its block."""
    pages: Sequence[PageText]
    lookups: frozenset[Lookup]
    """What was asked of the rest of the source."""
    result: ValidationResult

    def after_a_change(
        self, piece: Piece | None, pages: Sequence[PageText], changed: frozenset[Lookup]
    ) -> "_Verdict | None":
        """Return the verdict after the source changed; ``None`` where it may be another.

        Args:
            piece: the block of the type now.
            pages: its pages now.
            changed: what the rest of the source may answer in another way now.
        """
        if not self.lookups.isdisjoint(changed) or pages != self.pages:
            return None
        if piece is None or self.piece is None:
            return self if piece is self.piece else None
        if piece.text != self.piece.text or piece.facts != self.piece.facts:
            return None
        down = piece.first_line - self.piece.first_line
        result = _shift(self.result, down) if down else self.result
        return _Verdict(piece, pages, self.lookups, result)


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What is wrong with each type of a source, kept for the next state of the same source."""

    found: Split
    of_ir: TypesOfIR
    profile: str
    by_name: Mapping[str, _Verdict]
    results: Mapping[str, ValidationResult]
    """Of each type of the IR, then of each block that the IR has no type for."""


def validate_split(
    found: Split,
    ir: IR,
    *,
    pages: Pages | None = None,
    profile: str = "default",
    known: Verdicts | None = None,
) -> Verdicts:
    """Return what is wrong with each type of a source that was already split.

    Args:
        found: the source.
        ir: the value of ``ir.json``.
        pages: the stored pages by type name.
        profile: the profile the source was generated for.
        known: the verdicts on another state of the source; types that are as they were there, and
            saw nothing of what changed, are not validated again.
    """
    language = find_language(ir.language)
    if known is not None and (known.of_ir.ir is not ir or known.profile != profile):
        known = None
    of_ir = known.of_ir if known else TypesOfIR(ir)
    declarations = [
        *found.outside,
        *(entry for piece in found.pieces for entry in piece.facts.declarations),
    ]
    around = Surroundings(of_ir, language, profile, declarations, found.aliases)
    changed = changed_answers(known.found, found) if known else None
    pieces = {piece.name: piece for piece in reversed(found.pieces)}
    verdicts: dict[str, _Verdict] = {}
    results: dict[str, ValidationResult] = {}
    for type_ in ir.types:
        name = type_.name
        own_pages = (pages or {}).get(name, ())
        verdict = known.by_name.get(name) if known and changed is not None else None
        if verdict is not None and changed is not None:
            verdict = verdict.after_a_change(pieces.get(name), own_pages, changed)
        if verdict is None:
            verdict = validate_type(type_, pieces.get(name), found, around, own_pages)
        results[name] = verdict.result
        if name not in of_ir.repeated:
            verdicts[name] = verdict
    results = _without_echoes(results, around.types)
    for piece in found.pieces:
        if piece.name not in around.types:
            results.setdefault(piece.name, _foreign(piece, around))
    return Verdicts(found, of_ir, profile, verdicts, results)


def _without_echoes(
    results: Mapping[str, ValidationResult], types: Mapping[str, TypeIR]
) -> dict[str, ValidationResult]:
    """Return the results without IMPORT_FAILED where what is wrong is known more exactly.

    That is an error of the type itself, or of one that its fields are made of.
    """
    exact = {
        name
        for name, result in results.items()
        if any(issue.code != IMPORT_FAILED for issue in result.errors)
    }

    def is_echo(name: str) -> bool:
        seen, waiting = {name}, [name]
        while waiting and not seen & exact:
            fields = types[waiting.pop()].fields
            used = {ref for field in fields for ref in referenced_names(field.type)}
            new = (used & types.keys()) - seen
            seen |= new
            waiting += new
        return bool(seen & exact)

    return {
        name: ValidationResult.of(one for one in result.issues if one.code != IMPORT_FAILED)
        if any(one.code == IMPORT_FAILED for one in result.issues) and is_echo(name)
        else result
        for name, result in results.items()
    }


def changed_answers(old: Split, new: Split) -> frozenset[Lookup] | None:
    """Return the lookups that two states of a source may answer in different ways.

    ``None`` where nothing that was found in the one need hold in the other: pieces can only be
    compared where boundaries separate them.
    """
    if old is new:
        return frozenset()
    before, after = _by_name(old), _by_name(new)
    if before is None or after is None:
        return None
    common = [name for name in before if name in after]
    if common != [name for name in after if name in before]:
        return None
    changed: list[Declaration] = []
    for name in {**before, **after}:
        states = [pieces[name] for pieces in (before, after) if name in pieces]
        is_same = len(states) > 1 and states[0].text == states[1].text
        if not is_same or states[0].facts != states[1].facts:
            changed += (entry for piece in states for entry in piece.facts.declarations)
    if old.outside != new.outside:
        changed += (*old.outside, *new.outside)
    found: set[Lookup] = {EVERYTHING}
    found.update(("declared", name) for name in old.aliases ^ new.aliases)
    for entry in changed:
        found.add(("declared", entry.name))
        for member in entry.members:
            if member.type is not None:
                found.update(("used", part.name) for part in member.type.walk())
    return frozenset(found)


def _by_name(found: Split) -> dict[str, Piece] | None:
    pieces = {piece.name: piece for piece in found.pieces}
    return pieces if found.has_boundaries and len(pieces) == len(found.pieces) else None


def _shift(result: ValidationResult, down: int) -> ValidationResult:
    return ValidationResult.of(
        issue if issue.line is None else replace(issue, line=issue.line + down)
        for issue in result.issues
    )


def validate_type(
    type_: TypeIR,
    piece: Piece | None,
    found: Split,
    around: Surroundings,
    pages: Sequence[PageText],
) -> _Verdict:
    """Return what is wrong with one type, and what else of the source was looked at for it."""
    around.lookups.clear()
    subject = _subject(type_, piece, found, around, pages)
    result = ValidationResult.of(_sort(_issues(subject)))
    return _Verdict(piece, pages, frozenset(around.lookups), result)


def _subject(
    type_: TypeIR,
    piece: Piece | None,
    found: Split,
    around: Surroundings,
    pages: Sequence[PageText],
) -> Subject:
    """Return a type with its own block, or with the block it is nested in."""
    facts = piece.facts if piece else SourceFacts()
    if piece is None and type_ is around.ir.types[0]:
        facts = replace(facts, faults=found.homeless)
    first_line = piece.first_line if piece else 1
    main = _declarations_of(facts.declarations, type_.name)
    if not main and not facts.faults:
        around.lookups.add(("declared", type_.name))
        host, elsewhere = _elsewhere(type_.name, found)
        if elsewhere:
            # Its lines move with those of another block: it is validated again after any change.
            around.lookups.add(EVERYTHING)
            main, facts, first_line = elsewhere, SourceFacts(elsewhere), host
    text = piece.text if piece else ""
    mapped = None
    if pages:
        is_enum = type_.kind == "enum"
        mapped = PageMap(
            pages, language=around.ir.language, name=type_.name, is_enum=is_enum, text=text
        )
    return Subject(type_, facts, main, first_line, around, mapped)


def _declarations_of(declarations: Sequence[Declaration], name: str) -> tuple[Declaration, ...]:
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
    if 1 in subject.illegal_pages:
        return  # Nothing declares the type.
    yield from rules_types.text_faults(subject)
    faults = subject.facts.faults
    if any(fault.code == IMPORT_FAILED for fault in faults):
        return  # What it is nobody knows.
    if faults and not subject.facts.declarations:
        return  # What else is wrong shows when this is mended.
    yield from types.foreign_types(subject)
    if not (subject.pages and 1 in subject.pages.silent):
        yield from types.declaration_faults(subject)
    subject = _with_stand_in(subject)
    if not types.is_right_kind(subject):
        return
    yield from types.undeclared_types(subject)
    yield from types.refusals(subject)
    yield from types.visibility_faults(subject)
    yield from rules_members.duplicate_names(subject)
    if subject.type.kind == "enum":
        yield from rules_members.enum_values(subject)
    else:
        yield from rules_members.field_presence(subject)
        yield from rules_members.field_types(subject)
    yield from subject.around.language.rules(subject)


def _with_stand_in(subject: Subject) -> Subject:
    """Return the type with the declaration that took its place, so that its members are checked."""
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


def _sort(issues: Iterator[Issue]) -> list[Issue]:
    """Return issues by line, those without one first, equal ones once."""
    return sorted(dict.fromkeys(issues), key=lambda issue: issue.line or 0)
