"""``history``, ``restore``, ``adopt``, ``rebuild``: nothing that was written is lost."""

from pathlib import Path

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


def test_rebuild_puts_back_what_only_pages_json_lost(good: Path) -> None:
    """The source still has the output; the edit of pages.json goes to the history."""
    pages = good / "pages.json"
    pages.write_text(
        pages.read_text("utf-8").replace("string? Name {", "string? FullName {"), "utf-8"
    )
    assert "[DRIFT] page" in command("validate", good, "--no-write").told

    assert command("rebuild", good).code == 0

    assert command("validate", good, "--no-write").code == 0
    assert "FullName" not in pages.read_text("utf-8")
    assert any("FullName" in entry.output for entry in history(good))


def test_what_was_edited_in_both_files_is_not_rebuilt(good: Path) -> None:
    """Neither holds what was stored: the refusal names both ways out, and adopting is one."""
    edit(good)
    pages = good / "pages.json"
    text = pages.read_text("utf-8")
    owner = text.index("public class Owner")
    pages.write_text(text[:owner] + text[owner:].replace("? Name", "? FullName", 1), "utf-8")
    before = pages.read_bytes(), RegenStore.open(good).source

    refused = command("rebuild", good)
    assert refused.code == 2
    assert f"pytest-regen adopt {good} --type Owner" in refused.told
    assert f"git checkout -- {pages}" in refused.told
    assert (pages.read_bytes(), RegenStore.open(good).source) == before

    assert command("adopt", good).code == 0
    (page,) = RegenStore.open(good).pages_of("Owner")
    assert (page.model, page.is_tampered) == ("hand", False)
    assert command("validate", good).code == 0


def test_adopting_code_with_errors_says_so(good: Path) -> None:
    """It is stored, for a person said so; what is wrong with it is told, and the exit code is 1."""
    edit(good, '[JsonPropertyName("state")]', '[JsonPropertyName("stat")]')

    ran = command("adopt", good)

    assert ran.code == 1
    assert "  adopted     Owner page 1\n" in ran.told
    assert "[MISSING_FIELD] field 'state' is missing" in ran.told
    assert ran.err.endswith(f"next: pytest-regen regenerate {good} --from-errors\n")
