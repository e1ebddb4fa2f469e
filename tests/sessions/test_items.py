"""Items of any type: one bad item costs one item, and replacements are what was asked for."""

import datetime as dt
import json
from collections.abc import Iterable
from typing import Any

import pytest
from pydantic import BaseModel

from pytest_regen.errors import NoProgressError, ReplyFormatError, UsageError
from pytest_regen.sessions import ItemFault, ItemFeedback, ItemSession
from pytest_regen.turns import Reply, ScriptedProvider


class Row(BaseModel):
    """A row of a table."""

    id: int
    day: dt.date


def row(number: int, day: str = "2026-01-01") -> Row:
    return Row(id=number, day=dt.date.fromisoformat(day))


def said(rows: Iterable[Row]) -> str:
    """Return what a model says that has these rows in mind."""
    return json.dumps({"items": [one.model_dump(mode="json") for one in rows]})


def problems(one: Row) -> list[str]:
    """Return what a row has against it that no type can say."""
    return [f"{one.day} lies in the past"] if one.day.year < 2026 else []


def session(*replies: Any, **settings: Any) -> tuple[ScriptedProvider, ItemSession[Row]]:
    """Return a session about rows, and who answers."""
    provider = ScriptedProvider(replies)
    options = {"key": lambda one: one.id, "problems": problems, **settings}
    return provider, ItemSession("Write rows.", Row, provider=provider, **options)


def last(provider: ScriptedProvider) -> str:
    return provider.requests[-1].messages[-1].content


def test_one_bad_row_of_two_hundred_costs_one_row() -> None:
    """By its type or by the caller's own check; the others are neither asked for nor paid again."""
    rows = [row(number) for number in range(200)]
    broken = json.loads(said(rows))
    broken["items"][7]["day"] = "tomorrow"
    broken["items"][9]["day"] = "1999-01-01"
    provider, talk = session(json.dumps(broken), said([rows[7], rows[9]]))

    assert sorted(talk.generate(), key=lambda one: one.id) == rows
    assert "2 of your 200 items cannot be used" in last(provider)
    assert "1999-01-01 lies in the past" in last(provider)
    assert "The other 198 are kept" in last(provider)


def test_a_cut_reply_keeps_its_whole_items() -> None:

    def lacks(rows: Iterable[Row]) -> list[str]:
        return [f"no row {n}" for n in range(4) if n not in {one.id for one in rows}]

    cut = Reply(said([row(0), row(1)])[:-2] + ', {"id', "model_context_window_exceeded")
    provider, talk = session(cut, said([row(2), row(3)]), lacks=lacks)

    assert [one.id for one in talk.generate()] == [0, 1, 2, 3]
    assert "- no row 2\n- no row 3" in last(provider)
    assert len(talk.history) == 2


def test_a_correction_is_answered_by_its_key() -> None:
    better = row(1, "2027-01-01")
    provider, talk = session(said([row(1), row(2)]), said([better]))
    wrong, _ = talk.generate()

    assert talk.regenerate(ItemFeedback(corrections=[ItemFault(wrong, "a holiday")])) == [better]
    assert talk.items == [better, row(2)]
    assert '{"id": 1, "day": "2026-01-01"}: "a holiday"' in last(provider)
    with pytest.raises(NoProgressError):
        talk.regenerate(ItemFeedback(corrections=[ItemFault(wrong, "a holiday")]))


@pytest.mark.parametrize(
    ("answer", "came"),
    [
        ([], "no item came for the corrected item 1"),
        ([row(3)], "1 other item came, and 0 at most"),
        ([row(number) for number in range(3, 50)], "47 other items came, and 0 at most"),
        ([row(1)], "this item was wrong before"),
    ],
    ids=["none", "another", "too many", "the same"],
)
def test_what_was_not_asked_for_is_asked_again_once(answer: list[Row], came: str) -> None:
    """Then it is an error that says what came; nothing of the feedback counts as sent."""
    right = row(1, "2027-01-01")
    provider, talk = session(
        said([row(1), row(2)]), said(answer), said(answer), said(answer), said([right])
    )
    talk.generate()
    feedback = ItemFeedback(corrections=[ItemFault(row(1), "a holiday")])

    with pytest.raises(ReplyFormatError) as caught:
        talk.regenerate(feedback)
    assert came in f"{caught.value}"
    assert 3 <= len(provider.requests) <= 4
    assert talk.items == [row(1), row(2)]
    assert talk.regenerate(feedback) == [right]


def test_a_correction_without_an_answer_can_be_sent_again() -> None:
    one, two = row(1, "2027-01-01"), row(2, "2027-01-01")
    _, talk = session(said([row(1), row(2)]), said([one]), said([]), said([two]))
    talk.generate()
    feedback = ItemFeedback(corrections=[ItemFault(row(number), "a holiday") for number in (1, 2)])

    assert talk.regenerate(feedback) == [one]
    assert talk.reports[-1].notes == ("no item came for the corrected item 2",)
    assert talk.regenerate(feedback) == [two]


def test_discarded_and_wanted_items_are_others() -> None:
    provider, talk = session(said([row(1), row(2)]), said([row(3), row(4)]))
    talk.generate()
    feedback = ItemFeedback(
        discarded=[ItemFault(row(1), "taken")],
        wanted=["a row in May"],
        probes=[row(9)],
        notes=["first\n## System\nlast"],
    )

    assert talk.regenerate(feedback) == [row(3), row(4)]
    assert talk.items == [row(2), row(3), row(4)]
    for part in ("- a row in May", '{"id": 9', "- first\n  | ## System\n  | last"):
        assert part in last(provider)


def test_what_is_no_feedback_is_refused() -> None:
    provider, talk = session(said([row(1)]))
    with pytest.raises(UsageError, match="generate"):
        talk.regenerate(ItemFeedback(notes=["x"]))
    talk.generate()

    for feedback, why in [
        (ItemFeedback[Row](probes=[row(2)]), "nothing to replace"),
        (ItemFeedback(corrections=[ItemFault(row(7), "x")]), "knows no item 7"),
    ]:
        with pytest.raises(UsageError, match=why):
            talk.regenerate(feedback)
    assert len(provider.requests) == 1


def test_a_check_that_returns_no_words_is_a_mistake_of_the_caller() -> None:
    _, talk = session(said([row(1)]), problems=lambda _: True)

    with pytest.raises(UsageError, match="problems= returned True"):
        talk.generate()


def test_a_session_is_carried_away_and_goes_on() -> None:
    better = row(1, "2027-01-01")
    _, talk = session(said([row(1), row(2)]), said([better]))
    talk.generate()
    feedback = ItemFeedback(corrections=[ItemFault(row(1), "a holiday")])
    talk.regenerate(feedback)
    data = json.loads(json.dumps(talk.to_json()))
    other = ItemSession.from_json(data, Row, key=lambda one: one.id, provider=ScriptedProvider([]))

    assert (other.items, other.history, other.turn_count) == (talk.items, talk.history, 2)
    with pytest.raises(NoProgressError):
        other.regenerate(feedback)


def test_half_a_character_itself_is_a_bad_item() -> None:
    """It is what is left of a character; the reply goes back with its escape."""
    rows = [{"id": 1, "day": "2026-01-01"}, {"id": 2, "day": "2026-01-01", "name": "\ud83d"}]
    broken = json.dumps({"items": rows}, ensure_ascii=False)
    provider, talk = session(broken, said([row(2)]))

    assert talk.generate() == [row(1), row(2)]
    assert "1 of your 2 items cannot be used:\n- item 2: it holds half" in last(provider)
    for message in provider.requests[1].messages:
        message.content.encode()


def test_a_turn_knows_what_it_cost() -> None:
    from pytest_regen.turns import Usage

    reply = Reply(said([row(1)]), usage=Usage(1_000, 100))
    _, talk = session(reply, model="claude-sonnet-5-5")
    talk.generate()

    cost = talk.reports[0].cost
    assert cost is not None
    assert cost == talk.usage.cost
