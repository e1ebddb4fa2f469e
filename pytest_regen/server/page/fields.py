"""One question as a field of the form: words, choices, or a place."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from pytest_regen.context.questions import MAX_ANSWER, MAX_LABEL, ClarificationQuestion, is_blank
from pytest_regen.html import Child, Html, element, isolate
from pytest_regen.server.gazetteer import Gazetteer, Place

__all__ = [
    "KEPT",
    "Filled",
    "Kept",
    "answers_of",
    "filled_again",
    "filled_in",
    "kept_of",
    "question_field",
    "read_kept",
    "too_long",
    "unanswered",
    "written_kept",
]


@dataclass(frozen=True, slots=True)
class Filled:
    """What stands in the fields of one question."""

    text: str | None = None
    """Of an open question, of a place, or words of one's own beside choices; None = untouched."""
    selected: tuple[str, ...] = ()
    """Ids of the options that are ticked; the label of the place that is marked."""
    place: str = ""
    """Label of the place that was chosen from the list of the picker."""
    found: tuple[Place, ...] | None = None
    """Places found without JavaScript; None where none were looked for."""
    problem: str | None = None
    """What is wrong with the answer."""
    takes_focus: bool = False
    """Whether it is the first that something is wrong with."""


def question_field(number: int, question: ClarificationQuestion, filled: Filled) -> Html:
    """Return one question with its inputs.

    Args:
        number: of the question, from 0; its fields are called after it, never after the id that a
            model chose.
        question: what is asked.
        filled: what already stands there.
    """
    name = f"q{number}"
    inputs = _BY_TYPE[question.type](name, question, filled)
    problem = filled.problem and element(
        "p", filled.problem, class_="field-problem", id=_problem_id(name)
    )
    return element(
        "fieldset",
        (
            element("legend", (isolate(question.question), _optional(question))),
            problem,
            inputs,
        ),
        class_="question",
        id=name,
        aria_describedby=_problem_id(name) if problem else None,
        data_type=question.type,
    )


def _optional(question: ClarificationQuestion) -> Child:
    return None if question.required else (" ", element("span", "optional", class_="optional"))


def _words(name: str, question: ClarificationQuestion, filled: Filled) -> Child:
    return element(
        "input",
        type="text",
        name=f"{name}.text",
        id=f"{name}-text",
        value=filled.text or "",
        placeholder=question.placeholder,
        data_limit=MAX_ANSWER,
        aria_label=question.question,
        aria_required="true" if question.required else None,
        aria_invalid="true" if filled.problem else None,
        aria_describedby=_problem_id(name) if filled.problem else None,
        autofocus=filled.takes_focus,
        dir="auto",
    )


def _problem_id(name: str) -> str:
    return f"{name}-problem"


def _choices(name: str, question: ClarificationQuestion, filled: Filled) -> Child:
    ticks = [
        _marked(
            "checkbox",
            f"{name}.selected",
            f"{name}-{number}",
            option.id,
            isolate(option.label),
            checked=option.id in filled.selected,
            # What is wrong is told at the first box, which gets the focus.
            wrong=_problem_id(name) if filled.problem and number == 0 else None,
            focused=filled.takes_focus and number == 0,
        )
        for number, option in enumerate(question.options or ())
    ]
    if not question.allow_other:
        return element("div", ticks, class_="choices")
    other = element(
        "div",
        (
            element("label", "Something else, in your own words", for_=f"{name}-text"),
            element(
                "input",
                type="text",
                name=f"{name}.text",
                id=f"{name}-text",
                value=filled.text or "",
                placeholder=question.placeholder,
                data_limit=MAX_ANSWER,
                dir="auto",
            ),
        ),
        class_="other",
    )
    return element("div", ticks, class_="choices"), other


def _place(name: str, question: ClarificationQuestion, filled: Filled) -> Child:
    level = question.location_level or "city"
    marked = filled.selected[0] if filled.selected else None
    typed = filled.text if filled.text is not None else question.prefilled_location
    radios = [
        _marked("radio", f"{name}.selected", f"{name}-{n}", label, shown, checked=label == marked)
        for n, (label, shown) in enumerate(_offered(question, filled).items())
    ]
    if radios:
        radios.append(
            _marked(
                "radio",
                f"{name}.selected",
                f"{name}-typed",
                "",
                f"Another {level}",
                checked=marked == "",
            )
        )
    return (
        element("div", radios, class_="choices places") if radios else None,
        _picker(name, level, typed or "", question, filled),
    )


def _offered(question: ClarificationQuestion, filled: Filled) -> dict[str, Child]:
    """Return the places that can be marked, by what is sent: suggested ones, then found ones."""
    suggested: dict[str, Child] = {
        label: isolate(label) for label in question.suggested_locations or ()
    }
    found = {
        place.label: (place.name, element("small", place.surroundings))
        for place in filled.found or ()
    }
    return suggested | {label: shown for label, shown in found.items() if label not in suggested}


def _picker(
    name: str, level: str, typed: str, question: ClarificationQuestion, filled: Filled
) -> Html:
    box = element(
        "input",
        type="text",
        name=f"{name}.text",
        id=f"{name}-text",
        value=typed,
        placeholder=question.placeholder or _EXAMPLE[level],
        data_limit=MAX_LABEL,
        aria_describedby=f"{name}-hint {_problem_id(name)}" if filled.problem else f"{name}-hint",
        aria_required="true" if question.required else None,
        aria_invalid="true" if filled.problem else None,
        autofocus=filled.takes_focus,
        spellcheck="false",
        dir="auto",
    )
    find = element(
        "button",
        "Find",
        name="action",
        value=f"find.{name}",
        # The page that comes back stands where the search was.
        formaction=f"/subject/answers#{name}",
        class_="quiet find",
    )
    return element(
        "div",
        (
            element("label", _LABEL[level], for_=f"{name}-text"),
            element("div", (box, find), class_="search"),
            # Which place of the list was chosen; what is typed is nothing but what was typed.
            element("input", type="hidden", name=f"{name}.place", value=filled.place),
            element("p", _hint(filled, question), class_="hint", id=f"{name}-hint"),
        ),
        class_="picker",
        data_level=level,
    )


def _hint(filled: Filled, question: ClarificationQuestion) -> str:
    if filled.found:
        return "Mark one of the places above, or keep what you typed."
    if filled.found is not None:
        return "No place of that name is known here; what you typed will be used as it is."
    if filled.text is None and question.prefilled_location is not None:
        return "Filled in from what you wrote. Change it if it is not right."
    return "Choose from what is found, or leave what you typed."


def _marked(
    kind: str,
    name: str,
    identifier: str,
    value: str,
    label: Child,
    *,
    checked: bool,
    wrong: str | None = None,
    focused: bool = False,
) -> Html:
    return element(
        "label",
        (
            element(
                "input",
                type=kind,
                name=name,
                id=identifier,
                value=value,
                checked=checked,
                aria_invalid="true" if wrong else None,
                aria_describedby=wrong,
                autofocus=focused,
            ),
            element("span", label),
        ),
        class_="mark",
        for_=identifier,
    )


_LABEL = {
    "city": "City",
    "state": "State or province",
    "country": "Country",
}
_EXAMPLE = {"city": "e.g. Toronto, ON", "state": "e.g. Ohio, US", "country": "e.g. Canada"}
_BY_TYPE = {"open_text": _words, "multiple_choice": _choices, "location_picker": _place}


Form = Mapping[str, Sequence[str]]


def filled_in(form: Form, questions: Sequence[ClarificationQuestion]) -> tuple[Filled, ...]:
    """Return what stands in the fields of each question."""
    return tuple(
        Filled(
            text=_first(form, f"q{number}.text"),
            selected=tuple(form.get(f"q{number}.selected", ())),
            place=_first(form, f"q{number}.place") or "",
        )
        for number, _ in enumerate(questions)
    )


def answers_of(
    questions: Sequence[ClarificationQuestion], filled: Sequence[Filled], gazetteer: Gazetteer
) -> dict[str, object]:
    """Return the answers by question id, as a context takes them; what is blank was skipped."""
    return {
        question.id: _answer(question, entry, gazetteer)
        for question, entry in zip(questions, filled, strict=True)
    }


def unanswered(question: ClarificationQuestion, answer: object) -> bool:
    """Whether a question that has to be answered was not."""
    return question.required and answer is None


def too_long(length: int, limit: int) -> str:
    """Return what somebody is told whose text does not fit; counted in characters, not in bytes."""
    return (
        f"This has {length:,} characters, and at most {limit:,} fit. "
        f"Shorten it by {length - limit:,}."
    )


def _answer(
    question: ClarificationQuestion, filled: Filled, gazetteer: Gazetteer
) -> dict[str, object] | None:
    words = filled.text if filled.text is not None and not is_blank(filled.text) else None
    if question.type == "open_text":
        return None if words is None else {"kind": "text", "text": words}
    if question.type == "multiple_choice":
        return _choice(filled, words)
    marked = next((label for label in filled.selected if label), None)
    if marked is not None:
        suggested = marked in (question.suggested_locations or ())
        return _typed(marked) if suggested else _chosen(question, marked, gazetteer)
    if words is None:
        return None
    chosen = filled.place == words
    return _chosen(question, words, gazetteer) if chosen else _typed(words)


def _choice(filled: Filled, words: str | None) -> dict[str, object] | None:
    if not filled.selected and words is None:
        return None
    chosen: dict[str, object] = {"kind": "choice", "selected": list(filled.selected)}
    return chosen if words is None else {**chosen, "other": words}


def _typed(label: str) -> dict[str, object]:
    """Return a place as it was typed or suggested; which one it is remains to be understood."""
    return {"kind": "place", "label": label.strip()}


def _chosen(question: ClarificationQuestion, label: str, gazetteer: Gazetteer) -> dict[str, object]:
    """Return a place that was shown with all it lies in, and chosen."""
    known = gazetteer.labelled(label, level=question.location_level)
    if known is None:
        return _typed(label)
    parts = {"city": known.city, "state": known.state, "country": known.country}
    return {
        "kind": "place",
        "label": known.label,
        **{name: part for name, part in parts.items() if part is not None},
    }


def _first(form: Form, name: str) -> str | None:
    values = form.get(name, ())
    return values[0] if values else None


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
