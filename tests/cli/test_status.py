"""``status`` of many stores: what is missing, stale, wrong or edited, and what asking costs."""

import json
import os
import shlex
from functools import partial
from pathlib import Path

import pytest
from branches import GIT, project_in
from command_line import command
from store_factory import make_store
from store_states import damaged, edited, fine, stale, wrong
from warm_python import run_python

FREE = ("--provider", "template")


def without_page(path: Path) -> None:
    """Make a store of which a page was never written."""
    store = make_store(path)
    pages = store.path / "pages.json"
    told = json.loads(pages.read_text("utf-8"))
    told["pages"] = [page for page in told["pages"] if page["page"] != 2]
    pages.write_text(json.dumps(told), "utf-8")


@pytest.fixture
def project(here: Path) -> Path:
    """A folder of stores, one in each state."""
    makers = {
        "GET_a": fine,
        "GET_b": without_page,
        "GET_c": stale,
        "GET_d": wrong,
        "GET_e": edited,
    }
    for name, make in makers.items():
        make(here / "generated" / name)
    return here


@pytest.mark.usefixtures("project")
def test_the_sum_says_what_there_is_to_ask() -> None:
    """Each page counts once; an edit is a person's, and nothing is asked for it."""
    ran = command("status", "generated")
    told = command("status", "generated", "--json").json

    assert ran.code == 0
    *_, line, following = ran.told.splitlines()
    assert line.startswith(
        "1 page missing, 1 page stale, 1 page with errors, 1 type edited by hand: 3 to ask"
    )
    assert ", about $0.0" in line
    assert line.endswith(" as a batch")
    assert following.startswith("  next: pytest-regen generate SPEC ")
    assert list(told) == ["stores", "files", "sum"]
    assert [set(store) for store in told["stores"]] == [{"path", "types"}] * 5
    total = told["sum"]
    counts = {key: total[key] for key in ("stores", "types", "missing", "stale", "edited")}
    assert counts == {"stores": 5, "types": 15, "missing": 1, "stale": 1, "edited": 1}
    estimate = total["estimate"]
    assert (estimate["pages"], total["with_errors"]) == (3, 1)
    assert 0 < float(estimate["batch_cost_usd"]) < float(estimate["cost_usd"])


def test_a_store_that_cannot_be_read_does_not_hide_the_others(project: Path) -> None:
    """It is told where it stands in the list, comes first, and makes the exit code 2."""
    damaged(project / "generated" / "GET_0")

    ran = command("status", "generated")
    told = command("status", "generated", "--json")

    assert (ran.code, told.code) == (2, 2)
    assert "error: generated/GET_0/prompts.json" in ran.told
    assert "1 type that asking does not mend" in ran.told
    assert ran.out.endswith("next: pytest-regen validate generated/GET_0\n")
    assert [row["path"] for row in told.json["stores"]][-1] == "generated/GET_e"
    assert told.json["stores"][0]["failure"]["error"] == "StoreCorruptError"


def test_operations_without_a_store_are_named(document: Path) -> None:
    """Of a folder, not of a single store; those that need none are left out."""
    assert command("generate", document, "GET /kites", *FREE).code == 0

    ran = command("status", "generated")
    told = command("status", "generated", "--json").json["sum"]
    alone = command("status", "generated/GET_kites")

    assert "1 operation of api.json has no store in generated: GET /makers\n" in ran.told
    following = "pytest-regen generate api.json --all --out generated --provider template --dry-run"
    assert ran.told.endswith(f"  next: {following}\n")
    assert told["without_store"] == [
        {"document": "api.json", "out": "generated", "operations": ["GET /makers"]}
    ]
    assert "no store" not in alone.told


def gate() -> str:
    """Run pytest as CI does; return what it says comes next."""
    told = ["-m", "pytest", "-q", "-p", "no:syrupy"]
    done = run_python(told, Path.cwd(), {**os.environ, "CI": "true"})
    found = [line for line in done.stdout.splitlines() if line.startswith("next: ")]
    return found[-1] if found else ""


ALL = "next: pytest-regen generate api.json --all --out generated --provider template"


@pytest.mark.skipif(GIT is None, reason="git is not installed")
def test_stores_that_git_did_not_merge_have_one_next(document: Path, here: Path) -> None:
    """It names the document, and settles them all; that of each alone names the store."""

    def add(*names: str) -> None:
        told = json.loads(document.read_text("utf-8"))
        for name in names:
            told["components"]["schemas"]["Maker"]["properties"][name] = {"type": "string"}
        document.write_text(json.dumps(told, indent=1), "utf-8")
        assert command("generate", document, "--all", *FREE, "--register").code == 0

    add("town", "street", "country")
    merge = project_in(here).merge(lambda: add("new"), partial(rename, document))
    assert sum(name.endswith("pages.json") for name in merge.conflicts) == 2

    alone = command("validate", "generated/GET_kites").told
    status = command("status").out
    told = gate()
    mended = command(*shlex.split(told)[2:])

    assert "both branches changed Maker, page 1 of 1" in alone
    assert "  next: pytest-regen rebuild generated/GET_kites\n" in alone
    assert status.endswith(f"  {ALL}\n")
    assert told == ALL
    assert mended.code == 0, mended.err
    assert not gate()


def rename(document: Path) -> None:
    """Rename a field, and bring all stores up to date."""
    text = document.read_text("utf-8")
    document.write_text(text.replace('"name"', '"label"'), "utf-8")
    assert command("generate", document, "--all").code == 0
