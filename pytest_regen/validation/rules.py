"""Rules about one type: what pages lack, what is declared, and the members of the declaration.

What only one language asks is in ``Language.rules``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches

from pytest_regen.documents.ir import EnumValue, FieldIR, referenced_names
from pytest_regen.languages.base import Declaration, Member, with_article
from pytest_regen.text import in_quotes, quoted
from pytest_regen.validation.issues import IMPORT_FAILED, Issue
from pytest_regen.validation.subject import Subject, Surroundings, wire_of

_AGAIN = "no reply can fix it; correct the document and generate the store again"
_NEAR = 0.7
"""How alike a value that is there and one that is missing must be to be one and the same."""


def issues_of(subject: Subject) -> Iterator[Issue]:
    """Yield what is wrong with a type; what follows from something else that is wrong is left out.

    The rules of a language see the type with its members, once it is declared as what it must be.
    """
    yield from _of_the_document(subject)
    yield from _pages(subject)
    if 1 in subject.pages.illegal:
        return  # Nothing declares the type.
    for fault in subject.facts.faults:
        issue = subject.fault(fault, line=fault.line)
        if issue.page not in subject.pages.silent:
            yield issue
    faults = subject.facts.faults
    is_unknown = any(fault.code == IMPORT_FAILED for fault in faults)
    # What else is wrong shows when this is mended, because nobody knows yet what the type is.
    if is_unknown or (faults and not subject.facts.declarations):
        return
    yield from _declared(subject)


def _declared(subject: Subject) -> Iterator[Issue]:
    """Yield what is wrong with the declarations of a block, and with their members."""
    around, instead = subject.around, None
    facts = subject.facts
    top = [entry for entry in facts.declarations if entry.outer is None]
    top = [entry for entry in top if entry.name not in facts.aliases]  # helps the type
    if not subject.main and len(top) == 1 and top[0].name not in around.types:
        # ``Prject`` alone in the block of ``Project`` is ``Project``, misspelt: one fault.
        instead = top[0]
    yield from _foreign_types(subject, instead)
    if 1 not in subject.pages.silent:
        yield from _declaration(subject, instead)
    if instead is not None:
        subject = replace(subject, main=(instead,))
    if not subject.main or any(part.kind not in subject.kinds for part in subject.main):
        return
    yield from _references(subject)
    yield from _members(subject)
    if subject.type.kind == "enum":
        yield from _enum_values(subject)
    elif subject.type.kind == "alias":
        yield from _alias_value(subject)
    else:
        yield from _field_presence(subject)
        yield from _field_types(subject)
    yield from around.language.rules(subject)


# --- before the members ---------------------------------------------------------------------------


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
    for review in around.ir.reviews:
        if review.type_name == type_.name:
            unit = review.field if review.field in type_.units else None
            page = None if unit is None else subject.page_of_unit(unit)
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


def _declaration(subject: Subject, instead: Declaration | None) -> Iterator[Issue]:
    """Yield a type that is not declared, declared as something else, or declared twice."""
    name, nouns = subject.type.name, subject.around.nouns
    names = {"alias": "alias", "enum": nouns.enum, "object": nouns.object}
    expected = with_article(names[subject.type.kind])
    if instead is not None:
        message = f"{instead.name!r} stands where {name!r} must be declared, as {expected}"
        yield subject.issue("MISSING_CLASS", message, line=instead.name_line)
    elif not subject.main:
        declared = ", ".join(entry.name for entry in subject.facts.declarations)
        yield subject.issue(
            "MISSING_CLASS",
            f"{name!r} is not declared; it must be {expected}",
            page=subject.first_page,
            detail=f"declared there: {declared}" if declared else None,
        )
    for part in subject.main:
        if part.kind not in subject.kinds:
            noun = with_article(nouns.enum if part.kind == "enum" else part.kind)
            message = f"{name!r} is declared as {noun}; it must be {expected}"
            yield subject.issue("MISSING_CLASS", message, line=part.name_line)
            return
    if not all(part.is_partial for part in subject.main):
        for part in subject.main[1:]:
            message = f"{name!r} is declared again; declare it once"
            yield subject.issue("DUPLICATE_TYPE", message, line=part.name_line)


def _foreign_types(subject: Subject, instead: Declaration | None) -> Iterator[Issue]:
    """Yield what else the type's block declares: another type of the store, or an unknown one."""
    around = subject.around
    reported: set[str] = set()
    for entry in subject.facts.declarations:
        is_foreign = entry.name != subject.type.name and entry is not instead
        is_expected = entry.name in around.types
        if not is_expected and entry.name in subject.facts.aliases:
            continue  # It helps the type.
        # At home, because C# lets a type stand in the one that uses it, if it stands nowhere else.
        if is_expected and entry.outer is not None and entry.name not in around.top_level:
            continue
        if is_foreign and entry.name not in reported and entry.outer not in reported:
            reported.add(entry.name)
            why = (
                "another page declares it" if is_expected else "no type of that name was asked for"
            )
            what = f"{entry.kind} {entry.name!r} does not belong into {subject.type.name!r}"
            yield subject.issue("FOREIGN_TYPE", f"{what}: {why}", line=entry.name_line)


def _references(subject: Subject) -> Iterator[Issue]:
    """Yield what a compiler refuses about the declaration, and uses of types that exist nowhere."""
    name, first = subject.type.name, subject.main[0]
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
    for owner, member in subject.around.uses.get(name, ()) if not first.is_public else ():
        if owner.is_public and member.is_public and owner.name != name:
            message = f"{name!r} is not public, but {member.name!r} of the public {owner.name!r}"
            yield subject.issue(
                "MISSING_CLASS", f"{message} uses it; declare it public", line=first.name_line
            )
            return


# --- members --------------------------------------------------------------------------------------


def _members(subject: Subject) -> Iterator[Issue]:
    """Yield members that a compiler refuses, and names and numbers that are used twice."""
    first_of: dict[str | int, Member] = {}
    has_numbers = any(isinstance(unit, int) for unit in subject.type.units)
    for member in subject.members:
        if not member.name:
            continue
        for fault in member.faults:
            yield subject.issue(fault.code, fault.message, line=fault.line, unit=wire_of(member))
        first = first_of.setdefault(member.name, member)
        # Two that are one on the wire are reported as one field or value that is carried twice.
        is_told = first.is_serialized and member.is_serialized and first.wire_name is not None
        if first is not member and not (is_told and first.wire_name == member.wire_name):
            yield subject.naming_issue(member, f"the name {member.name!r} is used twice")
        if member.number is None or has_numbers:
            continue
        first = first_of.setdefault(member.number, member)
        if first.name != member.name:
            # Because of two of one number, read from text, the second becomes the first.
            message = f"{member.name!r} has the number of {first.name!r}, {member.number}"
            detail = "the two values cannot be told apart; leave the numbers out"
            unit = wire_of(member)
            yield subject.issue("ENUM_MEMBER", message, line=member.line, unit=unit, detail=detail)


def _missing(
    subject: Subject, unit: EnumValue, member: Member | None = None, why: str = ""
) -> Iterator[Issue]:
    """Yield that a field or value is missing.

    Args:
        subject: the type.
        unit: the field or value.
        member: what would carry it, but for one thing.
        why: that thing, in words that follow its name.
    """
    pages, page = subject.pages, subject.page_of_unit(unit)
    if page in pages.silent | pages.illegal:
        return  # It may be missing only because its whole page is.
    nouns, is_enum = subject.around.nouns, subject.type.kind == "enum"
    code, noun = ("ENUM_MEMBER", "value") if is_enum else ("MISSING_FIELD", "field")
    what = f"{noun} {in_quotes(unit)} is missing"
    if member is not None:
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


def _field_presence(subject: Subject) -> Iterator[Issue]:
    """Yield fields that are missing, invented or carried twice."""
    type_, carriers, language = subject.type, subject.carriers, subject.around.language
    expected = [field.json_name for field in type_.fields]
    missing = [name for name in expected if name not in carriers]
    # First, because a member without its name on the wire is no invented field of its own.
    unnamed = _without_wire_name(subject, missing)
    for name in expected:
        if name not in carriers:
            meant_for, why = unnamed.get(name), ""
            if meant_for is not None:
                lack = language.missing_wire_name(meant_for, name, is_enum=False)
                why = meant_for.unread or f"lacks {lack}"
            yield from _missing(subject, name, meant_for, why)
        elif all(member.unread is not None for member in carriers[name]):
            first = carriers[name][0]
            yield from _missing(subject, name, first, first.unread or "")
    for wire, members in carriers.items():
        first = members[0]
        if wire not in expected and first.name and first not in unnamed.values():
            owners = [name for name in subject.around.owners.get(wire, ()) if name != type_.name]
            near = get_close_matches(wire, missing, 1)
            detail = f"it belongs to {', '.join(owners[:3])}" if owners else None
            yield subject.issue(
                "PHANTOM_FIELD",
                f"{type_.name!r} has no field {in_quotes(wire)} ({first.name!r} carries it)",
                line=first.line,
                unit=wire,
                detail=f"did you mean {in_quotes(near[0])}?" if near else detail,
                finding=None if near else "the type has no such fields; leave them out",
            )
        for member in members[1:]:
            yield subject.repeated("DUPLICATE_FIELD", "field", wire, first, member)


def _without_wire_name(subject: Subject, missing: Sequence[str]) -> dict[str, Member]:
    """Return members that would carry a missing field, if they had its name on the wire."""
    waiting = {subject.names[name]: name for name in missing}
    unnamed: dict[str, Member] = {}
    for member in subject.members:
        if member.wire_name is None or not member.is_serialized:
            wire = str(member.wire_name)
            meant = wire if wire in missing else waiting.get(member.name)
            if meant is not None:
                unnamed.setdefault(meant, member)
    return unnamed


def _field_types(subject: Subject) -> Iterator[Issue]:
    """Yield fields whose type cannot hold every value, or not what null and absence need."""
    around, language = subject.around, subject.around.language
    for field, member in subject.matches():
        if member.type is None or not member.name:
            continue
        # Because a type that does not exist has an issue of its own.
        if _lacking(field, around) or not all(map(around.exists, member.type.walk())):
            continue
        line, unit = member.type.line or member.line, field.json_name
        if not language.accepts(field.type, member.type, around.declarations_by_name):
            spelled = language.show_type(member.type)
            expected = language.spell(field, profile=around.profile)
            message = (
                f"{member.name!r} has type '{spelled}'; field {in_quotes(unit)} is {expected!r}"
            )
            yield subject.issue("WRONG_TYPE", message, line=line, unit=unit)
        elif fault := language.absence_fault(field, member):
            finding = fault.finding
            yield subject.issue("NULLABILITY", fault.message, line=line, unit=unit, finding=finding)


def _alias_value(subject: Subject) -> Iterator[Issue]:
    """Yield an alias of anything but what the document says."""
    around, language = subject.around, subject.around.language
    for field, member in subject.matches():
        if member.type is None or not all(map(around.exists, member.type.walk())):
            continue
        is_right = language.accepts(field.type, member.type, around.declarations_by_name)
        if not is_right or language.absence_fault(field, member):
            expected = language.spell(field, profile=around.profile)
            message = f"{member.name!r} is '{language.show_type(member.type)}'"
            message += f"; it must be {expected!r}"
            yield subject.issue("WRONG_TYPE", message, line=member.line)


def _enum_values(subject: Subject) -> Iterator[Issue]:
    """Yield wire values that are missing, invented, misspelt or carried twice."""
    expected = subject.type.enum_values
    # Of several that carry one value, the page that was asked for it comes first.
    carried = sorted(_wire_values(subject), key=lambda pair: subject.is_out_of_place(*pair))
    carrier_of: dict[EnumValue, Member] = {}
    invented: list[tuple[EnumValue, Member]] = []
    for value, member in carried:
        if member.unread is not None:
            yield from _missing(subject, value, member, member.unread)
        elif value in carrier_of:
            yield subject.repeated("ENUM_MEMBER", "value", value, carrier_of[value], member)
        elif value not in expected:
            invented.append((value, member))
        else:
            yield from _swapped(subject, value, member, carried)
        carrier_of.setdefault(value, member)
    # Last, because a misspelt value is no longer missing.
    missing = [value for value in expected if value not in carrier_of]
    for value, member in invented:
        if member.name:
            yield _unknown_value(subject, value, member, missing)
    for value in missing:
        yield from _missing(subject, value)


def _swapped(
    subject: Subject, value: EnumValue, member: Member, carried: Sequence[tuple[EnumValue, Member]]
) -> Iterator[Issue]:
    """Yield a value under the name that stands for another: whoever uses it means the other."""
    meant = next((unit for unit, name in subject.names.items() if name == member.name), value)
    carriers = [carrier.name for unit, carrier in carried if unit == meant]
    if meant != value and carriers and member.name not in carriers:
        message = (
            f"{member.name!r} carries {in_quotes(value)}; by its name it is {in_quotes(meant)}"
        )
        yield subject.issue("ENUM_MEMBER", message, line=member.line, unit=value)


def _wire_values(subject: Subject) -> Iterator[tuple[EnumValue, Member]]:
    """Yield what each member is on the wire, by the kind of values the enum has."""
    kinds = {type(value) for value in subject.type.enum_values}
    for member in subject.members:
        wire, number = member.wire_name, member.number
        if isinstance(wire, str) or not member.name:
            yield "" if wire is None else wire, member
        elif int in kinds and number is not None and (wire is not None or str not in kinds):
            yield number, member
        else:
            yield member.name, member


def _unknown_value(
    subject: Subject, value: EnumValue, member: Member, missing: list[EnumValue]
) -> Issue:
    """Return the issue of a value that is not in the enum; a misspelt one is no longer missing."""
    texts = [candidate for candidate in missing if isinstance(candidate, str)]
    near = [candidate for candidate in missing if subject.names[candidate] == member.name]
    meant = next(iter([*near, *get_close_matches(str(value), texts, 1, _NEAR)]), None)
    finding = None
    if meant is None:
        message = f"value {in_quotes(value)} ({member.name!r}) is not among the values of the enum"
        return subject.issue("ENUM_MEMBER", message, line=member.line, unit=value)
    missing.remove(meant)
    if member.wire_name is not None or not isinstance(meant, str):
        carries = f"{member.name!r} carries {in_quotes(value)}"
        message = f"{carries}; the value is {in_quotes(meant)}, to the letter"
    else:
        lack = subject.around.language.missing_wire_name(member, meant, is_enum=True)
        message = f"{member.name!r} lacks {lack}"
        finding = f"the {subject.around.nouns.value}s for these values lack {lack}"
        finding = finding.replace(quoted(meant), '"..."')
    return subject.issue("ENUM_MEMBER", message, line=member.line, unit=meant, finding=finding)
