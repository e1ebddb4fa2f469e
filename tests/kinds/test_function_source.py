"""A module read around its regions: where they may stand, what is an input, what is a stub."""

import pytest
from tables import each

from pytest_regen.errors import RegionError
from pytest_regen.kinds.functions.source import FunctionRegion, is_stub, read_module

MODULE = '''\
"""A module."""

import re
from collections.abc import (
    Iterable,
)


def first(items: Iterable[int], *, default: int | None = None) -> int | None:
    """Return the first item.

    >>> first([3, 2])
    3
    """
    # [REGEN:BEGIN first]
    return next(iter(items), default)
    # [REGEN:END first]


class Boat:
    """A boat."""

    @property
    def name(self) -> str:
        """Its name."""
        found = self._find()
        # [REGEN:BEGIN Boat.name]
        # [REGEN:END Boat.name]
        return found.strip()
'''


def inputs(text: str, name: str = "first") -> tuple[str, ...]:
    module = read_module(text)
    return (*module.places[name].inputs, module.import_lines)


def refusal(text: str) -> str:
    with pytest.raises(RegionError) as caught:
        FunctionRegion().find(text)
    return caught.value.what


@each(
    ("name", "old", "new", "is_input"),
    [
        ("first", "return next(iter(items), default)", "return 1", False),
        ("first", "import re\n", "import re  # for later\n", False),
        ("first", "default: int | None = None", "default: int | None = 0", True),
        ("first", "import re", "import re, json", True),
        ("first", ">>> first([3, 2])", ">>> first([3, 1])", True),
        ("Boat.name", "return found.strip()", "return found", True),
    ],
)
def test_what_is_an_input(name: str, old: str, new: str, *, is_input: bool) -> None:
    """Signature, docstring, imports and the user's own lines are; layout and the rest are not."""
    assert old in MODULE
    assert (inputs(MODULE.replace(old, new, 1), name) != inputs(MODULE, name)) is is_input


REGION = "# [REGEN:BEGIN f]\n{0}pass\n{0}# [REGEN:END f]\n"
IN_FUNCTION = REGION.format("    ")


@each(
    ("text", "reason"),
    [
        (REGION.format(""), "line 1: the block 'f' stands in no function"),
        (f"class A:\n    {IN_FUNCTION}", "line 2: the block 'f' stands in no function"),
        (
            f'def f():\n    """Doc.\n\n    >>>f()\n    """\n    {IN_FUNCTION}',
            "line 2: the examples of f cannot be read",
        ),
        (
            f"def f():\n    {IN_FUNCTION}    # [REGEN:BEGIN b]\n    # [REGEN:END b]\n",
            "line 5: the blocks 'f' and 'b' stand in one function, f",
        ),
    ],
)
def test_a_region_stands_in_a_function_of_its_own(text: str, reason: str) -> None:
    assert refusal(text).startswith(reason)


def test_stubs() -> None:
    """What does nothing yet; ``yield`` below a ``raise`` only makes the function a generator."""
    later = 'raise NotImplementedError("later")  # TODO\nyield'
    stubs = ["", "...", later, '"""Doc."""\n...']
    others = ["return", "raise ValueError", "...\nx = 1", "x ="]

    assert [text for text in (*stubs, *others) if is_stub(text)] == stubs


@each(
    ("old", "new", "is_same"),
    [
        ("return f('a', b)", 'return f(\n    "a",\n    b,\n)', True),
        ("def g():\n    '''Doc.  \n    more'''", 'def g():\n  """Doc.\n  more"""', True),
        ("x = 1", "x = 2", False),
        ("x = 1  # a", "x = 1  # b", False),
        ("x = (", "x =  (", False),
    ],
)
def test_layout_is_no_drift(old: str, new: str, *, is_same: bool) -> None:
    """Another value or comment is, and code that nobody can compare."""
    assert FunctionRegion().same(old, new) is is_same


PLAIN = '''\
def one(x):
    """Return it.

    >>> one(1)
    1
    """
    # as it is

    # really
    return x


class Boat:
    @property
    def name(self):
        @cache
        def inner():
            return 1

        return inner()  # last

    def only_text(self):
        """Do nothing."""

    def on_one_line(self): return 1
'''


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_markers_are_put_around_what_stands_there(ends: str) -> None:
    """The whole body below the docstring, with its comments; no other line changes."""
    plain, region = PLAIN.replace("\n", ends), FunctionRegion()
    made = region.enclose_all(plain, ["Boat.only_text", "one", "Boat.name"])

    assert {name: span.text for name, span in region.find(made).items()} == {
        "one": "# as it is\n\n# really\nreturn x",
        "Boat.name": "@cache\ndef inner():\n    return 1\n\nreturn inner()  # last",
        "Boat.only_text": "",
    }
    added = [line for line in made.split("\n") if "REGEN" in line]
    assert len(added) == 6
    assert [line for line in made.split("\n") if line not in added] == plain.split("\n")


def test_what_cannot_be_enclosed_is_refused() -> None:
    """A function that is not there, or that stands on the line of its signature."""
    region = FunctionRegion()

    with pytest.raises(RegionError, match="the module has no function 'name'"):
        region.enclose_all(PLAIN, ["name"])
    with pytest.raises(RegionError, match=r"line 25: the code of Boat\.on_one_line shares a line"):
        region.enclose_all(PLAIN, ["Boat.on_one_line"])
