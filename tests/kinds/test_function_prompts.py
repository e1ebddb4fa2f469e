"""What a model is asked for a function: bounded, and alike for all functions of a module."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from plugin_project import emulated
from unit_asking import generate_units

from pytest_regen.regeneration import TurnSettings
from pytest_regen.regeneration.costs import AskSize, Estimate, asks_for
from pytest_regen.settings import read_settings
from pytest_regen.testing import assert_cache_prefix_stable
from pytest_regen.turns import AnthropicProvider, DryRunProvider, cost_of
from pytest_regen.units.loading import load_kinds
from pytest_regen.units.place import UnitFile, open_units
from pytest_regen.units.view import FileUnits

SHARED = 16_000 + 6_000
BESIDES = 6_000
WORDS = 600
"""Characters of sentences, titles and fences."""


def unit(name: str, docstring: str = "Do it.", signature: str = "a") -> str:
    return (
        f'def {name}({signature}):\n    """{docstring}"""\n'
        f"    # [REGEN:BEGIN {name}]\n    return 4321\n    # [REGEN:END {name}]\n\n\n"
    )


def write(root: Path, text: str, more: Mapping[str, str] | None = None) -> UnitFile:
    """Write a project with one module of functions, and others."""
    for name, content in {"shapes.py": text, **(more or {})}.items():
        (root / name).write_text(content, "utf-8")
    (root / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\n[tool.pytest-regen]\nfunctions = ["shapes.py"]\n', "utf-8"
    )
    return open_units(load_kinds(root, read_settings(root)), "shapes.py")


def parts(units: FileUnits, name: str) -> tuple[str, str]:
    """Return what is shown to all, but for the kind's own words, and what is asked for one."""
    return units.system.removeprefix(units.kind.system), units.prompt(name)


LONG = "It is told at length.\n\n" + "    One more line of it.\n" * 600


@pytest.mark.parametrize("count", [0, 60])
def test_the_place_is_shown_last_and_only_there(tmp_path: Path, count: int) -> None:
    text = f'''\
class Shape(
    object,
):
    """A shape."""

    side: int = 3

    @property
    def area(self):
        """Return the area."""
        # [REGEN:BEGIN Shape.area]
        return 4321
        # [REGEN:END Shape.area]


def outer(side):
    half = side / 2

    def inner(at):
        """Return a part."""
        # [REGEN:BEGIN inner]
        return 4321
        # [REGEN:END inner]
        return half

    return inner


{"".join(unit(f"area_{n}", f"Figure {n}.{LONG}") for n in range(count))}'''
    units = write(tmp_path, text).open()

    assert "REGEN" not in units.system.removeprefix(units.kind.system)
    assert units.prompt("Shape.area").endswith('''(module shapes):

```python
class Shape(
    object,
):
    @property
    def area(self):
        """Return the area."""
        # [REGEN:BEGIN Shape.area]
        # your code
        # [REGEN:END Shape.area]
```''')
    asked = units.prompt("inner")
    assert asked.endswith('''```python
def outer(side):
    def inner(at):
        """Return a part."""
        # [REGEN:BEGIN inner]
        # your code
        # [REGEN:END inner]
        return half
```''')
    assert "half = side / 2" in (asked if count else units.system)


def test_what_a_function_names_stays_whole(tmp_path: Path) -> None:
    """In its own request: of the module the code too, of others signature and docstring."""
    docstring = "Return half of a side.\n\n    At most LIMIT.\n"
    text = f'''\
from others import Corner, edge

LIMIT = {list(range(300))}


class Figure:
    """A figure.

    Of any kind.
    """

    side: int  # in metres


# Half of it, rounded up.
def half(side):
    """Return the half.

    Never less.
    """
    return -(-side // 2)


{"".join(unit(f"area_{n}", f"Shape {n}.{LONG}") for n in range(60))}
{unit("area", docstring, "one: Figure, at: Corner")}'''
    corner = (
        f'class Corner:\n    """A corner."""\n\n    at: int\n\n\ndef edge():\n    """{LONG}"""\n'
    )
    units = write(tmp_path, text, {"others.py": corner}).open()

    shared, asked = parts(units, "area")

    assert "Of any kind." not in shared
    assert "# Half of it" not in shared
    assert f"LIMIT = {list(range(300))}"[:400] + " …" in shared
    assert "# from others:\nclass Corner:" in shared
    assert f"LIMIT = {list(range(300))}\n" in asked
    assert "    Of any kind.\n" in asked
    assert "\ndef half(side):" in asked
    assert "return -(-side // 2)" in asked
    assert "edge" not in asked
    assert asked.count("def area(") == 1
    assert "Of any kind." not in units.prompt("area_7")


def test_what_has_no_room_is_left_out_and_said(tmp_path: Path) -> None:
    text = "".join(f'def helper_{n}(side):\n    """Help {n}."""\n    x = 1\n' for n in range(900))
    area = unit("area", "Use helper_899.")
    units = write(tmp_path, f"{text}{area}def last(): return 1\n").open()

    shared, asked = parts(units, "area")

    assert len(shared) <= SHARED + WORDS
    assert len(asked) <= BESIDES + WORDS
    assert "def helper_0(" in shared
    assert "def helper_600(" not in shared + asked
    assert "def helper_899(" in asked
    lines = 3 * 901 + 2 - 3 * shared.count("def ")
    assert f"# {lines:,} more lines are left out." in shared


def answered(_: Mapping[str, Any]) -> str:
    """Answer any function."""
    return "```python\nreturn 4321\n```"


def test_all_functions_of_a_module_read_it_from_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "".join(unit(f"area_{n}", f"Figure {n}.\n" + "    Words.\n" * 40) for n in range(8))
    file = write(tmp_path, text.replace("return 4321", "..."))
    planning = TurnSettings(DryRunProvider(), "claude-sonnet-5-5")
    pages = [(name, 1) for name in file.open().names]
    sizes = list(map(AskSize.of, asks_for(file, file.open(), pages, planning)))
    with emulated(monkeypatch, answered) as api:
        done = generate_units(file, settings=TurnSettings(AnthropicProvider(), jobs=4))
        bodies = [request.body for request in api.requests]

    used = done.usage
    assert len(bodies) == 8
    assert_cache_prefix_stable([{**body, "messages": []} for body in bodies])
    written = used.cache_write_5m_tokens or 0
    assert used.cache_read_tokens == 7 * written
    assert written > 4 * (used.input_tokens or 0) / 8
    assert {size.system for size in sizes} == {sizes[0].system}
    assert Estimate(cost_of, sizes).input_tokens == pytest.approx(used.total_tokens, rel=0.2)
