"""A candidate on trial: in place while a test looks, then kept, or gone without a trace."""

from pathlib import Path

import pytest
from killing import kill_at_every_effect
from small_store import filled_store, page, source_of
from store_work import on_trial, with_new_page

from pytest_regen.errors import UnknownPageError
from pytest_regen.stores import RegenStore, StoredPage, history
from pytest_regen.validation.issues import Issue

CANDIDATE = page("ProjectDataObject", 2, "// candidate", attempt=2)
KEY = CANDIDATE.key


@pytest.fixture
def store(tmp_path: Path) -> RegenStore:
    """A complete store."""
    return filled_store(tmp_path / "GET_v1_projects")


def artifacts(folder: Path) -> dict[str, bytes]:
    """Return the files of a store with their content, history left out."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def write_by_another(folder: Path, new: StoredPage) -> None:
    """Store a page as another writer would while the trial is under way."""
    with RegenStore.update(folder) as tx:
        tx.write(pages=[new], source=with_new_page(tx.store, new))


def test_a_rejected_candidate_is_put_back_byte_for_byte(store: RegenStore) -> None:
    """Every file is as it was; the candidate is in the history with what was found in it."""
    store.source_path.write_bytes(store.source.replace("\n", "\r\n").encode() + b"// edited")
    before = artifacts(store.path)
    issue = Issue.of("MISSING_FIELD", "owner is missing", type_name="ProjectDataObject")
    issues = {"ProjectDataObject": [issue]}
    with on_trial(store, CANDIDATE, "// anything\n", issues) as trial:
        trial.reject()

    assert artifacts(store.path) == before
    (entry,) = history(store.path)
    assert (entry.reason, entry.output, entry.issues) == ("rejected", "// candidate", (issue,))
    assert trial.history == (entry.id,)


def test_an_accepted_candidate_stays(store: RegenStore) -> None:
    """The old output is in the history as replaced."""
    source = with_new_page(store, CANDIDATE)
    with on_trial(store, CANDIDATE) as trial:
        trial.accept()

    after = RegenStore.open(store.path)
    assert after.pages[KEY].output == "// candidate"
    assert after.source == source
    (entry,) = history(store.path)
    assert (entry.reason, entry.output) == ("replaced", store.pages[KEY].output)
    assert not [name for name in artifacts(store.path) if name.startswith(".")]


def test_another_page_of_the_type_that_others_wrote_stays(store: RegenStore) -> None:
    """The candidate is taken out from beside it; pages and source stay a pair."""
    other = page("ProjectDataObject", 3, "// by another", attempt=2)
    with on_trial(store, CANDIDATE):
        write_by_another(store.path, other)

    after = RegenStore.open(store.path)
    assert after.pages[KEY] == store.pages[KEY]
    assert after.pages_of("ProjectDataObject")[2].output == "// by another"
    assert after.source == source_of(after)
    assert "// candidate" in {entry.output for entry in history(store.path)}


def test_a_page_that_others_replaced_is_left_to_them(store: RegenStore) -> None:
    """Their output stays, the candidate and the old output are both in the history."""
    other = page("ProjectDataObject", 2, "// by another", attempt=3)
    with on_trial(store, CANDIDATE):
        write_by_another(store.path, other)

    after = RegenStore.open(store.path)
    assert after.pages[KEY].output == "// by another"
    assert {"// candidate", store.pages[KEY].output} == {
        entry.output for entry in history(store.path)
    }


def test_a_candidate_made_from_an_older_state_replaces_its_own_blocks_only(
    store: RegenStore,
) -> None:
    """What was committed between reading and trying is not undone by either end of the trial."""
    write_by_another(store.path, page("Owner", 1, "// by another", attempt=2))
    with on_trial(store, CANDIDATE) as trial:
        tried = RegenStore.open(store.path)
        assert tried.source == source_of(tried)
        trial.accept()

    after = RegenStore.open(store.path)
    assert after.pages_of("Owner")[0].output == "// by another"
    assert after.pages[KEY].output == "// candidate"
    assert after.source == source_of(after)


def test_a_page_without_a_prompt_is_not_tried(store: RegenStore) -> None:
    """A caller's mistake raises, writes nothing and leaves no trial behind."""
    before = artifacts(store.path)
    stray = page("Owner")
    object.__setattr__(stray, "total_pages", 7)
    with (
        pytest.raises(UnknownPageError, match="Owner, page 1 of 7"),
        on_trial(store, stray, ""),
    ):
        pass

    assert artifacts(store.path) == before
    with on_trial(store, CANDIDATE, ""):
        pass


def test_a_killed_trial_is_read_as_never_begun(tmp_path: Path) -> None:
    """The reader sees the old store and writes nothing; the next writer takes the candidate out."""
    before = filled_store(tmp_path / "template" / "GET_v1_projects")
    (killed,) = kill_at_every_effect(
        "store_work:die_in_trial", before.path, tmp_path / "copy", first=9999
    )
    left = artifacts(killed.folder)
    assert b"a new page 2" in left["pages.json"]

    seen = RegenStore.open(killed.folder)
    assert (seen.envelope, seen.source) == (before.envelope, before.source)
    assert artifacts(killed.folder) == left

    with RegenStore.update(killed.folder):
        pass
    assert artifacts(killed.folder) == artifacts(before.path)
    assert [entry.reason for entry in history(killed.folder)] == ["rejected"]
