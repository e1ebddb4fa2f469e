"""Items of any type: one bad item costs one item, and replacements are what was asked for."""

import datetime as dt
import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from random import Random
from typing import Any

import pytest
from pydantic import BaseModel

from pytest_regen.errors import (
    NoProgressError,
    ProviderError,
    ReplyFormatError,
    TransportError,
    UsageError,
)
from pytest_regen.sessions import ItemFault, ItemFeedback, ItemSession, generate_verify_repair
from pytest_regen.testing import assert_cache_prefix_stable
from pytest_regen.turns import Reply, ScriptedProvider, TurnRequest, Usage


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


LOOPS = 80


class Berth(BaseModel):
    """A row; its harbour must exist, its name may stand once."""

    id: int
    harbour: int
    name: str


def database(berth: Berth) -> str | None:
    """Insert a row into a database with one harbour, and return why that cannot be."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("CREATE TABLE harbour (id INTEGER PRIMARY KEY)")
        connection.execute(
            "CREATE TABLE berth (id INTEGER PRIMARY KEY, harbour INTEGER NOT NULL REFERENCES "
            "harbour, name TEXT NOT NULL CHECK (length(name) < 9))"
        )
        connection.execute("INSERT INTO harbour VALUES (1)")
        try:
            connection.execute(
                "INSERT INTO berth VALUES (?, ?, ?)", tuple(berth.model_dump().values())
            )
        except sqlite3.Error as error:
            return str(error)
    return None


def berth(random: Random, number: int) -> dict[str, Any]:
    name = random.choice(["north", "a name that is too long", ""])
    return {"id": number, "harbour": random.choice([1, 1, 2]), "name": name}


class Hostile(ScriptedProvider):
    """Writes by a seed: the wrong items again, others, too many, none, prose, halves, refusals."""

    def __init__(self, seed: int) -> None:
        super().__init__(self.answer)
        self.random = Random(seed)

    def answer(self, request: TurnRequest) -> Any:
        """Return the next reply."""
        random = self.random
        count = random.choice([0, 1, 3, 8])
        first = 0 if len(request.messages) < 3 else random.choice([0, 0, 5])
        items = [berth(random, first + number) for number in range(count)]
        if items and random.random() < 0.2:
            items.append({**random.choice(items), "id": random.choice([0, "x", None])})
        text = json.dumps({"items": items})
        kind = random.random()
        if kind < 0.06:
            return Reply(text[: len(text) // 2], "max_tokens")
        if kind < 0.1:
            return random.choice(["No.", "", "{", Reply("", "refusal"), json.dumps(items)])
        if kind < 0.13:
            return TransportError("dead", hint="again")
        return text


def test_no_hostile_model_gets_a_wrong_item_verified() -> None:
    """Whatever it says: the oracle has the last word about each item, and about each alone."""
    ended, repaired = 0, 0
    for seed in range(LOOPS):
        provider = Hostile(seed)
        session = ItemSession("x", Berth, key=lambda one: one.id, provider=provider)
        right: dict[int, bytes] = {}

        def asked(one: Berth, right: dict[int, bytes] = right) -> str | None:
            problem = database(one)
            if problem is None:
                assert one.id not in right, "what was right was asked about again"
                right[one.id] = _bytes(one)
            return problem

        try:
            report = generate_verify_repair(session, asked, max_repairs=3)
        except ProviderError:
            assert not session.turn_count
            continue
        ended += 1
        repaired += report.repairs > 0 and report.passed
        assert all(database(one) is None for one in report.items)
        assert {one.id: _bytes(one) for one in report.items} == right
        assert all(database(fault.item) is not None for fault in report.faults)
        assert report.passed == (bool(report.items) and not report.faults)
        ids = [one.id for one in (*report.items, *(fault.item for fault in report.faults))]
        assert sorted(ids) == sorted(one.id for one in session.items)
        assert_cache_prefix_stable(session.transcript)
        roles = [message.role for message in session.history]
        assert roles == ["user", "assistant"] * session.turn_count
    assert ended > LOOPS / 2
    assert repaired > 1


def _bytes(one: BaseModel) -> bytes:
    return json.dumps(one.model_dump()).encode()


def test_an_oracle_that_returns_no_words_is_a_mistake_of_the_caller() -> None:
    provider = ScriptedProvider(['{"items": [{"id": 1, "harbour": 1, "name": "north"}]}'])
    session = ItemSession("x", Berth, key=lambda one: one.id, provider=provider)

    with pytest.raises(UsageError, match=r"the oracle of <lambda> returned False"):
        generate_verify_repair(session, lambda _: False)  # type: ignore[arg-type,return-value]
