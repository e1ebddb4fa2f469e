"""``validate``: what it says, what it writes, what it leaves alone."""

import json
from pathlib import Path

import pytest
from command_line import command
from store_factory import make_store


def test_issues_are_listed_by_line_by_type_and_as_json(broken: Path) -> None:
    """Each is one line that an editor can follow; the last line is the command to run."""
    ran = command("validate", broken)
    by_type = command("validate", broken, "--by-type")
    as_json = command("validate", broken, "--json")

    source = broken / "ProjectDataObject.cs"
    assert ran.code == 1
    assert f"{source}: Owner page 1 [MISSING_FIELD] field 'name' is missing" in ran.told
    assert f"{source}:32: Owner page 1 [PHANTOM_FIELD] 'Owner' has no field 'nmae'" in ran.told
    assert ran.told.endswith(
        f"{broken}: 1 of 3 types has errors\n"
        f"  next: pytest-regen regenerate {broken} --from-errors\n"
    )
    first = f"Owner: 2 errors\n{source}: Owner page 1 [MISSING_FIELD] field 'name'"
    assert first in by_type.told
    assert "2 types clean" in by_type.told
    assert "State" not in by_type.told
    (store,) = as_json.json["stores"]
    assert (as_json.code, as_json.err) == (1, "")
    assert (store["path"], store["ok"]) == (broken.as_posix(), False)
    assert [(type_["name"], type_["is_root"]) for type_ in store["types"]] == [
        ("ProjectDataObject", True),
        ("Owner", False),
        ("State", False),
    ]
    owner = store["types"][1]
    assert [issue["code"] for issue in owner["errors"]] == ["MISSING_FIELD", "PHANTOM_FIELD"]
    assert set(owner["errors"][0]) >= {"code", "severity", "message", "type_name", "page", "line"}
    assert owner["warnings"] == []


def test_the_summary_is_kept_in_ir_json(broken: Path) -> None:
    """The summary is written where it changed, and only there: findings by type, no totals."""
    file = broken / "ir.json"
    before = file.read_bytes()
    assert command("validate", broken, "--no-write").code == 1
    assert file.read_bytes() == before

    command("validate", broken)
    written = file.stat().st_mtime_ns
    summary = json.loads(file.read_text("utf-8"))["validation"]
    command("validate", broken)

    codes = {name: [issue["code"] for issue in found] for name, found in summary.items()}
    owner = ["MISSING_FIELD", "PHANTOM_FIELD"]
    assert codes == {"ProjectDataObject": [], "Owner": owner, "State": []}
    assert file.stat().st_mtime_ns == written


def test_what_the_project_ignores_is_not_told(
    broken: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Codes are ignored by STORE::Type from the project's folder, wherever the command is run."""
    here.joinpath("pyproject.toml").write_text(
        '[tool.pytest-regen.ignore]\n"generated/*::Owner" = ["MISSING_FIELD", "PHANTOM_FIELD"]\n',
        "utf-8",
    )
    assert command("validate", broken).code == 0

    monkeypatch.chdir(here / "generated")

    assert command("validate", broken.name).code == 0
    assert command("validate", Path(broken.name).resolve()).code == 0


def test_without_folders_the_configured_stores_are_validated(
    here: Path, good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of ``regen_stores``, seen from wherever the user stands in the project."""
    make_store(here / "other" / "GET_b")
    (here / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\nregen_stores = ["generated/*", "other/*"]\n', "utf-8"
    )
    (here / "below").mkdir()
    monkeypatch.chdir(here / "below")

    ran = command("validate", "--no-write")

    assert ran.code == 0
    assert f"../{good}: 3 types, no errors" in ran.told
    assert "../other/GET_b: 3 types, no errors" in ran.told


@pytest.mark.usefixtures("api")
def test_a_store_that_is_older_than_its_document_fails_in_ci(
    document: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a desk it is a warning that says so; in CI the exit code is 1. Both name the command.

    The project chooses by the table and by pytest's ini value; the latter wins.
    """
    command("generate", document, "GET /kites")
    change(document)
    store = Path("generated", "GET_kites")
    update = "  next: pytest-regen generate api.json 'GET /kites' --out generated\n"

    warned = command("validate", store)
    monkeypatch.setenv("CI", "true")
    failed, as_json = command("validate", store), command("validate", store, "--json")

    assert warned.code == 0
    told = "KiteDataObject [STALE] api.json has changed since 'KiteDataObject' was generated: "
    assert f"warning: {told}span is changed\n" in warned.told
    assert warned.told.endswith(f"2 types, no errors; 1 is stale, which fails in CI\n{update}")
    assert failed.code == as_json.code == 1
    assert failed.told.endswith(f"2 types, no errors; 1 is stale, which fails in CI\n{update}")
    (told,) = as_json.json["stores"]
    assert (told["ok"], told["types"][0]["errors"]) == (False, [])
    assert [issue["severity"] for issue in told["types"][0]["warnings"]] == ["warning"]

    monkeypatch.delenv("CI")
    (here / "pyproject.toml").write_text("[tool.pytest-regen]\nstale = 'fail'\n", "utf-8")
    assert command("validate", store).code == 1
    (here / "pytest.ini").write_text("[pytest]\nregen_stale = ignore\n", "utf-8")
    ignored = command("validate", store)
    assert (ignored.code, "STALE" in ignored.told) == (0, False)
    (here / "pytest.ini").write_text("[pytest]\nregen_stale = maybe\n", "utf-8")
    wrong = command("validate", store)
    assert wrong.code == 2
    assert "regen_stale = maybe: must be one of auto, fail, warn, ignore" in wrong.told


@pytest.mark.usefixtures("api")
def test_another_file_of_the_document_makes_a_store_stale(document: Path, here: Path) -> None:
    """A document of several files has moved on where any of them has."""
    made = json.loads(document.read_text("utf-8"))
    kite = made["components"]["schemas"].pop("Kite")
    made["components"]["schemas"]["Kite"] = {"$ref": "kite.json"}
    kite["properties"]["maker"] = {"$ref": "api.json#/components/schemas/Maker"}
    document.write_text(json.dumps(made), "utf-8")
    (here / "kite.json").write_text(json.dumps(kite), "utf-8")
    command("generate", document, "GET /kites")
    store = Path("generated", "GET_kites")
    assert "STALE" not in command("validate", store).told

    change(here / "kite.json")

    assert (
        "[STALE] kite.json has changed since 'KiteDataObject' was generated: span"
        in command("validate", store).told
    )


def change(document: Path) -> None:
    """Let ``span`` be a text."""
    text = document.read_text("utf-8")
    old = '"span": {"type": "number"}'
    assert old in text
    document.write_text(text.replace(old, '"span": {"type": "string"}'), "utf-8")


def test_on_github_there_are_annotations(
    here: Path, broken: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On stderr, beside JSON too; a secret in a cassette is named by its place alone."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(here))
    key = "sk-ant-api03-" + "planted0" * 12
    body = f"version: 1\ninteractions:\n- request:\n    body: '{key}'\n    uri: http://a/\n"
    (here / "cassettes").mkdir()
    (here / "cassettes/a.yaml").write_text(body, "utf-8")

    ran = command("validate", broken, "--json")
    checked = command("cassettes", "check", here / "cassettes")

    place = f"{broken.as_posix()}/ProjectDataObject.cs"
    assert ran.json["stores"][0]["ok"] is False
    missing, phantom = (line for line in ran.err.splitlines() if line.startswith("::"))
    assert missing.startswith(f"::error file={place},title=MISSING_FIELD%3A ")
    assert phantom.startswith(f"::error file={place},line=32,title=PHANTOM_FIELD%3A ")
    assert "\n::error file=cassettes/a.yaml," in f"\n{checked.err}"
    assert key not in checked.told
