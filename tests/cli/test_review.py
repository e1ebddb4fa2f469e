"""``review``: candidates that wait, listed, shown, accepted and rejected by their ids."""

import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import Ran, at_terminal, command
from plugin_project import emulated
from review_work import FILE, TRANSLATOR, WRONG, german, write_project
from unit_work import ENGLISH, GERMAN, write_json

from pytest_regen.canonical import canonical_hash
from pytest_regen.regeneration.pending import Candidate, PendingFolder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project of the documentation, its strings recorded; two of three are wrong."""
    monkeypatch.chdir(tmp_path)
    write_project(tmp_path, monkeypatch)
    return tmp_path


@pytest.fixture
def waiting(here: Path) -> list[Candidate]:
    """The candidates for both."""
    done = command("regenerate", FILE, "--from-errors", "--pending", "--json", *TRANSLATOR)
    assert (done.code, sorted(done.json["pending"])) == (1, ["berth", "leave"]), done.err
    return list(read(here))


def read(root: Path) -> tuple[Candidate, ...]:
    """Return what waits in a project."""
    return PendingFolder.of_project(root).read().candidates


def test_the_list_and_what_one_changes(here: Path, waiting: list[Candidate]) -> None:
    """Nothing is stored, only its owner reads it; without a terminal the command lists, with 1."""
    berth = waiting[0]
    folder = here / ".regen/pending"
    assert german(here) == WRONG
    assert berth.asked_by == f"pytest-regen regenerate {FILE}"
    assert {path.stat().st_mode & 0o777 for path in folder.glob("*.json")} == {0o600}
    assert "*\n" in (folder / ".gitignore").read_text("utf-8")

    listed = command("review")
    assert listed.code == 1
    assert f"{berth.id}  {FILE}::berth  errors: 1 now, 0 with it" in listed.told
    assert "2 candidates wait for review" in listed.told
    assert listed.err.endswith(f"  next: pytest-regen review show {berth.id}\n")
    assert command("review", "list").code == 0
    shown = command("review", "show", berth.id[:4])
    assert "was wrong   [PLACEHOLDER] has []" in shown.told
    assert '+  "berth": "Liegeplatz {number}",' in shown.told
    assert "with it     nothing is wrong" in shown.told
    assert command("review", "show", "--all", "--json").json["candidates"][0]["obstacle"] is None


def test_accepted_ones_are_stored_and_rejected_ones_are_kept(
    here: Path, waiting: list[Candidate]
) -> None:
    """By id, or as pytest names the unit; what was replaced is in the history too."""
    done = command("review", "accept", waiting[0].id)
    assert (done.code, german(here)) == (0, {**WRONG, "berth": GERMAN["berth"]}), done.err
    assert done.err.endswith("next: pytest-regen review\n")

    done = command("review", "reject", f"{FILE}::leave")
    assert (done.code, german(here)["leave"]) == (0, WRONG["leave"]), done.err
    assert command("review").err.startswith("nothing waits for review\n")
    assert command("review", "--check").code == 0
    past = command("history", FILE, "--json").json["entries"]
    assert [(each["reason"], each["output"]) for each in past] == [
        ("replaced", WRONG["berth"]),
        ("rejected", GERMAN["leave"]),
    ]


def test_a_filter_that_matches_nothing_says_so(waiting: list[Candidate]) -> None:
    """A path without candidates has none waiting; what is no path must be a candidate."""
    assert command("review", "locales/en.json").err.startswith("nothing waits for review\n")
    assert FILE in command("review", "locales").told
    unknown = command("review", "accept", "zzzz")
    assert unknown.code == 2
    assert "'zzzz' names no candidate" in unknown.told
    assert waiting[0].id in unknown.told
    both = command("review", "accept")
    assert both.code == 2
    assert "review accept takes ids, or --all" in both.told


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("edited", "it was edited by hand"),
        ("inputs", "what it was made from has changed since"),
        ("regenerated", "what it was made from has changed since"),
        ("gone", "German.check raised KeyError for berth"),
    ],
)
def test_what_no_longer_fits_is_refused(
    here: Path, waiting: list[Candidate], monkeypatch: pytest.MonkeyPatch, how: str, why: str
) -> None:
    """An edit, other inputs, another text: the candidate stays, and the reason is told."""
    berth = waiting[0]
    if how in {"edited", "regenerated"}:
        write_json(here / FILE, {**WRONG, "berth": "Platz {number}"})
    if how == "regenerated":
        command("adopt", FILE)
    if how in {"inputs", "gone"}:
        english = {**ENGLISH, "berth": "Berth no. {number}"}
        if how == "gone":
            del english["berth"]
        write_json(here / "locales/en.json", english)
        monkeypatch.delitem(sys.modules, "regen_kinds")
    before = (here / FILE).read_bytes()

    done = command("review", "accept", berth.id)

    assert done.code == 2
    assert why in done.told
    assert done.err.endswith(f"next: pytest-regen review reject {berth.id}\n")
    assert berth.id in {each.id for each in read(here)}
    assert (here / FILE).read_bytes() == before
    assert command("review", "reject", berth.id).code == 0
    assert berth.id not in {each.id for each in read(here)}


def test_errors_must_not_rise(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A candidate that is worse than what stands there needs ``--accept-any``."""
    with emulated(monkeypatch, lambda _: "Liegen {x}"):
        command("regenerate", FILE, "--unit", "mooring", "--pending", "--accept-any")
    (worse,) = read(here)

    done = command("review", "accept", worse.id)

    assert done.code == 2
    assert "0 errors there now, 1 with it; the first is PLACEHOLDER" in done.told
    assert f"pytest-regen review accept {worse.id} --accept-any" in done.told
    assert german(here) == WRONG
    assert command("review", "accept", worse.id, "--accept-any").code == 0
    assert german(here)["mooring"] == "Liegen {x}"


def test_candidates_of_ci_are_reviewed_at_a_desk(here: Path, waiting: list[Candidate]) -> None:
    """The folder of an artifact is read in place of the project's, and emptied."""
    shutil.move(here / ".regen/pending", here / "artifact")
    assert command("review").code == 0

    first = waiting[0].id
    listed = command("review", "list", "--from", "artifact")
    assert listed.err.endswith(f"next: pytest-regen review show {first} --from artifact\n")
    shown = command("review", "show", first, "--from", "artifact")
    assert f"note: or pytest-regen review reject {first} --from artifact\n" in shown.told
    assert shown.err.endswith(f"next: pytest-regen review accept {first} --from artifact\n")
    write_json(here / FILE, {**WRONG, "berth": "Platz {number}"})
    outdated = command("review", "accept", first, "--from", "artifact")
    assert outdated.err.endswith(f"next: pytest-regen review reject {first} --from artifact\n")
    write_json(here / FILE, WRONG)

    done = command("review", "accept", "--all", "--from", "artifact")

    assert (done.code, german(here)) == (0, GERMAN), done.err
    assert len(waiting) == 2
    assert not list((here / "artifact").glob("*.json"))
    missing = command("review", "--from", "nowhere")
    assert (missing.code, "there is no such folder" in missing.told) == (2, True)


def forge(candidate: Candidate, folder: Path, **changes: Any) -> None:
    """Write a candidate that says something else, with the id of that."""
    forged = replace(candidate, **changes)
    mark = canonical_hash(forged.piece).removeprefix("sha256:")[:8]
    name = f"20990101T000000000000-{mark}-{forged.id}.json"
    (folder / name).write_text(json.dumps(forged.to_json()), "utf-8")


def test_hostile_files_do_no_harm(here: Path, waiting: list[Candidate]) -> None:
    """Torn, foreign and lying files are named; nothing but units of the project is written."""
    folder = here / ".regen/pending"
    good = next(folder.glob("*.json")).read_bytes()
    outside = here.parent / f"{here.name}-outside.json"
    forge(waiting[0], folder, place=f"../{outside.name}")
    forge(waiting[0], folder, place="locales/en.json", name="\x1b[2Jberth")
    forge(waiting[0], folder, place="pyproject.toml")
    (folder / "1-torn.json").write_bytes(good[:99])
    (folder / "4-other.json").write_bytes(good)
    (folder / "5-link.json").symlink_to("/etc/passwd")
    os.mkfifo(folder / "6-pipe.json")
    before = {path: path.read_bytes() for path in (here / "locales").iterdir()}

    listed = command("review", "list")
    assert listed.code == 0
    assert "\x1b" not in listed.told
    assert listed.err.count("is not a candidate") == 5
    done: Ran = command("review", "accept", "--all")

    assert done.code == 2
    assert "Traceback" not in done.told
    assert not outside.exists()
    assert german(here) == GERMAN
    assert (here / "locales/en.json").read_bytes() == before[here / "locales/en.json"]
    assert (here / "pyproject.toml").read_text("utf-8").startswith("\n[tool.pytest")
    assert {each.place for each in read(here)} == {"locales/en.json", "pyproject.toml"}
    assert command("review", "reject", "--all").code == 0
    assert read(here) == ()


@pytest.mark.usefixtures("waiting")
def test_a_terminal_shows_each_and_asks(here: Path) -> None:
    """Accepted with a letter, skipped with Enter; what was decided stays decided."""
    seen = at_terminal("review", cwd=here, typed="accept\n\n")

    assert seen.code == 1
    lines = seen.err.splitlines()
    assert any(line.startswith("1 of 2") for line in lines)
    assert any("berth" in line and "Liegeplatz {number}" in line for line in lines)
    assert "  was wrong   [PLACEHOLDER]" in seen.err
    assert "  accepted    locales/de.json::berth" in seen.err
    assert "1 accepted, 0 rejected, 1 left" in seen.err
    assert german(here) == {**GERMAN, "leave": WRONG["leave"]}
    assert command("review", "--check").code == 1


@pytest.mark.usefixtures("waiting")
def test_what_no_longer_fits_cannot_be_accepted_at_a_terminal(here: Path) -> None:
    """The reason stands there; it can be rejected. After q nothing more is asked."""
    write_json(here / FILE, {**WRONG, "berth": "Platz {number}"})

    seen = at_terminal("review", cwd=here, typed="a\nq\n")
    rest = at_terminal("review", cwd=here, typed="r\nr\n")

    assert (seen.code, "not now" in seen.err) == (1, True)
    assert "it was edited by hand" in seen.err
    assert "0 accepted, 0 rejected, 2 left" in seen.err
    assert (rest.code, "0 accepted, 2 rejected, 0 left" in rest.err) == (0, True)
    assert german(here)["leave"] == WRONG["leave"]
