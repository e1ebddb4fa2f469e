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

NUMBERS = itertools.count()

@pytest.fixture
def provider():
    made = ScriptedProvider(lambda request: f"[{len(made.requests)}]")
    return made

@pytest.fixture
def regen_provider(provider):
    return provider

@pytest.fixture
def told(provider):
    return lambda: [request.messages[-1].content for request in provider.requests[1:]]
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


def test_a_session_hears_the_failure_of_a_body_called_again(pytester: pytest.Pytester) -> None:
    """Its answer has this call's class; a new wording, or a session made of an answer, are fine."""
    body = """
@pytest.mark.regen(attempts=3)
def test_type_made_in_the_body(generator_session, provider, told):
    session = generator_session(system="s", response=TypeAdapter(list[int]))
    answer = session.ask("give")
    assert "3" in str(answer), "want three"
    assert len(provider.requests) == session.turn_count == 3
    assert all("want three" in one for one in told())

@pytest.mark.regen(attempts=2)
def test_class_of_this_call(generator_session):
    class Numbers(RootModel[list[int]]):
        pass

    session = generator_session(system="s", response=Numbers)
    first = session.ask("first")
    assert isinstance(first, Numbers) and first.root == [1]
    first.root.clear()
    assert session.ask("second").root == [3], "want three"

@pytest.mark.regen(attempts=2)
def test_worded_anew(generator_session, told):
    session = generator_session(system="s", response=list[int])
    assert session.ask(f"give, call {next(NUMBERS)}") == [2], "want two"
    assert "want two" in told()[0] and told()[0].endswith("give, call 1")

@pytest.mark.regen(attempts=2)
def test_chain(generator_session, provider):
    first = generator_session(system="s", response=list[int]).ask("give")
    second = generator_session(system=f"after {first}", response=list[int]).ask("give")
    assert second == [4], "want four"
    assert [one.system for one in provider.requests] == ["s", "after [1]", "s", "after [3]"]
"""
    assert run(pytester, COUNTING, body).parseoutcomes() == {"regenerated": 4}


def test_what_a_generator_session_cannot_hear_asks_nobody(pytester: pytest.Pytester) -> None:
    """Another session in the next call, or corrections: the failure itself stands."""
    body = """
@pytest.mark.regen(attempts=3)
def test_another(generator_session):
    session = generator_session(system=f"s{next(NUMBERS)}", response=list[int])
    assert session.ask("give") == [3], "want three"

@pytest.mark.regen(attempts=3)
def test_corrections(generator_session, request, provider):
    request.addfinalizer(lambda: print(f"asked {len(provider.requests)} time"))
    generator_session(system="s", response=list[int]).ask("give")
    pytest_regen.fail(feedback=ScenarioFeedback(corrections=[
        ScenarioCorrection(scenario_description="x", corrected_decision="deny")]))
"""
    result = run(pytester, COUNTING, body)

    assert result.parseoutcomes() == {"failed": 2}
    result.stdout.fnmatch_lines(
        ["*AssertionError: want three*", "*No further turn: session 1 of the test differs from *"]
    )
    result.stdout.fnmatch_lines(
        [
            "*'x' should be deny*",
            "*no session of the test can take corrections*",
            "*asked 1 time*",
        ]
    )


def test_what_no_session_can_take_costs_no_turn(pytester: pytest.Pytester) -> None:
    """The test's own failure stands, with a note that says what could not be told and why."""
    body = """
pytestmark = pytest.mark.regen(attempts=3)

def test_two(scenarios):
    scenarios("one"), scenarios("two")
    fail("two")

def test_name(scenarios):
    scenarios("name")
    fail("nope")

def test_tool(scenarios):
    scenarios("tool")
    pytest_regen.fail(feedback=ScenarioFeedback(untested_tools=[("f", "write")]))

def test_probe(scenarios):
    probes = scenarios("probe")
    pytest_regen.fail(feedback=ScenarioFeedback(probe_scenarios=probes))

def test_asked_once():
    assert asked() == ["one", "two", "name", "tool", "probe"]

def test_changed(scenarios):
    found = scenarios("changed")
    found[0].request.arguments.pop("path")  # In vain: the next call gets what was generated.
    if found[0].expected_decision == "deny":
        fail("changed")
"""
    result = run(pytester, SCENARIOS, body)

    assert result.parseoutcomes() == {"failed": 4, "passed": 1, "regenerated": 1}
    result.stdout.fnmatch_lines(
        [
            "*can take corrections",
            "*which 2 sessions of the test has",
            "*no scenario is called 'nope'*",
            "*this session knows no tool f/write*",
            "*the feedback asks for nothing*",
        ]
    )
    result.stdout.no_fnmatch_line("*UsageError*")
