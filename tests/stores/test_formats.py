"""pages.json, prompts.json and ir.json: what is read is what was written; the rest is told."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_store import IR_OF_STORE, PROMPTS, filled_store, page
from tables import each

from pytest_regen.canonical import text_hash
from pytest_regen.documents.ir import IR, ir_hash
from pytest_regen.errors import StoreCorruptError, StoreMissingError
from pytest_regen.prompts.values import PageKey
from pytest_regen.stores import RegenStore, StoredPage
from pytest_regen.stores.formats import PagesEnvelope, ir_as_json, read_pages, read_prompts
from pytest_regen.strict_json import as_json, parse_json, versions

Edit = Callable[[Any], object]

FILE = Path("pages.json")
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
COUNTS = st.none() | st.integers(0, 2**60)


@st.composite
def stored_pages(draw: st.DrawFn) -> StoredPage:
    """Any page that can be stored."""
    total = draw(st.integers(1, 50))
    output = draw(TEXT)
    return StoredPage(
        0,
        draw(TEXT),
        draw(st.booleans()),
        draw(st.integers(1, total)),
        total,
        draw(TEXT),
        draw(TEXT),
        draw(COUNTS),
        draw(COUNTS),
        draw(COUNTS),
        draw(COUNTS),
        draw(st.none() | TEXT),
        draw(st.integers(1, 99)),
        draw(st.none() | TEXT),
        draw(st.none() | TEXT),
        text_hash(output),
        output,
    )


def envelope(pages: list[StoredPage]) -> PagesEnvelope:
    """Return an envelope around pages."""
    return PagesEnvelope(
        1,
        {"method": "GET", "path": "/ä"},
        "csharp",
        None,
        "default",
        "SCHMITH",
        "sha256:0",
        "2026-01-02T03:04:05Z",
        "model-a",
        "Ä.cs",
    ).with_pages(pages, pages)


def test_findings_have_a_line_for_each_type() -> None:
    """A blank line stands between any two, so that git merges findings in different types."""
    found = {"Owner": [{"code": "X", "message": "ä"}], "State": [], "Added": [{"code": "Y"}]}

    data = ir_as_json(IR_OF_STORE.model_copy(update={"validation": found}))

    assert data.decode().split('"validation": ')[1].splitlines() == [
        "{",
        "",
        '    "Added": [{"code": "Y"}],',
        "",
        '    "ProjectDataObject": [],',
        "",
        '    "Owner": [{"code": "X", "message": "ä"}],',
        "",
        '    "State": []',
        "  }",
        "}",
    ]
    assert IR.of(parse_json(data, FILE)).validation == {"ProjectDataObject": [], **found}


def test_files_of_an_older_release_are_read() -> None:
    """Its hash of the source and its summary with totals are dropped with the next write."""
    pages = json.loads(as_json(envelope([]).to_json())) | {"source_sha256": "sha256:0"}
    summary = {"is_clean": False, "errors": [{"code": "X"}], "warnings": []}

    assert read_pages(as_json(pages), FILE) == envelope([])
    ir = IR.of(IR_OF_STORE.to_json() | {"validation": summary})
    assert ir_as_json(ir) == ir_as_json(IR_OF_STORE)


@given(st.lists(stored_pages(), max_size=4, unique_by=lambda page: page.key))
def test_pages_are_read_as_written(pages: list[StoredPage]) -> None:
    """Writing and reading pages.json is the identity, and bytes are the same each time."""
    written = envelope(pages)

    data = as_json(written.to_json())

    assert read_pages(data, FILE) == written
    assert as_json(read_pages(data, FILE).to_json()) == data


@given(st.text())
def test_any_reply_can_be_stored(output: str) -> None:
    """Half surrogate pairs, control characters, line ends: the page is written and read back."""
    stored = page("Owner", 1, output)

    again = read_pages(as_json(envelope([stored]).to_json()), FILE).pages[0]

    assert again == replace(stored, index=0)
    assert not again.is_tampered
    assert again.output == output or any(0xD800 <= ord(char) < 0xE000 for char in output)


def test_prompts_are_read_as_written() -> None:
    """Writing and reading prompts.json is the identity."""
    data = as_json([entry.to_json() for entry in PROMPTS])

    assert read_prompts(data, Path("prompts.json")) == PROMPTS


def test_pages_json_has_the_required_form(tmp_path: Path) -> None:
    """Indented, not escaped, a final line end, the requirement's keys first and in order."""
    store = filled_store(tmp_path / "GET_v1_projects")

    data = (store.path / "pages.json").read_bytes()

    value = json.loads(data)
    assert data.endswith(b"}\n")
    assert b"\n  " in data
    assert value["version"] == 1
    assert value["endpoint"] == {"method": "GET", "path": "/v1/projects"}
    assert value["ir_hash"] == ir_hash(IR_OF_STORE)
    assert value["model"] == "model-a"
    assert [entry["index"] for entry in value["pages"]] == [0, 1, 2, 3, 4]
    assert list(value["pages"][0])[:8] == [
        "index",
        "type_name",
        "is_root",
        "page",
        "total_pages",
        "model",
        "generated_at",
        "input_tokens",
    ]


def test_pages_are_joined_by_identity_not_by_place(tmp_path: Path) -> None:
    """Shuffled pages with wrong indices are the same store."""
    store = filled_store(tmp_path / "GET_v1_projects")
    before = {key: one.output for key, one in store.pages.items()}
    edit(store.path, "pages.json", lambda value: value["pages"].reverse())

    after = RegenStore.open(store.path)

    assert {key: one.output for key, one in after.pages.items()} == before
    assert list(after.pages) == [entry.key for entry in PROMPTS]


def test_a_page_not_written_yet_is_missing(tmp_path: Path) -> None:
    """An interrupted generation loads and names the pages that are not there."""
    store = filled_store(tmp_path / "GET_v1_projects")
    edit(store.path, "pages.json", lambda value: value["pages"].pop(1))

    after = RegenStore.open(store.path)

    assert after.missing_pages == (PageKey("ProjectDataObject", 2, 3),)
    assert [one.page for one in after.pages_of("ProjectDataObject")] == [1, 3]


def test_the_keys_of_the_requirement_suffice(tmp_path: Path) -> None:
    """Pages without our additions, and prompts without theirs, are read."""
    store = filled_store(tmp_path / "GET_v1_projects")
    kept = ["index", "type_name", "is_root", "page", "total_pages", "model", "generated_at"]
    kept += ["input_tokens", "output_tokens", "output"]

    def lessen(value: dict[str, Any]) -> None:
        value["pages"] = [{key: one[key] for key in kept} for one in value["pages"]]

    edit(store.path, "pages.json", lessen)

    after = RegenStore.open(store.path)
    assert not after.tampered_pages
    assert not after.is_stale("Owner")
    assert after.pages[PageKey("Owner", 1, 1)].attempt == 1


def edit(folder: Path, name: str, change: Edit) -> None:
    """Change the value of an artifact in place."""
    value = json.loads((folder / name).read_bytes())
    change(value)
    (folder / name).write_text(json.dumps(value), "utf-8")


@each(
    ("name", "change", "told"),
    [
        ("pages.json", lambda v: v["pages"].append(v["pages"][1]), r"\$\.pages\[5\].*page 2 of 3"),
        ("pages.json", lambda v: v["pages"][0].update(type_name="Nope"), "Nope, page 1 of 3"),
        ("pages.json", lambda v: v["pages"][0].update(page=9), r"\$\.pages\[0\]\.page.*9 of 3"),
        ("pages.json", lambda v: v["pages"][0].update(page="1"), r"\$\.pages\[0\]\.page.*'1'"),
        ("pages.json", lambda v: v["pages"][0].update(output=None), r"\.output.*None"),
        ("pages.json", lambda v: v.update(version=2), "newer pytest-regen"),
        ("pages.json", lambda v: v.update(source_file="../x.cs"), r"\.\./x\.cs"),
        ("pages.json", lambda v: v.update(source_file="a\\b.cs"), "plain file name"),
        ("pages.json", lambda v: v.update(source_file="history"), "plain file name"),
        ("pages.json", lambda v: v.pop("endpoint"), r"\$\.endpoint"),
        ("prompts.json", lambda v: v.pop(1), "page 1 of 3 does not fit: there are 2 pages"),
        (
            "prompts.json",
            lambda v: v[0].update(total_pages=10**12),
            "1 of 1000000000000 does not fit",
        ),
        ("prompts.json", lambda v: v[0].update(fields=[1.5]), r"\$\[0\]\.fields.*1\.5"),
        ("prompts.json", lambda v: v[0].pop("user"), r"\$\[0\]\.user.*nothing"),
        ("ir.json", lambda v: v["types"][0].update(kind="thing"), r"\$\.types\[0\]\.kind.*thing"),
        ("ir.json", lambda v: v.pop("types"), r"\$\.types"),
    ],
)
def test_what_does_not_hold_together_is_named(
    name: str, change: Edit, told: str, tmp_path: Path
) -> None:
    """The message names the file, the JSON path, the value, and what to do next."""
    store = filled_store(tmp_path / "GET_v1_projects")
    edit(store.path, name, change)

    with pytest.raises(StoreCorruptError, match=told) as caught:
        _ = RegenStore.open(store.path).ir

    assert name in caught.value.what
    assert "git checkout" in caught.value.hint


@each("name", ["pages.json", "prompts.json", "ir.json"])
@each(
    "data",
    [
        b"{",
        b"[" * 200_000,
        b"null",
        b"\xff\xfe",
        b'{"version": NaN}',
        b'{"version": 1, "version": 1}',
        b'{"version": 1, "model": "\\ud800"}',
        b'{"version": ' + b"9" * 5000 + b"}",
    ],
    ids=range(8),
)
def test_hostile_json_is_told(name: str, data: bytes, tmp_path: Path) -> None:
    """Cut, nested, foreign, doubled, unwritable: one error that names the file."""
    store = filled_store(tmp_path / "GET_v1_projects")
    (store.path / name).write_bytes(data)

    with pytest.raises(StoreCorruptError, match=name):
        _ = RegenStore.open(store.path).ir


@pytest.mark.parametrize("name", ["pages.json", "prompts.json", "ir.json"])
def test_a_missing_artifact_is_named(name: str, tmp_path: Path) -> None:
    """A folder that lost one of its files is corrupt, not empty."""
    store = filled_store(tmp_path / "GET_v1_projects")
    (store.path / name).unlink()

    with pytest.raises(StoreCorruptError, match=f"{name}: the file is missing"):
        RegenStore.open(store.path)


def test_an_artifact_that_is_a_folder_is_told(tmp_path: Path) -> None:
    """A folder where a file should be is told with the system's reason."""
    store = filled_store(tmp_path / "GET_v1_projects")
    (store.path / "pages.json").unlink()
    (store.path / "pages.json").mkdir()

    with pytest.raises(StoreCorruptError, match=r"pages\.json"):
        RegenStore.open(store.path)


@pytest.mark.parametrize("kind", ["nothing", "a file", "an empty folder"])
def test_no_store_is_told(kind: str, tmp_path: Path) -> None:
    """Nothing, a file, or a folder without artifacts: the message says which, and what to do."""
    path = tmp_path / "GET_v1_projects"
    if kind == "a file":
        path.write_text("x")
    elif kind == "an empty folder":
        path.mkdir()

    for opening in (RegenStore.open, lambda path: RegenStore.update(path).__enter__()):
        with pytest.raises(StoreMissingError, match="no store at") as caught:
            opening(path)

        assert "pytest-regen generate" in caught.value.hint
    assert sorted(tmp_path.iterdir()) == ([] if kind == "nothing" else [path])


def test_a_conflict_of_git_is_told_as_one(tmp_path: Path) -> None:
    """Not as JSON gone wrong: the line is named, and the way out."""
    name = "pages.json"
    store = filled_store(tmp_path / "GET_v1_projects")
    file = store.path / name
    lines = file.read_text("utf-8").split("\n")
    lines[3:4] = ["<<<<<<< HEAD", lines[3], "=======", lines[3] + "0,", ">>>>>>> main"]
    file.write_text("\n".join(lines), "utf-8")

    with pytest.raises(StoreCorruptError, match=f"{name}, at line 4: a conflict marker") as caught:
        _ = RegenStore.open(store.path).ir

    assert caught.value.hint.startswith("pytest-regen rebuild ")
    assert "the next command takes ours, and puts theirs into history/" in caught.value.why


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\n<<<<<<< x\nb\n=======\nc\n>>>>>>> y\nd\n", ("a\nb\nd\n", "a\nc\nd\n")),
        ("<<<<<<< x\r\nb\r\n=======\r\n>>>>>>> y\r\n", ("b\r\n", "")),
        ("<<<<<<< x\nb\n||||||| base\n<<<<<<<<< z\n=======\nc\n>>>>>>>", ("b", "c")),
        ("no marker\n=======\n", ("no marker\n=======\n",) * 2),
        ("<<<<<<< x\n", None),
    ],
)
def test_both_versions_of_a_conflict_are_read(text: str, expected: tuple[str, str] | None) -> None:
    """What git merged is in both; the common ancestor is in neither."""
    found = versions(text.encode())

    assert found == (expected and tuple(version.encode() for version in expected))


@pytest.mark.parametrize("value", [float("nan"), {"a": [float("inf")]}, "\ud800"])
def test_what_json_has_no_bytes_for_is_refused(value: object) -> None:
    """No reader would take it back."""
    with pytest.raises(ValueError, match=r"Out of range|surrogates not allowed"):
        as_json(value)
