"""Candidates that wait for review: nothing is lost or written twice, whoever dies or meets whom."""

from functools import partial
from pathlib import Path

import pytest
from killing import kill_at_every_effect, run_together
from review_work import (
    STORE,
    Fixed,
    Translator,
    accept_everything,
    german,
    heal_for_review,
    make_project,
    unit_file,
)
from unit_asking import ask_for_unit
from unit_work import GERMAN

from pytest_regen.errors import ReviewError, StoreWriteError
from pytest_regen.regeneration import TurnSettings, verbs
from pytest_regen.regeneration.pending import PendingFolder, Waiting
from pytest_regen.regeneration.review import accept_candidate, look_at
from pytest_regen.regeneration.values import Pending
from pytest_regen.stores import RegenStore, history
from pytest_regen.validation import validate_store


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a mistake in a store and in a file of units."""
    return make_project(tmp_path / "project")


def waiting(root: Path) -> Waiting:
    """Return what waits; every file can be read."""
    found = PendingFolder.of_project(root).read()
    assert not found.faults
    return found


def is_clean(root: Path) -> bool:
    """Return whether both places are as they shall be."""
    found = validate_store(RegenStore.open(root / STORE), behaviour=False)
    return german(root) == GERMAN and not any(result.has_errors for result in found.values())


def test_a_killed_healing_leaves_the_places_as_they_were(project: Path, tmp_path: Path) -> None:
    """Also while a test looks at the candidate; the next run makes both again."""
    kills = kill_at_every_effect(
        "review_work:heal_for_review", project, tmp_path / "copies", step=150
    )

    assert len(kills) > 1
    for killed in kills:
        root = killed.folder
        waiting(root)
        assert unit_file(root).open().texts["berth"].text == "Liegeplatz", killed.effect
        store = RegenStore.open(root / STORE)
        assert store.source == RegenStore.open(project / STORE).source, killed.effect
        heal_for_review(root)
        assert len(waiting(root).candidates) == 2, killed.effect
        accept_everything(root)
        assert is_clean(root), killed.effect


def test_a_killed_review_is_done_again(project: Path, tmp_path: Path) -> None:
    """A candidate waits or is stored; what it replaced is in the history once."""
    heal_for_review(project)
    kills = kill_at_every_effect(
        "review_work:accept_everything", project, tmp_path / "copies", step=150
    )

    assert len(kills) > 1
    for killed in kills:
        root = killed.folder
        waiting(root)
        assert unit_file(root).open().texts["berth"].text in {"Liegeplatz", GERMAN["berth"]}
        accept_everything(root)
        assert waiting(root).candidates == (), killed.effect
        assert is_clean(root), killed.effect
        reasons = [past.reason for past in verbs.history(unit_file(root))]
        assert reasons == ["replaced"], killed.effect
        assert [entry.reason for entry in history(root / STORE)] == ["replaced"], killed.effect


def test_reviews_at_once_decide_each_candidate_once(project: Path) -> None:
    """Accepted by one, it is neither accepted nor rejected by another."""
    heal_for_review(project)

    run_together("review_work:accept_or_reject", project, 4)

    assert waiting(project) == Waiting()
    (past,) = verbs.history(unit_file(project))
    assert past.reason == ("replaced" if german(project) == GERMAN else "rejected")
    (entry,) = history(project / STORE)
    stored = RegenStore.open(project / STORE)
    assert entry.reason == ("rejected" if "nmae" in stored.source else "replaced")


def test_healings_at_once_leave_one_candidate_of_each(project: Path) -> None:
    """Whoever is last; what the others made is in the history."""
    run_together("review_work:heal_each_its_own_way", project, 3)

    (berth,) = waiting(project).candidates
    assert waiting(project).older == ()
    made = {berth.outputs[0].new} | {
        past.entry.output for past in verbs.history(unit_file(project))
    }
    assert made == {f"Platz {number} {{number}}" for number in range(3)}


def test_a_linked_folder_is_not_written(project: Path, tmp_path: Path) -> None:
    """A repository could let candidates be written anywhere."""
    (tmp_path / "elsewhere").mkdir()
    (project / ".regen/pending").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(StoreWriteError, match="is a symbolic link"):
        heal_for_review(project)

    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("text", ["the same", "another"])
def test_nothing_is_accepted_while_a_test_looks_at_a_candidate(project: Path, text: str) -> None:
    """What the test sees is taken out afterwards: the candidate waits on, and is accepted then."""
    heal_for_review(project)
    folder = PendingFolder.of_project(project)
    (berth,) = (each for each in folder.read().candidates if each.name == "berth")
    said: list[str] = []

    def check() -> list[str]:
        for do in (look_at, partial(accept_candidate, folder=folder)):
            with pytest.raises(ReviewError, match="is on trial") as refused:
                do(unit_file(project), berth)
            said.append(refused.value.hint)
        return ["it fails"]

    provider = Translator() if text == "the same" else Fixed("Platz")
    ask_for_unit(
        unit_file(project),
        "berth",
        settings=TurnSettings(provider, pending=Pending(project, "a test")),
        feedback=["it fails"],
        check=check,
    )

    assert len(said) == 2
    accept_candidate(unit_file(project), berth, folder)
    assert german(project) == GERMAN
