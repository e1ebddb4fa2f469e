"""Laws of context reconstruction, for any context."""

from contextlib import suppress
from typing import Any

import pytest
from context_values import (
    INFERRED,
    answers,
    contexts,
    inferences,
    leaves,
    texts,
    wires,
)
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from laws import scaled

from pytest_regen.context import (
    HEADINGS,
    ChoiceAnswer,
    ConversationContext,
    InferredContext,
    as_data,
    least_confident_dimensions,
    meets_confidence_threshold,
    overall_confidence,
    parse_context,
    parse_request,
    render_context,
)
from pytest_regen.context.questions import (
    MAX_ANSWER,
    MAX_ID,
    MAX_LABEL,
    MAX_OPTIONS,
    MAX_QUESTION,
    MAX_SUGGESTIONS,
)
from pytest_regen.context.values import (
    MAX_DESCRIPTION,
    MAX_QUESTIONS,
    MAX_REASONING,
)
from pytest_regen.errors import InvalidContextError

LAW = settings(max_examples=scaled(25))

LONGEST_ESCAPE = 12
"""Characters that one character becomes at most: a surrogate pair of escapes."""


def dumped(context: ConversationContext) -> Any:
    """Return a context as JSON."""
    return context.model_dump(mode="json", by_alias=True)


@LAW
@given(contexts())
def test_round_trip(context: ConversationContext) -> None:
    for again in (
        parse_context(dumped(context)),
        parse_context(context.model_dump(mode="json")),
        ConversationContext.model_validate_json(context.model_dump_json(by_alias=True)),
    ):
        assert again == context
        assert render_context(again) == render_context(context)


@LAW
@given(contexts())
def test_determinism(context: ConversationContext) -> None:
    """2: neither rendering again nor the order of answers makes a difference."""
    backwards = dumped(context)
    backwards["answers"] = dict(reversed(backwards["answers"].items()))

    assert render_context(parse_context(backwards)) == render_context(context)


@LAW
@given(contexts())
def test_completeness(context: ConversationContext) -> None:
    """3: every leaf that holds text stands in the prompt, in the documented encoding."""
    prompt = render_context(context)
    closed = {"type", "kind", "location_level"}
    for path, value in leaves(dumped(context)).items():
        if not isinstance(value, str) or path.rpartition("/")[2] in closed:
            continue
        if path.startswith("/inferredContext/detected_") and as_data(value) not in prompt:
            assert f": {value}" in prompt
        else:
            assert as_data(value) in prompt, path


@LAW
@given(wires(), st.data())
def test_a_leaf_that_differs_makes_another_prompt(one: dict[str, Any], data: st.DataObject) -> None:
    """3: contexts that differ in a single leaf have different prompts."""
    first = parse_context(one)
    part = data.draw(st.sampled_from(("originalDescription", "inferredContext", "answers")))
    other = {**one}
    if part == "originalDescription":
        other[part] = data.draw(texts(4000))
    elif part == "inferredContext":
        other[part] = data.draw(inferences())
    else:
        other[part] = {q["id"]: data.draw(answers(q)) for q in one["questionsAsked"]}
    second = parse_context(other)
    assume(first != second)

    assert render_context(first) != render_context(second)


@LAW
@given(wires(), st.sampled_from(("", " \n", "\ufeff", None, {"kind": "skipped"})))
def test_skip(data: dict[str, Any], nothing: object) -> None:
    ids = [question["id"] for question in data["questionsAsked"]]
    skipped = parse_context({**data, "answers": {}})

    assert parse_context({**data, "answers": dict.fromkeys(ids, nothing)}) == skipped
    assert render_context(skipped).count("\n(User skipped clarification)\n") == 1


@LAW
@given(contexts())
def test_structure(context: ConversationContext) -> None:
    """5: whatever is said, the headings are ours, and every line begins as one of ours does."""
    lines = render_context(context).split("\n")

    assert [line for line in lines if line.startswith("#")] == list(HEADINGS)
    assert len("\n".join(lines).splitlines()) == len(lines)
    ours = ('"', "- ", "  - ", "## ", "(User", "Now generate")
    assert all(line.startswith(ours) for line in lines if line)


@LAW
@given(wires())
def test_partition(data: dict[str, Any]) -> None:
    parsed = parse_context(data)
    prompt = render_context(parsed)
    for question in parsed.questions_asked:
        answer = parsed.answers.get(question.id)
        if not isinstance(answer, ChoiceAnswer):
            continue
        left = [one.label for one in question.options or () if one.id not in answer.selected]
        assert len(answer.selected) + len(left) == len(question.options or ())
        line = next(
            line
            for line in prompt.split("\n")
            if line.startswith(f"- {as_data(question.question)} (id {as_data(question.id)}): ")
        )
        assert ("not selected " in line) or not left
        assert all(as_data(label) in line for label in left)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(wires(), st.data())
def test_anything_in_any_place_is_read_or_refused(
    data: dict[str, Any], draw: st.DataObject
) -> None:
    """8: there is one error for what does not fit, and no other exception."""
    path = draw.draw(st.sampled_from(sorted(leaves(data)) or ["/answers"]))
    keys = path.split("/")[1:]
    mutated = _put(data, keys[: draw.draw(st.integers(1, len(keys)))], draw.draw(JSON))

    for read, whole in ((parse_context, mutated), (parse_request, {"message": "m", "conversationContext": mutated})):  # fmt: skip  # noqa: E501 - one line
        with suppress(InvalidContextError):
            read(whole)


def _put(value: Any, keys: list[str], new: object) -> Any:
    if not keys:
        return new
    if isinstance(value, list):
        return [_put(v, keys[1:], new) if str(n) == keys[0] else v for n, v in enumerate(value)]
    return {k: _put(v, keys[1:], new) if k == keys[0] else v for k, v in value.items()}


def test_bounds() -> None:
    """10: a prompt is never longer than its limits allow, computed from them."""

    def filled(length: int, end: str = "x") -> str:
        return "\U000e0041" * (length - len(end)) + end

    asked: list[dict[str, Any]] = [
        {
            "id": filled(MAX_ID, f"x{at}"),
            "question": filled(MAX_QUESTION),
            "type": "multiple_choice",
            "placeholder": filled(MAX_LABEL),
            "options": [
                {"id": filled(MAX_ID, f"x{number}"), "label": filled(MAX_LABEL, f"x{number}")}
                for number in range(MAX_OPTIONS)
            ],
        }
        for at in range(MAX_QUESTIONS)
    ]
    chosen = {
        q["id"]: {
            "kind": "choice",
            "selected": [o["id"] for o in q["options"]],
            "other": filled(MAX_ANSWER),
        }
        for q in asked
    }
    largest = parse_context(
        {
            "originalDescription": filled(MAX_DESCRIPTION),
            "questionsAsked": asked,
            "inferredContext": INFERRED
            | {
                "reasoning": filled(MAX_REASONING),
                "detected_ask": filled(MAX_ANSWER),
                "detected_location": filled(MAX_LABEL),
            },
            "answers": chosen,
        }
    )

    assert len(render_context(largest)) <= _longest_prompt()


def _longest_prompt() -> int:
    offered = max(MAX_OPTIONS * (MAX_ID + MAX_LABEL), (MAX_SUGGESTIONS + 1) * MAX_LABEL)
    question = 2 * (MAX_QUESTION + MAX_ID) + MAX_LABEL + offered
    answer = max(MAX_OPTIONS * MAX_LABEL + MAX_ANSWER, 4 * MAX_LABEL)
    inferred = MAX_LABEL + MAX_REASONING + MAX_ANSWER
    leaf_texts = MAX_DESCRIPTION + MAX_QUESTIONS * (question + answer) + inferred
    return leaf_texts * LONGEST_ESCAPE + 2_000


@pytest.mark.parametrize(
    ("sure", "mean", "least"),
    [
        ((0.7, 0.7, 0.7), 0.7, ()),
        ((0.69, 0.7, 0.8), 0.73, ("location",)),
        ((0.5, 0.5, 0.5), 0.5, ("location", "scope")),
        ((0.6, 0.1, 0.2), 0.3, ("scope", "target_type")),
    ],
)
def test_how_sure_inferences_are(
    sure: tuple[float, float, float], mean: float, least: tuple[str, ...]
) -> None:
    """12: exactly at the threshold is sure; of equals the first named comes first."""
    names = ("location_confidence", "scope_confidence", "target_type_confidence")

    inferred = InferredContext.model_validate(dict(zip(names, sure, strict=True)))

    assert least_confident_dimensions(inferred) == least
    assert overall_confidence(inferred) == pytest.approx(mean)
    assert meets_confidence_threshold(inferred) == (not least)
    assert meets_confidence_threshold(inferred, min(sure))
