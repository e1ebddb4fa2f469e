"""``regenerate``: what is asked, what is kept, what is refused before anything is asked."""

import sys
import types
from pathlib import Path
from typing import ClassVar

import pytest
from command_line import command
from plugin_answers import asked_page
from store_factory import FACTORY_IR, GOOD, MISSPELT, make_store

from pytest_regen.turns.values import Reply, TurnRequest, Usage

GOOD_MODEL = ("--provider", "plugin_answers:Good")
STUBBORN = ("--provider", "plugin_answers:Stubborn")


class Recorder:
    """Answers as a model without mistakes would, and keeps what it was asked."""

    requests: ClassVar[list[TurnRequest]] = []

    def send(self, request: TurnRequest) -> Reply:
        """Return the code of the page."""
        type(self).requests.append(request)
        return Reply(GOOD[asked_page(request)], usage=Usage(10, 5), model=request.model)


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> type[Recorder]:
    """A provider that the command line can name as ``recording:Recorder``."""
    module = types.ModuleType("recording")
    vars(module)["Recorder"] = Recorder
    monkeypatch.setitem(sys.modules, "recording", module)
    monkeypatch.setattr(Recorder, "requests", [])
    return Recorder


def pages(recorder: type[Recorder]) -> list[tuple[str, int]]:
    """Return the pages asked, in order."""
    return [asked_page(request) for request in recorder.requests]


def test_a_correction_goes_to_one_page(good: Path, recorder: type[Recorder]) -> None:
    """To that of --page, which narrows --type; else to the first: others are asked as stored."""
    words = ("--type", "ProjectDataObject", "--provider", "recording:Recorder")
    assert command("regenerate", good, *words, "--page", 2, "--correction", "a list").code == 0
    assert command("regenerate", good, *words, "--correction", "[/b] id is a string").code == 0

    (_, named), (_, first), (_, second) = pages(recorder)
    assert (named, first, second) == (2, 1, 2)
    asked = [request.messages[0].content for request in recorder.requests]
    assert "a list" in asked[0]
    assert "[/b] id is a string" in asked[1]
    assert "CORRECTION" not in asked[2]


def test_from_errors_leaves_out_what_the_project_ignores(
    broken: Path, here: Path, recorder: type[Recorder]
) -> None:
    here.joinpath("pyproject.toml").write_text(
        '[tool.pytest-regen]\nignore = ["MISSING_FIELD", "PHANTOM_FIELD"]\n', "utf-8"
    )

    ran = command("regenerate", broken, "--from-errors", "--provider", "recording:Recorder")

    assert (ran.code, recorder.requests) == (0, [])


def test_attempts_are_replies_per_page(here: Path, broken: Path) -> None:
    """With one attempt one call is made; without the option the project's table says how many."""
    one = command("regenerate", broken, "--from-errors", "--attempts", 1, *STUBBORN)
    here.joinpath("pyproject.toml").write_text("[tool.pytest-regen]\nattempts = 1\n", "utf-8")
    by_table = command("regenerate", broken, "--type", "Owner", *STUBBORN, "--json")

    assert one.code == 1
    assert "1 call," in one.err
    assert "Owner (no_progress)" in one.err
    assert "answer 1 of 1 was not kept: MISSING_FIELD: " in one.err
    assert "note: another model may do better: name it by --model NAME\n" in one.err
    again = "--type Owner --correction 'what is wrong' --provider plugin_answers:Stubborn\n"
    assert one.err.endswith(again)
    assert by_table.json["calls"] == 1


@pytest.mark.parametrize(
    ("words", "settings", "asked"),
    [
        ((), "", "claude-sonnet-5-5"),
        ((), '[tool.pytest-regen]\nmodel = "of-the-table"\n', "of-the-table"),
        ((), '[tool.pytest.ini_options]\nregen_model = "of-pytest"\n', "of-pytest"),
        (("--model", "of-the-option"), '[tool.pytest-regen]\nmodel = "x"\n', "of-the-option"),
    ],
)
def test_the_model_is_chosen(
    good: Path,
    recorder: type[Recorder],
    words: tuple[str, ...],
    settings: str,
    asked: str,
) -> None:
    """Option, then pytest's ini value, then the table, then the model that wrote the page."""
    Path("pyproject.toml").write_text(settings, "utf-8")

    command("regenerate", good, "--type", "Owner", *words, "--provider", "recording:Recorder")

    assert [request.model for request in recorder.requests] == [asked]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--page", "1"), "which type"),
        (("--type", "Ownr"), "Owner"),
        (("--type", "ProjectDataObject", "--page", "3"), "its pages are 1 to 2"),
        (("--type", "Owner", "--record", "once"), "--cassette FILE"),
        (("--type", "Owner", "--pending", "--discard-edits"), "contradict each other"),
        (("--type", "Owner", "--provider", "plugin_answers:Nobody"), "Stubborn"),
        (("--type", "Owner", "--provider", "no_such_module:x"), "cannot be imported"),
    ],
)
def test_wrong_usage_lists_what_there_is(good: Path, words: tuple[str, ...], says: str) -> None:
    before = {path: path.read_bytes() for path in good.iterdir() if path.is_file()}

    ran = command("regenerate", good, *words)

    assert ran.code == 2
    assert ran.err.startswith("error: ")
    assert says in ran.err
    assert {path: path.read_bytes() for path in good.iterdir() if path.is_file()} == before


@pytest.fixture
def several(here: Path) -> Path:
    """A folder of three stores; the first and the last have an error."""
    for name, wrong in (("GET_a", MISSPELT), ("GET_b", GOOD), ("GET_c", MISSPELT)):
        make_store(here / "generated" / name, wrong)
    return Path("generated")


def test_a_folder_of_stores_is_healed(several: Path, recorder: type[Recorder]) -> None:
    """Each is told of in its order, and a sum follows; who has no error is not asked for.

    ``status`` names the command.
    """
    total, following = command("status", several).told.splitlines()[-2:]
    assert total.startswith("2 pages with errors: 2 to ask, about ")
    assert following == "  next: pytest-regen regenerate generated --from-errors"
    done = command(
        "regenerate", several, "--from-errors", "--provider", "recording:Recorder", "--jobs", 4
    )

    assert done.code == 0, done.err
    places = [line for line in done.err.splitlines() if line.startswith(("1/3", "2/3", "3/3"))]
    assert places == ["1/3 generated/GET_a", "2/3 generated/GET_b", "3/3 generated/GET_c"]
    assert done.err.index("GET_a/ProjectDataObject.cs:") < done.err.index("GET_b/ProjectDataObject")
    assert done.err.splitlines()[-2:] == ["3 stores, 2 changed", "  next: pytest"]
    assert len(recorder.requests) == 2
    assert "nothing to do" in command("status", several).told


def test_json_of_several_stores(several: Path) -> None:
    """A report for each that was worked on, and why the others were not; planned alike.

    It tells what was regenerated, why the work ended, and what is left.
    """
    (several / "GET_b" / "pages.json").write_text("{")
    words = ("regenerate", several, "--from-errors", "--json")
    plan = command(*words, "--dry-run")
    done = command(*words, *GOOD_MODEL)

    assert (plan.code, done.code) == (2, 2)
    paths = ["generated/GET_a", "generated/GET_c"]
    assert [store["path"] for store in plan.json["stores"]] == paths
    assert [report["source_path"] for report in done.json["stores"]] == [
        f"{path}/ProjectDataObject.cs" for path in paths
    ]
    for ran in (plan, done):
        assert [failure["path"] for failure in ran.json["failures"]] == ["generated/GET_b"]
    for told in done.json["stores"]:
        assert told["ok"] is True
        assert told["regenerated"] == [{"type_name": "Owner", "page": 1}]
        assert told["stop_reasons"] == {"Owner": "clean"}
        assert (told["calls"], told["tokens"], told["errors"]) == (1, 140, [])


def test_stores_without_the_type_are_left_out(here: Path, recorder: type[Recorder]) -> None:
    """Also where the first lacks it; a type that none has is refused before anything is asked."""
    make_store(
        here / "generated" / "GET_a",
        ir=FACTORY_IR.model_copy(update={"types": FACTORY_IR.types[1:]}),
    )
    make_store(here / "generated" / "GET_b")
    whole, last = (type_.name for type_ in (FACTORY_IR.types[0], FACTORY_IR.types[-1]))
    words = ("regenerate", "generated", "--provider", "recording:Recorder", "--type")
    refused = command(*words, last, "--type", "Nobody")
    asked_then = len(recorder.requests)
    done = command(*words, whole)

    assert refused.code == 2
    assert "Nobody" in refused.err
    assert asked_then == 0
    assert done.code == 0, done.err
    assert {name for name, _ in pages(recorder)} == {whole}
    assert done.err.splitlines()[-2].startswith("1 store")


def test_healing_leaves_hand_edits_alone(broken: Path) -> None:
    """A type that was edited is skipped, which exit code 2 tells."""
    source = broken / "ProjectDataObject.cs"
    before, begin, owner = source.read_text("utf-8").partition("BEGIN Owner")
    owner = owner.replace("string? Name", "string? FullName")
    source.write_text(before + begin + owner, "utf-8")

    ran = command("regenerate", broken, "--from-errors", *GOOD_MODEL)

    assert ran.code == 2
    assert "skipped     Owner: Owner in" in ran.err
    # The edit has errors itself, so it is not for keeping.
    assert f"next: pytest-regen rebuild {broken}" in ran.err
