"""Two branches that regenerate different types merge by plain git, and nothing is to be mended."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from branches import GIT, Project, project_in
from reference_writer import MISTAKES, STYLES, ReferenceWriter
from served_stores import SMALL_OPERATION, Served, example_store, served

from pytest_regen.regeneration import partial_regenerate, write_summary
from pytest_regen.stores import RegenStore, StoredPage
from pytest_regen.validation import validate_store

pytestmark = pytest.mark.skipif(GIT is None, reason="git is not installed")

STORE = "generated/GET_v1_tides"

Work = Callable[[], object]


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    """An emulator and a client of it."""
    with served() as one:
        yield one


@pytest.fixture(scope="module")
def project(server: Served, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with a store of four types in 21 pages, under git."""
    folder = tmp_path_factory.mktemp("project")
    example_store(
        server, folder / "generated", operation=SMALL_OPERATION, fields_per_page=4, style=0
    )
    return project_in(folder)


class Branch:
    """What one branch does: types are regenerated, each in another style or with a mistake."""

    def __init__(
        self, folder: Path, server: Served, chance: random.Random, types: list[str]
    ) -> None:
        self._folder = folder
        self._server = server
        self._chance = chance
        self._types = types
        self.is_validated = chance.random() < 0.5
        self.pages: list[StoredPage] = []

    def __call__(self) -> None:
        """Regenerate, and validate perhaps."""
        path = self._folder / STORE
        for name in self._types:
            style = self._chance.choice(STYLES).name
            mistake = self._chance.choice(sorted(MISTAKES)) if self._chance.random() < 0.5 else None
            self._server.answers(ReferenceWriter(style, mistake=mistake, target=(name, 1)))
            numbers = [page.page for page in RegenStore.open(path).pages_of(name)]
            asked = self._chance.sample(numbers, self._chance.randint(1, min(3, len(numbers))))
            partial_regenerate(
                path, [name], {name: asked}, provider=self._server.provider, accept_any=True
            )
        store = RegenStore.open(path)
        self.pages = [page for name in self._types for page in store.pages_of(name)]
        if self.is_validated:
            write_summary(store, validate_store(store))


def check_merge(project: Project, ours: Branch, theirs: Branch) -> None:
    """Assert that a merge has no conflict, all answers, and nothing wrong that was not before."""
    merge = project.merge(ours, theirs)

    assert merge.conflicts == ()
    store = RegenStore.open(project.folder / STORE)
    assert {page.key for page in store.envelope.pages} == {entry.key for entry in store.prompts}
    for page in (*ours.pages, *theirs.pages):
        assert store.pages[page.key] == page
    found = validate_store(store)
    codes = {issue.code for result in found.values() for issue in result.issues}
    assert not codes & {"DRIFT", "STALE", "CONFLICT", "EDITED_PROMPT"}
    if ours.is_validated and theirs.is_validated:
        assert not write_summary(store, found), "the merged summary is not what validate writes"


def merge_branches(project: Project, server: Served, seed: int) -> None:
    """Regenerate different types of a copy of a project on two branches, and merge them."""
    chance = random.Random(seed)
    names = list(RegenStore.open(project.folder / STORE).type_names)
    chance.shuffle(names)
    cut = chance.randint(1, len(names) - 1)
    other = names[cut : cut + chance.randint(1, len(names) - cut)]
    branches = [Branch(project.folder, server, chance, types) for types in (names[:cut], other)]
    check_merge(project, *branches)


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.sweep) for seed in range(2, 6))]
)
def test_branches_that_regenerate_different_types_merge(
    seed: int, project: Project, server: Served, tmp_path: Path
) -> None:
    """No conflict, every answer is there, and the summary in ir.json holds for the merge."""
    merge_branches(project.copy(tmp_path / "copy"), server, seed)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(6, 206))
def test_two_hundred_pairs_of_branches_merge(
    seed: int, project: Project, server: Served, tmp_path: Path
) -> None:
    """The same, two hundred times."""
    merge_branches(project.copy(tmp_path / "copy"), server, seed)
