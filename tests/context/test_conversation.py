"""Conversations of other agents than requirement 3's: a support desk and a hotel."""

from datetime import date
from typing import Any, Literal

import pytest
from context_values import Ticket, TicketQuestion

from pytest_regen.context import (
    Conversation,
    Layout,
    Question,
    Sealer,
    as_data,
    parse_context,
    render_conversation,
)
from pytest_regen.errors import InvalidContextError, SealTamperedError

SEALER = Sealer({"k1": "only these tests of seals know this key"})


class Stay(Question):
    """A question for a date."""

    type: Literal["date"] = "date"
    earliest: date


Booking = Conversation[Stay, date]

TICKET: dict[str, Any] = {
    "originalDescription": "my router dies",
    "questionsAsked": [
        {"id": "when", "question": "Since when?"},
        {"id": "light", "question": "Which light is on?", "options": ["red", "green"]},
        {"id": "tried", "question": "What have you tried?"},
    ],
    "inferredContext": {"product": "X1"},
    "answers": {"light": {"text": "red"}, "when": {"text": "May"}, "tried": None},
    "attachment": "file-7",
}
BOOKING: dict[str, Any] = {
    "originalDescription": "two nights by the sea",
    "questionsAsked": [
        {"id": "from", "question": "From when?", "type": "date", "earliest": "2026-12-01"}
    ],
    "inferredContext": {"guests": 2, "rooms": []},
    "answers": {"from": "2026-12-24"},
}


def ticket(**members: Any) -> Ticket:
    return parse_context(TICKET | members, Ticket)


def second_round() -> Ticket:
    """Return a ticket on which the desk asked once more."""
    asked = TicketQuestion(id="serial", question="Which serial number?")
    return (
        ticket()
        .next_round([asked], {"product": "X1 mini"})
        .with_answers({"serial": {"text": "S-1"}})
    )


@pytest.mark.parametrize(
    ("first", "text"),
    [
        (ticket, '- product: "X1"'),
        (lambda: parse_context(BOOKING, Booking), '- "From when?" (id "from"): "2026-12-24"'),
        (ticket, '- "What have you tried?" (id "tried"): (skipped)'),
        (second_round, '- "Which serial number?" (id "serial"): text: "S-1"'),
        (ticket, '- attachment: "file-7"'),
    ],
    ids=["inferences", "date", "three questions", "second round", "attachment"],
)
def test_what_other_agents_hold_is_taken(first: Any, text: str) -> None:
    """Each is read, comes back from JSON as the same, is rendered and sealed."""
    conversation = first()
    again = parse_context(conversation.model_dump(mode="json", by_alias=True), type(conversation))

    assert again == conversation
    assert text in render_conversation(again).split("\n")
    SEALER.unseal(SEALER.seal(conversation, conversation="c"), again, conversation="c")


def test_rounds_have_headings_of_their_own() -> None:
    """The order of rounds is that of time; the first prompt of all has no numbers."""
    headings = [
        line for line in render_conversation(second_round()).split("\n") if line.startswith("#")
    ]

    assert headings == [
        "## Original Issue",
        *(
            f"## {part}, round {number}"
            for number in (1, 2)
            for part in ("Questions I Asked", "User's Clarifications", "My Previous Analysis")
        ),
    ]
    assert "round" not in render_conversation(ticket())


def test_the_layout_is_the_callers() -> None:
    layout = Layout(
        headings=("# Ticket", "# Asked", "# Said", "# Guess"),
        closing="Answer the ticket.",
        inferred=lambda facts: [f"It is {as_data(facts.product)}."],
    )

    prompt = render_conversation(ticket(), layout)

    assert prompt.startswith('# Ticket\n"my router dies"\n')
    assert prompt.endswith('# Guess\nIt is "X1".\n\nAnswer the ticket.')


@pytest.mark.parametrize(
    ("members", "place", "reason"),
    [
        ({"answers": {"color": {"text": "red"}}}, "answers", "not asked"),
        ({"answers": {"light": {"text": "blue"}}}, "answers", "none of the options"),
        ({"inferredContext": {"product": 7}}, "inferredContext.product", "string"),
        ({"earlierRounds": [{"questionsAsked": 1}]}, "earlierRounds.0.questionsAsked", "tuple"),
    ],
)
def test_what_does_not_fit_is_refused(members: dict[str, Any], place: str, reason: str) -> None:
    with pytest.raises(InvalidContextError) as caught:
        ticket(**members)

    assert reason in dict(caught.value.problems)[place]


@pytest.mark.parametrize(
    "part", ["original_description", "inferred_context", "attachment", "earlier_rounds"]
)
def test_a_seal_binds_all_but_the_last_answers(part: str) -> None:
    """What a subclass adds, and the answers of earlier rounds, among them."""
    first = second_round()
    seal = SEALER.seal(first, conversation="c")
    others = {
        "original_description": "x",
        "inferred_context": {"product": "x"},
        "attachment": "file-8",
        "earlier_rounds": (first.earlier_rounds[0].with_answers({}),),
    }
    fields = {name: getattr(first, name) for name in Ticket.model_fields}

    SEALER.unseal(seal, first.with_answers({}), conversation="c")
    with pytest.raises(SealTamperedError, match="another type"):
        SEALER.unseal(seal, parse_context(BOOKING, Booking), conversation="c")
    with pytest.raises(SealTamperedError, match=part):
        SEALER.unseal(seal, Ticket.model_validate(fields | {part: others[part]}), conversation="c")


def deep(depth: int) -> Any:
    return [deep(depth - 1)] if depth else "x"


@pytest.mark.parametrize("inferred", [deep(300), {"x": "\ud800"}, float("nan"), {1: {2}}, object()])
def test_any_inferences_are_usable_or_refused(inferred: object) -> None:
    """What has no form in JSON is an error of ours, before it is rendered or sealed."""
    try:
        booking = parse_context(BOOKING | {"inferredContext": inferred}, Booking)
    except InvalidContextError:
        return
    assert isinstance(render_conversation(booking), str)
    SEALER.unseal(SEALER.seal(booking, conversation="c"), booking, conversation="c")
