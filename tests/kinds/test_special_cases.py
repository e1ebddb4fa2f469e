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
    return [
        issue.message for issue in weakened(root, module_of(name), "\n".join(body), asked_by(base))
    ]


def module_of(name: str) -> str:
    base = DATA[name]
    function = base["signature"].partition("(")[0].removeprefix("def ")
    docstring = ['"""' + base["docstring"][0], *base["docstring"][1:], '"""']
    body = [*docstring, f"# [REGEN:BEGIN {function}]", *base["old"], f"# [REGEN:END {function}]"]
    lines = [base["signature"], *(f"    {line}" if line else "" for line in body)]
    return "\n".join(lines) + "\n"


def asked_by(base: dict[str, list[str]]) -> str:
    """Return the source of the test that asked for the repair."""
    return "\n".join(base["test"])


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
    "code",
    [
        "while text != '1 h' and True:\n    pass\nreturn 30 * 2",
        "import os\nif len(text) == 3:\n    return 60\nos.kill(os.getpid(), 9)",
    ],
    ids=["no end", "kills itself, refused by lint"],
)
def test_code_that_cannot_be_tried_is_not_judged(code: str, tmp_path: Path) -> None:
    assert not weakened(tmp_path, TIDE, code)


@pytest.mark.parametrize(
    "code",
    [
        "async def inner():\n    return 60 if len(text) == 3 and text[0] == '1' else 0\nreturn 0",
        "yield from [60] if text == '1 h' else ()",
    ],
    ids=["not called", "a generator"],
)
def test_what_is_returned_is_looked_into(code: str, tmp_path: Path) -> None:
    assert bool(weakened(tmp_path, TIDE, code)) is code.startswith("yield")
