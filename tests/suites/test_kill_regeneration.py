"""One regeneration, killed at each of its effects and at any moment: nothing lost, then done."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest
from killing import Killed, kill_at_every_effect, kill_at_random_moments
from reference_writer import ReferenceWriter
from served_stores import KEY, Served, copy_of, issues_of, served

from pytest_regen.regeneration import partial_regenerate
from pytest_regen.stores import RegenStore, history

STYLE = "documented"
"""Another way to write the same: a regenerated page can be told from the stored one."""


@pytest.fixture
def server() -> Iterator[Served]:
    """An emulator that the children find in their environment."""
    with served(ReferenceWriter(STYLE)) as server:
        environment = {"ANTHROPIC_BASE_URL": server.emulator.base_url, "ANTHROPIC_API_KEY": KEY}
        with patch.dict(os.environ, environment):
            yield server


def outputs(store: RegenStore) -> set[str]:
    """Return all that a model wrote and the store holds, history included."""
    return {page.output for page in store.pages.values()} | {
        entry.output for entry in history(store.path)
    }


@dataclass(frozen=True)
class Expected:
    """The store before the regeneration, and as it is when nobody kills it."""

    before: RegenStore
    after: RegenStore

    def check(self, killed: Killed, server: Served) -> None:
        """Assert that a killed regeneration left a whole store, and that it can be done again."""
        seen = RegenStore.open(killed.folder)
        assert seen.source in {self.before.source, self.after.source}, killed.effect
        assert seen.source == seen.assembly(), killed.effect
        assert seen.missing_pages == (), killed.effect
        assert outputs(self.before) <= outputs(seen), killed.effect
        assert issues_of(seen) == [], killed.effect

        again(killed.folder, server)

        done = RegenStore.open(killed.folder)
        assert done.source == self.after.source, killed.effect
        assert outputs(self.before) <= outputs(done), killed.effect
        assert issues_of(done) == [], killed.effect
        left = {path.name for path in killed.folder.iterdir()}
        assert left == {path.name for path in self.after.path.iterdir()}, killed.effect


def again(folder: Path, server: Served) -> None:
    """Run the same command again."""
    name = RegenStore.open(folder).type_names[0]
    done = partial_regenerate(folder, [name], {name: [1]}, provider=server.provider)
    assert done.regenerated == [(name, 1)]
    assert done.stop_reasons == {name: "clean"}


@pytest.fixture
def both(good: RegenStore, server: Served, tmp_path: Path) -> Expected:
    """The store before and after a regeneration that is left alone."""
    path = copy_of(good, tmp_path / "alone")
    again(path, server)
    after = RegenStore.open(path)
    assert after.source != good.source
    return Expected(good, after)


@pytest.fixture
def template(good: RegenStore, tmp_path: Path) -> Path:
    """A copy of the store, of which each regeneration that is killed gets another one."""
    return copy_of(good, tmp_path / "template")


@pytest.mark.parametrize("step", [17, pytest.param(1, marks=pytest.mark.sweep)])
def test_a_regeneration_killed_at_an_effect_loses_nothing(
    both: Expected, template: Path, server: Served, tmp_path: Path, step: int
) -> None:
    """Before or after a write, fsync, rename or unlink: every good page is there; redone."""
    work = "regeneration_work:regenerate"

    kills = kill_at_every_effect(work, template, tmp_path / "copies", step=step)

    assert kills[-1].effect == ""
    assert len(kills) * step > 40
    kinds = {" ".join(killed.effect.split()[:2]) for killed in kills[:-1]}
    assert step > 1 or kinds >= {
        f"{when} {what}"
        for when in ("before", "after")
        for what in ("write", "fsync", "rename", "unlink")
    }
    for killed in kills:
        both.check(killed, server)


@pytest.mark.parametrize("count", [4, pytest.param(200, marks=pytest.mark.sweep)])
def test_a_regeneration_killed_at_a_random_moment_loses_nothing(
    both: Expected, template: Path, server: Served, tmp_path: Path, count: int
) -> None:
    """The turn with the model included; each time the same command ends the work."""
    work = "regeneration_work:regenerate_and_rest"

    kills = kill_at_random_moments(work, template, tmp_path / "copies", count, within=400)

    ends = {RegenStore.open(killed.folder).source == both.after.source for killed in kills}
    assert count < 100 or ends == {True, False}, (
        "every kill came before the write, or every kill after it"
    )
    for killed in kills:
        both.check(killed, server)
