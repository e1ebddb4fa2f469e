"""A run that is killed pays only for what was in flight; several at once lose nothing."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest
from killing import kill_at_every_effect
from many_operations import PAGES, write_many_operations
from reference_writer import ReferenceWriter
from regeneration_work import generate_all
from served_stores import KEY, Served, issues_of, served

from pytest_regen.cli.app import main
from pytest_regen.files import observe_effects
from pytest_regen.stores import RegenStore


@contextmanager
def project(folder: Path) -> Iterator[Served]:
    """Make a project with one operation of five pages; yield the API that children ask."""
    folder.mkdir()
    (folder / "pyproject.toml").write_text("", "utf-8")
    write_many_operations(folder / "api.json", 1)
    with served(ReferenceWriter(0)) as server:
        address = {"ANTHROPIC_BASE_URL": server.emulator.base_url, "ANTHROPIC_API_KEY": KEY}
        with patch.dict(os.environ, address):
            yield server


def generated(folder: Path) -> RegenStore:
    """Generate the operation in this process, with what runs before it left."""
    generate_all(folder)
    return RegenStore.open(folder / "generated" / "GET_v1_harbour0")


def check_whole(store: RegenStore) -> None:
    """Assert that all pages of a store are there and right."""
    assert store.missing_pages == ()
    assert issues_of(store) == []
    assert store.source == store.assembly()


@pytest.mark.parametrize("step", [41, pytest.param(1, marks=pytest.mark.sweep)])
def test_a_reply_that_had_arrived_is_not_paid_for_again(tmp_path: Path, step: int) -> None:
    """Whatever a killed run was doing, the next one asks for no page whose reply was there."""
    with project(tmp_path / "project") as server:
        kills = kill_at_every_effect(
            "regeneration_work:generate_all", tmp_path / "project", tmp_path / "copies", step=step
        )
        for killed in kills:
            kept = sum(
                line.count(b'"reply"')
                for file in killed.folder.glob(".regen/replies/*.json")
                for line in file.read_bytes().splitlines()
            )
            is_stored = (killed.folder / "generated" / "GET_v1_harbour0" / "pages.json").exists()
            server.emulator.requests.clear()
            check_whole(generated(killed.folder))
            assert len(server.bodies) == (0 if is_stored else PAGES - kept), killed.effect
            assert not [*killed.folder.glob(".regen/replies/*.json")] or is_stored


def test_a_new_store_of_five_pages_waits_for_the_disk_at_most_ten_times(tmp_path: Path) -> None:
    """The journal of replies included; each of its five files takes one of them."""
    effects: Counter[str] = Counter()
    with project(tmp_path / "project") as server:
        with observe_effects(lambda effect, _: effects.update([effect])):
            store = generated(tmp_path / "project")
        assert len(server.bodies) == PAGES

    check_whole(store)
    assert effects["before fsync"] <= 10


def check_asked_anew(folder: Path, server: Served, command: Callable[[], None]) -> None:
    """Generate, put back the replies as a kill after the last write leaves them, run a command.

    Assert that it asks for every page and has new outputs.
    """
    left: dict[Path, bytes] = {}

    def copy_replies(_effect: str, _path: object) -> None:
        found = {file: file.read_bytes() for file in folder.glob(".regen/replies/*.json")}
        left.update({file: data for file, data in found.items() if b"reply" in data})

    with observe_effects(copy_replies):
        before = generated(folder)
    assert sum(data.count(b'"reply"') for data in left.values()) == PAGES
    for file, data in left.items():
        file.write_bytes(data)
    server.answers(ReferenceWriter(3))

    command()

    after = RegenStore.open(before.path)
    check_whole(after)
    assert len(server.bodies) == PAGES
    assert after.source != before.source
    assert not [*folder.glob(".regen/replies/*.json")]


def test_a_reply_whose_page_is_stored_is_no_answer_to_generate_force(tmp_path: Path) -> None:
    """The run that had it was killed before it could note that: who asks again is asking."""
    folder = tmp_path / "project"
    with project(folder) as server:
        check_asked_anew(folder, server, lambda: generate_all(folder, 1, "--force", "--jobs=8"))


def test_a_reply_whose_page_is_stored_is_no_answer_to_regenerate(tmp_path: Path) -> None:
    folder = tmp_path / "project"

    def regenerate_all() -> None:
        path = folder / "generated" / "GET_v1_harbour0"
        names = [f"--type={name}" for name in RegenStore.open(path).type_names]
        with chdir(folder), pytest.raises(SystemExit) as ended:
            main(["regenerate", str(path), *names])
        assert not ended.value.code

    with project(folder) as server:
        check_asked_anew(folder, server, regenerate_all)
