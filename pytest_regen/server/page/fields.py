"""One question as a field of the form: words, choices, or a place."""

from dataclasses import dataclass

from pytest_regen.context.questions import MAX_ANSWER, MAX_LABEL, ClarificationQuestion
from pytest_regen.html import Child, Html, element, isolated
from pytest_regen.server.gazetteer import Place

__all__ = ["Filled", "question_field"]


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
            element("legend", (isolated(question.question), _optional(question))),
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
            isolated(option.label),
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
        label: isolated(label) for label in question.suggested_locations or ()
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
