"""What a scenario session is told in later turns: to whom, once, and nothing that cannot be."""

import json
import re
from collections.abc import Iterable
from typing import Any

import pytest
from scenario_doubles import READ, TOOLS, correction, discard, handwritten, said, scenario

from pytest_regen.errors import NoProgressError, UsageError
from pytest_regen.sessions import (
    ScenarioFeedback,
    ScenarioGeneratorSession,
    TestScenario,
)
from pytest_regen.turns import ScriptedProvider

A, B = scenario("/a"), scenario("/b")


def correcting(*corrected: tuple[str, str]) -> ScenarioFeedback:
    """Return corrections, each of a path to a decision."""
    return ScenarioFeedback(corrections=tuple(correction(*one) for one in corrected))


def after_the_first_turn(
    *later: str, own: Iterable[TestScenario] = ()
) -> tuple[ScriptedProvider, ScenarioGeneratorSession]:
    """Return a session that gave A and B, and who answers."""
    provider = ScriptedProvider([said([A, B]), *later])
    session = ScenarioGeneratorSession("Be exact.", TOOLS[:1], tuple(own), provider=provider)
    session.generate()
    return provider, session


def last(provider: ScriptedProvider) -> str:
    return provider.requests[-1].messages[-1].content


def test_a_correction_that_goes_back_is_told() -> None:
    """Rules change; the last word about a scenario counts, also for what is taken of a reply."""
    back = scenario("/a", "deny")
    other = scenario("/b", "deny")
    provider, session = after_the_first_turn(
        said([back]), said([scenario("/a", "escalate")]), said([back, other])
    )

    session.regenerate(correcting(("/a", "deny")))
    session.regenerate(correcting(("/a", "escalate")))
    found = session.regenerate(correcting(("/a", "deny"), ("/b", "deny")))

    assert found == [back, other]
    assert "you said 'escalate', correct decision is 'deny'" in last(provider)
    assert '"/b"' in last(provider)


def test_a_correction_that_stands_is_not_told_again() -> None:
    """Neither alone nor beside another one, nor after the session was carried away."""
    right, other = scenario("/a", "deny"), scenario("/b", "deny")
    provider, session = after_the_first_turn(said([right]), said([other]))
    session.regenerate(correcting(("/a", "deny")))
    restored = ScenarioGeneratorSession.from_json(
        json.loads(json.dumps(session.to_json())), provider=provider
    )

    with pytest.raises(NoProgressError):
        restored.regenerate(correcting(("/a", "deny")))
    session.regenerate(correcting(("/a", "deny"), ("/b", "deny")))

    assert '"/a"' not in last(provider)


OWN = handwritten("/h", "deny")


@pytest.mark.parametrize(
    ("feedback", "problem"),
    [
        ({"untested_tools": (("nope", "read"),)}, "knows no tool nope/read"),
        (
            {"corrections": (correction("/a", "deny"), correction("/a", "escalate"))},
            "is corrected to 'deny' and to 'escalate'",
        ),
        ({"corrections": (correction("/a", "allow"),)}, "to 'allow', which is what it expects"),
        ({"discarded_scenarios": (discard("/h"),)}, "handwritten and cannot be discarded"),
        ({"corrections": (correction("/h", "allow"),)}, "handwritten and cannot be corrected"),
        (
            {"notes": ("n",), "probe_scenarios": (scenario("/h", "allow"),)},
            "'read /h' is handwritten and cannot be contradicted by a probe",
        ),
    ],
)
def test_feedback_that_cannot_be_is_refused(feedback: dict[str, Any], problem: str) -> None:
    """Before anybody is asked; the session goes on as if it had not been said."""
    provider, session = after_the_first_turn(said([]), own=[OWN])
    before = session.to_json()

    with pytest.raises(UsageError, match=re.escape(problem)):
        session.regenerate(ScenarioFeedback(**feedback))

    assert len(provider.requests) == 1
    assert session.to_json() == before


def test_a_note_without_words_says_nothing() -> None:
    """Nor is it a reason for a turn; a probe that agrees with a person is a hint."""
    provider, session = after_the_first_turn(said([]), own=[handwritten("/h")])

    with pytest.raises(UsageError, match="nothing to replace"):
        session.regenerate(ScenarioFeedback(notes=("", " \n")))
    probes = (scenario("/h", "deny"),)
    session.regenerate(ScenarioFeedback(notes=(" ", "too few edges"), probe_scenarios=probes))

    assert '"/h"} -> deny' in last(provider)
    assert "found about your scenarios:\n\n- too few edges\n\n" in last(provider)


def test_what_a_caller_does_to_scenarios_changes_nothing_in_the_session() -> None:
    own = handwritten("/h")
    provider = ScriptedProvider([said([A, B]), said([scenario("/a", "deny")])])
    session = ScenarioGeneratorSession("x", [READ], [own], provider=provider)
    found = session.generate()
    before = session.to_json()

    for one in (own, *found):
        one.request.arguments.clear()

    assert session.to_json() == before
    (fresh,) = session.regenerate(correcting(("/a", "deny")))
    fresh.request.arguments.clear()
    assert '[files/read {"path":"/a"}]' in last(provider)
    assert "/a" in json.dumps(session.to_json()["memory"]["items"])
