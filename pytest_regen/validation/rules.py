"""Validation of a source, type by type: what pages lack, what is declared, and its members.

What only one language asks is in ``Language.rules``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from pytest_regen.documents.ir import IR, EnumValue, FieldIR, referenced_names
from pytest_regen.languages import find_language
from pytest_regen.languages.base import Declaration, Member, SourceFacts, with_article
from pytest_regen.text import in_quotes, quoted
from pytest_regen.validation import pieces as parts
from pytest_regen.validation.issues import IMPORT_FAILED, Issue, ValidationResult
from pytest_regen.validation.subject import Subject, Surroundings, wire_of

_AGAIN = "no reply can fix it; correct the document and generate the store again"
_NEAR = 0.7
"""How alike a value that is there and one that is missing must be to be one and the same."""


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
        piece = pieces.get(type_.name)
        facts = piece.facts if piece else SourceFacts()
        if piece is None and type_ is ir.types[0]:
            facts = replace(facts, faults=whole.homeless)
        declared = tuple(entry for entry in facts.declarations if entry.name == type_.name)
        # At the top level, or else nested.
        main = tuple(entry for entry in declared if entry.outer is None) or declared
        first_line = piece.first_line if piece else 1
        subject = Subject(type_, facts, main, first_line, around, maps[type_.name])
        # Equal ones once; those without a line come first.
        issues = dict.fromkeys(issues_of(subject))
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


def issues_of(subject: Subject) -> Iterator[Issue]:
    """Yield what is wrong with a type; what follows from something else that is wrong is left out.

    The rules of a language see the type with its members, once it is declared as what it must be.
    """
    yield from _of_the_document(subject)
    yield from _pages(subject)
    facts, silent = subject.facts, subject.pages.silent
    if 1 in subject.pages.illegal:
        return  # Nothing declares the type.
    for fault in facts.faults:
        issue = subject.fault(fault, line=fault.line)
        if issue.page not in silent:
            yield issue
    is_unknown = any(fault.code == IMPORT_FAILED for fault in facts.faults)
    # What else is wrong shows when this is mended, because nobody knows yet what the type is.
    if is_unknown or (facts.faults and not facts.declarations):
        return
    top = [entry for entry in facts.declarations if entry.outer is None]
    top = [entry for entry in top if entry.name not in facts.aliases]  # helps the type
    # ``Prject`` alone in the block of ``Project`` is ``Project``, misspelt: one fault.
    is_misspelt = not subject.main and len(top) == 1 and top[0].name not in subject.around.types
    instead = top[0] if is_misspelt else None
    yield from _declarations(subject, instead)
    if instead is not None:
        subject = replace(subject, main=(instead,))
    if not subject.main or any(part.kind not in subject.kinds for part in subject.main):
        return
    yield from _references(subject)
    yield from _members(subject)
    if subject.type.kind != "alias":
        yield from _units(subject)
    if subject.type.kind != "enum":
        yield from _types(subject)
    yield from subject.around.language.rules(subject)


def _of_the_document(subject: Subject) -> Iterator[Issue]:
    """Yield what no model is to blame for: the document is wrong, or says more than the type."""
    type_, around = subject.type, subject.around
    if not around.language.is_legal_type_name(type_.name):
        message = f"{type_.name!r} cannot be the name of a type"
        yield subject.issue("UNFIXABLE", message, detail=_AGAIN)
    for field in type_.fields:
        for name in _lacking(field, around):
            message = f"field {field.json_name!r} is of type {name!r}, which the IR lacks"
            yield subject.issue("UNFIXABLE", message, unit=field.json_name, detail=_AGAIN)
    # Because no code can say it: unions of numbers and objects, formats that a language lacks.
    for review in around.ir.reviews:
        if review.type_name == type_.name:
            unit = review.field if review.field in type_.units else None
            page = None if unit is None else subject.pages.page_of_unit.get(unit)
            detail = "\n".join(filter(None, (f"in the document: {review.where}", review.detail)))
            yield subject.issue("REVIEW", review.message, unit=unit, page=page, detail=detail)


def _lacking(field: FieldIR, around: Surroundings) -> list[str]:
    """Return undeclared types that the prompt itself asks for: reported as UNFIXABLE."""
    return [name for name in referenced_names(field.type) if name not in around.types]


def _pages(subject: Subject) -> Iterator[Issue]:
    """Yield pages that say nothing, that were cut short, or that are illegal alone."""
    pages = subject.pages
    for page in pages.pages:
        if page.page not in pages.silent:
            continue
        # Twelve, because a page of 50 fields would hide what is wrong with it.
        units = ", ".join(map(str, page.fields[:12]))
        more = f" and {len(page.fields) - 12} more" if len(page.fields) > 12 else ""
        needs = f"it must declare {units or 'the type'}{more}"
        code, what = "EMPTY_OUTPUT", f"page {page.page} holds no code"
        if not page.was_written:
            what = f"page {page.page} of {page.total_pages} was never written"
        elif page.is_truncated:
            code = "TRUNCATED"
            what = f"page {page.page} was cut short (stop reason {page.stop_reason})"
        yield subject.issue(code, f"{what}; {needs}", page=page.page)
    for fault in pages.stitched.faults if pages.illegal else ():
        if fault.page not in pages.silent:
            yield subject.fault(fault, line=pages.line_of(fault.page, fault.line))


def _declarations(subject: Subject, instead: Declaration | None) -> Iterator[Issue]:
    """Yield what the block declares besides, and what is wrong with how it declares the type.

    Args:
        subject: the type.
        instead: what stands in its place under another name.
    """
    around, facts, name = subject.around, subject.facts, subject.type.name
    reported: set[str] = set()
    for entry in facts.declarations:
        is_expected = entry.name in around.types
        is_helper = not is_expected and entry.name in facts.aliases
        if entry.name == name or entry is instead or is_helper:
            continue
        if entry.name not in reported and entry.outer not in reported:
            reported.add(entry.name)
            why = (
                "another page declares it" if is_expected else "no type of that name was asked for"
            )
            what = f"{entry.kind} {entry.name!r} does not belong in {name!r}"
            yield subject.issue("FOREIGN_TYPE", f"{what}: {why}", line=entry.name_line)
    if 1 in subject.pages.silent:
        return
    names = {"alias": "alias", "enum": around.nouns.enum, "object": around.nouns.object}
    expected = with_article(names[subject.type.kind])
    if instead is not None:
        message = f"{instead.name!r} stands where {name!r} must be declared, as {expected}"
        yield subject.issue("MISSING_CLASS", message, line=instead.name_line)
    elif not subject.main:
        declared = ", ".join(entry.name for entry in facts.declarations)
        yield subject.issue(
            "MISSING_CLASS",
            f"{name!r} is not declared; it must be {expected}",
            page=subject.first_page,
            detail=f"declared there: {declared}" if declared else None,
        )
    for part in subject.main:
        if part.kind not in subject.kinds:
            noun = with_article(around.nouns.enum if part.kind == "enum" else part.kind)
            message = f"{name!r} is declared as {noun}; it must be {expected}"
            yield subject.issue("MISSING_CLASS", message, line=part.name_line)
            return
    are_parts = all(part.is_partial for part in subject.main)
    for part in () if are_parts else subject.main[1:]:
        message = f"{name!r} is declared again; declare it once"
        yield subject.issue("DUPLICATE_TYPE", message, line=part.name_line)


def _references(subject: Subject) -> Iterator[Issue]:
    """Yield what a compiler refuses about the declaration, and uses of types that exist nowhere."""
    lacking = {name for field in subject.type.fields for name in _lacking(field, subject.around)}
    for part in subject.main:
        parameters = frozenset(part.type_parameters)
        for base in part.bases:
            where = f"the base type of {part.name!r}"
            yield from subject.missing_types(base, parameters, where, line=part.name_line)
        for member in part.members:
            if member.type is not None and member.name:
                where = f"{member.kind} {member.name!r}"
                unit = member.wire_name or subject.unit_of(member)
                exist = parameters | lacking
                yield from subject.missing_types(member.type, exist, where, unit, line=member.line)
        for fault in part.faults:
            yield subject.issue(fault.code, fault.message, line=fault.line)


def _members(subject: Subject) -> Iterator[Issue]:
    """Yield members that a compiler refuses, and names that are used twice."""
    first_of: dict[str, Member] = {}
    for member in subject.members:
        if not member.name:
            continue
        for fault in member.faults:
            yield subject.issue(fault.code, fault.message, line=fault.line, unit=wire_of(member))
        former = first_of.setdefault(member.name, member)
        # Two that are one on the wire are reported as one field or value that is carried twice.
        is_told = former.is_serialized and member.is_serialized and former.wire_name is not None
        if former is not member and not (is_told and former.wire_name == member.wire_name):
            yield subject.naming_issue(member, f"the name {member.name!r} is used twice")


def _missing(subject: Subject, unit: EnumValue, member: Member | None = None) -> Iterator[Issue]:
    """Yield that a field or value is missing.

    Args:
        subject: the type.
        unit: the field or value.
        member: what would carry it, but that nothing is read into it, or that it lacks its name.
    """
    pages, page = subject.pages, subject.pages.page_of_unit.get(unit)
    if page in pages.silent | pages.illegal:
        return  # It may be missing only because its whole page is.
    nouns, is_enum = subject.around.nouns, subject.type.kind == "enum"
    code, noun = ("ENUM_MEMBER", "value") if is_enum else ("MISSING_FIELD", "field")
    what = f"{noun} {in_quotes(unit)} is missing"
    if member is not None:
        lack = subject.around.language.missing_wire_name(member, str(unit), is_enum=is_enum)
        why = member.unread or f"lacks {lack}"
        carrier = nouns.value if is_enum else nouns.member
        finding = f"the {carrier} of each of these {noun}s {why}".replace(quoted(unit), '"..."')
        message = f"{what}: {member.name!r} {why}"
        yield subject.issue(code, message, line=member.line, unit=unit, finding=finding)
    elif pages.pages and page is None:
        message = f"{what}, and no stored prompt asks for it"
        yield subject.issue("UNFIXABLE", message, unit=unit, detail="generate the store again")
    else:
        finding = f"these {noun}s are missing"
        yield subject.issue(code, what, page=page, unit=unit, finding=finding)


def _units(subject: Subject) -> Iterator[Issue]:
    """Yield fields or values that are missing, invented, misspelt or carried twice."""
    names, carriers = subject.names, subject.carriers
    is_enum = subject.type.kind == "enum"
    code, noun = ("ENUM_MEMBER", "value") if is_enum else ("DUPLICATE_FIELD", "field")
    missing = [unit for unit in subject.type.units if unit not in carriers]
    # Members that would carry a field, if they had its name on the wire: they are not invented.
    waiting = {names[unit]: unit for unit in missing} | {str(unit): unit for unit in missing}
    unnamed = {
        meant: member
        for member in reversed(() if is_enum else subject.members)
        if member.wire_name is None or not member.is_serialized
        for meant in (waiting.get(str(member.wire_name), waiting.get(member.name)),)
        if meant is not None
    }
    for unit, (first, *repeats) in carriers.items():
        for member in repeats:
            yield subject.repeated(code, noun, unit, first, member)
        if unit in subject.type.units:
            meant = next((other for other, name in names.items() if name == first.name), unit)
            carriers_of_it = [member.name for member in carriers.get(meant, (first,))]
            if all(member.unread is not None for member in carriers[unit]):
                yield from _missing(subject, unit, first)
            elif is_enum and first.name not in carriers_of_it:
                # Because whoever uses the name that stands for another value means the other.
                what, meaning = f"{first.name!r} carries {in_quotes(unit)}", in_quotes(meant)
                message = f"{what}; by its name it is {meaning}"
                yield subject.issue(code, message, line=first.line, unit=unit)
        elif first.name and first not in unnamed.values():
            yield _invented(subject, unit, first, missing)
    # Last, because a misspelt value is no longer missing.
    for unit in missing:
        yield from _missing(subject, unit, unnamed.get(unit))


def _invented(subject: Subject, unit: EnumValue, member: Member, missing: list[EnumValue]) -> Issue:
    """Return the issue of a field or value that there is none of.

    A value that is meant for one that is missing is taken out of ``missing``.
    """
    around, name, wire = subject.around, subject.type.name, in_quotes(unit)
    texts = [candidate for candidate in missing if isinstance(candidate, str)]
    finding = None
    if subject.type.kind != "enum":
        near = get_close_matches(str(unit), texts, 1)
        owners = [
            other
            for other, type_ in around.types.items()
            if any(field.json_name == str(unit) for field in type_.fields)
        ]
        detail = f"it belongs to {', '.join(owners[:3])}" if owners else None
        return subject.issue(
            "PHANTOM_FIELD",
            f"{name!r} has no field {wire} ({member.name!r} carries it)",
            line=member.line,
            unit=unit,
            detail=f"did you mean {in_quotes(near[0])}?" if near else detail,
            finding=None if near else "the type has no such fields; leave them out",
        )
    named = [candidate for candidate in missing if subject.names[candidate] == member.name]
    meant = next(iter([*named, *get_close_matches(str(unit), texts, 1, _NEAR)]), None)
    if meant is None:
        message = f"value {wire} ({member.name!r}) is not among the values of the enum"
        return subject.issue("ENUM_MEMBER", message, line=member.line, unit=unit)
    missing.remove(meant)
    if member.wire_name is not None or not isinstance(meant, str):
        message = f"{member.name!r} carries {wire}; the value is {in_quotes(meant)}, to the letter"
    else:
        lack = around.language.missing_wire_name(member, meant, is_enum=True)
        message = f"{member.name!r} lacks {lack}"
        finding = f"the {around.nouns.value}s for these values lack {lack}"
        finding = finding.replace(quoted(meant), '"..."')
    return subject.issue("ENUM_MEMBER", message, line=member.line, unit=meant, finding=finding)


def _types(subject: Subject) -> Iterator[Issue]:
    """Yield fields whose type cannot hold every value, or not what null and absence need."""
    around, language = subject.around, subject.around.language
    for field, member in subject.matches():
        if member.type is None or not member.name:
            continue
        # Because a type that does not exist has an issue of its own.
        if _lacking(field, around) or not all(map(around.exists, member.type.walk())):
            continue
        line, unit = member.type.line or member.line, field.json_name
        is_right = language.accepts(field.type, member.type, around.declarations_by_name)
        fault = language.absence_fault(field, member) if is_right else None
        if is_right and fault is None:
            continue
        spelled = language.show_type(member.type)
        expected = language.spell(field, profile=around.profile)
        if subject.type.kind == "alias":
            message = f"{member.name!r} is '{spelled}'; it must be {expected!r}"
            yield subject.issue("WRONG_TYPE", message, line=member.line)
        elif fault is None:
            what = f"{member.name!r} has type '{spelled}'; field {in_quotes(unit)} is {expected!r}"
            yield subject.issue("WRONG_TYPE", what, line=line, unit=unit)
        else:
            finding = fault.finding
            yield subject.issue("NULLABILITY", fault.message, line=line, unit=unit, finding=finding)
