"""Commands on modules with functions: a function that is there becomes a unit."""

import json
from pathlib import Path

import pytest
from command_line import command
from plugin_project import emulated

from pytest_regen import sandbox

FILE = "src/acme/tides.py"
MODULE = '''\
def height(hour):
    """Return the height of the tide.

    >>> height(3)
    6
    """
    return 2 * hour
'''
SETTINGS = '[tool.pytest-regen]\nfunctions = ["src/acme/*.py"]\n'

pytestmark = pytest.mark.skipif(sandbox.missing() is not None, reason="no sandbox here")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a function of the user's own, as the working directory."""
    (tmp_path / FILE).parent.mkdir(parents=True)
    (tmp_path / FILE).write_text(MODULE, "utf-8")
    (tmp_path / "pyproject.toml").write_text(SETTINGS, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_function_that_is_there_becomes_a_unit(here: Path) -> None:
    """Its body gets the markers, and is recorded as written by hand; twice changes nothing."""
    first = command("adopt", f"{FILE}::height")
    made = (here / FILE).read_text("utf-8")
    assert command("adopt", f"{FILE}::height").code == 0

    marked = "    # [REGEN:BEGIN height]\n    return 2 * hour\n    # [REGEN:END height]\n"
    assert (first.code, "only reads" in first.told) == (0, False)
    assert made == MODULE.replace("    return 2 * hour\n", marked)
    assert (here / FILE).read_text("utf-8") == made
    assert "1 unit, no errors" in command("validate", FILE).told

    silent = '\n\ndef ebb(hour):\n    """Return half."""\n    return hour / 2\n'
    (here / FILE).write_text(made + silent, "utf-8")
    told = command("adopt", f"{FILE}::ebb").told
    assert "ebb has no example in the docstring: pytest only reads it" in told

    for mark, is_told in (("ebbs", True), ("ebb", False)):
        (here / "test_tides.py").write_text(f'UNIT = "{FILE}::{mark}"\n', "utf-8")
        assert ("only reads" in command("adopt", f"{FILE}::ebb").told) is is_told


def test_a_module_without_units_is_neither_store_nor_description(here: Path) -> None:
    """The error says what makes a unit, with the command; so where no kind claims it at all."""
    marked = command("generate", FILE)
    (here / "pyproject.toml").write_text("", "utf-8")
    claimed = command("generate", FILE)
    unnamed = command("adopt", f"{FILE}::height")

    assert (marked.code, claimed.code, unnamed.code) == (2, 2, 2)
    assert "`functions` below [tool.pytest-regen] does not name it" in unnamed.told
    assert unnamed.err.endswith(f"  next: pytest-regen init {FILE}::height\n")
    assert f"no function of {FILE} has markers yet" in marked.told
    assert f"no kind claims {FILE}" in claimed.told
    for done in (marked, claimed):
        assert done.err.endswith(f"  next: pytest-regen init {FILE}\n")


LOW = '''

def low(hour):
    """Return whether the water is low.

    >>> low(0)
    True
    """
    return height(hour) == 0
'''


@pytest.mark.parametrize(
    ("reply", "named"),
    [
        ("def low(hour):\n    return hour == 0", "low"),
        ("import math\n\n\ndef tide(hour):\n    return math.floor(hour)", "tide"),
    ],
)
def test_a_reply_that_is_another_function_is_no_body(
    here: Path, monkeypatch: pytest.MonkeyPatch, reply: str, named: str
) -> None:
    """It is told as what it is, for a stub as well, and never put into the file."""
    (here / FILE).write_text(MODULE.replace("return 2 * hour", "...") + LOW, "utf-8")
    assert command("adopt", f"{FILE}::height").code == 2  # Marked: a stub is not recorded.
    before = (here / FILE).read_text("utf-8")
    with emulated(monkeypatch, lambda _: f"```python\n{reply}\n```") as model:
        done = command("generate", FILE)

    assert done.code == 1
    assert f"the reply defines {named}, and not height" in json.dumps(model.requests[1].body)
    assert (here / FILE).read_text("utf-8") == before


def test_the_tests_that_are_marked_come_next(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No command runs them; other modules of tests are left out."""
    assert command("adopt", f"{FILE}::height").code == 0
    (here / "tests").mkdir()
    mark = f'@pytest.mark.regen(unit="{FILE}::height")'
    (here / "tests/test_tides.py").write_text(f"{mark}\ndef test_height(): ...\n", "utf-8")
    (here / "tests/test_other.py").write_text("def test_other(): ...\n", "utf-8")
    ask = ("regenerate", FILE, "--unit", "height", "--correction", "add")
    with emulated(monkeypatch, lambda _: "return hour + hour"):
        done = command(*ask)

    assert done.err.endswith(f"  next: pytest {FILE} tests/test_tides.py\n")


def test_a_docstring_that_changed_is_answered_by_name(here: Path) -> None:
    """`adopt` of the file leaves stale units alone and says so; with `--stale` it is the answer."""
    assert command("adopt", f"{FILE}::height").code == 0
    changed = (here / FILE).read_text("utf-8").replace("the tide", "a tide")
    (here / FILE).write_text(changed, "utf-8")

    done = command("adopt", FILE)

    assert "height: STALE" in done.told
    assert f"next: pytest-regen adopt {FILE} --stale" in done.told
    assert command("adopt", FILE, "--unit", "height").code == 0
    assert "STALE" not in command("validate", FILE).told
