"""Tests that hold sessions: their failure is the feedback of the next turn."""

from pathlib import Path

import pytest

# Before the runs in this process, because pytester forgets what a run has imported.
import pytest_regen.pytest_plugin.healing.sessions  # noqa: F401
from pytest_regen.emulator import Emulator

COUNTING = """
import json
import pytest
from pydantic import BaseModel
import pytest_regen
from pytest_regen.turns import ScriptedProvider

class Answer(BaseModel):
    number: int

LINES = ['{"number": 1}', '{"number": 2}', '{"number": 3}']
PROVIDERS = {}

@pytest.fixture
def regen_provider(request):
    name = request.node.name
    lines = {
        "test_again": [*LINES[:2], 'Here: {"number":2}', LINES[1]],
        "test_prose": ["No.", "No!", "Never."],
    }
    return PROVIDERS.setdefault(name, ScriptedProvider(lines.get(name, LINES)))

def asked():
    return {name: len(one.requests) for name, one in PROVIDERS.items()}
"""

SCENARIOS = """
import json
import pytest
import pytest_regen
from pytest_regen.sessions import (
    ScenarioCorrection, ScenarioFeedback, ToolAnnotation, expectation_holds,
)
from pytest_regen.turns import ScriptedProvider

TOOLS = [ToolAnnotation(server_name="files", tool_name="read", args={"path": ["read-path"]})]

def said(*pairs):
    return json.dumps({"scenarios": [
        {"description": f"read {path}", "expected_decision": decision, "reasoning": "",
         "request": {"server_name": "files", "tool_name": "read", "arguments": {"path": path}}}
        for path, decision in pairs
    ]})

PROVIDER = ScriptedProvider([said(("/a", "allow"), ("/b", "deny")), said(("/b", "escalate"))])

@pytest.fixture
def regen_provider():
    return PROVIDER

@pytest.mark.regen(attempts=3)
def test_right(scenario_session):
    found = scenario_session(system="Be exact.", annotations=TOOLS).scenarios()
    wrong = [
        ScenarioCorrection(scenario_description=one.description, corrected_decision="escalate")
        for one in found if one.expected_decision == "deny"
    ]
    if wrong:
        pytest_regen.fail(feedback=ScenarioFeedback(corrections=wrong))
    assert [(one.description, one.expected_decision) for one in found] == [
        ("read /a", "allow"), ("read /b", "escalate"),
    ]
"""


def run(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    """Run the project in this process."""
    return pytester.runpytest_inprocess("-p", "anyio", *args)


def test_what_no_turn_can_mend_asks_nobody_again(pytester: pytest.Pytester) -> None:
    """Without the marker, of other errors, of an agent that loses context, of ``pytest.xfail``."""
    pytester.makepyfile(
        COUNTING
        + """
from pytest_regen.testing import ContextLossError

def number(generator_session):
    return generator_session(system="Count.", response=Answer).ask("How many?").number

def test_unmarked(generator_session):
    assert number(generator_session) == 3

def test_prose(generator_session):
    number(generator_session)

@pytest.mark.regen(attempts=3)
def test_agent(generator_session):
    number(generator_session)
    raise ContextLossError("carries_full_context", "leaves are lost")

@pytest.mark.regen(attempts=3)
def test_typo(generator_session):
    number(generator_session).nmber

@pytest.mark.regen(attempts=3)
def test_xfail(generator_session):
    if number(generator_session) == 2:
        pytest.xfail("not there yet")
    assert False, "two are wanted"

def test_asked():
    assert asked() == {
        "test_unmarked": 1, "test_prose": 3, "test_agent": 1, "test_typo": 1, "test_xfail": 2,
    }
"""
    )

    result = run(pytester)

    assert result.parseoutcomes() == {"failed": 4, "xfailed": 1, "passed": 1}
    result.stdout.fnmatch_lines(
        ["*ReplyFormatError: the reply holds no whole JSON value*", "*AttributeError*"]
    )
    # Our own lines say nothing to who reads it, nor do those of a JSON decoder.
    result.stdout.no_fnmatch_line("*pytest_regen[/\\]*py:*")
    result.stdout.no_fnmatch_line("*JSONDecodeError*")


def test_attempts_are_bounded_and_end_where_nothing_changes(pytester: pytest.Pytester) -> None:
    """The failure is the test's own; ``exit`` ends the run also in a second call."""
    pytester.makepyfile(
        COUNTING
        + """
@pytest.mark.regen(attempts=2)
def test_bounded(generator_session):
    found = generator_session(system="Count.", response=Answer).ask("How many?")
    assert all(
        number == 4 for number in [found.number]
    )

@pytest.mark.regen(attempts=6)
def test_again(generator_session):
    session = generator_session(system="Count.", response=Answer)
    assert session.ask("How many?").number == 4, "four are wanted"

def test_asked():
    assert asked() == {"test_bounded": 2, "test_again": 3}
    told = PROVIDERS["test_bounded"].requests[1].messages[-1].content
    assert "The test asserts: assert all(" in told
    assert "number == 4 for number in [found.number]" in told

@pytest.mark.regen(attempts=3)
def test_exit(generator_session):
    if generator_session(system="Count.", response=Answer).ask("How many?").number == 2:
        pytest.exit("not there yet")
    assert False, "two are wanted"
"""
    )

    result = run(pytester)

    result.assert_outcomes(failed=2, passed=1)
    result.stdout.fnmatch_lines(
        ["*four are wanted*", "*No further turn: the model gave an answer*"]
    )
    result.stdout.fnmatch_lines(["*Exit: not there yet*"])


ASYNCHRONOUS = """
@pytest.fixture
def anyio_backend():
    return "asyncio"

pytestmark = pytest.mark.anyio
"""


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_failing_test_becomes_the_next_turn(
    pytester: pytest.Pytester,
    asynchronous: bool,  # noqa: FBT001 - the form
) -> None:
    """The marker alone is enough; what was answered before is remembered, and the outcome is G."""
    body = """
@pytest.mark.regen(attempts=3)
async def test_three(generator_session):
    session = generator_session(system="Count.", response=Answer)
    assert (await session.aask("First?")).number == 1
    assert (await session.aask("How many?")).number == 3, "three are wanted"
    assert asked() == {"test_three": session.turn_count} == {"test_three": 3}
    assert "three are wanted" in session.history[-2].content
"""
    plain = body.replace("async ", "").replace("await ", "").replace("aask", "ask")
    pytester.makepyfile(COUNTING + (ASYNCHRONOUS + body if asynchronous else plain))

    assert run(pytester).parseoutcomes() == {"regenerated": 1}


@pytest.mark.parametrize("asynchronous", [False, True])
def test_scenario_corrections_lead_to_replacements(
    pytester: pytest.Pytester,
    asynchronous: bool,  # noqa: FBT001 - the form
) -> None:
    """Corrections are put in place, replacements are merged, and the test passes as G."""
    project = SCENARIOS
    if asynchronous:
        project = project.replace("def test_right", "async def test_right").replace(
            'scenario_session(system="Be exact.", annotations=TOOLS).scenarios()',
            'await scenario_session(system="Be exact.", annotations=TOOLS).ascenarios()',
        )
        project = project.replace("PROVIDER = ", f"{ASYNCHRONOUS}\nPROVIDER = ")
    pytester.makepyfile(project)

    assert run(pytester).parseoutcomes() == {"regenerated": 1}


def test_an_asynchronous_test_waits_without_blocking(pytester: pytest.Pytester) -> None:
    """The provider's own asynchronous form is awaited, and the hooks around a turn are called."""
    pytester.makeconftest(
        """
        HEARD = []

        def pytest_regen_before_turn(request):
            HEARD.append(("before", len(request.messages)))

        def pytest_regen_after_turn(reply):
            HEARD.append(("after", reply.text))
        """
    )
    pytester.makepyfile(
        COUNTING
        + ASYNCHRONOUS
        + """
import asyncio
from conftest import HEARD

TOLD = asyncio.Event()

class Waiting(ScriptedProvider):
    async def asend(self, request):
        await TOLD.wait()
        return self.send(request)

@pytest.fixture
def regen_provider():
    return Waiting(LINES)

async def test_both_go_on(generator_session):
    session = generator_session(system="Count.", response=Answer)
    turn = asyncio.create_task(session.aask("How many?"))
    await asyncio.sleep(0)
    TOLD.set()
    assert (await asyncio.wait_for(turn, 10)).number == 1
    assert HEARD == [("before", 1), ("after", LINES[0])]
"""
    )

    assert run(pytester).parseoutcomes() == {"passed": 1}


def test_turns_are_recorded_and_replayed(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both turns come from the cassette afterwards, with the marker alone and without a key."""
    pytester.makepyfile(
        test_told="""
        import pytest
        from pydantic import BaseModel

        class Answer(BaseModel):
            number: int

        @pytest.mark.regen(attempts=2)
        def test_two(generator_session):
            session = generator_session(system="Count.", response=Answer)
            assert session.ask("How many?").number == 2, "two are wanted"
        """
    )
    replies = iter(['{"number": 1}', '{"number": 2}'])
    with Emulator(lambda _: next(replies)) as emulator:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", emulator.base_url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-emulated")
        recorded = run(pytester, "--regen-record", "once")
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    replayed = run(pytester)

    assert recorded.parseoutcomes() == replayed.parseoutcomes() == {"regenerated": 1}
    assert Path(pytester.path, "cassettes", "test_told", "test_two.yaml").is_file()
