"""``history``, ``restore``, ``adopt``, ``rebuild``: nothing that was written is lost."""

from pathlib import Path

import pytest
from command_line import command

from pytest_regen.stores import RegenStore, history

GOOD_MODEL = ("--provider", "plugin_answers:Good")


def test_restore_takes_the_last_of_the_type_that_is_named(broken: Path) -> None:
    """No history, an unknown id, an entry of another type, another page: each is wrong usage."""
    assert command("restore", broken, "--type", "Owner").code == 2
    before = RegenStore.open(broken).source
    assert command("regenerate", broken, "--from-errors", *GOOD_MODEL).code == 0
    (entry,) = command("history", broken, "--json").json["entries"]

    for words in (
        ("--type", "State", "--to", entry["id"]),
        ("--type", "Owner", "--to", "20260101T000000"),
        ("--type", "Owner", "--to", entry["id"], "--page", "2"),
        ("--type", "Owner", "--to", "../../pages"),
    ):
        ran = command("restore", broken, *words)
        assert (ran.code, ran.out) == (2, "")
        assert "next: " in ran.told

    file = broken / "history" / f"{entry['id']}.json"
    written = file.read_text("utf-8")
    file.write_text(written.replace('"total_pages": 1', '"total_pages": 2'), "utf-8")
    ran = command("restore", broken, "--type", "Owner", "--to", entry["id"])
    assert "a page that the type no longer has" in ran.told
    file.write_text(written, "utf-8")

    ran = command("restore", broken, "--type", "Owner", "--json")
    assert ran.json["restored"][0]["type_name"] == "Owner"
    assert '-    [JsonPropertyName("name")]' in ran.json["diff"]
    assert RegenStore.open(broken).source == before


def edit(store: Path, old: str = "? Name", new: str = "? FullName") -> None:
    """Edit the block of ``Owner``, or what follows it, by hand."""
    source = store / "ProjectDataObject.cs"
    before, begin, owner = source.read_text("utf-8").partition("BEGIN Owner")
    assert old in owner
    source.write_text(before + begin + owner.replace(old, new), "utf-8")


@pytest.mark.parametrize(
    ("verb", "in_both", "name"),
    [
        ("rebuild", False, "string? FullName {"),
        ("adopt", False, "string? Name {"),
        ("rebuild", True, "string? FullName {"),
        ("adopt", True, "string? FullName {"),
    ],
)
def test_an_edit_of_pages_json_is_taken_or_dropped(
    good: Path, verb: str, name: str, *, in_both: bool
) -> None:
    """``rebuild`` writes the source from the pages, ``adopt`` the page from the source.

    Where both were edited alike either makes the edit a person's.
    """
    if in_both:
        edit(good)
    file = good / "pages.json"
    text = file.read_text("utf-8")
    owner = text.index("public class Owner")
    file.write_text(text[:owner] + text[owner:].replace("? Name", "? FullName", 1), "utf-8")
    assert "[DRIFT] page 1 of 'Owner' was edited" in command("validate", good, "--no-write").told
    refused = command("restore", good, "--type", "Owner").told
    assert f"Owner in {file} was edited by hand" in refused
    assert f"keep it: pytest-regen rebuild {good} --type Owner; or drop it: " in refused

    assert command(verb, good).code == 0

    store = RegenStore.open(good)
    (page,) = store.pages_of("Owner")
    assert (page.model, page.is_tampered) == ("hand", False)
    assert name in page.output
    assert name in store.source.partition("BEGIN Owner")[2]
    assert "[DRIFT]" not in command("validate", good, "--no-write").told
    dropped = {entry.reason for entry in history(good) if "? Name" in entry.output}
    assert dropped == ({"dropped"} if verb == "rebuild" and not in_both else set())


def test_adopting_code_with_errors_says_so(good: Path) -> None:
    """It is stored, for a person said so; what is wrong with it is told, and the exit code is 1."""
    edit(good, '[JsonPropertyName("state")]', '[JsonPropertyName("stat")]')
    assert command("adopt", good, "--type", "State").code == 0
    assert RegenStore.open(good).pages_of("Owner")[0].model != "hand"

    ran = command("adopt", good)

    assert ran.code == 1
    assert "  adopted     Owner page 1\n" in ran.told
    assert "[MISSING_FIELD] field 'state' is missing" in ran.told
    assert ran.err.endswith(f"next: pytest-regen regenerate {good} --from-errors\n")
