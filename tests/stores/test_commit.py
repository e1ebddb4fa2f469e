"""Several files below one folder change together or not at all, whoever is killed when."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from commit_work import (
    CANDIDATE,
    CHANGED,
    FILES,
    NEW,
    UNTRIED,
    files_of,
    make_root,
    place,
    recover,
    recover_root,
    root_files,
    write,
)
from killing import Killed, kill_at_every_effect
from power import states_after_power_loss

from pytest_regen import commit
from pytest_regen.commit import Contents, View
from pytest_regen.errors import StoreCorruptError, StoreWriteError
from pytest_regen.files import observe_effects

NAMES = (*FILES, *CHANGED)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with a file of the user and a ledger."""
    for name, data in FILES.items():
        (tmp_path / "root" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "root" / name).write_bytes(data)
    return tmp_path / "root"


def seen(root: Path) -> dict[str, bytes | None]:
    """Return what a reader sees."""
    view = files_of(root).view()
    return {name: view.read(name) for name in NAMES}


def on_disk(root: Path) -> dict[str, bytes | None]:
    """Return what the files hold."""
    return {name: (root / name).read_bytes() if (root / name).exists() else None for name in NAMES}


def state(contents: Contents) -> dict[str, bytes | None]:
    """Return the files with some contents in place of the first."""
    return dict.fromkeys(NAMES) | dict(FILES) | dict(contents)


@contextmanager
def stopped_at(effect: str, name: str) -> Iterator[None]:
    """Leave a writer at one of its effects, where a kill would end it."""

    def observe(what: str, path: Path) -> None:
        if (what, path.name) == (effect, name):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), observe_effects(observe):
        yield


def test_content_that_is_there_is_not_written(root: Path) -> None:
    """A file of the user is not touched where nothing changes."""
    touched = []
    with files_of(root).locked() as view, observe_effects(lambda *effect: touched.append(effect)):
        files_of(root).commit({name: view.read(name) for name in FILES} | {"not/there": None})

    assert touched == []


def check_survival(killed: Killed, *outcomes: Contents) -> None:
    """Assert that the files read as one of these states, and stay so when a writer comes."""
    before = seen(killed.folder)
    assert before in [state(contents) for contents in outcomes], killed.effect

    recover(killed.folder)

    assert seen(killed.folder) == on_disk(killed.folder) == before
    left = [path.name for path in (killed.folder / ".regen").rglob("*") if path.is_file()]
    assert not [name for name in left if name.endswith(".trial") or name == "commit.json"]


@pytest.mark.parametrize(
    ("work", "outcomes"),
    [
        ("write", [{}, CHANGED]),
        ("try_and_accept", [{}, {"locales/de.json": CANDIDATE, **UNTRIED}]),
        ("try_and_reject", [{}]),
    ],
)
def test_a_kill_at_any_effect_leaves_before_or_after(
    work: str, outcomes: list[Contents], root: Path, tmp_path: Path
) -> None:
    """Readers see one of the two, and recovery changes nothing of it."""
    kills = kill_at_every_effect(f"commit_work:{work}", root, tmp_path / "copies", step=5)

    assert len(kills) > 10
    for killed in kills:
        check_survival(killed, *outcomes)


def made_or_not(folder: Path) -> bool:
    """Return whether the root that ``make_root`` makes is there; it is whole then."""
    view = root_files(folder).view()
    found = {name: view.read(name) for name in NEW}
    assert found in (dict.fromkeys(NEW), NEW)
    return found == NEW


def check_root(folder: Path, effect: str) -> None:
    """Assert that a root is whole or not there, and that a writer leaves nothing but that."""
    is_made = made_or_not(folder)
    recover_root(folder)
    assert made_or_not(folder) == is_made, effect
    left = {path.name for path in (folder / "root").rglob("*") if path.is_file()}
    assert left == ({"pages.json", "old.json", "empty"} if is_made else set()), effect


def test_a_new_root_is_there_with_all_its_files_or_not_at_all(tmp_path: Path) -> None:
    """Wherever its writer is killed; what that one left goes with the next writer."""
    (tmp_path / "folder").mkdir()

    kills = kill_at_every_effect(
        "commit_work:make_root", tmp_path / "folder", tmp_path / "copies", step=3
    )

    assert {made_or_not(killed.folder) for killed in kills} == {False, True}
    for killed in kills:
        check_root(killed.folder, killed.effect)


def test_a_disk_without_power_has_before_or_after(root: Path, tmp_path: Path) -> None:
    """Of what was not waited for it may have any part: a change, and a new root, survive."""
    (tmp_path / "empty" / "folder").mkdir(parents=True)
    count = 0
    for effect, left in states_after_power_loss(write, root, tmp_path / "written", 2):
        check_survival(Killed(left, effect), {}, CHANGED)
        count += 1
    work = states_after_power_loss(make_root, tmp_path / "empty/folder", tmp_path / "made", 2)
    for effect, left in work:
        check_root(left, effect)
        count += 1
    assert count > 90


def test_a_commit_waits_for_the_disk_once_for_each_file_and_a_few_times_more(root: Path) -> None:
    """The journal, its place, each file, each folder in which a name changes."""
    synced: list[str] = []

    def observe(effect: str, path: Path) -> None:
        if effect == "before fsync":
            synced.append(path.name)

    with observe_effects(observe):
        write(root)

    assert synced == [
        *["manifest", "journal", ".regen", "root"],
        *["0", "1", "2"],
        *[".regen", "systems", "units", "de", "locales"],
    ]


@pytest.mark.parametrize("name", ["locales/de.json", ".regen/units/de/berth.json"])
def test_an_edit_after_a_kill_stays(name: str, root: Path) -> None:
    """What somebody wrote since wins; the other files of the change are completed."""
    with stopped_at("after rename", "commit.json"):
        write(root)
    (root / name).write_bytes(b"by hand\n")
    edited = state({**CHANGED, name: b"by hand\n"})

    assert seen(root) == edited
    recover(root)
    assert on_disk(root) == edited


@pytest.mark.parametrize("name", ["a/../../out", "/etc/out", "", "x/.GIT/config", "\0"])
def test_a_name_that_is_not_below_the_root_is_refused(name: str, root: Path) -> None:
    """Neither by a commit nor by a manifest, which version control may have brought."""
    files = files_of(root)
    with files.locked(), pytest.raises(StoreWriteError):
        files.commit({name: b"x"})
    change = {"name": name, "before": None, "text": "x"}
    (root / ".regen/journal").mkdir()
    (root / ".regen/journal/commit.json").write_text(
        json.dumps({"version": 2, "changes": [change]}), "utf-8"
    )

    with pytest.raises(StoreCorruptError, match="not a change that pytest-regen wrote"):
        files.view()


def test_a_link_that_leads_out_of_the_root_is_refused(root: Path, tmp_path: Path) -> None:
    """A folder or a file behind a link is somebody else's."""
    (tmp_path / "out").mkdir()
    (root / "linked").symlink_to(tmp_path / "out")
    (root / "link.json").symlink_to(root / "locales/de.json")
    files = files_of(root)

    with files.locked():
        with pytest.raises(StoreWriteError, match="a link leads out"):
            files.commit({"linked/x": b"x"})
        with pytest.raises(StoreWriteError, match="symbolic link"):
            files.commit({"link.json": b"x"})

    assert not list((tmp_path / "out").iterdir())


def test_nothing_is_written_or_removed_behind_a_link_in_a_journal(
    root: Path, tmp_path: Path
) -> None:
    """Version control may have brought the journal."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_bytes(b"mine\n")
    with stopped_at("after rename", "commit.json"):
        write(root)
    for number in range(3):
        (root / ".regen/journal" / str(number)).symlink_to(tmp_path / "out" / "mine")

    recover(root)

    assert on_disk(root) == state(CHANGED)
    (root / ".regen/journal").symlink_to(tmp_path / "out")
    with pytest.raises(StoreWriteError, match="symbolic link"):
        recover(root)
    assert (tmp_path / "out" / "mine").read_bytes() == b"mine\n"


@pytest.mark.parametrize("text", ["", '{"changes": 3}', '{"changes": [{}]}', "[" * 9999])
def test_a_damaged_manifest_is_named(text: str, root: Path) -> None:
    """Nothing is guessed from it; the message names the folder to look into."""
    (root / ".regen/journal").mkdir()
    (root / ".regen/journal/commit.json").write_text(text, "utf-8")

    with pytest.raises(StoreCorruptError, match=r"commit\.json"):
        files_of(root).view()


def test_readers_see_one_moment(root: Path) -> None:
    """Two files that always change together never differ, while a writer does not rest."""
    files = files_of(root)

    def pair(view: View) -> tuple[bytes | None, bytes | None]:
        return view.read("locales/de.json"), view.read(".regen/entry")

    with files.locked():
        files.commit(dict.fromkeys(("locales/de.json", ".regen/entry"), b"0"))
    pairs: set[tuple[bytes | None, bytes | None]] = set()
    with child("write_for_ever", root) as process:
        while len(pairs) < 20:
            pairs.add(files.read(pair))
        process.send_signal(signal.SIGKILL)

    assert all(one == other for one, other in pairs)


@contextmanager
def child(work: str, root: Path) -> Iterator[subprocess.Popen[str]]:
    """Do some work in another process, which ends with the block."""
    code = f"import sys, pathlib, commit_work; commit_work.{work}(pathlib.Path(sys.argv[1]))"
    with subprocess.Popen(
        [sys.executable, "-c", code, root],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        yield process
        process.communicate()


def test_a_trial_of_another_process_is_seen_until_it_ends(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its candidate stays for readers and writers; another trial waits."""
    monkeypatch.setattr(commit, "_TRIAL_TIMEOUT", 0.05)
    with child("hold_trial", root) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "on trial\n"
        recover(root)
        assert seen(root)["locales/de.json"] == CANDIDATE
        with (
            pytest.raises(StoreWriteError, match="another process"),
            files_of(root).trial(place),
        ):
            pass

    assert on_disk(root) == state({})


def test_a_trial_of_a_process_that_died_is_not_seen(root: Path) -> None:
    """Readers look past its candidate, and the next writer takes it out."""
    with child("hold_trial", root) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    assert on_disk(root)["locales/de.json"] == CANDIDATE

    assert seen(root) == state({})
    recover(root)
    assert on_disk(root) == state({})
