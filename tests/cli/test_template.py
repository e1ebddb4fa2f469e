"""``--provider template``: types without a model, a key, a network or a price."""

import json
from hashlib import sha256
from pathlib import Path

import pytest
from command_line import command
from unit_project import KIND, SETTINGS
from unit_work import ENGLISH, write_json

from pytest_regen.stores import RegenStore

KITES = "GET /kites"
STORE = Path("generated", "GET_kites")
FREE = ("--provider", "template")
TABLE = '[tool.pytest-regen]\nprovider = "template"\n'


def test_a_store_is_written_without_a_key(document: Path) -> None:
    """The first command without a key names the way; every page says who wrote it."""
    refused = command("generate", document, KITES)
    planned = command("generate", document, KITES, *FREE, "--dry-run", "--json").json
    ran = command("generate", document, KITES, *FREE)

    assert "next: add --provider template, which writes types without a model" in refused.err
    assert {entry["estimated_input_tokens"] for entry in planned["prompts"]} == {0}
    assert ran.code == 0, ran.err
    assert "page 1 of 1" not in ran.err  # Nobody waits for it.
    assert f"{STORE / 'KiteDataObject.cs'}: written by the template, no call" in ran.err
    assert command("validate", STORE).code == 0
    store = RegenStore.open(STORE)
    written = {(page.model, page.provider) for page in store.pages.values()}
    assert written == {("template", "template")}
    told = command("status", STORE, "--json").json["stores"][0]["types"]
    assert {row["model"] for row in told} == {store.envelope.model} == {"template"}


def test_the_table_makes_it_the_default(document: Path, here: Path) -> None:
    """``provider = "template"`` holds for all commands but those that name a model."""
    (here / "pyproject.toml").write_text(TABLE, "utf-8")
    free = command("generate", document, KITES)
    asked = command("generate", document, KITES, "--force", "--model", "claude-sonnet-5-5")
    (here / "pyproject.toml").write_text(TABLE.replace("template", "templates"), "utf-8")
    wrong = command("generate", document, KITES)

    assert free.code == 0, free.err
    assert asked.code == 3
    assert "ANTHROPIC_API_KEY is not set" in asked.err
    assert wrong.code == 2
    assert 'expected "template", "openai:MODEL"' in wrong.err


def test_units_of_a_kind_have_no_template(here: Path) -> None:
    """A translation takes a model: asking the template is refused, the table is about types."""
    (here / "regen_kinds.py").write_text(KIND, "utf-8")
    write_json(here / "locales" / "en.json", ENGLISH)
    settings = SETTINGS + 'provider = "template"\n'
    (here / "pyproject.toml").write_text(settings, "utf-8")

    refused = command("generate", "locales/de.json", *FREE)
    asked = command("generate", "locales/de.json")

    assert refused.code == 2
    assert "the template cannot write units of a kind" in refused.err
    assert "ask a model for it" in refused.err
    assert asked.code == 3
    assert "ANTHROPIC_API_KEY is not set" in asked.err
    assert "--provider template" not in asked.err


AGAIN = "written by the template, as before; --model or --provider asks a model"


def add_field(document: Path, schema: str = "Maker") -> None:
    """Add an optional field to a schema, as a new version of an API does."""
    told = json.loads(document.read_text("utf-8"))
    told["components"]["schemas"][schema]["properties"]["since"] = {"type": "integer"}
    document.write_text(json.dumps(told), "utf-8")


def test_what_the_template_wrote_it_writes_again(document: Path) -> None:
    """After a change of the API, without a key, in every store that has the type."""
    assert command("generate", document, "--all", *FREE).code == 0
    add_field(document)

    planned = command("generate", document, "--all", "--dry-run")
    checked = command("generate", document, "--all", "--check", "--json").json
    ran = command("generate", document, "--all")

    assert planned.err.count("1 page to write by the template") == 2
    assert checked["estimate"]["pages"] == 0
    assert ran.code == 0, ran.err
    assert ran.err.count(AGAIN) == 2
    pages = RegenStore.open("generated/GET_makers").pages.values()
    assert {(page.model, page.attempt) for page in pages} == {("template", 2)}
    assert "since" in RegenStore.open(STORE).source.lower()


def test_regenerating_such_a_store_needs_no_key(document: Path) -> None:
    """Unless a model is meant: by its name, by batches, or by words that no template reads."""
    assert command("generate", document, KITES, *FREE).code == 0
    break_page(STORE)

    planned = command("regenerate", STORE, "--yes", "--dry-run")
    priced = command("regenerate", STORE, "--yes", "--dry-run", "--correction", "shorter")
    healed = command("regenerate", STORE, "--from-errors")
    asked = [
        command("regenerate", STORE, "--type", "Maker", *words)
        for words in (
            ("--model", "claude-sonnet-5-5"),
            ("--engine", "batch"),
            ("--correction", "shorter"),
        )
    ]

    assert (planned.code, "to write; nothing written" in planned.err) == (0, True)
    assert "to ask" in priced.err
    assert (healed.code, AGAIN in healed.err) == (0, True)
    assert all("ANTHROPIC_API_KEY is not set" in ran.err for ran in asked)
    assert {ran.code for ran in asked} == {3}


def break_page(store: Path) -> None:
    """Spoil a page of the template's, and the source alike."""
    path = store / "pages.json"
    told = json.loads(path.read_text("utf-8"))
    page = next(page for page in told["pages"] if page["type_name"].startswith("Maker"))
    page["output"] = page["output"].replace('("name")', '("nam")')
    page["output_hash"] = f"sha256:{sha256(page['output'].encode()).hexdigest()}"
    path.write_text(json.dumps(told), "utf-8")
    assert command("rebuild", store).code == 0


@pytest.mark.usefixtures("api")
def test_a_store_of_both_remembers_by_type(document: Path) -> None:
    """What a model wrote the model writes again; the template writes the rest."""
    assert command("generate", document, KITES, *FREE).code == 0
    asked = command("regenerate", STORE, "--type", "Maker", "--model", "claude-sonnet-5-5")
    assert asked.code == 0, asked.err

    told = command("regenerate", STORE, "--yes", "--json").json

    assert told["calls"] == 1
    models = {page.type_name: page.model for page in RegenStore.open(STORE).pages.values()}
    assert models["KiteDataObject"] == "template"
    assert models["Maker"] != "template"
