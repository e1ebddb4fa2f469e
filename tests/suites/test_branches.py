"""Two branches that regenerate different types merge by plain git, and nothing is to be mended."""

from collections.abc import Callable, Iterator

import pytest
from branches import GIT, Project, project_in
from reference_writer import ReferenceWriter
from served_stores import SMALL_OPERATION, Served, example_store, served

from pytest_regen.regeneration import partial_regenerate, write_summary
from pytest_regen.stores import RegenStore, StoredPage
from pytest_regen.validation import validate_store

pytestmark = pytest.mark.skipif(GIT is None, reason="git is not installed")

STORE = "generated/GET_v1_tides"


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


def test_branches_that_regenerate_different_types_merge(project: Project, server: Served) -> None:
    """No conflict, every answer is there, and the summary in ir.json holds for the merge."""
    path = project.folder / STORE
    first, *_, last = RegenStore.open(path).type_names
    pages: list[StoredPage] = []

    def regenerated(name: str, style: str) -> Callable[[], object]:
        def work() -> None:
            server.answers(ReferenceWriter(style, mistake="drop_field", target=(name, 1)))
            partial_regenerate(path, [name], provider=server.provider, accept_any=True)
            store = RegenStore.open(path)
            pages.extend(store.pages_of(name))
            write_summary(store, validate_store(store))

        return work

    merge = project.merge(regenerated(first, "record"), regenerated(last, "documented"))

    assert merge.conflicts == ()
    store = RegenStore.open(path)
    assert {page.key for page in store.envelope.pages} == {entry.key for entry in store.prompts}
    assert len({page.type_name for page in pages}) == 2
    assert all(store.pages[page.key] == page for page in pages)
    found = validate_store(store)
    codes = {issue.code for result in found.values() for issue in result.issues}
    assert not codes & {"DRIFT", "STALE", "CONFLICT", "EDITED_PROMPT"}
    assert not write_summary(store, found), "the merged summary is not what validate writes"
