"""How far a run is: one line at a terminal, few plain lines elsewhere, none on stdout."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import at_terminal, command
from many_operations import FIELDS_PER_PAGE, write_many_operations

from pytest_regen.cli.output import say, tell_in_order
from pytest_regen.emulator import Emulator

PAGES = ("--fields-per-page", FIELDS_PER_PAGE)
FREE = ("--provider", "template")
COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.fixture
def many(here: Path) -> Path:
    """A description with six operations of five pages each."""
    write_many_operations(here / "many.json", 6)
    return Path("many.json")


def test_a_terminal_has_one_line_that_is_drawn_again(many: Path, here: Path) -> None:
    """Unless it wants no drawing, as in CI."""
    words = ("generate", many, "GET /v1/harbour0", *PAGES, *FREE, "--register")

    seen = at_terminal(*words, cwd=here)
    lines = at_terminal(*words, "--force", cwd=here, env={"CI": "1"})

    assert (seen.code, lines.code) == (0, 0)
    assert "\x1b[?25l" in seen.err  # The line is drawn: the cursor is hidden meanwhile.
    assert "\x1b[?25l" not in lines.err
    plain = COLOUR.sub("", seen.err)
    assert plain.count("Harbour0DataObject.cs: written by the template") == 1


def test_a_large_run_is_told_in_sums(many: Path, api: Emulator) -> None:
    """A log is no longer for 10,000 pages; a short run tells its results alone."""
    ran = command("generate", many, "--all", "--jobs", 4, *PAGES, "--json")

    assert ran.code == 0
    assert len(api.requests) == 30
    assert re.search(
        r"^  30 of 30 pages, 6 of 6 stores, 30 calls, [\d,k]+ tokens, about \$0\.\d+, \d+ s\n",
        ran.err,
        re.MULTILINE,
    )
    assert len(ran.json["stores"]) == 6
    few = command("generate", many, "GET /harbour0", *PAGES, "--force", "--json")
    assert "pages, " not in few.err


def test_what_was_held_back_is_told_when_work_is_broken_off(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A place that was finished before the one in front of it is told of at the latest then."""

    def results() -> Iterator[tuple[str, str]]:
        yield "b", "the second"
        before.append(capsys.readouterr().err)
        raise KeyboardInterrupt

    before: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        tell_in_order(["a", "b"], results(), lambda *facts: say(facts[2]))

    assert before == [""]
    assert "the second" in capsys.readouterr().err
