"""What a person sees: questions, colours and a bar at a terminal; plain lines elsewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import at_terminal, process
from store_factory import make_store
from store_states import stale

GOOD_MODEL = ("--provider", "plugin_answers:Good")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def old(here: Path) -> Path:
    """A store whose ``Owner`` has moved on since its pages were written."""
    path = Path("generated", "GET_v1_projects")
    stale(here / path)
    return path


def test_a_terminal_is_asked_about_stale_prompts(here: Path, old: Path) -> None:
    """A yes goes on; anything else stops with 2 and changes nothing."""
    words = ("regenerate", old, "--type", "Owner", *GOOD_MODEL)
    before = old.joinpath("pages.json").read_bytes()

    no = at_terminal(*words, cwd=here, typed="\n")
    assert no.code == 2
    assert "Regenerate from the old prompts all the same? [y/N]" in no.err
    assert "Owner" in no.err
    assert old.joinpath("pages.json").read_bytes() == before

    yes = at_terminal(*words, cwd=here, typed="y\n")
    assert yes.code == 0
    assert old.joinpath("pages.json").read_bytes() != before


def test_a_terminal_is_asked_before_everything(here: Path, good: Path) -> None:
    """Without --type the pages and an estimate are shown; a no is no error."""
    words = ("regenerate", good, *GOOD_MODEL)

    no = at_terminal(*words, cwd=here, typed="n\n")
    assert no.code == 0
    assert re.search(r"cost +about [\d,]+ tokens of input and ", no.err)
    assert f"Regenerate all 4 pages of {good}? [y/N]" in no.err

    assert at_terminal(*words, cwd=here, typed="yes\n").code == 0


def test_colours_only_at_a_terminal(here: Path, broken: Path) -> None:
    """Errors are red at a terminal; NO_COLOR and a pipe get plain text, stdout a document."""
    seen = at_terminal("validate", broken, cwd=here)
    plain = process("validate", broken)
    drawn = at_terminal("regenerate", broken, "--type", "Owner", *GOOD_MODEL, "--json", cwd=here)

    assert COLOUR.search(seen.err)
    assert COLOUR.sub("", seen.err) == plain.told
    assert "\x1b" not in plain.told
    assert not COLOUR.search(at_terminal("validate", broken, cwd=here, env={"NO_COLOR": "1"}).err)
    assert drawn.json["ok"] is True


def test_text_of_others_is_never_markup(here: Path) -> None:
    """Brackets are shown as they are; nothing moves the cursor or recolours the screen."""
    seen = at_terminal("validate", "no [/b] [red]x[/red] a\x1b[2Jb\x07\u202ec", cwd=here)

    assert seen.code == 2
    assert "no [/b] [red]x[/red] a\\x1b[2Jb\\x07\\u202ec" in COLOUR.sub("", seen.err)


def test_ctrl_c_is_no_traceback(here: Path, good: Path) -> None:
    """A turn left with Ctrl-C ends with 130, and says that nothing is lost."""
    code = "def answer(_messages):\n    raise KeyboardInterrupt\n"
    here.joinpath("stopping.py").write_text(code, "utf-8")

    ran = process("regenerate", good, "--type", "Owner", "--provider", "stopping:answer", cwd=here)

    assert ran.code == 130
    assert ran.err.endswith("what was finished is stored\n")
    assert "Traceback" not in ran.err


def test_a_reader_that_left_is_no_traceback(here: Path) -> None:
    make_store(here / "generated" / "GET_x")
    line = f"{sys.executable} -m pytest_regen validate generated/GET_x --json | true"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)

    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
