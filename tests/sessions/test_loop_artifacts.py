"""The compile-verify-repair loop: what it leaves behind, and when that is used again."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from loop_doubles import RULES, WRONG, A, B, PathEngine, bench
from scenario_doubles import READ, handwritten, scenario

from pytest_regen.errors import StoreWriteError
from pytest_regen.sessions import (
    ExecutionResult,
    Judgement,
    LoopReport,
    Policy,
    read_artifact,
)


def test_a_failed_run_is_never_taken_for_a_success(tmp_path: Path) -> None:
    artifact = tmp_path / "scenarios.json"
    failed = artifact.with_suffix(".failed.json")
    first = bench([A, WRONG]).run(artifact)
    stored = read_artifact(failed)
    assert not artifact.exists()
    assert stored is not None
    assert stored.status == "failed"
    work = bench([A, B])
    second = work.run(artifact)

    assert (first.passed, second.passed, second.cached) == (False, True, False)
    assert work.compiler.compiled == 1
    assert artifact.is_file()
    assert not failed.exists()


def test_what_a_failed_run_reached_is_never_reused(tmp_path: Path) -> None:
    """Not even where all of it passes, as it does when a tool is left without tests."""
    artifact = tmp_path / "scenarios.json"
    first = [A, scenario("/protected/x", tool="write")]
    assert bench(first).run(artifact).stop_reason == "coverage"
    artifact.with_suffix(".failed.json").rename(artifact)

    report = bench(first).run(artifact)

    assert (report.stop_reason, report.cached) == ("coverage", False)


def test_an_artifact_that_the_engine_contradicts_is_made_again(tmp_path: Path) -> None:
    artifact = tmp_path / "scenarios.json"
    bench([A, B]).run(artifact)
    text = artifact.read_text("utf-8").replace('"/b": "escalate"', '"/b": "allow"')
    artifact.write_text(text, "utf-8")

    report = bench([A, B]).run(artifact)

    assert (report.passed, report.cached) == (True, False)


@pytest.mark.parametrize(
    "change",
    [
        {"handwritten": [handwritten("/secret")]},
        {"annotations": [READ]},
        {"limits": {"max_rounds": 1}},
    ],
    ids=str,
)
def test_a_change_of_an_input_is_a_miss(tmp_path: Path, change: dict[str, Any]) -> None:
    artifact = tmp_path / "scenarios.json"
    bench([A, B]).run(artifact)

    assert not bench([A, B], **change).run(artifact).cached


def test_a_place_that_cannot_be_written_is_told_before_anything_is_paid(tmp_path: Path) -> None:
    work = bench([A, B])

    with pytest.raises(StoreWriteError):
        work.run(tmp_path)

    assert work.compiler.compiled == 0


def test_a_report_that_cannot_be_kept_is_not_lost(tmp_path: Path) -> None:
    """The error carries it: the place was there at the beginning, and is gone at the end."""
    folder = tmp_path / "folder"

    def hostile(_: Sequence[ExecutionResult]) -> Judgement:
        folder.write_text("in the way", "utf-8")
        return Judgement()

    with pytest.raises(StoreWriteError) as caught:
        bench([A, B], hostile).run(folder / "s.json")

    report = caught.value.unkept
    assert isinstance(report, LoopReport)
    assert report.passed


class Demanding(PathEngine):
    """Reads a rule that must be there."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.first = policy["/a"]


@pytest.mark.parametrize("damage", [{"x": 1}, None], ids=str)
def test_damaged_rules_cost_a_run_and_not_an_error(tmp_path: Path, damage: Any) -> None:
    artifact = tmp_path / "scenarios.json"
    bench([A, B], engine=Demanding).run(artifact)
    stored = json.loads(artifact.read_text("utf-8"))
    artifact.write_text(json.dumps({**stored, "policy": damage}), "utf-8")

    report = bench([A, B], engine=Demanding).run(artifact)

    assert (report.passed, report.cached, report.policy) == (True, False, RULES)
