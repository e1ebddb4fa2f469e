"""``clarification_flow``: a flow is recorded as a transcript, replayed, and held against it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Run:
    """A project with one test that takes a flow."""

    pytester: pytest.Pytester

    def __call__(self, *options: str, **flow: str) -> pytest.RunResult:
        """Write the test and run it."""
        parts = {"more": "", "said": "rent", "place": "Reno", "last": "flow.skip()", **flow}
        parts["more"] = parts["more"].replace("\n", "\n    ")
        self.pytester.makepyfile(test_it=FLOW.format(**parts))
        return self.pytester.runpytest_inprocess(*options)

    @property
    def transcript(self) -> str:
        """What the transcript holds."""
        path = self.pytester.path / "transcripts" / "test_it" / "test_flow.yaml"
        return path.read_text("utf-8")


RECORD = ("--regen-record", "once")


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    """Run a flow in a project of its own."""
    pytester.makeconftest(CONFTEST)
    return Run(pytester)


def test_a_flow_is_recorded_and_replayed(run: Run) -> None:
    """Three turns, two of them branches of the first; the transcript says who answered.

    No credential stands in it, and the flow is held against it all the same.
    """
    words = {"said": f"my key:\\n{SECRET}", "place": SECRET}
    unrecorded = run(**words)
    recorded = run(*RECORD, **words)
    written = run.transcript
    replayed = run("-p", "no:cacheprovider", **words)

    unrecorded.assert_outcomes(errors=1)
    unrecorded.stdout.fnmatch_lines(["*no transcript of a flow at *", "*--regen-record once*"])
    recorded.assert_outcomes(passed=1)
    replayed.assert_outcomes(passed=1)
    assert run.transcript == written
    assert written.count("- input:") == 3
    assert "source: emulator" in written
    assert '      - "Which city?" (id "location"): (skipped)' in written
    assert SECRET not in written
    assert "[aws-key]" in written


OTHER_PROMPT = """
def ClarifyingAgent(provider):
    from pytest_regen.context import ClarifyingAgent as A
    return A(provider, system='x')
"""
CHANGES: Sequence[tuple[Mapping[str, str], Sequence[str]]] = (
    (
        {"place": "Elko"},
        [
            '*turn 2 tells the model something else, in "User\'s Clarifications"*',
            '*-- "Which city?" (id "location"): "Reno"*',
            '*+- "Which city?" (id "location"): "Elko"*',
            "*--regen-record rewrite*",
        ],
    ),
    ({"last": "pass"}, ["*1 recorded turn not taken*"]),
    ({"last": "flow.skip(), flow.skip()"}, ["*turn 4 was not recorded*"]),
    ({"more": OTHER_PROMPT}, ["*turn 1 has another system prompt*"]),
)
"""What a test does otherwise than when it was recorded, and what is said of it."""


def test_what_is_not_as_recorded_fails(run: Run) -> None:
    """The model would be told something else, or another turn taken; nothing is sent.

    A failing test leaves the transcript as it was.
    """
    run(*RECORD).assert_outcomes(passed=1)
    written = run.transcript

    for change, told in CHANGES:
        result = run(**change)

        assert result.ret == 1
        result.stdout.fnmatch_lines(told)

    run("--regen-record", "rewrite", place="Elko", last="assert 0").assert_outcomes(failed=1)
    assert run.transcript == written
