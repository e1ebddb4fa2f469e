"""The law of verified items, on rows of a database, with hostile models.

No wrong item is verified, what was right stays as it was, and nothing that was written is lost.
"""

import json
import sqlite3
from contextlib import closing
from random import Random
from typing import Any

import pytest
from pydantic import BaseModel

from pytest_regen.errors import ProviderError, TransportError, UsageError
from pytest_regen.sessions import ItemSession, generate_verify_repair
from pytest_regen.testing import assert_cache_prefix_stable
from pytest_regen.turns import Reply, ScriptedProvider, TurnRequest

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
