"""Scenarios on disk, and when they are still good."""

from pathlib import Path
from typing import Any

import pytest
from scenario_doubles import READ, TOOLS, handwritten, said, scenario

from pytest_regen.errors import StoreWriteError
from pytest_regen.sessions import (
    Artifact,
    ScenarioGeneratorSession,
    content_hash,
    generate_test_scenarios,
    read_artifact,
    write_artifact,
)
from pytest_regen.turns import ScriptedProvider

A, B = scenario("/a"), scenario("/b", "deny")


def input_hash(**arguments: Any) -> str:
    return ScenarioGeneratorSession(provider=ScriptedProvider([]), **arguments).fingerprint


def test_the_hash_is_of_what_the_parts_say() -> None:
    assert content_hash("ab", "c") != content_hash("a", "bc")
    assert content_hash([A]) == content_hash([A.model_copy()])
    assert content_hash([A]) != content_hash([B])


@pytest.mark.parametrize(
    "change",
    [
        {"model": "other"},
        {"max_tokens": 9},
        {"max_repairs": 1},
        {"system": "else"},
        {"annotations": [READ]},
        {"handwritten": [handwritten("/h")]},
    ],
    ids=str,
)
def test_everything_a_set_depends_on_is_in_its_hash(change: dict[str, Any]) -> None:
    base: dict[str, Any] = {"system": "x", "annotations": TOOLS, "handwritten": []}

    assert input_hash(**base) != input_hash(**{**base, **change})


def test_budgets_and_progress_are_not_in_the_hash() -> None:
    base: dict[str, Any] = {"system": "x", "annotations": TOOLS}

    assert input_hash(**base) == input_hash(**base, token_budget=9, on_progress=print, cache="1h")


def test_a_second_generation_asks_nobody(tmp_path: Path) -> None:
    path = tmp_path / "new" / "scenarios.json"
    first = generate_test_scenarios(
        "x", TOOLS, provider=ScriptedProvider([said([A, B])]), artifact=path
    )
    again = generate_test_scenarios("x", TOOLS, provider=ScriptedProvider([]), artifact=path)

    assert (first.scenarios, first.input_hash) == (again.scenarios, again.input_hash)
    assert first.session is not None
    assert first.session.turn_count == 1
    assert again.session is None


def test_a_failed_set_is_a_miss(tmp_path: Path) -> None:
    path = tmp_path / "scenarios.json"
    write_artifact(path, Artifact(input_hash(system="x", annotations=TOOLS), "failed", (A,)))

    found = generate_test_scenarios(
        "x", TOOLS, provider=ScriptedProvider([said([B])]), artifact=path
    )

    assert found.scenarios == (B,)


def test_files_are_written_for_people_and_read_back(tmp_path: Path) -> None:
    """Two spaces, a final line end, no time of day; folders are made."""
    path = tmp_path / "deep" / "er" / "s.json"
    artifact = Artifact("sha256:1", "verified", (A, handwritten("/é")), {"rule": 1})

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
        *("", "[]", '{"version": 2}', '{"version": 1}', "\udcff"),
        '{"version": 1, "input_hash": "h", "status": "blessed", "scenarios": []}',
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


def test_tools_that_stay_untested_are_told_also_from_the_artifact(tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    lines = [said([A]), said([])]
    first = generate_test_scenarios("x", TOOLS[:2], provider=ScriptedProvider(lines), artifact=path)
    again = generate_test_scenarios("x", TOOLS[:2], provider=ScriptedProvider([]), artifact=path)

    assert again.session is None
    assert first.untested_tools == again.untested_tools == (("files", "write"),)


def test_a_changed_input_is_generated_anew(tmp_path: Path) -> None:
    path = tmp_path / "scenarios.json"
    generate_test_scenarios("x", TOOLS, provider=ScriptedProvider([said([A])]), artifact=path)
    again = generate_test_scenarios(
        "y", TOOLS, provider=ScriptedProvider([said([B])]), artifact=path
    )

    assert again.scenarios == (B,)
    assert again.session is not None


def test_a_lone_surrogate_can_be_kept(tmp_path: Path) -> None:
    """Models write them, as an escape; the file stays UTF-8 and reads back the same."""
    path = tmp_path / "s.json"
    artifact = Artifact("h", "generated", (scenario("/\ud800"),))

    write_artifact(path, artifact)

    assert read_artifact(path) == artifact
