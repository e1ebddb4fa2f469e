"""Scenarios on disk, and when they are still good."""

from pathlib import Path
from typing import Any

import pytest
from scenario_doubles import TOOLS, handwritten, said, scenario

from pytest_regen.errors import StoreWriteError
from pytest_regen.sessions import (
    Artifact,
    ScenarioGenerationResult,
    ScenarioGeneratorSession,
    generate_test_scenarios,
    read_artifact,
    write_artifact,
)
from pytest_regen.turns import ScriptedProvider

A, B, W = scenario("/a"), scenario("/b", "deny"), scenario("/w", tool="write")


def input_hash(**arguments: Any) -> str:
    return ScenarioGeneratorSession(provider=ScriptedProvider([]), **arguments).fingerprint


def test_budgets_and_progress_are_not_in_the_hash() -> None:
    base: dict[str, Any] = {"system": "x", "annotations": TOOLS}

    assert input_hash(**base) == input_hash(**base, token_budget=9, on_progress=print, cache="1h")


def test_files_are_written_for_people_and_read_back(tmp_path: Path) -> None:
    """Two spaces, a final line end, no time of day; half a character is kept as its escape."""
    path = tmp_path / "deep" / "er" / "s.json"
    own = handwritten("/é"), handwritten("/\ud800")
    artifact = Artifact("sha256:1", "verified", (A, *own), {"rule": 1})

    write_artifact(path, artifact)

    text = path.read_text("utf-8")
    assert text.startswith('{\n  "version": 1')
    assert text.endswith("}\n")
    assert "/é" in text
    assert read_artifact(path) == artifact
    assert [one.name for one in path.parent.iterdir()] == ["s.json"]


@pytest.mark.parametrize(
    "text",
    [
        *("[]", '{"version": 2}', "\udcff"),
        '{"version": 1, "input_hash": "h", "status": "verified", "scenarios": [], "policy": [1]}',
    ],
    ids=lambda text: text[:80],
)
def test_a_damaged_artifact_is_a_missing_one(tmp_path: Path, text: str) -> None:
    path = tmp_path / "s.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))

    assert read_artifact(path) is None
    assert read_artifact(tmp_path / "nowhere.json") is None


def test_a_generation_is_neither_paid_in_vain_nor_lost(tmp_path: Path) -> None:
    """A place that cannot be written is told first; a string names one as well."""
    provider = ScriptedProvider([said([A])])
    with pytest.raises(StoreWriteError):
        generate_test_scenarios("x", TOOLS, provider=provider, artifact=tmp_path)
    assert not provider.requests

    found = generate_test_scenarios("x", TOOLS, provider=provider, artifact=f"{tmp_path}/s.json")

    assert found.scenarios == (A,)
    assert read_artifact(tmp_path / "s.json") is not None


def test_a_set_is_used_again_while_nothing_it_depends_on_has_changed(tmp_path: Path) -> None:
    """Nobody is asked then; what stayed untested is told all the same. A failed set is a miss."""
    path = tmp_path / "new" / "set.json"

    def generated(system: str, *replies: str) -> ScenarioGenerationResult:
        provider = ScriptedProvider(replies)
        return generate_test_scenarios(system, TOOLS[:2], provider=provider, artifact=path)

    first = generated("x", said([A]), said([]))
    again = generated("x")
    changed = generated("y", said([B, W]))
    write_artifact(path, Artifact(changed.input_hash, "failed", (B, W)))

    assert first.session is not None
    assert again.session is None
    assert (first.scenarios, first.input_hash) == (again.scenarios, again.input_hash)
    assert first.untested_tools == again.untested_tools == (("files", "write"),)
    assert changed.scenarios == (B, W)
    assert generated("y", said([A, W])).scenarios == (A, W)
