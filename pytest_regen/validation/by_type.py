"""Validation of a source, type by type: block-local findings, file-wide symbols."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pytest_regen.documents.ir import IR, TypeIR, referenced_names
from pytest_regen.languages import find_language
from pytest_regen.languages.base import SourceFacts
from pytest_regen.validation import pieces as parts
from pytest_regen.validation import rules
from pytest_regen.validation.issues import IMPORT_FAILED, Issue, ValidationResult
from pytest_regen.validation.subject import Subject, Surroundings


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
    pages: parts.Pages | None = None,
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

    text, whole, maps = parts.read_source(source, model, pages or {})
    return validate_split(run_source(text, whole, model, profile), model, maps, profile)


def validate_split(
    whole: parts.Split, ir: IR, maps: Mapping[str, parts.PageMap], profile: str
) -> dict[str, ValidationResult]:
    """Return what is wrong with each type of a source that was already split.

    Args:
        whole: the source.
        ir: the value of ``ir.json``.
        maps: the pages of each type.
        profile: the profile the source was generated for.
    """
    inside = [entry for piece in whole.pieces for entry in piece.facts.declarations]
    declarations = (*whole.outside, *inside)
    around = Surroundings(ir, find_language(ir.language), profile, declarations, whole.aliases)
    # Backwards, because the first of two blocks of one name counts.
    pieces = {piece.name: piece for piece in reversed(whole.pieces)}
    results = {}
    for type_ in ir.types:
        subject = _subject(type_, pieces.get(type_.name), whole, around, maps[type_.name])
        # Equal ones once; those without a line come first.
        issues = dict.fromkeys(rules.issues_of(subject))
        results[type_.name] = ValidationResult.of(sorted(issues, key=lambda issue: issue.line or 0))
    exact = {
        name
        for name, result in results.items()
        if any(issue.code != IMPORT_FAILED for issue in result.errors)
    }
    for name, result in results.items():
        exactly = [issue for issue in result.issues if issue.code != IMPORT_FAILED]
        fields = around.types[name].fields if len(exactly) < len(result.issues) else ()
        used = {name for field in fields for name in referenced_names(field.type)}
        if exact & {name, *used}:
            # Because a type is made of others: it is said once, where it is known more exactly.
            results[name] = ValidationResult.of(exactly)
    for piece in whole.pieces:
        is_helper = not whole.has_boundaries and piece.name in piece.facts.aliases
        if piece.name not in around.types and not is_helper:
            before = piece.first_line - 1
            foreign = Issue.of(
                "FOREIGN_TYPE",
                f"the IR has no type {piece.name!r}",
                type_name=piece.name,
                line=before + next((entry.name_line for entry in piece.facts.declarations), 1),
                detail=f"types of the IR: {', '.join(around.types)[:500]}",
            )
            faults = [
                Issue.of(fault.code, fault.message, type_name=piece.name, line=fault.line + before)
                for fault in piece.facts.faults
            ]
            results.setdefault(piece.name, ValidationResult.of([foreign, *faults]))
    return results


def _subject(
    type_: TypeIR,
    piece: parts.Piece | None,
    whole: parts.Split,
    around: Surroundings,
    pages: parts.PageMap,
) -> Subject:
    """Return a type with its own block, or with the block it is nested in."""
    facts = piece.facts if piece else SourceFacts()
    if piece is None and type_ is around.ir.types[0]:
        facts = replace(facts, faults=whole.homeless)
    first_line = piece.first_line if piece else 1
    declared = tuple(entry for entry in facts.declarations if entry.name == type_.name)
    # At the top level, or else nested.
    main = tuple(entry for entry in declared if entry.outer is None) or declared
    if not main and not facts.faults:
        # In the block of another, because C# lets a type stand in the one that uses it.
        homes = [
            (other.first_line, [entry for entry in other.facts.declarations if entry.outer])
            for other in whole.pieces
        ]
        for line, declarations in (*homes, (1, whole.outside)):
            nested = tuple(entry for entry in declarations if entry.name == type_.name)
            if nested and not main:
                main, facts, first_line = nested, SourceFacts(nested), line
    return Subject(type_, facts, main, first_line, around, pages)
