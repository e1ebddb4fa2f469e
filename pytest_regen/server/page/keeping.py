"""Answers to questions that can no longer be sent, carried along: nobody has to type twice."""

import json
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from pytest_regen.context.questions import ClarificationQuestion
from pytest_regen.context.text import is_blank
from pytest_regen.server.page.fields import Filled

__all__ = ["KEPT", "Kept", "filled_again", "kept_of", "read_kept", "written_kept"]

KEPT = "kept"
"""Name of the hidden field."""


class Kept(BaseModel):
    """One answer and its question. Nobody vouches for it: it only fills fields of who sends it."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    question: str
    kind: str
    text: str = ""
    selected: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Labels of options, or the place that was marked."""

    @property
    def said(self) -> str:
        """The answer, to be read."""
        return ", ".join(one for one in (*self.selected, self.text) if not is_blank(one))


_ALL: TypeAdapter[list[Kept]] = TypeAdapter(list[Kept])


def kept_of(
    questions: Sequence[ClarificationQuestion], filled: Sequence[Filled]
) -> tuple[Kept, ...]:
    """Return what was answered, without what was left blank."""
    found = []
    for question, entry in zip(questions, filled, strict=True):
        labels = {option.id: option.label for option in question.options or ()}
        selected = tuple(labels.get(key, key) for key in entry.selected)
        found.append(
            Kept(
                question=question.question,
                kind=question.type,
                text=entry.text or "",
                selected=selected,
            )
        )
    return tuple(one for one in found if one.said)


def written_kept(kept: Sequence[Kept]) -> str:
    """Return answers as the value of a hidden field."""
    return json.dumps([one.model_dump() for one in kept], ensure_ascii=False)


def read_kept(field: str) -> tuple[Kept, ...]:
    """Return the answers in a hidden field; none where it holds something else."""
    try:
        return tuple(_ALL.validate_json(field.encode("utf-8", "replace"))) if field else ()
    except ValidationError:
        return ()


def filled_again(
    kept: Sequence[Kept], questions: Sequence[ClarificationQuestion]
) -> tuple[tuple[Filled, ...], tuple[Kept, ...]]:
    """Return the fields of new questions filled with old answers, and the answers left over.

    An answer belongs to the question that it was given to, or to the only one of its kind.
    """
    left = list(kept)
    filled = []
    for question in questions:
        same = next((one for one in left if _is_of(one, question, kept, questions)), None)
        if same is None:
            filled.append(Filled())
            continue
        left.remove(same)
        ids = {option.label: option.id for option in question.options or ()}
        known = ids or {label: label for label in question.suggested_locations or ()}
        others = [label for label in same.selected if label not in known]
        filled.append(
            Filled(
                text=", ".join(one for one in (*others, same.text) if not is_blank(one)),
                selected=tuple(known[label] for label in same.selected if label in known),
            )
        )
    return tuple(filled), tuple(left)


def _is_of(
    one: Kept,
    question: ClarificationQuestion,
    kept: Sequence[Kept],
    questions: Sequence[ClarificationQuestion],
) -> bool:
    if one.kind != question.type:
        return False
    alone: Any = (
        [q for q in questions if q.type == one.kind],
        [k for k in kept if k.kind == one.kind],
    )
    return one.question == question.question or all(len(found) == 1 for found in alone)
