"""Locks and what a killed writer leaves: found by every process, seen by no version control."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from branches import Project, project_in
from store_factory import GOOD, make_store
from store_work import on_trial

from pytest_regen.errors import StoreWriteError
from pytest_regen.files import lock_file
from pytest_regen.stores import RegenStore, StoredPage
from pytest_regen.stores.history import store_files

STORE = Path("generated", "GET_v1_projects")

HOLD = """
import sys
from pytest_regen.stores import RegenStore

with RegenStore.update(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a store, under version control and committed."""
    (tmp_path / "pyproject.toml").write_text("", "utf-8")
    make_store(tmp_path / STORE)
    project_in(tmp_path)
    return tmp_path


@contextmanager
def held_by_another(store: str, cwd: Path) -> Iterator[None]:
    """Let a process that was started in ``cwd`` hold the lock of a store."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, store],
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield
        finally:
            process.communicate()


@pytest.mark.parametrize("linked", [False, True], ids=["as it is", "through a link"])
def test_processes_in_different_folders_share_a_lock(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, linked: bool
) -> None:
    """Whatever is the working directory, and however the store is named."""
    named = "../generated/GET_v1_projects"
    if linked:
        (tmp_path / "link").symlink_to(project / STORE)
        named = "../link"
    (project / "sess").mkdir()
    monkeypatch.chdir(project)

    with (
        held_by_another(named, project / "sess"),
        pytest.raises(StoreWriteError, match="another process"),
        store_files(STORE).locked(0.05),
    ):
        pass


def test_each_store_has_a_lock_below_its_nearest_project(project: Path) -> None:
    """A project within one is one of its own; one lock where only the case tells names apart."""
    inner = project / "packages" / "inner"
    make_store(inner / STORE)
    assert lock_file(inner / STORE).parent == project / ".regen" / "locks"
    (inner / "pytest.ini").write_text("[pytest]\n", "utf-8")
    assert lock_file(inner / STORE).parent == inner / ".regen" / "locks"

    files = {lock_file(project / name) for name in ("a/GET_x", "b/GET_x", "a/GET_y")}
    files |= {lock_file(project / "a/GET_x", ".trial.lock")}

    assert len(files) == 4
    assert lock_file(project / "a/GET_x") == lock_file(project / "A/get_x")
    assert len(lock_file(project / ("ü" * 120)).name.encode()) < 255


def test_git_sees_nothing_of_a_write(project: Path) -> None:
    """After updates and a trial: no lock, no journal, no record of the trial, no history."""
    store = RegenStore.open(project / STORE)
    page = StoredPage.of(
        store.prompts_of("Owner")[0],
        GOOD["Owner", 1].replace("Name {", "Label {"),
        model="hand",
        type_hash=None,
    )
    source = store.source.replace("Name {", "Label {")
    with on_trial(store, page, source):
        seen = Project(project).git("status", "--porcelain", "--untracked-files=all")
    after = Project(project).git("status", "--porcelain", "--untracked-files=all")

    changed = {line[3:] for line in seen.splitlines()}
    assert changed == {f"{STORE}/pages.json", f"{STORE}/ProjectDataObject.cs"}
    assert after == ""
