"""Rules about declarations: MISSING_CLASS, DUPLICATE_TYPE, FOREIGN_TYPE, UNDECLARED_TYPE.

What a compiler refuses about a declaration or a member, mostly SYNTAX, is reported here too.
"""

from collections import Counter
from collections.abc import Iterator

from pytest_regen.documents.ir import TypeIR, referenced_names
from pytest_regen.languages.base import Declaration, with_article
from pytest_regen.validation.issues import Issue
from pytest_regen.validation.pieces import PageText
from pytest_regen.validation.subject import Subject, Surroundings, wire_of

_AGAIN = "no reply can fix it; correct the document and generate the store again"


def unfixable(type_: TypeIR, around: Surroundings) -> Iterator[Issue]:
    """Yield what is wrong with a type before any model is asked."""
    for message, unit in _defects(type_, around):
        yield Issue.of(
            "UNFIXABLE",
            message,
            type_name=type_.name,
            detail=_AGAIN,
            field=None if unit is None else str(unit),
        )


def reviews(subject: Subject) -> Iterator[Issue]:
    """Yield where a type says less than the document it was read from."""
    known = frozenset(subject.type.units)
    for review in subject.around.ir.reviews:
        if review.type_name == subject.type.name:
            unit = review.field if review.field in known else None
            yield subject.issue(
                "REVIEW",
                review.message,
                unit=unit,
                page=None if unit is None else subject.page_of_unit(unit),
                detail="\n".join(filter(None, (f"in the document: {review.where}", review.detail))),
            )


def _defects(type_: TypeIR, around: Surroundings) -> Iterator[tuple[str, str | int | None]]:
    if not around.language.is_legal_type_name(type_.name):
        yield f"{type_.name!r} cannot be the name of a type", None
    if type_.name in around.repeated:
        yield f"several types of the IR are called {type_.name!r}", None
    counted = Counter(type_.units)
    for unit, count in counted.items() if len(counted) < len(type_.units) else ():
        if count > 1:
            yield f"{unit!r} is there {count} times in {type_.name!r}", unit
    for field in type_.fields:
        for name in referenced_names(field.type):
            if name not in around.types:
                yield (
                    f"field {field.json_name!r} is of type {name!r}, which the IR lacks",
                    (field.json_name),
                )


def is_right_kind(subject: Subject) -> bool:
    """Return whether the type is declared as what it must be: an enum, or what holds fields."""
    return bool(subject.main) and all(_is_right(subject, part) for part in subject.main)


def _is_right(subject: Subject, part: Declaration) -> bool:
    if subject.type.kind == "enum":
        return part.kind == "enum"
    return part.kind in subject.around.language.object_kinds


def stands_in(subject: Subject) -> Declaration | None:
    """Return the declaration that took the type's place under another name.

    ``Prject`` alone in the block of ``Project`` is ``Project``, misspelt: one fault.
    """
    top = [entry for entry in subject.facts.declarations if entry.outer is None]
    if subject.main or len(top) != 1 or top[0].name in subject.around.types:
        return None
    return top[0]


def declaration_faults(subject: Subject) -> Iterator[Issue]:
    """Yield a type that is not declared, declared as something else, or declared twice."""
    name = subject.type.name
    if not subject.main:
        yield from _missing(subject)
        return
    for part in subject.main:
        if not _is_right(subject, part):
            yield subject.issue(
                "MISSING_CLASS", wrong_kind(subject, part.kind), line=part.name_line
            )
            return
    if len(subject.main) > 1 and not all(part.is_partial for part in subject.main):
        for part in subject.main[1:]:
            message = f"{name!r} is declared again; declare it once"
            issue = subject.issue("DUPLICATE_TYPE", message, line=part.name_line)
            if issue.page not in subject.illegal_pages:
                yield issue


def wrong_kind(subject: Subject, kind: str) -> str:
    """Return the message for a type that is declared as something else."""
    noun = subject.around.nouns.enum if kind == "enum" else kind
    declared = f"{subject.type.name!r} is declared as {with_article(noun)}"
    return f"{declared}; it must be {_expected_kind(subject)}"


def _missing(subject: Subject) -> Iterator[Issue]:
    name, expected = subject.type.name, _expected_kind(subject)
    instead = stands_in(subject)
    if instead is not None:
        message = f"{instead.name!r} stands where {name!r} must be declared, as {expected}"
        yield subject.issue("MISSING_CLASS", message, line=instead.name_line)
    else:
        others = [entry.name for entry in subject.facts.declarations]
        detail = f"declared there: {', '.join(others)}" if others else None
        message = f"{subject.type.name!r} is not declared; it must be {expected}"
        yield subject.issue("MISSING_CLASS", message, page=subject.first_page, detail=detail)


def _expected_kind(subject: Subject) -> str:
    nouns = subject.around.nouns
    return with_article(nouns.enum if subject.type.kind == "enum" else nouns.object)


def foreign_types(subject: Subject) -> Iterator[Issue]:
    """Yield what else the type's block declares: another type of the store, or an unknown one."""
    instead = stands_in(subject)
    own = {subject.type.name, instead.name if instead else None}
    reported: set[str] = set()
    for entry in subject.facts.declarations:
        if entry.name in own or entry.name in reported or _is_at_home(subject, entry):
            continue
        if entry.outer in reported:
            continue
        reported.add(entry.name)
        known = entry.name in subject.around.types
        why = "another page declares it" if known else "no type of that name was asked for"
        message = f"{entry.kind} {entry.name!r} does not belong into {subject.type.name!r}: {why}"
        yield subject.issue("FOREIGN_TYPE", message, line=entry.name_line)


def _is_at_home(subject: Subject, entry: Declaration) -> bool:
    """Return whether a nested type of the store stands here and nowhere else."""
    around = subject.around
    return (
        entry.outer is not None
        and entry.name in around.types
        and not around.is_top_level(entry.name)
    )


def undeclared_types(subject: Subject) -> Iterator[Issue]:
    """Yield each use of a type that exists nowhere, once per member."""
    unfixable = _unfixable_references(subject)
    for part in subject.main:
        known = frozenset(part.type_parameters)
        for base in part.bases:
            where = f"the base type of {part.name!r}"
            yield from subject.missing_types(base, known, where, line=part.name_line)
    for part in subject.main:
        known = frozenset(part.type_parameters) | unfixable
        for member in part.members:
            if member.type is None or not member.name:
                continue
            where = f"{member.kind} {member.name!r}"
            unit = member.wire_name or subject.unit_of(member)
            yield from subject.missing_types(member.type, known, where, unit, line=member.line)


def refusals(subject: Subject) -> Iterator[Issue]:
    """Yield what a compiler refuses, and why the serializer could not create the type."""
    for part in subject.main:
        for fault in part.faults:
            yield subject.issue(fault.code, fault.message, line=fault.line)
    for member in subject.members:
        if member.faults and member.name:
            for fault in member.faults:
                unit = wire_of(member)
                yield subject.issue(fault.code, fault.message, line=fault.line, unit=unit)


def visibility_faults(subject: Subject) -> Iterator[Issue]:
    """Yield a type that is not public though public members of public types use it."""
    name, first = subject.type.name, subject.main[0]
    if first.is_public:
        return
    for owner, member in subject.around.uses.get(name, ()):
        if owner.is_public and member.is_public and owner.name != name:
            message = f"{name!r} is not public, but {member.name!r} of the public {owner.name!r}"
            yield subject.issue(
                "MISSING_CLASS", f"{message} uses it; declare it public", line=first.name_line
            )
            return


def _unfixable_references(subject: Subject) -> frozenset[str]:
    """Return undeclared types that the prompt itself asks for: reported as UNFIXABLE."""
    names = {name for field in subject.type.fields for name in referenced_names(field.type)}
    return frozenset(names - subject.around.types.keys())


def page_outputs(subject: Subject) -> Iterator[Issue]:
    """Yield pages that say nothing, and pages that were cut short."""
    if subject.pages is None:
        return
    for page in subject.pages.pages:
        asked = (
            f"it must declare {_format_fields(page)}" if page.fields else "it must declare the type"
        )
        if not page.was_written:
            message = f"page {page.page} of {page.total_pages} was never written; {asked}"
            yield subject.issue("EMPTY_OUTPUT", message, page=page.page)
        elif page.is_truncated:
            message = f"page {page.page} was cut short (stop reason {page.stop_reason})"
            yield subject.issue("TRUNCATED", f"{message}; {asked}", page=page.page)
        elif page.page in subject.pages.silent:
            message = f"page {page.page} holds no code; {asked}"
            yield subject.issue("EMPTY_OUTPUT", message, page=page.page)


def _format_fields(page: PageText) -> str:
    shown = ", ".join(map(str, page.fields[:12]))
    more = len(page.fields) - 12
    return f"{shown} and {more} more" if more > 0 else shown


def illegal_pages(subject: Subject) -> Iterator[Issue]:
    """Yield what is wrong with each of several pages that cannot stand where it must."""
    pages = subject.pages
    if pages is None or not pages.is_broken:
        return
    for fault in pages.stitched.faults:
        if fault.page not in pages.silent:
            line = pages.line_of(fault.page, fault.line)
            is_at_member = fault.in_member and line is not None
            unit = subject.unit_at(line) if is_at_member and line is not None else None
            yield subject.issue(fault.code, fault.message, line=line, page=fault.page, unit=unit)


def text_faults(subject: Subject) -> Iterator[Issue]:
    """Yield what the language does not allow, at its place in the block."""
    for fault in subject.facts.faults:
        unit = subject.unit_at(fault.line) if fault.in_member else None
        issue = subject.issue(fault.code, fault.message, line=fault.line, unit=unit)
        if subject.pages is None or issue.page not in subject.pages.silent:
            yield issue
