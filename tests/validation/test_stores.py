"""A store is validated with what only its folder shows: DRIFT, STALE, pages never written."""

import json
from pathlib import Path

import pytest
from store_factory import FACTORY_IR, GOOD, MISSPELT, make_store

from pytest_regen.documents.ir import FORMAT, DocumentRef
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


def test_an_edit_by_hand_is_drift(tmp_path: Path) -> None:
    """A block that says something else than its pages is DRIFT, and checked as it stands."""
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


def test_a_block_taken_out_is_drift(tmp_path: Path) -> None:
    """The pages are there, the block is not: reported once."""
    store = make_store(tmp_path / "store")
    source = store.source_path.read_text("utf-8")
    start = source.index("// [REGEN:BEGIN Owner]")
    end = source.index("// [REGEN:END Owner]") + len("// [REGEN:END Owner]")

    assert found(edit(store, source[start:end], "")) == [("DRIFT", "Owner", None)]


def test_an_edit_is_found_beside_a_type_that_is_not_written_yet(tmp_path: Path) -> None:
    """A generation that was interrupted hides no edit of what it had finished."""
    store = make_store(tmp_path / "store")
    path = store.path / "pages.json"
    data = json.loads(path.read_text("utf-8"))
    data["pages"] = [page for page in data["pages"] if page["type_name"] != "ProjectDataObject"]
    path.write_text(json.dumps(data), "utf-8")

    edited = edit(
        RegenStore.open(store.path),
        'string? Name { get; set; }\n\n    [JsonPropertyName("state")]',
        'string? FullName { get; set; }\n\n    [JsonPropertyName("state")]',
    )

    assert ("DRIFT", "Owner") in {(code, name) for code, name, _ in found(edited)}


def test_a_missing_source_is_drift(tmp_path: Path) -> None:
    """Pages are the truth: the types are checked, and the file is reported as missing."""
    store = make_store(tmp_path / "store", MISSPELT)
    store.source_path.unlink()

    codes = [issue[0] for issue in found(RegenStore.open(store.path))]

    assert codes == ["DRIFT", "MISSING_FIELD", "PHANTOM_FIELD"]


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


def test_a_description_that_is_gone_is_told_once(tmp_path: Path) -> None:
    """Whether types are stale nobody knows then, and no run is green for that."""
    store = make_store(tmp_path / "store")
    told = {"document": DocumentRef(path="../api.yaml"), "format": FORMAT}
    with RegenStore.update(store.path) as transaction:
        transaction.write(ir=FACTORY_IR.model_copy(update=told))

    (issue,) = [
        issue
        for result in validate_store(RegenStore.open(store.path)).values()
        for issue in result.issues
    ]

    assert (issue.code, issue.type_name) == ("STALE", "ProjectDataObject")
    assert issue.message.startswith(f"cannot read '{tmp_path / 'api.yaml'}': No such file")


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


def edit_page(store: RegenStore, old: str, new: str) -> RegenStore:
    """Return the store after an output of ``Owner`` was edited in pages.json."""
    path = store.path / "pages.json"
    data = json.loads(path.read_text("utf-8"))
    (owner,) = [page for page in data["pages"] if page["type_name"] == "Owner"]
    assert old in owner["output"]
    owner["output"] = owner["output"].replace(old, new)
    path.write_text(json.dumps(data), "utf-8")
    return RegenStore.open(store.path)


def drift_of(store: RegenStore) -> Issue:
    """Return the one DRIFT of a store that has no other issue."""
    (issue,) = [i for result in validate_store(store).values() for i in result.issues]
    assert issue.code == "DRIFT"
    return issue


def test_an_edit_of_source_and_pages_alike_is_drift(tmp_path: Path) -> None:
    """They agree with each other, and not with the hash of what was stored."""
    store = make_store(tmp_path / "store")
    edit(
        store,
        'string? Name { get; set; }\n\n    [JsonPropertyName("state")]',
        'string? FullName { get; set; }\n\n    [JsonPropertyName("state")]',
    )

    issue = drift_of(edit_page(store, "string? Name", "string? FullName"))

    assert (issue.type_name, issue.page, issue.file) == ("Owner", 1, "pages.json")
    assert issue.message == "page 1 of 'Owner' was edited in pages.json"
    assert issue.detail is not None
    assert "adopt" in issue.detail


def test_lost_boundaries_are_told_once(tmp_path: Path) -> None:
    """Without its boundary lines a file has no types to regenerate, however right its code is."""
    store = make_store(tmp_path / "store")
    lines = store.source.splitlines(keepends=True)
    store.source_path.write_text("".join(line for line in lines if "[REGEN:" not in line), "utf-8")

    issue = drift_of(RegenStore.open(store.path))

    assert issue.type_name == "ProjectDataObject"
    assert issue.message == "the boundary lines are gone from ProjectDataObject.cs"
    assert issue.detail is not None
    assert "pytest-regen rebuild" in issue.detail


@pytest.mark.parametrize(
    ("change", "is_sealed"),
    [
        ({"user": "Write what you like."}, True),
        ({"system": ""}, False),
        ({"fields": []}, True),
        ({"type_hash": "sha256:0"}, True),
    ],
)
def test_an_edited_prompt_is_told(
    tmp_path: Path, change: dict[str, object], *, is_sealed: bool
) -> None:
    """Its text and its fields are what was made, or the entry is named."""
    store = make_store(tmp_path / "store")
    path = store.path / "prompts.json"
    data = json.loads(path.read_text("utf-8"))
    entry = next(one for one in data if one["type_name"] == "Owner")
    entry |= change
    if not is_sealed:  # As an older version wrote it.
        del entry["entry_hash"]
    path.write_text(json.dumps(data), "utf-8")

    issues = [i for r in validate_store(RegenStore.open(store.path)).values() for i in r.issues]

    (edited,) = [issue for issue in issues if issue.code == "EDITED_PROMPT"]
    assert (edited.type_name, edited.page, edited.file) == ("Owner", 1, "prompts.json")
    assert "entry 2 of prompts.json, counted from 0" in edited.message


def outside(store: RegenStore, text: str, *, where: str = "// [REGEN:BEGIN Owner]") -> list[Issue]:
    """Return the issues of a store with ``text`` put before a line of its source."""
    edited = edit(store, where, f"{text}\n{where}")
    return [i for result in validate_store(edited).values() for i in result.issues]


def test_a_conflict_marker_is_told_where_it_stands(tmp_path: Path) -> None:
    """Outside of the blocks it is the root's, inside one it is the type's; the way out is named."""
    conflict = "<<<<<<< HEAD\n// ours\n=======\n// theirs\n>>>>>>> main"

    (around,) = outside(make_store(tmp_path / "around"), conflict)
    within = outside(make_store(tmp_path / "within"), conflict, where="public class Owner")

    assert (around.code, around.type_name) == ("CONFLICT", "ProjectDataObject")
    assert "'<<<<<<< HEAD'" in around.message
    assert around.detail is not None
    assert "pytest-regen rebuild" in around.detail
    assert {(i.code, i.type_name) for i in within} >= {("CONFLICT", "Owner"), ("DRIFT", "Owner")}


def test_a_conflict_in_schema_md_is_told(tmp_path: Path) -> None:
    """Nothing else reads the file, so nothing else would notice."""
    store = make_store(tmp_path / "store")
    (store.path / "schema.md").write_text("# A\n<<<<<<< HEAD\n- b\n=======\n>>>>>>> x\n", "utf-8")

    (issue,) = [i for result in validate_store(store).values() for i in result.issues]

    assert (issue.code, issue.file, issue.line) == ("CONFLICT", "schema.md", None)
    assert "line 2 of schema.md" in issue.message


def test_a_type_declared_beside_its_block_is_told(tmp_path: Path) -> None:
    """No compiler takes it; the issue names both lines."""
    (issue,) = outside(make_store(tmp_path / "store"), "public class Owner { }")

    assert (issue.code, issue.type_name) == ("REDECLARED", "Owner")
    assert "declares it already" in issue.message


def test_a_using_that_is_gone_is_told_once(tmp_path: Path) -> None:
    """The line to put back is named, and a name that needs it."""
    store = make_store(tmp_path / "store")
    using = "using System.Text.Json.Serialization;"

    found = validate_store(edit(store, f"{using}\n", ""))
    (issue,) = [i for result in found.values() for i in result.issues]

    assert (issue.code, issue.type_name) == ("MISSING_USING", "ProjectDataObject")
    assert f"{using!r}" in issue.message
    assert "'JsonPropertyName'" in issue.message


def test_text_of_the_users_is_not_judged(tmp_path: Path) -> None:
    """Whatever a compiler takes outside of the blocks is no error."""
    legal = (
        "// <<<<<<< a comment",
        "using System.Linq;\nusing static System.Math;",
        "public class Mine { public string? Owner { get; set; } }",
        "public record Pair(string Left, string Right);",
        "public static class Box { public class Owner { } }",
        "public class Owner<T> { }",
        "#region ours\n#pragma warning disable CS8618\n#endregion",
        "/* =======\n a heading\n ======= */",
    )
    for number, text in enumerate(legal):
        assert outside(make_store(tmp_path / str(number)), text) == [], text
