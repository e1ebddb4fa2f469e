"""``history``, ``restore`` and ``adopt``: nothing a model or a person wrote is lost."""

from pathlib import Path

from command_line import command

from pytest_regen.stores import RegenStore

GOOD_MODEL = ("--provider", "plugin_answers:Good")


def healed(store: Path) -> str:
    """Heal the store; return the id of what was replaced."""
    assert command("regenerate", store, "--from-errors", *GOOD_MODEL).code == 0
    (entry,) = command("history", store, "--json").json["entries"]
    return str(entry["id"])


def test_an_empty_history_says_so(good: Path) -> None:
    """There is nothing to list, which is no error."""
    ran = command("history", good)

    assert (ran.code, ran.err) == (0, f"{good}: nothing was replaced or rejected yet\n")
    assert command("history", good, "--json").json == {"entries": []}


def test_what_was_replaced_is_listed(broken: Path) -> None:
    """Id, reason, page, attempt and model stand in columns; the last line restores the newest."""
    entry = healed(broken)

    ran = command("history", broken)

    first, last = ran.err.splitlines()
    assert first == f"{entry}  replaced  Owner  page 1 of 1  attempt 1  claude-sonnet-5-5"
    assert last == f"  next: pytest-regen restore {broken} --type Owner --to {entry}"


def test_history_of_one_type(broken: Path) -> None:
    """--type narrows the list; an unknown type lists those there are."""
    healed(broken)

    assert command("history", broken, "--type", "State", "--json").json == {"entries": []}
    assert len(command("history", broken, "--type", "Owner", "--json").json["entries"]) == 1
    unknown = command("history", broken, "--type", "Ownr")
    assert unknown.code == 2
    assert "Owner" in unknown.err


def test_restore_brings_it_back(broken: Path) -> None:
    """The output that was replaced is the stored one again, and the other one is in the history."""
    before = RegenStore.open(broken).source
    entry = healed(broken)

    ran = command("restore", broken, "--type", "Owner", "--to", entry)

    assert ran.code == 0
    assert "  restored    Owner page 1, written by claude-sonnet-5-5\n" in ran.err
    assert RegenStore.open(broken).source == before
    assert len(command("history", broken, "--json").json["entries"]) == 2


def test_restore_without_an_id_takes_the_last(broken: Path) -> None:
    """The last output that was replaced comes back."""
    before = RegenStore.open(broken).source
    healed(broken)

    ran = command("restore", broken, "--type", "Owner", "--json")

    assert ran.json["restored"][0]["type_name"] == "Owner"
    assert '-    [JsonPropertyName("name")]' in ran.json["diff"]
    assert RegenStore.open(broken).source == before


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
        assert "next: " in ran.err


def edit(store: Path) -> None:
    """Rename a property by hand."""
    source = store / "ProjectDataObject.cs"
    before, begin, owner = source.read_text("utf-8").partition("BEGIN Owner")
    source.write_text(before + begin + owner.replace("? Name", "? FullName"), "utf-8")


def test_adopt_keeps_an_edit(good: Path) -> None:
    """The edit is DRIFT until it is adopted; then it is the stored output."""
    edit(good)
    assert command("validate", good).code == 1

    ran = command("adopt", good)

    assert (ran.code, ran.err) == (
        0,
        f"  adopted     Owner page 1\n  next: pytest-regen validate {good}\n",
    )
    assert command("validate", good).code == 0
    assert command("adopt", good).err == f"{good}: no type was edited by hand\n"


def test_adopt_of_one_type(good: Path) -> None:
    """--type adopts only that one."""
    edit(good)

    assert command("adopt", good, "--type", "State", "--json").json["adopted"] == []
    assert command("adopt", good, "--type", "Owner", "--json").json == {
        "adopted": [{"type_name": "Owner", "page": 1}]
    }
