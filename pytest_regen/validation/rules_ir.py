"""Rules about the IR itself: UNFIXABLE and REVIEW, whatever a model wrote."""

from collections import Counter
from collections.abc import Iterator

from pytest_regen.documents.ir import TypeIR, referenced_names
from pytest_regen.validation.issues import Issue
from pytest_regen.validation.subject import Subject, Surroundings

__all__ = ["reviews", "unfixable"]

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
