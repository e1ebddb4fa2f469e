"""A store is validated with what only its folder shows: DRIFT, STALE, pages never written."""

from pathlib import Path

import pytest
from store_factory import FACTORY_IR, GOOD, MISSPELT, make_store

from pytest_regen.errors import UsageError
from pytest_regen.stores import RegenStore
from pytest_regen.validation import Issue, validate_store


def found(store: RegenStore) -> list[tuple[str, str | None, int | None]]:
    """Return code, type and page of each issue."""
    results = validate_store(store)
    return [(i.code, i.type_name, i.page) for result in results.values() for i in result.issues]


def edit(store: RegenStore, old: str, new: str) -> RegenStore:
    """Return the store after its source file was edited by hand."""
    text = store.source_path.read_text("utf-8")
    assert old in text
    store.source_path.write_text(text.replace(old, new, 1), "utf-8", newline="")
    return RegenStore.open(store.path)


def test_a_good_store_is_clean(tmp_path: Path) -> None:
    """Right pages, assembled, have no issue."""
    assert found(make_store(tmp_path / "store")) == []


def test_a_wrong_page_is_named(tmp_path: Path) -> None:
    """The issues of a type carry its page."""
    store = make_store(tmp_path / "store", MISSPELT)

    assert found(store) == [("MISSING_FIELD", "Owner", 1), ("PHANTOM_FIELD", "Owner", 1)]


def test_the_second_page_is_named(tmp_path: Path) -> None:
    """A fault of page 2 is no fault of page 1."""
    wrong = {("ProjectDataObject", 2): GOOD["ProjectDataObject", 2].replace("Owner?", "Owner")}

    assert found(make_store(tmp_path / "store", wrong)) == [("NULLABILITY", "ProjectDataObject", 2)]


def test_an_edit_by_hand_is_drift(tmp_path: Path) -> None:
    """A block that says something else than its pages is DRIFT, and judged as it stands."""
    store = make_store(tmp_path / "store")

    edited = edit(store, "List<string>? Tags", "string[]? Tags")

    assert [issue[:2] for issue in found(edited)] == [("DRIFT", "ProjectDataObject")]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    public string? Name", "  public   string? Name"),
        ("{ get; set; }", "{\n        get;\n        set;\n    }"),
        ("namespace Projects;", "namespace Projects; // ours"),
    ],
)
def test_white_space_and_the_header_are_no_drift(tmp_path: Path, old: str, new: str) -> None:
    """Only tokens and comments of a block count."""
    store = make_store(tmp_path / "store")

    assert found(edit(store, old, new)) == []


def test_line_ends_are_no_drift(tmp_path: Path) -> None:
    """A checkout with CRLF is the same source."""
    store = make_store(tmp_path / "store")
    text = store.source_path.read_bytes()
    store.source_path.write_bytes(text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))

    assert found(RegenStore.open(store.path)) == []


def test_a_block_taken_out_is_drift(tmp_path: Path) -> None:
    """The pages are there, the block is not: that is told once."""
    store = make_store(tmp_path / "store")
    source = store.source_path.read_text("utf-8")
    start = source.index("// [REGEN:BEGIN Owner]")
    end = source.index("// [REGEN:END Owner]") + len("// [REGEN:END Owner]")

    assert found(edit(store, source[start:end], "")) == [("DRIFT", "Owner", None)]


def test_a_missing_source_is_drift(tmp_path: Path) -> None:
    """Pages are the truth: the types are judged, and the file is said to be missing."""
    store = make_store(tmp_path / "store", MISSPELT)
    store.source_path.unlink()

    codes = [issue[0] for issue in found(RegenStore.open(store.path))]

    assert codes == ["DRIFT", "MISSING_FIELD", "PHANTOM_FIELD"]


def test_broken_boundaries_are_drift(tmp_path: Path) -> None:
    """A boundary that was lost is said; the types are found all the same."""
    store = edit(make_store(tmp_path / "store"), "// [REGEN:END Owner]\n", "")

    assert [issue[0] for issue in found(store)] == ["DRIFT"]


def test_an_older_description_is_stale(tmp_path: Path) -> None:
    """Only the type that changed is stale; a warning is no error."""
    owner = FACTORY_IR.types[1]
    older = owner.model_copy(update={"description": "Someone."})
    store = make_store(tmp_path / "store")
    ir = FACTORY_IR.model_copy(update={"types": (FACTORY_IR.types[0], older, FACTORY_IR.types[2])})
    with RegenStore.update(store.path) as transaction:
        transaction.write(ir=ir)

    results = validate_store(RegenStore.open(store.path))

    assert [issue.code for issue in results["Owner"].warnings] == ["STALE"]
    assert not any(result.has_errors for result in results.values())
    assert results["ProjectDataObject"].is_clean


def test_only_the_types_asked_for(tmp_path: Path) -> None:
    """Other types are left out of the answer."""
    assert list(validate_store(make_store(tmp_path / "store"), types=["Owner"])) == ["Owner"]


@pytest.mark.parametrize(
    "ignore",
    [
        ["MISSING_FIELD", "PHANTOM_FIELD"],
        {"Own*": ["MISSING_FIELD", "PHANTOM_FIELD"]},
        {"*": ["MISSING_FIELD"], "Owner": ["PHANTOM_FIELD"]},
    ],
)
def test_codes_can_be_left_out(tmp_path: Path, ignore: dict[str, list[str]] | list[str]) -> None:
    """For the whole store, or by type."""
    results = validate_store(make_store(tmp_path / "store", MISSPELT), ignore=ignore)

    assert all(result.is_clean for result in results.values())


def test_structural_means_syntax(tmp_path: Path) -> None:
    """The older name of the code is understood, an unknown one refused."""
    store = make_store(
        tmp_path / "store", {("Owner", 1): GOOD["Owner", 1].replace("set; }", "set }", 1)}
    )

    assert [issue.code for issue in validate_store(store)["Owner"].issues] == ["SYNTAX"]
    assert validate_store(store, ignore=["STRUCTURAL"])["Owner"].is_clean
    with pytest.raises(UsageError, match="'NOPE'"):
        validate_store(store, ignore=["NOPE"])


def test_nothing_is_written(tmp_path: Path) -> None:
    """Validating leaves every file of the folder as it was."""
    store = make_store(tmp_path / "store", MISSPELT)
    before = {path: path.read_bytes() for path in store.path.rglob("*") if path.is_file()}

    issues = validate_store(RegenStore.open(store.path))["Owner"].issues

    assert before == {path: path.read_bytes() for path in store.path.rglob("*") if path.is_file()}
    assert all(isinstance(issue, Issue) for issue in issues)
