"""Sets of scenarios that a limit cut: what is complete is kept, what is missing is asked for."""

import json
from typing import Any

import pytest
from scenario_doubles import TOOLS, said, scenario

from pytest_regen.errors import ReplyFormatError
from pytest_regen.sessions import ItemSession, ScenarioGeneratorSession
from pytest_regen.turns import Reply, ScriptedProvider

READ, WRITE, OTHER = scenario("/a"), scenario("/b", tool="write"), scenario("/c", tool="write")
TWO = TOOLS[:2]
CUT = said([READ, WRITE])[:-2] + ", "
"""Two scenarios whole, and the list open."""


def generated(*replies: Any) -> tuple[ScenarioGeneratorSession, ScriptedProvider]:
    """Return a session that has generated from ``replies``, the first of which was cut."""
    first, *rest = replies
    provider = ScriptedProvider([Reply(first, "max_tokens"), *rest])
    session = ScenarioGeneratorSession("Be exact.", TWO, provider=provider)
    session.generate()
    return session, provider


def known(session: ScenarioGeneratorSession) -> list[str]:
    return [one["description"] for one in json.loads(session.history[1].content)["scenarios"]]


REST = said([OTHER])


@pytest.mark.parametrize(
    ("cut", "rest"),
    [(CUT, REST), (CUT + '{"descri', f"Here are the others:\n```json\n{REST}\n```")],
    ids=["between items", "within one"],
)
def test_a_rest_in_a_set_of_its_own_is_put_to_what_stood_before(cut: str, rest: str) -> None:
    """Nothing before the cut is lost, nothing is paid twice, and a note says what happened."""
    session, provider = generated(cut, rest)

    assert known(session) == [one.description for one in (READ, WRITE, OTHER)]
    assert len(provider.requests) == 2
    assert session.reports[-1].notes == ("the reply was cut off: 3 whole scenarios were kept",)


def test_a_set_begun_again_is_taken_as_it_is() -> None:
    """It holds what stood before the cut; the history has it as it was written."""
    whole = said([READ, WRITE, OTHER])
    session, _ = generated(whole[:200], whole)

    assert session.history[1].content == whole
    assert not session.reports[-1].notes


@pytest.mark.parametrize("stop", ["max_tokens", "model_context_window_exceeded"])
def test_the_complete_items_of_a_reply_that_ends_nowhere_are_kept(stop: str) -> None:
    lists = [Reply(CUT, stop), *[Reply(REST[:-2] + ", ", stop)] * 3]
    provider = ScriptedProvider(lists)
    session = ScenarioGeneratorSession("Be exact.", TWO, provider=provider)
    session.generate()

    assert known(session)[:2] == ["read /a", "write /b"]
    assert len(known(session)) == (3 if stop == "max_tokens" else 2)
    assert session.turn_count == 1


def test_a_cut_reply_without_a_complete_item_is_an_error() -> None:
    provider = ScriptedProvider([Reply(CUT[:60], "model_context_window_exceeded")])
    session = ScenarioGeneratorSession("Be exact.", TWO, provider=provider)

    with pytest.raises(ReplyFormatError):
        session.generate()
    assert not session.history


def test_what_a_cut_reply_still_lacks_is_asked_for() -> None:
    """In the caller's words; of any items."""
    cut = Reply('{"items": [{"n": 0}, {"n": 1}, ', "model_context_window_exceeded")
    provider = ScriptedProvider([cut, '{"items": [{"n": 2}]}'])
    session = ItemSession(
        "Count.",
        dict[str, int],
        key=lambda one: one["n"],
        provider=provider,
        lacks=lambda items: [f"no {n}" for n in range(3) if {"n": n} not in items],
    )

    assert session.generate() == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert "- no 2" in provider.requests[-1].messages[-1].content
