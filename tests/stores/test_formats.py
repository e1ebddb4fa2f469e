"""pages.json, prompts.json and ir.json: what is read is what was written; the rest is told."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_store import PROMPTS, filled_store, page
from store_factory import FACTORY_IR
from tables import each

from pytest_regen.documents.ir import IR, ir_hash
from pytest_regen.errors import StoreCorruptError, StoreMissingError
from pytest_regen.prompts.values import PageKey
from pytest_regen.stores import RegenStore
from pytest_regen.stores.formats import ir_as_json, read_pages, read_prompts
from pytest_regen.strict_json import as_json, parse_json, versions

Edit = Callable[[Any], object]

FILE = Path("pages.json")


def test_findings_have_a_line_for_each_type() -> None:
    """A blank line stands between any two, so that git merges findings in different types."""
    found = {"Owner": [{"code": "X", "message": "ä"}], "State": [], "Added": [{"code": "Y"}]}

    data = ir_as_json(FACTORY_IR.model_copy(update={"validation": found}))

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


def test_pages_and_prompts_are_read_as_written(tmp_path: Path) -> None:
    """Whatever characters a reply has, but for half a pair; bytes are the same each time."""
    store = filled_store(tmp_path / "GET_v1_projects")
    with RegenStore.update(store.path) as tx:
        tx.write(pages=[page("Owner", 1, "ä\r\n\0\u2028"), page("State", 1, "half \ud83d")])

    data = (store.path / "pages.json").read_bytes()

    read = read_pages(data, FILE)
    assert [one.output for one in read.pages[3:]] == ["ä\r\n\0\u2028", "half \ufffd"]
    assert as_json(read.to_json()) == data
    prompts = as_json([entry.to_json() for entry in PROMPTS])
    assert read_prompts(prompts, Path("prompts.json")) == PROMPTS


def test_pages_json_has_the_required_form(tmp_path: Path) -> None:
    """Indented, not escaped, a final line end, the requirement's keys first and in order."""
    store = filled_store(tmp_path / "GET_v1_projects")

    data = (store.path / "pages.json").read_bytes()

    value = json.loads(data)
    assert data.endswith(b"}\n")
    assert b"\n  " in data
    assert value["version"] == 1
    assert value["endpoint"] == {"method": "GET", "path": "/v1/projects"}
    assert value["ir_hash"] == ir_hash(FACTORY_IR)
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


def test_pages_are_joined_by_identity_and_missing_ones_named(tmp_path: Path) -> None:
    """Shuffled pages with wrong indices are the same store; an interrupted generation loads."""
    store = filled_store(tmp_path / "GET_v1_projects")
    before = {key: one.output for key, one in store.pages.items()}
    edit(store.path, "pages.json", lambda value: value["pages"].reverse())

    after = RegenStore.open(store.path)

    assert {key: one.output for key, one in after.pages.items()} == before
    assert list(after.pages) == [entry.key for entry in PROMPTS]
    edit(store.path, "pages.json", lambda value: value["pages"].pop(-2))
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
        ("pages.json", lambda v: v["pages"][0].update(page="1"), r"\$\.pages\[0\]\.page.*'1'"),
        ("pages.json", lambda v: v["pages"][0].update(output=None), r"\.output.*None"),
        ("pages.json", lambda v: v.update(version=2), "newer pytest-regen"),
        ("pages.json", lambda v: v.update(source_file="../x.cs"), r"\.\./x\.cs"),
        ("pages.json", lambda v: v.update(source_file="history"), "plain file name"),
        ("pages.json", lambda v: v.pop("endpoint"), r"\$\.endpoint"),
        ("prompts.json", lambda v: v.pop(1), "page 1 of 3 does not fit: there are 2 pages"),
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
        b'{"version": 1, "model": "\\ud800"}',
        b'{"version": ' + b"9" * 5000 + b"}",
        None,
    ],
    ids=range(6),
)
def test_hostile_json_is_told(name: str, data: bytes | None, tmp_path: Path) -> None:
    """Cut, nested, unwritable, not there: one error that names the file."""
    store = filled_store(tmp_path / "GET_v1_projects")
    (store.path / name).unlink()
    if data is not None:
        (store.path / name).write_bytes(data)

    with pytest.raises(StoreCorruptError, match=name):
        _ = RegenStore.open(store.path).ir


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
