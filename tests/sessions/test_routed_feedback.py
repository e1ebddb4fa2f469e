"""What a test fails with reaches the session it is about, and is refused where none can take it."""

import pytest

# Before the runs in this process, because pytester forgets what a run has imported.
import pytest_regen.pytest_plugin.healing.sessions  # noqa: F401

COUNTING = """
import itertools
import pytest
import pytest_regen
from pydantic import RootModel, TypeAdapter
from pytest_regen.sessions import ScenarioCorrection, ScenarioFeedback
from pytest_regen.turns import ScriptedProvider

PROVIDER = ScriptedProvider(lambda request: f"[{len(PROVIDER.requests)}]")
NUMBERS = itertools.count()

@pytest.fixture
def regen_provider():
    return PROVIDER

def told():
    return [request.messages[-1].content for request in PROVIDER.requests[1:]]
"""

SCENARIOS = """
import json
import pytest
import pytest_regen
from pytest_regen.sessions import (
    DiscardedScenario, ScenarioCorrection, ScenarioFeedback, ScenarioRequest, ToolAnnotation,
)
from pytest_regen.turns import ScriptedProvider

READ = ToolAnnotation(server_name="f", tool_name="read", args={"path": ["read-path"]})

def answer(request):
    name = request.system
    found = [{"description": name, "expected_decision": "deny", "reasoning": "",
              "request": {"server_name": "f", "tool_name": "read", "arguments": {"path": name}}}]
    if len(request.messages) > 1:
        found[0]["expected_decision"] = "allow"
    return json.dumps({"scenarios": found})

PROVIDER = ScriptedProvider(answer)

@pytest.fixture
def regen_provider():
    return PROVIDER

def asked():
    return [request.system for request in PROVIDER.requests]

def fail(name, **more):
    correction = ScenarioCorrection(
        scenario_description=name, corrected_decision="allow", **more)
    pytest_regen.fail(feedback=ScenarioFeedback(corrections=[correction]))

@pytest.fixture
def scenarios(scenario_session):
    return lambda name: scenario_session(system=name, annotations=[READ]).scenarios()
"""


def run(pytester: pytest.Pytester, project: str, body: str) -> pytest.RunResult:
    """Run one module in this process."""
    pytester.makepyfile(project + body)
    return pytester.runpytest_inprocess()


def test_a_type_made_in_the_body_is_the_same_type_in_every_call(
    pytester: pytest.Pytester,
) -> None:
    """The one session hears every failure, although each call of the body makes its own type."""
    body = """
@pytest.mark.regen(attempts=3)
def test_three(generator_session):
    session = generator_session(system="s", response=TypeAdapter(list[int]))
    answer = session.ask("give")
    assert "3" in str(answer), "want three"
    assert len(PROVIDER.requests) == session.turn_count == 3
    assert all("want three" in one for one in told())
"""
    assert run(pytester, COUNTING, body).parseoutcomes() == {"regenerated": 1}


def test_what_is_remembered_is_of_the_type_of_this_call(pytester: pytest.Pytester) -> None:
    """An earlier answer comes back as this call's class, whatever an earlier call did to it."""
    body = """
@pytest.mark.regen(attempts=2)
def test_two(generator_session):
    class Numbers(RootModel[list[int]]):
        pass

    session = generator_session(system="s", response=Numbers)
    first = session.ask("first")
    assert isinstance(first, Numbers) and first.root == [1]
    first.root.clear()
    assert session.ask("second").root == [3], "want three"
"""
    assert run(pytester, COUNTING, body).parseoutcomes() == {"regenerated": 1}


def test_a_question_worded_anew_is_told_what_was_wrong(pytester: pytest.Pytester) -> None:
    """The failure is not lost because the body asks in other words the second time."""
    body = """
@pytest.mark.regen(attempts=2)
def test_two(generator_session):
    session = generator_session(system="s", response=list[int])
    assert session.ask(f"give, call {next(NUMBERS)}") == [2], "want two"
    assert "want two" in told()[0] and told()[0].endswith("give, call 1")
"""
    assert run(pytester, COUNTING, body).parseoutcomes() == {"regenerated": 1}


def test_another_session_in_the_next_call_is_an_error(pytester: pytest.Pytester) -> None:
    """A model that cannot hear what was wrong is not asked anew; the failure itself stands."""
    body = """
@pytest.mark.regen(attempts=3)
def test_three(generator_session):
    session = generator_session(system=f"s{next(NUMBERS)}", response=list[int])
    assert session.ask("give") == [3], "want three"

def test_asked_once():
    assert len(PROVIDER.requests) == 1
"""
    result = run(pytester, COUNTING, body)

    assert result.parseoutcomes() == {"failed": 1, "passed": 1}
    result.stdout.fnmatch_lines(
        ["*AssertionError: want three*", "*No further turn: session 1 of the test is another*"]
    )


def test_a_session_made_of_an_answer_may_be_another_one(pytester: pytest.Pytester) -> None:
    """Once a session has heard it, what follows from its new answer may be new as well."""
    body = """
@pytest.mark.regen(attempts=2)
def test_chain(generator_session):
    first = generator_session(system="s", response=list[int]).ask("give")
    second = generator_session(system=f"after {first}", response=list[int]).ask("give")
    assert second == [4], "want four"
    assert [one.system for one in PROVIDER.requests] == ["s", "after [1]", "s", "after [3]"]
"""
    assert run(pytester, COUNTING, body).parseoutcomes() == {"regenerated": 1}


def test_corrections_need_a_session_with_scenarios(pytester: pytest.Pytester) -> None:
    """A generator session cannot take them: that is said, and nothing is asked."""
    body = """
@pytest.mark.regen(attempts=3)
def test_it(generator_session):
    generator_session(system="s", response=list[int]).ask("give")
    pytest_regen.fail(feedback=ScenarioFeedback(corrections=[
        ScenarioCorrection(scenario_description="x", corrected_decision="deny")]))

def test_asked_once():
    assert len(PROVIDER.requests) == 1
"""
    result = run(pytester, COUNTING, body)

    assert result.parseoutcomes() == {"failed": 1, "passed": 1}
    result.stdout.fnmatch_lines(
        ["*'x' should be deny*", "*no session of the test can take corrections*"]
    )


def test_corrections_need_one_session_with_scenarios(pytester: pytest.Pytester) -> None:
    body = """
@pytest.mark.regen(attempts=2)
def test_two(scenarios):
    scenarios("one"), scenarios("two")
    fail("two")

def test_asked_once():
    assert asked() == ["one", "two"]
"""
    result = run(pytester, SCENARIOS, body)

    assert result.parseoutcomes() == {"failed": 1, "passed": 1}
    result.stdout.fnmatch_lines(["*can take corrections", "*which 2 sessions of the test has"])


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ('fail("nope")', "*no scenario is called 'nope'*"),
        (
            'pytest_regen.fail(feedback=ScenarioFeedback(untested_tools=[("f", "write")]))',
            "*this session knows no tool f/write*",
        ),
        (
            "pytest_regen.fail(feedback=ScenarioFeedback(probe_scenarios=one))",
            "*the feedback asks for nothing*",
        ),
    ],
    ids=["name", "tool", "probe"],
)
def test_what_no_session_can_take_costs_no_turn(
    pytester: pytest.Pytester, said: str, why: str
) -> None:
    """The test's own failure stands, with a note that says what could not be told and why."""
    body = f"""
@pytest.mark.regen(attempts=3)
def test_it(scenarios):
    one = scenarios("one")
    {said}

def test_asked_once():
    assert asked() == ["one"]
"""
    result = run(pytester, SCENARIOS, body)

    assert result.parseoutcomes() == {"failed": 1, "passed": 1}
    result.stdout.fnmatch_lines(["*FeedbackError*", why])
    result.stdout.no_fnmatch_line("*UsageError*")


def test_a_body_that_changes_its_scenarios_changes_no_set(pytester: pytest.Pytester) -> None:
    """The next call gets what was generated, not what the last one made of it."""
    body = """
@pytest.mark.regen(attempts=2)
def test_it(scenarios):
    found = scenarios("one")
    found[0].request.arguments.pop("path")
    if found[0].expected_decision == "deny":
        fail("one")
"""
    assert run(pytester, SCENARIOS, body).parseoutcomes() == {"regenerated": 1}
