"""The policy example works as its README says: gated, replayed, recorded again, all offline."""

import shutil
from pathlib import Path

import pytest
from compiler import ModelCompiler
from library import handwritten
from verify import MODEL
from warm_python import run_in

from pytest_regen import ScriptedProvider
from pytest_regen.sessions import (
    ExecutionResult,
    RepairContext,
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

    done = run_in(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "test_scenario[")

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
    done = run_in(copy, "verify.py", name)

    assert done.returncode == code, done.stderr
    assert told in done.stdout


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (('"@volunteers"', '"@gardeners"'), "the list @gardeners, which does not exist"),
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
