"""Sessions carried away as JSON: restored as they were, or refused with what is wrong."""

import copy
import json
from typing import Any

import pytest
from pydantic import BaseModel
from scenario_doubles import TOOLS, handwritten, said, scenario
from tables import each

from pytest_regen.errors import BudgetError, UsageError
from pytest_regen.sessions import GeneratorSession, ScenarioFeedback, ScenarioGeneratorSession
from pytest_regen.turns import Reply, ScriptedProvider, Usage


class Answer(BaseModel):
    """What replies of these tests are to be."""

    n: int


class Longer(BaseModel):
    """The same type after a change."""

    n: int
    why: str = ""


NOBODY = ScriptedProvider([])


def said_number(number: int) -> str:
    return f'{{"n": {number}}}'


def session(*replies: str, **changes: Any) -> GeneratorSession[Answer]:
    return GeneratorSession("You count.", Answer, provider=ScriptedProvider(replies), **changes)


def state() -> dict[str, Any]:
    talk = session(said_number(1))
    talk.ask("One?")
    return talk.to_json()


def scenario_state() -> dict[str, Any]:
    provider = ScriptedProvider([said([scenario("/a")]), said([scenario("/b")])])
    talk = ScenarioGeneratorSession("x", TOOLS[:1], [handwritten("/h")], provider=provider)
    talk.generate()
    talk.regenerate(ScenarioFeedback(notes=("more",)))
    return talk.to_json()


def restored(data: Any) -> GeneratorSession[Answer]:
    """Restore a session about numbers."""
    return GeneratorSession.from_json(data, Answer, provider=NOBODY)


def changed(data: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return ``data`` with another value at ``path``; without any where that is ``...``."""
    found = copy.deepcopy(data)
    *way, last = [int(key) if key.isdigit() else key for key in path.split(".")]
    place: Any = found
    for key in way:
        place = place[key]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return found


def test_a_session_is_carried_away_and_goes_on() -> None:
    """Through JSON: the next request is the one the first session would have sent.

    Requirement 1, extension points: the history is plain data.
    """
    first = Reply(said_number(1), usage=Usage(900, 90))
    provider = ScriptedProvider([first, said_number(2), said_number(2)])
    talk = GeneratorSession("You count.", Answer, provider=provider, model="claude-opus-5")
    talk.ask("One?")

    data = json.loads(json.dumps(talk.to_json()))
    other = GeneratorSession.from_json(data, Answer, provider=provider)
    assert (other.history, other.turn_count, other.usage) == (talk.history, 1, talk.usage)
    talk.ask("Two?")
    other.ask("Two?")
    poor = GeneratorSession.from_json(data, Answer, provider=provider, token_budget=1_500)
    with pytest.raises(BudgetError):
        poor.ask("Two?")

    assert provider.requests[1] == provider.requests[2]


def test_a_type_that_has_changed_is_told_to_the_model() -> None:
    provider = ScriptedProvider([*['{"n": 2, "why": "x"}'] * 2, said_number(3)])
    talk = GeneratorSession.from_json(state(), Longer, provider=provider)
    talk.ask("Two?")
    again = GeneratorSession.from_json(talk.to_json(), Longer, provider=provider)
    again.ask("Three?")
    back = GeneratorSession.from_json(again.to_json(), Answer, provider=provider)
    back.ask("Four?")

    asked = [request.messages[-1].content for request in provider.requests]
    assert [one.partition("\n")[0] for one in asked] == ["Two?", "Three?", "Four?"]
    assert ['"properties"' in one for one in asked] == [True, False, True]
    assert '"why"' in asked[0]


@each(
    ("path", "value", "why"),
    [
        ("kind", "something", "kind is 'something'"),
        ("version", 9, "version is 9"),
        ("system", ..., "system: Field required"),
        ("history", [{"role": "user", "content": "dangling"}], "does not alternate: user"),
        ("history.1.content", " ", "history.1.content: String should match"),
        ("usage.input_tokens", "lots", "valid integer, not 'lots'"),
        ("usage.input_tokens", -1, "usage.input_tokens"),
    ],
)
def test_what_is_no_session_is_not_restored(path: str, value: Any, why: str) -> None:
    """A poisoned state is refused, not carried on; the place of what is wrong is named."""
    with pytest.raises(UsageError, match="not a session") as caught:
        restored(changed(state(), path, value))

    assert why in caught.value.why


@each(
    ("path", "value", "why"),
    [
        ("annotations", ..., "annotations: Field required"),
        ("memory.items", [{}], "memory.items.0"),
        ("memory.wrong", [1], "memory.wrong"),
        ("memory.sent", "abc", "memory.sent"),
    ],
)
def test_what_is_no_scenario_session_is_not_restored(path: str, value: Any, why: str) -> None:
    with pytest.raises(UsageError, match="not a session") as caught:
        ScenarioGeneratorSession.from_json(changed(scenario_state(), path, value), provider=NOBODY)

    assert why in caught.value.why


@each("data", [None, "{}"], ids=repr)
def test_what_is_no_object_is_not_restored(data: Any) -> None:
    with pytest.raises(UsageError, match=r"not a session(?s:.*)json\.loads"):
        restored(data)
