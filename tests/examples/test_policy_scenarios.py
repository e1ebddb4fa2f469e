"""The policy example works as its README says: gated, replayed, recorded again, all offline."""

import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from compiler import ModelCompiler
from example_runs import run
from judge import ModelJudge
from library import engine, handwritten
from verify import MODEL, parts
from verify import run as replay

from pytest_regen import AnthropicProvider, Emulator, Reply, ScriptedProvider, TurnRequest
from pytest_regen.cassettes import journal
from pytest_regen.sessions import (
    ExecutionResult,
    LoopReport,
    RepairContext,
    compile_verify_repair,
)

EXAMPLE = Path(__file__).parents[2] / "examples" / "policy_scenarios"
RULES = (EXAMPLE / "replies" / "rules_2.json").read_text("utf-8")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the example."""
    folder = tmp_path / "policy_scenarios"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_the_gate_catches_a_changed_rule(copy: Path) -> None:
    """A rule that is loosened by hand fails the scenarios about it, and only these."""
    artifact = copy / "verified" / "scenarios.json"
    text = artifact.read_text("utf-8")
    loose = text.replace(
        '"*.botanic.example"', '"*.botanic.example",\n            "*.shop.example"'
    )
    artifact.write_text(loose, "utf-8")

    done = run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "test_scenario[")

    assert loose != text
    assert "1 failed, 19 passed" in done.stdout
    assert "Fetch a page that only looks like a garden's" in done.stdout


@pytest.mark.parametrize(
    ("name", "code", "told"),
    [
        ("two_repairs", 0, "2 repairs, 2 judgements, 2 corrections, 0 disagreements"),
        ("disagreement", 1, "the engine says escalate (letters-to-others), the judge says deny"),
    ],
)
def test_a_run_is_told(copy: Path, name: str, code: int, told: str) -> None:
    """``verify.py`` replays a run, says what happened, and exits by it."""
    done = run(copy, "verify.py", name)

    assert done.returncode == code, done.stderr
    assert told in done.stdout


def test_a_live_run_that_was_never_recorded_names_the_command_that_records_it(copy: Path) -> None:
    """Another one would record the emulated runs, and the live one would still be missing."""
    done = run(copy, "verify.py", "live")

    assert done.returncode != 0
    assert "record.py --live" in done.stderr


class Listening:
    """Passes requests on and remembers them with their replies."""

    def __init__(self) -> None:
        self.heard: dict[str, list[tuple[TurnRequest, Reply]]] = {}
        self._provider = AnthropicProvider()

    def send(self, request: TurnRequest) -> Reply:
        """Return the provider's reply."""
        reply = self._provider.send(request)
        self.heard.setdefault(request.system, []).append((request, reply))
        return reply


def test_every_turn_reads_the_one_before_from_the_cache() -> None:
    """Three conversations, three system prompts; each request goes on where the last one ended."""
    listening = Listening()

    replay("two_repairs", provider=listening)

    assert [len(turns) for turns in listening.heard.values()] == [2, 3, 2]
    for turns in listening.heard.values():
        for (before, answered), (after, reply) in pairwise(turns):
            said = [message.content for message in before.messages]
            assert [message.content for message in after.messages][: len(said)] == said
            used, read = answered.usage, reply.usage.cache_read_tokens or 0
            assert abs(used.total_tokens - (used.output_tokens or 0) - read) <= 7


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (('"@volunteers"', '"@gardeners"'), "the list @gardeners, which does not exist"),
        (('["mail"]', '["post"]'), "'post', which is no server and no tool"),
        (('"read-notes"', '"read-catalogue"'), "each needs a name of its own"),
        (('"if": {"server": ["almanac"], "tool": ["frost_dates"]}', '"if": {}'), "conditions"),
        (('"within"', '"inside"'), "inside"),
    ],
)
def test_rules_that_mean_nothing_are_sent_back(change: tuple[str, str], problem: str) -> None:
    """What the engine would not understand is mended within the turn, before anything is tested."""
    provider = ScriptedProvider([RULES.replace(*change), RULES])
    policy = ModelCompiler(provider, MODEL).compile()

    assert policy["rules"][0]["name"] == "read-catalogue"
    assert len(provider.requests) == 2
    assert problem in provider.requests[1].messages[-1].content


def test_a_repair_knows_what_failed_and_what_is_always_true() -> None:
    """The compiler's second turn tells failures, what is wanted, and what people wrote."""
    provider = ScriptedProvider([RULES, RULES])
    compiler = ModelCompiler(provider, MODEL)
    policy = compiler.compile()
    failing = failures()[0]

    truth = tuple(handwritten())
    context = RepairContext((failing,), "Too strict.", 1, truth, {failing.scenario.id: "allow"})

    compiler.repair(policy, context)

    told = provider.requests[1].messages[-1].content
    assert f"{failing}; wanted: allow" in told
    assert all(f"- {one.request}: {one.expected_decision}" in told for one in handwritten())


def failures() -> list[ExecutionResult]:
    """Return two results that contradict what people wrote."""
    return [ExecutionResult(one, "allow", "some-rule") for one in handwritten()[:2]]


@pytest.mark.parametrize(
    ("blame", "problem"),
    [
        ('{"number": 3, "fault": "rule", "reasoning": ""}', "no failing scenario has the number 3"),
        ('{"number": 1, "fault": "both", "reasoning": ""}', "lacks right_decision"),
        ('{"number": 1, "fault": "me", "reasoning": ""}', "fault"),
    ],
)
def test_a_verdict_about_nothing_is_sent_back(blame: str, problem: str) -> None:
    answer = '{"analysis": "", "blames": [%s]}'
    good = '{"number": 2, "fault": "scenario", "right_decision": "escalate", "reasoning": "So."}'
    provider = ScriptedProvider([answer % blame, answer % good])

    judgement = ModelJudge(provider, MODEL).judge({"rules": []}, failures())

    assert problem in provider.requests[1].messages[-1].content
    assert [one.scenario_id for one in judgement.attributions] == [handwritten()[1].id]
    assert judgement.attributions[0].corrected_decision == "escalate"


def test_the_judge_is_told_rules_when_they_change() -> None:
    """The rules stand in the conversation once per version: its history is paid for."""
    provider = ScriptedProvider(['{"analysis": "", "blames": []}'] * 3)
    judge = ModelJudge(provider, MODEL)

    for names in ([], [], ["new"]):
        judge.judge({"rules": [{"name": name} for name in names]}, [])

    told = [request.messages[-1].content for request in provider.requests]
    assert ["The rules:" in text for text in told] == [True, False, True]


def test_the_engine_of_the_library_decides_what_people_wrote() -> None:
    """With no rules at all, handwritten scenarios hold: they rest on invariants and silence."""
    strict = engine({"rules": []})

    assert {strict.evaluate(one.request).decision for one in handwritten()} == {"deny"}


def test_an_interrupted_run_goes_on_from_its_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that was answered is asked again, by compiler, generator or judge."""
    with Emulator(script=EXAMPLE / "replies" / "two_repairs.yaml") as emulator:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", emulator.base_url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "none-needed")

        def interrupt(line: str) -> None:
            if "Asking for replacements" in line:
                raise KeyboardInterrupt

        def go(on_progress: Callable[[str], None] | None = None) -> LoopReport:
            with journal(tmp_path / "journal.yaml"):
                return compile_verify_repair(parts(AnthropicProvider()), on_progress=on_progress)

        with pytest.raises(KeyboardInterrupt):
            go(interrupt)
        before = len(emulator.requests)
        report = go()
        asked = [request.body["messages"] for request in emulator.requests]

    assert report.passed
    assert 3 < before < len(asked)
    assert all(asked.count(one) == 1 for one in asked)
