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
PROVIDER = ScriptedProvider(LINES)

@pytest.fixture
def regen_provider():
    return PROVIDER
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


def test_without_the_marker_a_failure_is_a_failure(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        COUNTING
        + """
def test_one(generator_session):
    assert generator_session(system="Count.", response=Answer).ask("How many?").number == 3

def test_asked_once():
    assert len(PROVIDER.requests) == 1
"""
    )

    assert run(pytester).parseoutcomes() == {"failed": 1, "passed": 1}


def test_an_agent_that_loses_context_asks_nobody_again(pytester: pytest.Pytester) -> None:
    """What the code of an agent drops, no turn of a session can mend."""
    pytester.makepyfile(
        COUNTING
        + """
from pytest_regen.testing import ContextLossError

@pytest.mark.regen(attempts=3)
def test_agent(generator_session):
    generator_session(system="Count.", response=Answer).ask("How many?")
    raise ContextLossError("carries_full_context", "leaves are lost")

def test_asked_once():
    assert len(PROVIDER.requests) == 1
"""
    )

    assert run(pytester).parseoutcomes() == {"failed": 1, "passed": 1}


def test_attempts_are_bounded_and_the_failure_is_the_tests_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        COUNTING
        + """
@pytest.mark.regen(attempts=2)
def test_four(generator_session):
    assert generator_session(system="Count.", response=Answer).ask("How many?").number == 4
"""
    )

    result = run(pytester)

    assert result.parseoutcomes() == {"failed": 1}
    result.stdout.fnmatch_lines(["*assert 2 == 4*"])


def test_an_error_that_is_no_assertion_is_not_told(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        COUNTING
        + """
@pytest.mark.regen(attempts=3)
def test_typo(generator_session):
    generator_session(system="Count.", response=Answer).ask("How many?").nmber
"""
    )

    result = run(pytester)

    assert result.parseoutcomes() == {"failed": 1}
    result.stdout.fnmatch_lines(["*AttributeError*"])


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
    assert len(PROVIDER.requests) == session.turn_count == 3
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


@pytest.mark.parametrize(
    ("end", "calls", "outcomes", "said"),
    [
        ("xfail", 1, {"xfailed": 1, "passed": 1}, "* 1 xfailed*"),
        ("xfail", 2, {"xfailed": 1, "passed": 1}, "* 1 xfailed*"),
        ("exit", 2, {}, "*Exit: not there yet*"),
    ],
)
def test_what_is_no_failure_asks_nobody_again(
    pytester: pytest.Pytester, end: str, calls: int, outcomes: dict[str, int], said: str
) -> None:
    """``pytest.xfail`` and ``pytest.exit`` go to pytest, in the first call as in the second."""
    pytester.makepyfile(
        COUNTING
        + f"""
@pytest.mark.regen(attempts=3)
def test_known(generator_session):
    number = generator_session(system="Count.", response=Answer).ask("How many?").number
    if number == {calls}:
        pytest.{end}("not there yet")
    assert number == 0

def test_asked_no_more():
    assert len(PROVIDER.requests) == {calls}
"""
    )

    result = run(pytester)

    result.stdout.fnmatch_lines([said])
    assert result.parseoutcomes() == outcomes


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


def test_the_same_failure_twice_is_no_progress(pytester: pytest.Pytester) -> None:
    """A turn that could only repeat the last is not made; the assertion stands with a note."""
    pytester.makepyfile(
        SCENARIOS
        + """
@pytest.mark.regen(attempts=5)
def test_never(scenario_session):
    scenario_session(system="Be exact.", annotations=TOOLS).scenarios()
    raise AssertionError("always the same")
""".replace("def test_right", "def no_test")
    )

    result = run(pytester, "-k", "never")

    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines(["*always the same*", "*sent in an earlier turn*"])


def test_the_same_answer_to_the_same_failure_is_no_progress(pytester: pytest.Pytester) -> None:
    """It is not asked for a third time in the same words; another answer would be."""
    pytester.makepyfile(
        COUNTING.replace(
            """['{"number": 1}', '{"number": 2}', '{"number": 3}']""",
            """['{"number": 1}', '{"number": 2}', 'Here: {"number":2}', '{"number": 2}']""",
        )
        + """
@pytest.mark.regen(attempts=6)
def test_four(generator_session):
    session = generator_session(system="Count.", response=Answer)
    assert session.ask("How many?").number == 4, "four are wanted"

def test_asked():
    assert len(PROVIDER.requests) == 3
"""
    )
    result = run(pytester)

    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(
        ["*four are wanted*", "*No further turn: the model gave an answer*"]
    )
    result.stdout.fnmatch_lines(["still failing: *test_four [[]no_progress[]]*"])


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


def test_a_bare_all_tells_the_model_what_is_asserted(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        COUNTING
        + """
@pytest.mark.regen(attempts=2)
def test_four(generator_session):
    found = generator_session(system="Count.", response=Answer).ask("How many?")
    assert all(
        number == 2 for number in [found.number]
    )

def test_told():
    told = PROVIDER.requests[1].messages[-1].content
    assert "The test asserts: assert all(" in told
    assert "number == 2 for number in [found.number]" in told
"""
    )
    result = run(pytester)

    assert result.parseoutcomes() == {"passed": 1, "regenerated": 1}


def test_an_error_of_a_session_ends_at_the_line_of_the_test(pytester: pytest.Pytester) -> None:
    """Our own lines say nothing to who reads it, nor do those of a JSON decoder."""
    pytester.makepyfile(
        COUNTING.replace("'{\"number\": 1}'", '"No.", "No!", "Never."')
        + """
def test_one(generator_session):
    generator_session(system="Count.", response=Answer).ask("How many?")
"""
    )
    result = run(pytester)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*ReplyFormatError: the reply holds no whole JSON value*"])
    result.stdout.no_fnmatch_line("*pytest_regen[/\\]*py:*")
    result.stdout.no_fnmatch_line("*JSONDecodeError*")
