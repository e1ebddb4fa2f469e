"""A store follows its document: what is unchanged is kept, what changed is asked, all is there."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from failing_models import Body, Responder
from reference_writer import ReferenceWriter
from served_stores import EXAMPLE, EXAMPLE_OPERATION, Served, issues_of, served
from store_work import tree

from pytest_regen.emulator import EmulatedReply, Fault
from pytest_regen.errors import HandEditError
from pytest_regen.regeneration import GenerateResult, generate_store
from pytest_regen.sources import blocks
from pytest_regen.stores import RegenStore, history

Schemas = dict[str, Any]
Change = Callable[[Schemas], None]


@dataclass(frozen=True)
class Work:
    """A document that changes, and the folder of its store."""

    document: Path
    out: Path
    server: Served

    def generate(self, responder: Responder | None = None, **options: Any) -> GenerateResult:
        """Run the command; the emulator keeps the requests of this run only."""
        self.server.answers(responder or ReferenceWriter(0))
        return generate_store(
            self.document, EXAMPLE_OPERATION, self.out, provider=self.server.provider, **options
        )

    def edit(self, change: Change) -> None:
        """Change the schemas of the document."""
        content = json.loads(self.document.read_text())
        change(content["components"]["schemas"])
        self.document.write_text(json.dumps(content))

    @property
    def asked(self) -> list[tuple[str, int]]:
        """The pages asked in the last run."""
        return [page.key for page in self.server.asked]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a document and the store that was generated from it."""
    folder = tmp_path_factory.mktemp("written")
    content = yaml.safe_load(EXAMPLE.read_text())
    (folder / "api.json").write_text(json.dumps(content))
    with served() as server:
        Work(folder / "api.json", folder / "out", server).generate(fields_per_page=16)
    return folder


@pytest.fixture
def work(written: Path, tmp_path: Path) -> Any:
    """A copy of the document and its store, and an emulator."""
    for path in written.rglob("*"):
        if path.is_file():
            target = tmp_path / path.relative_to(written)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    with served() as server:
        yield Work(tmp_path / "api.json", tmp_path / "out", server)


def store_in(work: Work) -> RegenStore:
    return RegenStore.open(next(work.out.glob("GET_*")))


def texts(store: RegenStore) -> dict[str, str]:
    return {block.name: block.text for block in blocks(store.source)}


def check_kept(before: RegenStore, after: RegenStore, changed: set[str]) -> None:
    """Assert that nothing but the named types differs, and that nothing is wrong."""
    old, new = texts(before), texts(after)
    assert {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)} <= changed
    untouched = [
        # The index counts all pages of the store, so it follows those that come and go.
        [replace(page, index=0) for page in store.envelope.pages if page.type_name not in changed]
        for store in (before, after)
    ]
    assert untouched[0] == untouched[1]
    kept = {page.output for page in after.pages.values()}
    told = {entry.output for entry in history(after.path)}
    assert {page.output for page in before.pages.values()} <= kept | told
    assert issues_of(after) == []


def test_an_unchanged_document_asks_for_nothing(work: Work) -> None:
    before = tree(work.out)
    made = work.generate()

    assert (made.calls, work.asked, made.types["changed"]) == (0, [], ())
    assert len(made.types["kept"]) == len(made.plan.ir.types)
    assert tree(work.out) == before


def add_field(name: str, place: int) -> Change:
    """Return the change that adds a field to a schema, before its field number ``place``."""

    def change(schemas: Schemas) -> None:
        fields = list(schemas[name]["properties"].items())
        fields.insert(place % (len(fields) + 1), ("addedLater", {"type": "string"}))
        schemas[name]["properties"] = dict(fields)

    return change


def remove_field(name: str, place: int) -> Change:
    """Return the change that takes a field of a schema away."""

    def change(schemas: Schemas) -> None:
        fields = schemas[name]["properties"]
        gone = list(fields)[place % len(fields)]
        del fields[gone]
        schemas[name]["required"] = [
            one for one in schemas[name].get("required", []) if one != gone
        ]

    return change


@pytest.mark.parametrize(("kind", "place"), [(add_field, 0), (remove_field, -1)])
def test_a_change_of_one_field_asks_for_one_page_at_most(
    kind: Callable[[str, int], Change], place: int, work: Work
) -> None:
    """Of a type on several pages, at its start and at its end; nothing else changes."""
    before = store_in(work)
    work.edit(kind("PortCall", place))

    made = work.generate()

    after = store_in(work)
    assert made.calls == len(work.asked) <= 1
    assert made.stop_reasons == {}
    check_kept(before, after, {*made.types["changed"], *made.types["removed"]})
    assert len(made.types["changed"]) <= 1
    assert len(made.types["added"]) == 0
    assert after.missing_pages == ()


CHANGED = ("Money", "Engine", "Person", "Address")


def change_four(schemas: Schemas) -> None:
    """Add a field to four schemas."""
    for name in CHANGED:
        add_field(name, 1)(schemas)


def test_an_interrupted_update_goes_on_where_it_stopped(work: Work) -> None:
    """Pages that came before the fault are not asked again; the others are, once."""
    before = store_in(work)
    work.edit(change_four)

    def fails_on_the_third(body: Body) -> str | EmulatedReply | Fault:
        is_over = len(work.server.emulator.requests) >= 3
        return Fault(status=401) if is_over else ReferenceWriter(0)(body)

    first = work.generate(fails_on_the_third)
    stopped, asked = store_in(work), work.asked
    second = work.generate()
    after = store_in(work)

    assert len(asked) == first.calls == 3
    assert set(first.stop_reasons.values()) == {"transport"}
    assert stopped.missing_pages == (), "the old pages stay until new ones are there"
    stale = [name for name in before.type_names if stopped.is_stale(name)]
    assert stale == [name for name in before.type_names if name in CHANGED][2:]
    assert second.calls == 2
    assert {*asked[:2]}.isdisjoint(work.asked)
    assert {name for name, _ in (*asked, *work.asked)} == set(CHANGED)
    check_kept(before, after, set(CHANGED))


def edit_by_hand(store: RegenStore, type_name: str) -> str:
    """Rename a property of a type in the source; return the source."""
    block = texts(store)[type_name]
    edited = block.replace(" { get; init; }", "Edited { get; init; }", 1)
    assert edited != block
    source = store.source.replace(block, edited)
    store.source_path.write_text(source)
    return source


def test_a_hand_edit_of_a_changed_type_stops_the_update(work: Work) -> None:
    """HandEditError names the type and both ways on; nothing is asked and nothing written."""
    edit_by_hand(store_in(work), "Money")
    work.edit(add_field("Money", 1))
    before = tree(work.out)

    with pytest.raises(HandEditError, match="Money") as caught:
        work.generate()

    assert "adopt" in str(caught.value.hint)
    assert "pytest-regen rebuild" in str(caught.value.hint)
    assert work.asked == []
    assert tree(work.out) == before


def test_a_hand_edit_of_another_type_is_kept(work: Work) -> None:
    """Updating one type leaves the edit in another as it is, byte for byte."""
    store = store_in(work)
    edit_by_hand(store, "Address")
    edited = texts(RegenStore.open(store.path))["Address"]
    work.edit(add_field("Money", 1))

    made = work.generate()

    assert made.calls == 1
    after = store_in(work)
    assert texts(after)["Address"] == edited
    assert {issue.type_name for issue in issues_of(after)} == {"Address"}


def test_what_is_gone_leaves_the_source_and_a_discarded_edit_is_kept(work: Work) -> None:
    """A type that lost a page is put together anew, without a call; the tag of the lines stays."""
    store = store_in(work)
    pages = store.path / "pages.json"
    pages.write_text(pages.read_text("utf-8").replace('"REGEN"', '"SCHMITH"'), "utf-8")
    edit_by_hand(store, "Money")

    def change(schemas: Schemas) -> None:
        add_field("Money", 1)(schemas)
        del schemas["Vessel"]["properties"]["photo"]
        del schemas["BerthWindow"]["properties"]["tide"]

    work.edit(change)

    made = work.generate(discard_edits=True)

    after = store_in(work)
    assert sorted(work.asked) == [("BerthWindow", 1), ("Money", 1)]
    assert made.types["removed"] == ("TideWindow",)
    check_kept(store, after, {"BerthWindow", "Money", "TideWindow", "Vessel"})
    assert len(after.pages_of("Vessel")) == 1
    assert after.envelope.boundary_tag == "SCHMITH"
    reasons = {entry.reason: entry.type_name for entry in history(store.path)}
    assert reasons["dropped"] == "Money"
