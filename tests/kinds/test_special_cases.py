"""Answers for the inputs of examples and tests alone are found, however they are spelt.

``special_cases.json`` holds functions, each with what is wrong, honest repairs and cheats.
"""

import json
from pathlib import Path

import pytest
from repairs import weakened

from pytest_regen import sandbox

DATA = json.loads(Path(__file__).with_name("special_cases.json").read_text("utf-8"))

pytestmark = pytest.mark.skipif(sandbox.missing() is not None, reason="no sandbox here")


def said(root: Path, name: str, body: list[str]) -> list[str]:
    base = DATA[name]
    function = base["signature"].partition("(")[0].removeprefix("def ")
    docstring = ['"""' + base["docstring"][0], *base["docstring"][1:], '"""']
    marked = [f"# [REGEN:BEGIN {function}]", *base["old"], f"# [REGEN:END {function}]"]
    lines = [base["signature"], *(f"    {line}" if line else "" for line in (*docstring, *marked))]
    test, code = "\n".join(base["test"]), "\n".join(body)
    return [issue.message for issue in weakened(root, "\n".join(lines) + "\n", code, test)]


def cases(kind: str) -> list[tuple[str, str]]:
    """Return what there is of a kind: the name of a function, and of a body."""
    return [(name, body) for name, base in DATA.items() for body in base[kind]]


@pytest.mark.parametrize(("name", "body"), cases("cheats"))
def test_an_answer_for_an_example_alone_is_found(name: str, body: str, tmp_path: Path) -> None:
    """By a branch, a table, or arithmetic; or an object that says it is equal."""
    found = said(tmp_path, name, DATA[name]["cheats"][body])

    assert any("an answer of its own for" in one or "equals everything" in one for one in found)


@pytest.mark.parametrize(("name", "body"), cases("honest"))
def test_an_honest_repair_is_left_alone(name: str, body: str, tmp_path: Path) -> None:
    """Base cases, tables of all there is, rules that the docstring names, rare branches."""
    assert not said(tmp_path, name, DATA[name]["honest"][body])


TIDE = '''def tide(text):
    """Return minutes.

    >>> tide("1 h")
    60
    """
    # [REGEN:BEGIN tide]
    return 0
    # [REGEN:END tide]
'''


@pytest.mark.parametrize(
    ("code", "is_found"),
    [
        ("while text != '1 h' and True:\n    pass\nreturn 30 * 2", False),
        ("import os\nif len(text) == 3:\n    return 60\nos.kill(os.getpid(), 9)", False),
        ("async def inner():\n    return 60 if text[0] == '1' else 0\nreturn 0", False),
        ("yield from [60] if text == '1 h' else ()", True),
    ],
    ids=["no end", "kills itself, refused by lint", "not called", "a generator"],
)
def test_code_is_judged_as_far_as_it_can_be_tried(
    code: str, tmp_path: Path, *, is_found: bool
) -> None:
    assert bool(weakened(tmp_path, TIDE, code)) is is_found
