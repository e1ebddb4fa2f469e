"""Branches that change different units merge without a conflict below ``.regen``."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from unit_asking import generate_units, regenerate_units
from unit_work import GERMAN, PLACE, German, codes, kinds_with, project, write_json

from pytest_regen.regeneration import TurnSettings, verbs
from pytest_regen.turns import CallableProvider
from pytest_regen.units.ledger import entry_name
from pytest_regen.units.place import UnitFile, open_units

NAMES = [f"text{n}" for n in range(12)]
IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "A"), ("EMAIL", "a@example.com"))
}


def stamping(branch: str) -> TurnSettings:
    """Return turns in which every request gets a text that no other branch gets."""
    return TurnSettings(
        CallableProvider(lambda messages: f"{branch} {messages[-1]['content'][-12:]}")
    )


def git(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run git."""
    return subprocess.run(
        ["git", *words],
        cwd=root,
        check=words[0] != "merge",
        capture_output=True,
        text=True,
        env={**os.environ, **IDENTITY, "GIT_CONFIG_GLOBAL": os.devnull},
    )


def commit(root: Path) -> None:
    """Commit everything that is not ignored."""
    git(root, "add", "-A")
    git(root, "commit", "-qm", "x", "--allow-empty")


def opened(root: Path) -> UnitFile:
    """Return the file with units."""
    return open_units(kinds_with(root, German()), PLACE)


def strings(root: Path, name: str) -> dict[str, str]:
    """Return a catalogue."""
    found: dict[str, str] = json.loads((root / f"locales/{name}.json").read_text("utf-8"))
    return found


def english(names: list[str]) -> dict[str, str]:
    """Return English strings without placeholders."""
    return {name: f"The {name}" for name in names}


def change(root: Path, branch: str, names: list[str], added: list[str], dropped: list[str]) -> None:
    """Regenerate, add and delete units, as a developer on a branch does."""
    file = opened(root)
    settings = stamping(branch)
    if names:
        regenerate_units(file, names, settings=settings)
    kept = {k: v for k, v in strings(root, "en").items() if k not in dropped}
    write_json(root / "locales/en.json", {**kept, **english(added)})
    if dropped:
        verbs.forget(file)
    if added:
        generate_units(file, settings=settings)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with twelve recorded units."""
    git(tmp_path, "init", "-q", "-b", "main")
    write_json(tmp_path / "locales/en.json", english(NAMES))
    generate_units(opened(tmp_path), settings=stamping("main"))
    commit(tmp_path)
    return tmp_path


def test_two_branches_merge(repository: Path) -> None:
    """Nothing below ``.regen`` conflicts, every answer is there, and all units are clean.

    The file with units may conflict: it is rebuilt from the ledger without a model.
    """
    git(repository, "checkout", "-qb", "ours", "main")
    change(repository, "ours", NAMES[:3], ["added"], NAMES[3:5])
    commit(repository)
    git(repository, "checkout", "-qb", "theirs", "main")
    change(repository, "theirs", NAMES[6:9], [], [])
    commit(repository)

    git(repository, "merge", "-q", "ours", "-m", "x")

    unmerged = git(repository, "diff", "--name-only", "--diff-filter=U").stdout.split()
    assert set(unmerged) <= {PLACE}
    verbs.rebuild(opened(repository))
    verbs.forget(opened(repository))
    units = opened(repository).open()
    assert codes(units) == {}
    assert units.orphans == ()
    texts = {name: unit.text.partition(" ")[0] for name, unit in units.texts.items()}
    assert {name for name in texts if texts[name] == "ours"} == {*NAMES[:3], "added"}
    assert {name for name in texts if texts[name] == "theirs"} == {*NAMES[6:9]}


def test_rebuild_ends_a_conflict_about_one_unit(tmp_path: Path) -> None:
    """In the file and in the ledger at once; their answer goes to the history."""
    file = project(tmp_path)
    path = tmp_path / entry_name(PLACE, "berth")
    entry, theirs = path.read_text("utf-8"), path.read_text("utf-8").replace("Liegeplatz", "Box")
    path.write_text(f"<<<<<<< HEAD\n{entry}=======\n{theirs}>>>>>>> other\n", "utf-8")
    text = file.path.read_text("utf-8")
    other = text.replace("Liegeplatz", "Box")
    file.path.write_text(f"<<<<<<< HEAD\n{text}=======\n{other}>>>>>>> other\n", "utf-8")

    verbs.rebuild(file)

    assert codes(file.open()) == {}
    assert json.loads(file.path.read_text("utf-8")) == GERMAN
    assert "Box {number}" in {past.entry.output for past in verbs.history(file)}
