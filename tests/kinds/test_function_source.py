"""A module read around its regions: where they may stand, what is an input, what is a stub."""

import pytest

from pytest_regen.errors import RegionError
from pytest_regen.kinds.functions.source import (
    FunctionRegion,
    is_stub,
    read_module,
    same_code,
)

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


def test_each_region_knows_its_function() -> None:
    """A property of a class is named with the class, and its own lines are known."""
    places = read_module(MODULE).places

    assert [place.qualname for place in places.values()] == ["first", "Boat.name"]
    assert [bool(place.inputs[2]) for place in places.values()] == [False, True]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return next(iter(items), default)", "return 1"),
        ("(\n    Iterable,\n)", "Iterable"),
        ("items: Iterable[int], *,", "items:  Iterable[int],\n    *,"),
        ("import re\n", "import re  # for later\n"),
        ('"""A module."""', '"""Another module."""'),
    ],
)
def test_what_is_no_input(old: str, new: str) -> None:
    """An answer, layout, comments and the rest of the module make nothing stale."""
    assert old in MODULE
    assert inputs(MODULE.replace(old, new)) == inputs(MODULE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("default: int | None = None", "default: int | None = 0"),
        ("def first", "async def first"),
        ("import re", "import re, json"),
        (">>> first([3, 2])", ">>> first([3, 1])"),
    ],
)
def test_what_is_an_input(old: str, new: str) -> None:
    """Signature, docstring and imports are what a function is made from."""
    assert old in MODULE
    assert inputs(MODULE.replace(old, new, 1)) != inputs(MODULE)


def test_the_own_lines_of_a_function_are_an_input() -> None:
    """What the user wrote before and after the region decides what is missing."""
    changed = MODULE.replace("return found.strip()", "return found")

    assert inputs(changed, "Boat.name") != inputs(MODULE, "Boat.name")
    assert inputs(changed) == inputs(MODULE)


REGION = "# [REGEN:BEGIN f]\n{0}pass\n{0}# [REGEN:END f]\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (REGION.format(""), "line 1: the block 'f' stands in no function"),
        (
            "class A:\n    " + REGION.format("    "),
            "line 2: the block 'f' stands in no function",
        ),
        ("def f(:\n    " + REGION.format("    "), "line 1: "),
        (
            'def f():\n    """Doc.\n\n    >>>f()\n    """\n    ' + REGION.format("    "),
            "line 2: the examples of f cannot be read",
        ),
    ],
)
def test_a_region_stands_in_a_function(text: str, reason: str) -> None:
    assert refusal(text).startswith(reason)


def test_a_function_has_one_region() -> None:
    text = "def f():\n    # [REGEN:BEGIN a]\n    # [REGEN:END a]\n    # [REGEN:BEGIN b]\n"
    text += "    # [REGEN:END b]\n"

    assert "the blocks 'a' and 'b' stand in one function, f" in refusal(text)


def test_a_function_inside_another_has_its_own_region() -> None:
    text = (
        "def f():\n    def g():\n        # [REGEN:BEGIN g]\n        # [REGEN:END g]\n"
        "    # [REGEN:BEGIN f]\n    # [REGEN:END f]\n"
    )
    places = read_module(text).places

    assert [place.qualname for place in places.values()] == ["f.g", "f"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "...",
        'raise NotImplementedError("later")  # TODO',
        "raise NotImplementedError\nyield",
        '"""Doc."""\n...',
    ],
)
def test_stubs(text: str) -> None:
    assert is_stub(text)


@pytest.mark.parametrize("text", ["return", "raise ValueError", "...\nx = 1", "x ="])
def test_no_stubs(text: str) -> None:
    assert not is_stub(text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x = 'a'", 'x = "a"'),
        ("return f(a, b)", "return f(\n    a,\n    b,\n)"),
        ("x = 0XFF", "x = 0xff"),
        ("def g():\n    '''Doc.  \n    more'''", 'def g():\n  """Doc.\n  more"""'),
    ],
)
def test_layout_is_no_drift(old: str, new: str) -> None:
    assert same_code(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [("x = 1", "x = 2"), ("x = 1  # a", "x = 1  # b"), ("x = (", "x =  (")],
)
def test_other_code_is_drift(old: str, new: str) -> None:
    """Another value, another comment, or code that nobody can compare."""
    assert not same_code(old, new)


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


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("one", "# as it is\n\n# really\nreturn x"),
        ("Boat.name", "@cache\ndef inner():\n    return 1\n\nreturn inner()  # last"),
        ("Boat.only_text", ""),
    ],
)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_markers_are_put_around_what_stands_there(name: str, code: str, ends: str) -> None:
    """The whole body below the docstring, with its comments; no other line changes."""
    plain = PLAIN.replace("\n", ends)
    made = FunctionRegion().enclose_all(plain, [name])

    assert FunctionRegion().find(made)[name].text == code
    added = [line for line in made.split("\n") if "REGEN" in line]
    assert len(added) == 2
    assert [line for line in made.split("\n") if line not in added] == plain.split("\n")


def test_markers_are_put_around_many_at_once() -> None:
    region, names = FunctionRegion(), ["Boat.only_text", "one", "Boat.name"]
    made = PLAIN
    for name in names:
        made = region.enclose_all(made, [name])

    assert region.enclose_all(PLAIN, names) == made
    assert region.enclose_all(PLAIN, names[::-1]) == made


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("name", "the module has no function 'name'"),
        ("Boat.on_one_line", "line 25: the code of Boat.on_one_line has no lines of its own"),
    ],
)
def test_where_no_markers_fit(name: str, reason: str) -> None:
    with pytest.raises(RegionError) as caught:
        FunctionRegion().enclose_all(PLAIN, [name])

    assert caught.value.what == reason
