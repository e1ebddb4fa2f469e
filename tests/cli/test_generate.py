"""``generate``: stores from a description, one or many, made and updated."""

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from command_line import command
from store_work import tree

from pytest_regen.canonical import canonical_hash
from pytest_regen.cli.selection import PartOptions, select_operations
from pytest_regen.documents import read_document
from pytest_regen.documents.ir import ir_hash
from pytest_regen.emulator import Emulator
from pytest_regen.stores import RegenStore

KITES = "GET /kites"
STORE = Path("generated", "GET_kites")
FREE = ("--provider", "template")


def test_a_store_is_made(document: Path, api: Emulator) -> None:
    """Types, calls and tokens are told to people, and as one document; the store is clean."""
    ran = command("generate", document, KITES)
    as_json = command("generate", document, KITES, "--out", "elsewhere", "--json")

    assert (ran.code, ran.out) == (0, "")
    assert "  added       2 types: KiteDataObject, Maker\n" in ran.err
    assert f"{STORE / 'KiteDataObject.cs'}: 2 calls, " in ran.err
    told = as_json.json
    assert (as_json.code, told["ok"], told["path"]) == (0, True, "elsewhere/GET_kites")
    assert told["added"] == ["KiteDataObject", "Maker"]
    assert told["asked"][0] == {"type_name": "KiteDataObject", "page": 1, "total_pages": 1}
    assert (told["calls"], len(api.requests)) == (2, 4)
    assert told["failures"] == told["errors"] == told["defects"] == []
    assert command("validate", STORE).code == 0


def test_a_dry_run_tells_ir_prompts_and_defects(document: Path, here: Path) -> None:
    """To people a line per page, and a command that does what was shown; nothing is written."""
    before = tree(here)
    options = ("--fields-per-page", "1", "--force", "--model", "claude-haiku-4-5")

    told = command("generate", document, KITES, "--dry-run", "--json").json
    ran = command("generate", document, KITES, "--dry-run")
    following = command("generate", document, KITES, *options, "--check").err.splitlines()[-1]

    assert set(told) == {"ir", "prompts", "defects", "estimate"}
    assert [type_["name"] for type_ in told["ir"]["types"]] == ["KiteDataObject", "Maker"]
    first = told["prompts"][0]
    assert first["fields"] == ["id", "span", "maker"]
    assert first["estimated_input_tokens"] > 100
    assert set(first) >= {"type_name", "is_root", "page", "total_pages", "system", "user"}
    assert "  KiteDataObject  page 1 of 1    3 fields, about " in ran.told
    assert "  Maker           page 1 of 1     1 field, about " in ran.told
    assert "there is no store yet, 2 pages to ask; nothing" in ran.told
    again = shlex.split(following.partition("next: pytest-regen ")[2])
    assert "KiteDataObject  page 3 of 3" in command(*again, "--dry-run").err, following
    assert {"--force", "claude-haiku-4-5"} < set(again)
    assert tree(here) == before


def makers_answer(document: Path, schema: Any) -> None:
    """Change what GET /makers answers with."""
    made = json.loads(document.read_text("utf-8"))
    content = made["paths"]["/makers"]["get"]["responses"]["200"]["content"]
    content["application/json"] = {"schema": schema}
    document.write_text(json.dumps(made), "utf-8")


def test_a_type_of_one_value_is_asked_of_no_model(document: Path, api: Emulator) -> None:
    """A model could only get it wrong: the template writes it, and the rest is asked for."""
    properties = {"name": {"type": "string"}, "kind": {"type": "string", "enum": ["rigid"]}}
    makers_answer(document, {"type": "object", "properties": properties})

    command("generate", document, "GET /makers")

    store = RegenStore.open(Path("generated/GET_makers"))
    models = {name: store.pages_of(name)[0].model for name in store.type_names}
    assert models == {"MakerDataObject": "claude-sonnet-5-5", "MakerKind": "template"}
    assert len(api.requests) == 1


GONE = {"$ref": "#/components/schemas/Makr"}


def test_one_impossible_operation_leaves_the_others(document: Path, api: Emulator) -> None:
    """With --all a defect is told, the others are made, and the exit code is 2."""
    makers_answer(document, {"properties": {"maker": GONE}})

    ran = command("generate", document, "--all", "--json")

    assert ran.code == 2
    assert [store["path"] for store in ran.json["stores"]] == ["generated/GET_kites"]
    assert ran.json["failures"][0]["operation"] == "GET /makers"
    assert "error: the document is broken where GET /makers needs it, in 1 place" in ran.told
    assert "1 store generated, 1 failed, 1 skipped\n" in ran.told
    assert len(api.requests) == 2


def test_all_skips_what_has_nothing_to_generate(document: Path) -> None:
    """No JSON response, or plain values: counted with the reason; where all are, it is refused."""
    makers_answer(document, {"items": {"type": "integer"}})

    ran = command("generate", document, "--all", "--json", *FREE)
    unanswered = command("generate", document, "--tag", "none", "--dry-run")
    plain = command("generate", document, "--tag", "makers", "--dry-run")

    assert (ran.code, ran.json["failures"], len(ran.json["stores"])) == (0, [], 1)
    assert [skipped["operation"] for skipped in ran.json["skipped"]] == [
        "DELETE /makers",
        "GET /makers",
    ]
    assert "its responses are: 204" in ran.json["skipped"][0]["reason"]
    assert "response 200 of GET /makers is a" in ran.json["skipped"][1]["reason"]
    assert ran.err.endswith(
        "  skipped     1 operation without a successful JSON response: DELETE /makers\n"
        "  skipped     1 operation answered with plain values, which need no type: GET /makers\n"
        "1 store generated, 2 skipped\n"
    )
    assert (unanswered.code, plain.code) == (2, 2)
    assert "1 operation with the tag 'none': 1 without a JSON response" in unanswered.told
    assert "none of the operations is answered with a type" in plain.told


def test_exclude_leaves_operations_out(document: Path) -> None:
    """By method and path, with wildcards, in any case of the method; it is counted and told."""
    read = read_document(document)
    kites, makers, delete = "GET /kites", "GET /makers", "DELETE /makers"
    for patterns, left in (
        (["/mak*"], [kites]),
        (["get /kit?s"], [makers]),
        (["DELETE *"], [kites, makers]),
        (["delete /makers", "/kites"], [makers]),
    ):
        found = select_operations(read, PartOptions(exclude=patterns))
        assert [str(each) for each in found.chosen] == left, patterns
        others = {str(each) for each in found.excluded}
        skipped = {each.operation for each in found.skipped}
        assert others | skipped == {kites, makers, delete} - set(left), patterns
        assert not others & skipped, patterns

    ran = command("generate", document, "--all", "--exclude", "GET /m*", "--json", *FREE)

    assert (ran.code, ran.json["excluded"], len(ran.json["stores"])) == (0, ["GET /makers"], 1)
    assert "  excluded    1 operation: GET /makers\n" in ran.told
    assert "1 store generated, 1 skipped, 1 excluded\n" in ran.told


@pytest.mark.usefixtures("api")
def test_allow_defects_generates_the_rest_for_review(document: Path) -> None:
    """The type that lost something says so in the store, in validate, and in schema.md."""
    makers_answer(document, {"properties": {"maker": GONE, "name": {"type": "string"}}})

    ran = command("generate", document, "GET /makers", "--allow-defects", "--json")

    assert ran.code == 0
    assert [defect["severity"] for defect in ran.json["defects"]] == ["error"]
    store = Path("generated", "GET_makers")
    (review,) = json.loads((store / "ir.json").read_text("utf-8"))["reviews"]
    assert (review["type_name"], review["field"]) == ("MakerDataObject", "maker")
    assert "- **REVIEW** `maker`: $ref '#" in (store / "schema.md").read_text("utf-8")

    checked = command("validate", store, "--json")

    (issue,) = checked.json["stores"][0]["types"][0]["warnings"]
    assert (checked.code, issue["code"], issue["field"]) == (0, "REVIEW", "maker")
    assert (issue["page"], issue["message"]) == (1, review["message"])


def test_paths_that_cannot_be_read_fail_all(document: Path) -> None:
    """Nobody knows which operations are missing; with --allow-defects they are skipped."""
    made = json.loads(document.read_text("utf-8"))
    made["paths"]["/lost"] = {"$ref": "#/components/pathItems/Lost"}
    document.write_text(json.dumps(made), "utf-8")

    ran = command("generate", document, "--all", "--dry-run", "--json")

    assert (ran.code, len(ran.json["stores"])) == (2, 2)
    assert [failure["operation"] for failure in ran.json["failures"]] == ["#/paths/~1lost"]
    assert command("generate", document, KITES, "--dry-run").code == 0

    allowed = command("generate", document, "--all", "--dry-run", "--json", "--allow-defects")

    assert allowed.code == 0
    assert "points at nothing" in allowed.json["skipped"][-1]["reason"]


def test_no_connection_stops_the_rest(document: Path) -> None:
    """What would stop every further store is met once."""
    ran = command("generate", document, "--all", "--provider", "plugin_answers:Unreachable")

    assert ran.code == 3
    assert ran.err.count("error: no answer from") == 1
    assert "0 stores generated, 1 with errors, 1 skipped, 1 not started\n" in ran.told
    assert "nothing was written to generated/GET_kites" in ran.told


def test_recorded_and_replayed(
    document: Path, api: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run recorded with --cassette is repeated without a key, and without the API."""
    recorded = command("generate", document, KITES, "--cassette", "c.yaml", "--record", "once")
    asked = len(api.requests)
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    source = STORE.joinpath("KiteDataObject.cs").read_bytes()

    replayed = command("generate", document, KITES, "--force", "--cassette", "c.yaml")

    assert (recorded.code, replayed.code) == (0, 0)
    assert len(api.requests) == asked
    assert STORE.joinpath("KiteDataObject.cs").read_bytes() == source
    missed = command("generate", document, "GET /makers", "--cassette", "c.yaml")
    assert missed.code == 3
    assert "the same command with --record new_episodes and ANTHROPIC_API_KEY set" in missed.told


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "one operation, --tag, --all or --schemas"),
        ((KITES, "--all"), "one operation, --tag, --all or --schemas"),
        (("--tag", "kite"), "the tags are: kites, makers, none"),
        (("--all", "--exclude", "/zzz*"), "a pattern is a path, or a method and a path"),
        ((KITES, "--exclude", KITES), "--exclude goes with --all or --tag"),
        (("DELETE /makers",), "DELETE /makers"),
        ((KITES, "--pending"), "pytest-regen regenerate STORE --pending"),
        ((KITES, "--cassette", "x", *FREE), "--provider template and --cassette x contradict"),
        (("--schemas", "--request"), "--request"),
        (("--schemas", "Kit"), "near matches: Kite"),
    ],
)
def test_wrong_usage_lists_what_there_is(
    document: Path, here: Path, words: tuple[str, ...], says: str
) -> None:
    ran = command("generate", document, *words)

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: ")
    assert says in ran.told
    assert not list(here.glob("generated/*"))


@pytest.mark.usefixtures("api")
def test_the_lines_that_pytest_lacks_are_said(document: Path, here: Path) -> None:
    """Whoever generates a store wants it gated; the command that is named writes the lines."""
    name, stores = "pyproject.toml", 'regen_stores = ["generated/GET_mak*"]'
    (here / name).write_text(f"[tool.pytest.ini_options]\n{stores}\n", "utf-8")

    first = command("generate", document, "GET /kites")
    following = first.err.splitlines()[-1].removeprefix("  next: ")
    again = command(*shlex.split(following)[1:])
    second = command("generate", document, "GET /makers")

    assert f"pytest does not collect it yet; {name} lacks\n" in first.told
    assert '  + stores = ["generated/*"]\n' in first.told
    assert following == "pytest-regen generate api.json 'GET /kites' --register"
    assert (first.code, again.code, second.code) == (0, 0, 0)
    assert again.err.endswith(
        f"registered  in {name}, so that pytest collects it\n  next: pytest\n"
    )
    assert "does not collect" not in second.told


def test_a_check_says_what_moved_on(document: Path, api: Emulator, here: Path) -> None:
    """It writes nothing and asks nothing; 1 where types changed, 0 where the store is current."""
    command("generate", document, KITES)
    api.requests.clear()
    fresh = command("generate", document, KITES, "--check")
    text = document.read_text("utf-8")
    # Another description of the same types is no other IR.
    document.write_text(text.replace('"title": "', '"title": "The new '), "utf-8")
    reworded = command("generate", document, KITES, "--check")
    document.write_text(
        text.replace('"span": {"type": "number"}', '"span": {"type": "string"}'), "utf-8"
    )
    before = tree(here)

    moved = command("generate", document, KITES, "--check")
    as_json = command("generate", document, KITES, "--check", "--json")

    assert (fresh.code, fresh.err) == (0, f"{STORE}: up to date\n  next: pytest\n")
    assert reworded.code == 0
    assert moved.code == as_json.code == 1
    assert "  changed     1 type: KiteDataObject\n" in moved.told
    assert "  KiteDataObject  page 1 of 1    3 fields, about " in moved.told
    assert moved.err.endswith(
        f"{STORE}: older than the document, 1 page to ask; nothing written\n"
        f"  next: pytest-regen generate {document} '{KITES}'\n"
    )
    assert as_json.json["asked"] == [{"type_name": "KiteDataObject", "page": 1, "total_pages": 1}]
    assert tree(here) == before
    assert api.requests == []


def test_a_new_way_to_read_makes_nothing_stale(document: Path) -> None:
    """A store of another format is noted until the next generate, and is not older for that."""
    command("generate", document, KITES, *FREE)
    ir_file = STORE / "ir.json"
    data = json.loads(ir_file.read_text("utf-8"))
    # As a version that knew less of the document, and of types, would have written it.
    data["format"] = 0
    data["types"][1]["fields"][0]["type"] = {"kind": "any"}
    ir_file.write_text(json.dumps(data), "utf-8")
    pages_file = STORE / "pages.json"
    pages = json.loads(pages_file.read_text("utf-8"))
    pages["ir_hash"] = ir_hash(data)
    pages["pages"][1]["type_hash"] = canonical_hash(data["types"][1])
    pages_file.write_text(json.dumps(pages), "utf-8")

    checked = command("generate", document, KITES, "--check")
    shutil.copytree(STORE, STORE.with_name("GET_beside"))
    validated = command("validate", STORE.parent, "--no-write")
    command("generate", document, KITES, *FREE)
    after = command("validate", STORE)

    assert checked.code == 0
    assert "note: another version of pytest-regen read api.json" in checked.told
    assert "STALE" not in validated.told
    assert validated.told.count("another version of pytest-regen") == 1, "one note per document"
    assert (after.code, after.out) == (0, f"{STORE}: 2 types, no errors\n  next: pytest\n")


def test_the_language_is_that_of_the_store_then_of_the_project(document: Path, here: Path) -> None:
    """An option that names another one is refused for a store that is there."""
    assert command("generate", document, KITES, *FREE).code == 0
    (here / "pyproject.toml").write_text('[tool.pytest-regen]\nlanguage = "python"\n', "utf-8")

    same, new = (command("generate", document, name, *FREE) for name in (KITES, "GET /makers"))
    other = command("generate", document, KITES, "--language", "typescript", *FREE)

    assert (same.code, new.code, other.code) == (0, 0, 2)
    assert {path.suffix for path in STORE.glob("Kite*.*")} == {".cs"}
    assert list((here / "generated/GET_makers").glob("*.py"))
    assert "is written in csharp, not in typescript" in other.told


def test_all_with_a_status_skips_what_does_not_declare_it(document: Path) -> None:
    """--status is exact for each operation; the others are no failure."""
    made = json.loads(document.read_text("utf-8"))
    responses = made["paths"]["/makers"]["get"]["responses"]
    responses["201"] = responses["200"]
    document.write_text(json.dumps(made), "utf-8")

    ran = command("generate", document, "--all", "--status", "201", "--dry-run", "--json")

    assert ran.code == 0
    assert [store["ir"]["endpoint"]["status"] for store in ran.json["stores"]] == ["201"]
    assert len(ran.json["skipped"]) == 2


def test_a_header_that_is_there_is_the_users(document: Path) -> None:
    """Another namespace is for the user to write into it, and that is said."""
    options = ("--profile", "xchange", *FREE)
    assert command("generate", document, KITES, "--namespace", "First", *options).code == 0

    again = command("generate", document, KITES, "--namespace", "Second", *options)

    assert again.code == 0
    assert "change the namespace to Second there" in again.told
    store = RegenStore.open(STORE)
    assert store.envelope.profile == "xchange"
    assert "namespace First" in store.source
    assert "Second" not in store.source
