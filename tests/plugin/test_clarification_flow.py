"""``clarification_flow``: a flow is recorded as a transcript, replayed, and held against it."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestWarning")

CONFTEST = """
    import json
    import pytest
    from pytest_regen.context import ClarifyingAgent
    from pytest_regen.emulator import Emulator
    from pytest_regen.turns import AnthropicProvider

    ASK = json.dumps({"needs_clarification": True, "clarification_questions": [
        {"id": "location", "question": "Which city?", "type": "location_picker"}],
        "inferred_context": {"reasoning": "No city."}})
    WRITE = json.dumps({"needs_clarification": False, "subject_line": "Cap our rent"})

    def answer(body):
        return WRITE if "Previous Analysis" in str(body["messages"]) else ASK

    @pytest.fixture(scope="session", autouse=True)
    def emulator():
        with Emulator(answer) as running:
            yield running

    @pytest.fixture
    def regen_provider(emulator):
        return AnthropicProvider(api_key="none-needed", base_url=emulator.base_url)
"""
FLOW = """
    from pytest_regen.context import ClarifyingAgent
    {more}
    def test_flow(clarification_flow):
        flow = clarification_flow(ClarifyingAgent)
        assert flow.start("{said}").needs_clarification
        assert flow.answer({{"location": "{place}"}}).subject_line == "Cap our rent"
        {last}
"""


SECRET = "AKIAIOSFODNN7" + "EXAMPLE"


@pytest.fixture
def run(pytester: pytest.Pytester) -> "Run":
    """Run a flow in a project of its own."""
    pytester.makeconftest(CONFTEST)
    return Run(pytester)


class Run:
    """A project with one test that takes a flow."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester

    def __call__(self, *options: str, more: str = "", said: str = "rent", place: str = "Reno", last: str = "flow.skip()") -> pytest.RunResult:  # fmt: skip  # noqa: E501 - options of the flow
        """Write the test and run it."""
        self.pytester.makepyfile(
            test_it=FLOW.format(
                more=more.replace("\n", "\n    "), said=said, place=place, last=last
            )
        )
        return self.pytester.runpytest_inprocess(*options)

    @property
    def transcript(self) -> Path:
        """Where the transcript is."""
        return self.pytester.path / "transcripts" / "test_it" / "test_flow.yaml"


def test_a_flow_is_recorded_and_replayed(run: "Run") -> None:
    """Three turns, two of them branches of the first; the transcript says who answered."""
    run("--regen-record", "once").assert_outcomes(passed=1)
    written = run.transcript.read_text("utf-8")
    replayed = run("-p", "no:cacheprovider")

    replayed.assert_outcomes(passed=1)
    assert run.transcript.read_text("utf-8") == written
    assert written.count("- input:") == 3
    assert "source: emulator" in written
    assert '      - "Which city?" (id "location"): (skipped)' in written


def test_a_flow_without_a_transcript_says_how_to_record_it(run: "Run") -> None:
    result = run()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*there is no such transcript*", "*--regen-record once*"])


def test_a_prompt_that_changed_is_named_by_its_section(run: "Run") -> None:
    """The model would be told something else: the difference is shown, nothing is sent."""
    run("--regen-record", "once").assert_outcomes(passed=1)

    result = run(place="Elko")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            '*turn 2 tells the model something else, in "User\'s Clarifications"*',
            '*-- "Which city?" (id "location"): "Reno"*',
            '*+- "Which city?" (id "location"): "Elko"*',
            "*--regen-record rewrite*",
        ]
    )


def test_turns_that_are_not_taken_fail(run: "Run") -> None:
    """A recorded turn that no test takes any more is not left lying."""
    run("--regen-record", "once").assert_outcomes(passed=1)

    result = run(last="pass")

    assert result.ret == 1
    result.stdout.fnmatch_lines(["*1 recorded turn not taken*"])


def test_turns_that_were_not_recorded_fail(run: "Run") -> None:
    run("--regen-record", "once", last="pass").assert_outcomes(passed=1)

    run().stdout.fnmatch_lines(["*turn 3 was not recorded*"])


def test_a_failing_test_leaves_the_transcript_as_it_was(run: "Run") -> None:
    run("--regen-record", "once").assert_outcomes(passed=1)
    written = run.transcript.read_text("utf-8")

    run("--regen-record", "rewrite", place="Elko", last="assert 0").assert_outcomes(failed=1)
    assert run.transcript.read_text("utf-8") == written


def test_an_agent_may_be_given_as_it_is(run: "Run") -> None:
    """Each turn gets a copy of it, so that nothing it keeps helps it."""
    more = (
        "from pytest_regen.turns import AnthropicProvider\n"
        "import pytest\n"
        "@pytest.fixture\n"
        "def clarification_flow(clarification_flow, regen_provider):\n"
        "    return lambda make: clarification_flow(make(regen_provider))\n"
    )

    run("--regen-record", "once", more=more).assert_outcomes(passed=1)
    run(more=more).assert_outcomes(passed=1)


def test_no_credential_stands_in_a_transcript(run: Run) -> None:
    """It is kept beside the cassette, and is as clean; the flow is held against it all the same."""
    for options in (("--regen-record", "once"), ()):
        result = run(*options, said=f"my key:\\n{SECRET}", place=SECRET)
        result.assert_outcomes(passed=1)

    text = run.transcript.read_text("utf-8")
    assert SECRET not in text
    assert "[aws-key]" in text


def test_a_system_prompt_that_changed_is_told(run: "Run") -> None:
    run("--regen-record", "once").assert_outcomes(passed=1)
    make = "def ClarifyingAgent(p):\n    from pytest_regen.context import ClarifyingAgent as A\n    return A(p, system='x')\n"  # noqa: E501 - a test's source

    run(more=make).stdout.fnmatch_lines(["*turn 1 has another system prompt*"])


def test_what_is_no_agent_is_told_so(run: "Run") -> None:
    """And an agent whose provider cannot be seen."""
    for wrong in (
        "ClarifyingAgent = 7",
        "class A:\n    def turn(self): pass\nClarifyingAgent = A()",
    ):
        result = run("--regen-record", "once", more=wrong)

        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(["*UsageError*"])


def test_a_question_must_have_been_asked(run: "Run") -> None:
    """Answers without questions are a mistake in the test."""
    last = "clarification_flow.flow = None; clarification_flow(ClarifyingAgent).skip()"

    run("--regen-record", "once", last=last).stdout.fnmatch_lines(["*no question was asked*"])
