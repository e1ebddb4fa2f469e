"""``history``, ``restore``, ``adopt``, ``rebuild``: nothing that was written is lost."""

from pathlib import Path

from command_line import command

from pytest_regen.stores import RegenStore, history

GOOD_MODEL = ("--provider", "plugin_answers:Good")


def healed(store: Path) -> str:
    """Heal the store; return the id of what was replaced."""
    assert command("regenerate", store, "--from-errors", *GOOD_MODEL).code == 0
    (entry,) = command("history", store, "--json").json["entries"]
    return str(entry["id"])


def test_restore_refuses_what_is_not_there(broken: Path) -> None:
    """No history, an unknown id, an entry of another type, another page: each is wrong usage."""
    assert command("restore", broken, "--type", "Owner").code == 2
    entry = healed(broken)

    for words in (
        ("--type", "State", "--to", entry),
        ("--type", "Owner", "--to", "20260101T000000"),
        ("--type", "Owner", "--to", entry, "--page", "2"),
        ("--type", "Owner", "--to", "../../pages"),
    ):
        ran = command("restore", broken, *words)
        assert (ran.code, ran.out) == (2, "")
        assert "next: " in ran.told


def edit(store: Path, old: str = "? Name", new: str = "? FullName") -> None:
    """Edit the block of ``Owner``, or what follows it, by hand."""
    source = store / "ProjectDataObject.cs"
    before, begin, owner = source.read_text("utf-8").partition("BEGIN Owner")
    assert old in owner
    source.write_text(before + begin + owner.replace(old, new), "utf-8")


def test_adopt_of_one_type(good: Path) -> None:
    edit(good)

    assert command("adopt", good, "--type", "State", "--json").json["adopted"] == []
    done = command("adopt", good, "--type", "Owner", "--json").json
    (replaced,) = done["history"]
    assert done == {
        "adopted": [{"type_name": "Owner", "page": 1}],
        "errors": [],
        "diff": "",
        "history": [replaced],
        "by_hand": 0,
        **{key: [] for key in ("dropped", "joined", "notes")},
    }


def test_rebuild_drops_an_edit_and_keeps_it_in_the_history(good: Path) -> None:
    """No key and no call: the block is as its page makes it; restoring brings the edit back."""
    before = RegenStore.open(good).source
    edit(good)
    edited = RegenStore.open(good).source

    ran = command("rebuild", good)

    assert ran.code == 0
    assert RegenStore.open(good).source == before
    assert "  rebuilt     Owner\n" in ran.told
    assert command("validate", good).code == 0
    (entry,) = history(good)
    assert (entry.reason, entry.model) == ("dropped", "hand")
    assert command("restore", good, "--type", "Owner").code == 0
    assert RegenStore.open(good).source == edited
    assert "every recorded text stands as it is recorded" in command("rebuild", good).told


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


def test_restore_without_an_id_takes_the_last(broken: Path) -> None:
    before = RegenStore.open(broken).source
    healed(broken)

    ran = command("restore", broken, "--type", "Owner", "--json")

    assert ran.json["restored"][0]["type_name"] == "Owner"
    assert '-    [JsonPropertyName("name")]' in ran.json["diff"]
    assert RegenStore.open(broken).source == before


def test_rebuild_ends_a_conflict(good: Path) -> None:
    """The file is two versions of itself: it is written anew, and kept as it was."""
    store = RegenStore.open(good)
    conflict = f"<<<<<<< HEAD\n// ours\n=======\n// theirs\n>>>>>>> main\n{store.source}"
    store.source_path.write_text(conflict, "utf-8")
    told = command("validate", good)
    assert told.code == 1
    assert f"next: pytest-regen rebuild {good}" in told.told

    ran = command("rebuild", good, "--json")

    assert RegenStore.open(good).source == "// ours\n" + store.source
    (kept,) = ran.json["history"]
    assert (good / "history" / kept).read_text("utf-8") == conflict
    assert command("validate", good).code == 0


def test_adopting_code_with_errors_says_so(good: Path) -> None:
    """It is stored, for a person said so; what is wrong with it is told, and the exit code is 1."""
    edit(good, '[JsonPropertyName("state")]', '[JsonPropertyName("stat")]')

    ran = command("adopt", good)

    assert ran.code == 1
    assert "  adopted     Owner page 1\n" in ran.told
    assert "[MISSING_FIELD] field 'state' is missing" in ran.told
    assert ran.err.endswith(f"next: pytest-regen regenerate {good} --from-errors\n")
