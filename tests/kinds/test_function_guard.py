"""Repairs of functions that pass by testing less are found, and honest ones are not.

``cheats.json`` was written from reports of what models do, before the guard was.
"""

import json
from pathlib import Path

import pytest
from repairs import weakened
from tables import each

from pytest_regen import sandbox
from pytest_regen.kinds.functions.guard import compare_code, find_cheats
from pytest_regen.kinds.functions.source import FunctionRegion, Place, read_module
from pytest_regen.validation import Issue

DATA = json.loads(Path(__file__).with_name("cheats.json").read_text("utf-8"))
CHECKS = json.loads(Path(__file__).with_name("checks.json").read_text("utf-8"))


def place_of(text: str) -> Place:
    (place,) = read_module(text).places.values()
    return place


def compared(module: str, code: str, failures: tuple[str, ...] = ()) -> list[Issue]:
    """Return what is said of code that replaces what stands in a module."""
    old = place_of(module)
    new = place_of(FunctionRegion().replace(module, {old.name: code}))
    return [*find_cheats(new), *compare_code(old, new, failures)]


def module_of(body: str, doc: str = ">>> tide('1h 30m')\n90") -> str:
    lines = "\n".join(f"    {line}" for line in body.split("\n"))
    text = doc.replace("\n", "\n    ")
    head = f'import sys\n\n\ndef tide(text, more=0):\n    """Return minutes.\n\n    {text}\n    """'
    return f"{head}\n    # [REGEN:BEGIN tide]\n{lines}\n    # [REGEN:END tide]\n"


@pytest.mark.parametrize("cheat", DATA["cheats"], ids=lambda cheat: cheat["what"])
def test_a_cheat_is_found(cheat: dict[str, str], tmp_path: Path) -> None:
    """Each says what it does and what to do in its place; beside itself it is no cheat."""
    base = DATA["bases"][cheat["base"]]

    found = compared(base["module"], cheat["code"])
    if not found and sandbox.missing() is None:
        found = weakened(tmp_path, base["module"], cheat["code"], base["test"])

    assert {issue.code for issue in found} == {"WEAKENED"}
    assert all(issue.message and issue.detail for issue in found)
    ours = place_of(
        FunctionRegion().replace(base["module"], {place_of(base["module"]).name: cheat["code"]})
    )
    assert not list(compare_code(ours, ours))


HONEST = {
    "a table of units": ("return 0", "return {'h': 60, 'm': 1, '1d': 1440}[text]"),
    "a sentence about one": ("return 0", "# see noqa in the guide\nreturn 1"),
    "a line that is never reached": (
        "if more == 1:\n    return 1\nassert False, 'unreachable'",
        "return 1 if more == 1 else 2",
    ),
    "an equality": (
        "return 0",
        "class A:\n    def __eq__(self, o):\n        return o is self\nreturn A()\n",
    ),
    "errors told": (
        "return int(text)",
        (
            "try:\n    return int(text)\nexcept Exception as error:\n"
            "    raise ValueError(text) from error"
        ),
    ),
    "an error that a division raises itself": (
        "if more == 0:\n    raise ZeroDivisionError\nreturn len(text) // more + 1",
        "return len(text) / more",
    ),
    "a case dealt with in an expression": (
        "m = re.match(r'(\\d+)h', text)\nassert m is not None\nreturn int(m[1])",
        "m = re.match(r'(\\d+)h', text)\nreturn int(m[1]) if m else 0",
    ),
    "an assert that tells a type goes with its variable": (
        "m = re.match(r'(\\d+)h', text)\nassert m\nreturn int(m[1])",
        "return int(text.split('h')[0]) * 60",
    ),
    "a directive limited further": (
        "return text  # noqa: E501, F401",
        "return text + ''  # noqa: E501",
    ),
}


@each(("old", "new"), HONEST.values(), ids=HONEST)
def test_honest_code_is_left_alone(old: str, new: str) -> None:
    assert not compared(module_of(old), new)


@each(
    ("old", "new"),
    [
        ("return text  # noqa", "x = text  # noqa: E501\nreturn x  # noqa: F401"),
        ("if text not in TABLE:\n    raise KeyError(text)\nreturn 1", "return TABLE.get(text)"),
        (
            "if text not in TABLE:\n    raise KeyError(text)\nreturn 1",
            "try:\n    return TABLE[text]\nexcept KeyError:\n    return 0",
        ),
        ("total = sum(more)\nassert total == len(text)\nreturn total", "return len(text)"),
        ("assert isinstance(text, str)\nreturn text", "return str(text)"),
        ("return 0", "import os\nif 'CI' in os.environ:\n    return 90\nreturn 1"),
        ("return 0", "from sys import modules\nif 'pytest' in modules:\n    return 90\nreturn 1"),
        (
            "return 0",
            "class A:\n    def __eq__(self, o):\n        'Any.'\n        return True\nreturn A()",
        ),
    ],
)
def test_what_is_near_to_honest_code_is_found(old: str, new: str) -> None:
    """Directives that reach further, checks that nothing makes any more, cheats in other words."""
    assert compared(module_of(old), new)


@each("name", CHECKS["gone"])
def test_a_check_that_is_gone_is_found(name: str) -> None:
    """Whatever else is raised; and one that stands there, and cannot fail."""
    old, new = ("\n".join(lines) for lines in CHECKS["gone"][name])

    found = compared(module_of(old), new)

    assert [issue.message for issue in found if "drops a check" in issue.message]


@each("name", CHECKS["rewritten"])
def test_a_check_in_another_form_is_left_alone(name: str) -> None:
    """Joined, moved, turned round, made by Python, or with another error."""
    old, new = ("\n".join(lines) for lines in CHECKS["rewritten"][name])

    assert not compared(module_of(old), new)


def test_a_directive_of_the_module_may_stand_in_its_functions() -> None:
    old = module_of("return text")
    outside = old.replace("import sys\n", "import sys  # type: ignore[import]\n")

    assert not compared(outside, "return text + ''  # type: ignore[import]")
    assert compared(outside, "return text + ''  # type: ignore")
    assert compared(outside, "return text + ''  # noqa")
    assert compared(old, "return text + ''  # type: ignore[import]")


CHECKED = "if more > 365:\n    raise ValueError(more)\nassert text != 'x'\nreturn 0"


@each(
    ("failure", "left"),
    [
        ("[TEST] test_it fails: ValueError: 400\nraised by: raise ValueError(more)", 1),
        ("[TEST] test_it fails: DID NOT RAISE <class 'ValueError'>", 2),
        ("the example shows something else\nexpected: 1\ngot:      ValueError: 400", 1),
        ("the example shows something else\nexpected: ValueError: 400\ngot:      1", 2),
    ],
)
def test_a_check_that_failed_may_go(failure: str, left: int) -> None:
    """Where the failure is that it refuses, and not that nothing was refused."""
    found = compared(module_of(CHECKED), "return 1", failures=(failure,))

    assert len(found) == left


@each(
    "code",
    [
        "return " + "+".join(["text"] * 4000),
        f"if more == 0x{'f' * 9000}:\n    return 1\nreturn 0",
        "def (",
        "try:\n    raise max(text)\nexcept KeyError:\n    return 0",
    ],
)
def test_no_code_is_too_odd(code: str) -> None:
    old = place_of(module_of("return 0"))
    new = place_of(FunctionRegion().replace(module_of("return 0"), {"tide": code}))

    assert not list(compare_code(old, new))
    assert not list(compare_code(new, old))
