"""One question as a field of the form: words, choices, or a place."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from pytest_regen.context.questions import MAX_ANSWER, MAX_LABEL, ClarificationQuestion, is_blank
from pytest_regen.server.gazetteer import Gazetteer, Place
from pytest_regen.server.page.html import Child, Html, element, isolate


@dataclass(frozen=True, slots=True)
class FieldState:
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


def question_field(number: int, question: ClarificationQuestion, state: FieldState) -> Html:
    """Return one question with its inputs.

    Args:
        number: of the question, from 0; its fields are called after it, never after the id that a
            model chose.
        question: what is asked.
        state: what already stands there.
    """
    name = f"q{number}"
    inputs = _BY_TYPE[question.type](name, question, state)
    problem = state.problem and element(
        "p", state.problem, class_="field-problem", id=_problem_id(name)
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


def _words(name: str, question: ClarificationQuestion, state: FieldState) -> Child:
    return element(
        "input",
        type="text",
        name=f"{name}.text",
        id=f"{name}-text",
        value=state.text or "",
        placeholder=question.placeholder,
        data_limit=MAX_ANSWER,
        aria_label=question.question,
        aria_required="true" if question.required else None,
        aria_invalid="true" if state.problem else None,
        aria_describedby=_problem_id(name) if state.problem else None,
        autofocus=state.takes_focus,
        dir="auto",
    )


def _problem_id(name: str) -> str:
    return f"{name}-problem"


def _choices(name: str, question: ClarificationQuestion, state: FieldState) -> Child:
    ticks = [
        _option(
            "checkbox",
            f"{name}.selected",
            f"{name}-{number}",
            option.id,
            isolate(option.label),
            checked=option.id in state.selected,
            # The problem is described at the first box, which gets the focus.
            wrong=_problem_id(name) if state.problem and number == 0 else None,
            focused=state.takes_focus and number == 0,
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
                value=state.text or "",
                placeholder=question.placeholder,
                data_limit=MAX_ANSWER,
                dir="auto",
            ),
        ),
        class_="other",
    )
    return element("div", ticks, class_="choices"), other


def _place(name: str, question: ClarificationQuestion, state: FieldState) -> Child:
    level = question.location_level or "city"
    marked = state.selected[0] if state.selected else None
    typed = state.text if state.text is not None else question.prefilled_location
    radios = [
        _option("radio", f"{name}.selected", f"{name}-{n}", label, shown, checked=label == marked)
        for n, (label, shown) in enumerate(_place_options(question, state).items())
    ]
    if radios:
        radios.append(
            _option(
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
        _picker(name, level, typed or "", question, state),
    )


def _place_options(question: ClarificationQuestion, state: FieldState) -> dict[str, Child]:
    """Return the places that can be marked, by what is sent: suggested ones, then found ones."""
    suggested: dict[str, Child] = {
        label: isolate(label) for label in question.suggested_locations or ()
    }
    found = {
        place.label: (place.name, element("small", place.surroundings))
        for place in state.found or ()
    }
    return suggested | {label: shown for label, shown in found.items() if label not in suggested}


def _picker(
    name: str, level: str, typed: str, question: ClarificationQuestion, state: FieldState
) -> Html:
    box = element(
        "input",
        type="text",
        name=f"{name}.text",
        id=f"{name}-text",
        value=typed,
        placeholder=question.placeholder or _EXAMPLE[level],
        data_limit=MAX_LABEL,
        aria_describedby=f"{name}-hint {_problem_id(name)}" if state.problem else f"{name}-hint",
        aria_required="true" if question.required else None,
        aria_invalid="true" if state.problem else None,
        autofocus=state.takes_focus,
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
            element("input", type="hidden", name=f"{name}.place", value=state.place),
            element("p", _hint(state, question), class_="hint", id=f"{name}-hint"),
        ),
        class_="picker",
        data_level=level,
    )


def _hint(state: FieldState, question: ClarificationQuestion) -> str:
    if state.found:
        return "Mark one of the places above, or keep what you typed."
    if state.found is not None:
        return "No place of that name is known here; what you typed will be used as it is."
    if state.text is None and question.prefilled_location is not None:
        return "Filled in from what you wrote. Change it if it is not right."
    return "Choose from what is found, or leave what you typed."


def _option(
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


def read_fields(form: Form, questions: Sequence[ClarificationQuestion]) -> tuple[FieldState, ...]:
    """Return what stands in the fields of each question."""
    return tuple(
        FieldState(
            text=_first(form, f"q{number}.text"),
            selected=tuple(form.get(f"q{number}.selected", ())),
            place=_first(form, f"q{number}.place") or "",
        )
        for number, _ in enumerate(questions)
    )


def answers_of(
    questions: Sequence[ClarificationQuestion], fields: Sequence[FieldState], gazetteer: Gazetteer
) -> dict[str, object]:
    """Return the answers by question id, as a context takes them; what is blank was skipped."""
    return {
        question.id: _answer(question, entry, gazetteer)
        for question, entry in zip(questions, fields, strict=True)
    }


def is_missing(question: ClarificationQuestion, answer: object) -> bool:
    """Whether a question that has to be answered was not."""
    return question.required and answer is None


def too_long(length: int, limit: int) -> str:
    """Return the message for a text that does not fit, counted in characters, not in bytes."""
    return (
        f"This has {length:,} characters, and at most {limit:,} fit. "
        f"Shorten it by {length - limit:,}."
    )


def _answer(
    question: ClarificationQuestion, state: FieldState, gazetteer: Gazetteer
) -> dict[str, object] | None:
    words = state.text if state.text is not None and not is_blank(state.text) else None
    if question.type == "open_text":
        return None if words is None else {"kind": "text", "text": words}
    if question.type == "multiple_choice":
        return _choice(state, words)
    marked = next((label for label in state.selected if label), None)
    if marked is not None:
        suggested = marked in (question.suggested_locations or ())
        return _typed_place(marked) if suggested else _known_place(question, marked, gazetteer)
    if words is None:
        return None
    chosen = state.place == words
    return _known_place(question, words, gazetteer) if chosen else _typed_place(words)


def _choice(state: FieldState, words: str | None) -> dict[str, object] | None:
    if not state.selected and words is None:
        return None
    chosen: dict[str, object] = {"kind": "choice", "selected": list(state.selected)}
    return chosen if words is None else {**chosen, "other": words}


def _typed_place(label: str) -> dict[str, object]:
    """Return a place by the words that were typed or suggested; the model resolves them."""
    return {"kind": "place", "label": label.strip()}


def _known_place(
    question: ClarificationQuestion, label: str, gazetteer: Gazetteer
) -> dict[str, object]:
    """Return a place of the gazetteer with its city, state and country."""
    known = gazetteer.by_label(label, level=question.location_level)
    if known is None:
        return _typed_place(label)
    parts = {"city": known.city, "state": known.state, "country": known.country}
    return {
        "kind": "place",
        "label": known.label,
        **{name: part for name, part in parts.items() if part is not None},
    }


def _first(form: Form, name: str) -> str | None:
    values = form.get(name, ())
    return values[0] if values else None


SAVED = "kept"
"""Name of the hidden field."""


class SavedAnswer(BaseModel):
    """One answer and its question. It is not trusted: it only fills the form of whoever sent it."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    question: str
    kind: str
    text: str = ""
    selected: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Labels of options, or the place that was marked."""

    @property
    def summary(self) -> str:
        """The answer, to be read."""
        return ", ".join(text for text in (*self.selected, self.text) if not is_blank(text))


_ALL: TypeAdapter[list[SavedAnswer]] = TypeAdapter(list[SavedAnswer])


def answers_to_save(
    questions: Sequence[ClarificationQuestion], fields: Sequence[FieldState]
) -> tuple[SavedAnswer, ...]:
    """Return what was answered, without what was left blank."""
    saved = []
    for question, entry in zip(questions, fields, strict=True):
        labels = {option.id: option.label for option in question.options or ()}
        selected = tuple(labels.get(key, key) for key in entry.selected)
        saved.append(
            SavedAnswer(
                question=question.question,
                kind=question.type,
                text=entry.text or "",
                selected=selected,
            )
        )
    return tuple(answer for answer in saved if answer.summary)


def dump_saved(saved: Sequence[SavedAnswer]) -> str:
    """Return answers as the value of a hidden field."""
    return json.dumps([answer.model_dump() for answer in saved], ensure_ascii=False)


def load_saved(field: str) -> tuple[SavedAnswer, ...]:
    """Return the answers in a hidden field; none where it holds something else."""
    try:
        return tuple(_ALL.validate_json(field.encode("utf-8", "replace"))) if field else ()
    except ValidationError:
        return ()


def restore_answers(
    saved: Sequence[SavedAnswer], questions: Sequence[ClarificationQuestion]
) -> tuple[tuple[FieldState, ...], tuple[SavedAnswer, ...]]:
    """Return the fields of new questions filled with old answers, and the answers left over.

    An answer belongs to the question that it was given to, or to the only one of its kind.
    """
    left = list(saved)
    fields = []
    for question in questions:
        same = next((old for old in left if _is_of(old, question, saved, questions)), None)
        if same is None:
            fields.append(FieldState())
            continue
        left.remove(same)
        ids = {option.label: option.id for option in question.options or ()}
        known = ids or {label: label for label in question.suggested_locations or ()}
        others = [label for label in same.selected if label not in known]
        fields.append(
            FieldState(
                text=", ".join(text for text in (*others, same.text) if not is_blank(text)),
                selected=tuple(known[label] for label in same.selected if label in known),
            )
        )
    return tuple(fields), tuple(left)


def _is_of(
    one: SavedAnswer,
    question: ClarificationQuestion,
    saved: Sequence[SavedAnswer],
    questions: Sequence[ClarificationQuestion],
) -> bool:
    if one.kind != question.type:
        return False
    alone: Any = (
        [q for q in questions if q.type == one.kind],
        [k for k in saved if k.kind == one.kind],
    )
    return one.question == question.question or all(len(found) == 1 for found in alone)
