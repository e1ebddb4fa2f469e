"""Branches that git cannot merge: one command takes ours, and no answer of theirs is lost."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from branches import GIT, Project, project_in
from command_line import command
from reference_writer import ReferenceWriter
from served_stores import EXAMPLE, SMALL_OPERATION, Served, issues_of, served

from pytest_regen.documents import ir_hash
from pytest_regen.errors import StoreCorruptError
from pytest_regen.regeneration import (
    GenerateResult,
    generate_store,
    partial_regenerate,
)
from pytest_regen.regeneration.store_place import StorePlace
from pytest_regen.stores import RegenStore, history
from pytest_regen.validation import validate_store

pytestmark = pytest.mark.skipif(GIT is None, reason="git is not installed")

STORE = "generated/GET_v1_tides"


@dataclass(frozen=True)
class World:
    """A project under git, with a document and its store, and an emulator."""

    project: Project
    server: Served

    @property
    def store(self) -> RegenStore:
        """The store as it is now."""
        return RegenStore.open(self.path)

    @property
    def path(self) -> Path:
        """The store's folder."""
        return self.project.folder / STORE

    def generate(self, style: str) -> GenerateResult:
        """Generate from the document as it is."""
        self.server.answers(ReferenceWriter(style))
        return generate_store(
            self.project.folder / "api.json",
            SMALL_OPERATION,
            self.project.folder / "generated",
            provider=self.server.provider,
            fields_per_page=4,
        )

    def regenerate(self, name: str, style: str, pages: list[int] | None = None) -> None:
        """Regenerate pages of a type in another style."""
        self.server.answers(ReferenceWriter(style))
        numbers = None if pages is None else {name: pages}
        partial_regenerate(self.path, [name], numbers, provider=self.server.provider)

    def summarize(self) -> None:
        """Write what is found in the store into ``ir.json``."""
        place = StorePlace(self.path)
        place.record_issues(place.open())

    def add_field(self, type_name: str, field: str) -> None:
        """Add a field to a schema of the document."""
        file = self.project.folder / "api.json"
        content = json.loads(file.read_text("utf-8"))
        schema = content["components"]["schemas"][type_name]
        schema["properties"][field] = {"type": "string"}
        file.write_text(json.dumps(content, indent=1), "utf-8")

    def outputs(self) -> set[str]:
        """Return every answer that the store holds, its history included."""
        return {page.output for page in self.store.pages.values()} | {
            entry.output for entry in history(self.path)
        }


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A project with a store of four types in 21 pages."""
    folder = tmp_path_factory.mktemp("project")
    document = json.dumps(yaml.safe_load(EXAMPLE.read_text("utf-8")), indent=1)
    (folder / "api.json").write_text(document, "utf-8")
    with served() as server:
        world = World(Project(folder), server)
        world.generate("as_asked")
        project_in(folder)
        yield world


@pytest.fixture
def world(written: World, tmp_path: Path) -> World:
    """A copy of the project."""
    return World(written.project.copy(tmp_path / "copy"), written.server)


def answers_of(world: World, work: Callable[[], object], into: set[str]) -> Callable[[], object]:
    """Return the work, which notes the outputs that are stored after it."""

    def noted() -> None:
        work()
        into.update(page.output for page in world.store.pages.values())

    return noted


def test_rebuild_takes_ours_of_two_answers_to_a_page(world: World) -> None:
    """Our answer is stored, theirs kept; text of the user and other types stay."""
    answers: set[str] = set()

    def ours() -> None:
        world.regenerate("TideWindow", "record")
        world.regenerate("PortCode", "documented")
        source = world.store.source_path
        source.write_text("// by hand\n" + source.read_text("utf-8"), "utf-8")

    merge = world.project.merge(
        answers_of(world, ours, answers),
        answers_of(world, lambda: world.regenerate("TideWindow", "positional"), answers),
    )
    assert set(merge.conflicts) == {f"{STORE}/pages.json", f"{STORE}/{source_name(world)}"}
    with pytest.raises(StoreCorruptError) as caught:
        _ = world.store
    assert caught.value.hint.startswith(f"pytest-regen rebuild {world.path}")
    assert "both branches changed TideWindow, page 1 of" in caught.value.why

    ran = command("rebuild", world.path, "--json")

    assert ran.code == 0, ran.err
    assert ran.json["rebuilt"] == ["TideWindow"]
    assert issues_of(world.store) == []
    assert world.store.source.startswith("// by hand\n")
    assert answers <= world.outputs()
    assert command("rebuild", world.path).code == 0
    assert world.project.git("diff", "--check") == ""


def source_name(world: World) -> str:
    """Return the name of the source, whatever its state."""
    (file,) = world.path.glob("*.cs")
    return file.name


def test_a_conflict_in_the_users_own_text_keeps_both_versions(world: World) -> None:

    def edit(text: str) -> Callable[[], object]:
        return lambda: world.store.source_path.write_text(text + world.store.source, "utf-8")

    written = "// one\n" + world.store.source
    world.project.merge(edit("// one\n"), edit("// two\n"))
    conflict = world.store.source
    assert "<<<<<<< " in conflict

    ran = command("rebuild", world.path, "--json")

    assert world.store.source == written
    (kept,) = ran.json["history"]
    assert (world.path / "history" / kept).read_text("utf-8") == conflict


def test_branches_that_moved_to_different_documents_need_nobody(world: World) -> None:
    """Only a hash of all types is in conflict, which is worked out, said, and stored in the end."""
    answers: set[str] = set()

    def move(schema: str, field: str) -> Callable[[], object]:
        def work() -> None:
            world.add_field(schema, field)
            world.generate("plain_class")

        return answers_of(world, work, answers)

    merge = world.project.merge(move("TideWindow", "one"), move("TideTable", "two"))
    assert merge.conflicts == (f"{STORE}/pages.json",)
    assert world.store.settled == ("pages.json",)
    assert world.store.envelope.ir_hash == ir_hash(world.store.ir)
    assert "they were worked out" in command("validate", world.path).out

    assert command("rebuild", world.path).code == 0

    assert RegenStore.open(world.path).settled == ()
    assert issues_of(world.store) == []
    assert answers <= world.outputs()
    fields = {field.json_name for type_ in world.store.ir.types for field in type_.fields}
    assert {"one", "two"} <= fields


def test_branches_that_regenerate_different_types_merge(world: World) -> None:
    """No conflict, every answer is there, and the summary in ir.json holds for the merge."""
    first, *_, last = world.store.type_names
    answers: set[str] = set()

    def regenerated(name: str, style: str) -> Callable[[], object]:
        def work() -> None:
            world.server.answers(ReferenceWriter(style, mistake="drop_field", target=(name, 1)))
            provider = world.server.provider
            partial_regenerate(world.path, [name], provider=provider, accept_any=True)
            answers.update(page.output for page in world.store.pages_of(name))
            world.summarize()

        return work

    merge = world.project.merge(regenerated(first, "record"), regenerated(last, "documented"))

    assert merge.conflicts == ()
    assert answers <= {page.output for page in world.store.pages.values()}
    found = validate_store(world.store)
    codes = {issue.code for result in found.values() for issue in result.issues}
    assert not codes & {"DRIFT", "STALE", "CONFLICT", "EDITED_PROMPT"}
    merged = (world.path / "ir.json").read_bytes()
    world.summarize()
    assert (world.path / "ir.json").read_bytes() == merged


def test_findings_in_conflict_follow_from_the_types(world: World) -> None:
    """Only the summary in ir.json differs; the next validate writes it anew."""

    def found(message: str) -> Callable[[], object]:
        def work() -> None:
            with RegenStore.update(world.path) as tx:
                findings = {name: [{"message": message}] for name in tx.store.type_names}
                tx.write(ir=tx.store.ir.model_copy(update={"validation": findings}))

        return work

    merge = world.project.merge(found("one"), found("two"))
    assert merge.conflicts == (f"{STORE}/ir.json",)
    assert world.store.settled == ("ir.json",)

    world.summarize()
    assert not RegenStore.open(world.path).settled
    assert issues_of(world.store) == []


def test_versions_that_cannot_be_told_apart_are_left_alone(world: World) -> None:
    """A marker without its counterpart: nothing is guessed, the message says how to take a side."""
    file = world.path / "pages.json"
    file.write_text("<<<<<<< HEAD\n" + file.read_text("utf-8"), "utf-8")
    before = file.read_bytes()

    ran = command("rebuild", world.path)

    assert ran.code == 2
    assert "cannot be told apart" in ran.err
    assert "git checkout --ours" in ran.err
    assert file.read_bytes() == before


def test_a_marker_left_in_the_source_is_written_over(world: World) -> None:
    file = world.store.source_path
    written = world.store.source
    file.write_text(written.replace("public", "<<<<<<< HEAD\npublic", 1), "utf-8")

    assert command("rebuild", world.path).code == 0

    assert world.store.source == written
    assert any("<<<<<<< HEAD" in entry.output for entry in history(world.path))
