"""Items of any type: one bad item costs one item, and replacements are what was asked for."""

import datetime as dt
import json
from collections.abc import Iterable
from typing import Any

import pytest
from pydantic import BaseModel

from pytest_regen.errors import NoProgressError, ReplyFormatError, UsageError
from pytest_regen.sessions import ItemFault, ItemFeedback, ItemSession
from pytest_regen.turns import Reply, ScriptedProvider, Usage


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
    """By its type, the caller's own check or half a character; the others are not paid again."""
    rows = [row(number) for number in range(200)]
    broken = json.loads(said(rows))
    broken["items"][7]["day"] = "tomorrow"
    broken["items"][8]["more"] = "\ud83d"
    broken["items"][9]["day"] = "1999-01-01"
    answer = Reply(json.dumps(broken, ensure_ascii=False), usage=Usage(1_000, 100))
    provider, talk = session(answer, said(rows[7:10]), model="claude-sonnet-5-5")

    assert sorted(talk.generate(), key=lambda one: one.id) == rows
    assert "3 of your 200 items cannot be used" in last(provider)
    assert "1999-01-01 lies in the past" in last(provider)
    assert "The other 197 are kept" in last(provider)
    for message in provider.requests[1].messages:
        message.content.encode()
    assert talk.reports[0].cost is not None
    assert talk.reports[0].cost == talk.usage.cost


def test_a_correction_is_answered_by_its_key() -> None:
    """What was sent and answered is not sent again, nor after the session was carried away."""
    better = row(1, "2027-01-01")
    provider, talk = session(said([row(1), row(2)]), said([better]))
    with pytest.raises(UsageError, match="generate"):
        talk.regenerate(ItemFeedback(notes=["x"]))
    wrong, _ = talk.generate()
    for feedback, why in [
        (ItemFeedback[Row](probes=[row(2)]), "nothing to replace"),
        (ItemFeedback(corrections=[ItemFault(row(7), "x")]), "knows no item 7"),
    ]:
        with pytest.raises(UsageError, match=why):
            talk.regenerate(feedback)
    feedback = ItemFeedback(corrections=[ItemFault(wrong, "a holiday")])

    assert talk.regenerate(feedback) == [better]
    assert '{"id": 1, "day": "2026-01-01"}: "a holiday"' in last(provider)
    data = json.loads(json.dumps(talk.to_json()))
    other = ItemSession.from_json(data, Row, key=lambda one: one.id, provider=provider)
    assert (other.history, other.turn_count) == (talk.history, 2)
    for one in (talk, other):
        assert one.items == [better, row(2)]
        with pytest.raises(NoProgressError):
            one.regenerate(feedback)


@pytest.mark.parametrize(
    ("answer", "came"),
    [
        ([], "no item came for the corrected item 1"),
        ([row(3)], "1 other item came, and 0 at most"),
        ([row(1)], "this item was wrong before"),
    ],
    ids=["none", "another", "the same"],
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
