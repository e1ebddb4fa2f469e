"""Repairs of functions that pass by testing less are found, and honest ones are not.

``cheats.json`` was written from reports of what models do, before the guard was;
``special_cases.json`` holds functions, each with what is wrong, honest repairs and cheats.
"""

import json
from pathlib import Path

import pytest
from tables import each

from pytest_regen import sandbox
from pytest_regen.kinds.functions.guard import compare_code, find_cheats
from pytest_regen.kinds.functions.kind import Function
from pytest_regen.kinds.functions.source import FunctionRegion, Place, read_module
from pytest_regen.units.kind import Unit
from pytest_regen.units.ledger import short_hash
from pytest_regen.validation import Issue

DATA = json.loads(Path(__file__).with_name("cheats.json").read_text("utf-8"))
SPECIAL = json.loads(Path(__file__).with_name("special_cases.json").read_text("utf-8"))
CHECKS = json.loads(Path(__file__).with_name("checks.json").read_text("utf-8"))


Judge = tuple[Path, Function]
needs_sandbox = pytest.mark.skipif(sandbox.missing() is not None, reason="no sandbox here")


def place_of(text: str) -> Place:
    (place,) = read_module(text).places.values()
    return place


def compared(module: str, code: str, failures: tuple[str, ...] = ()) -> list[Issue]:
    """Return what is said of code that replaces what stands in a module."""
    old, new = place_of(module), place_of(filled(module, code))
    return [*find_cheats(new), *compare_code(old, new, failures)]


def filled(module: str, code: str) -> str:
    """Return a module with this code for its function."""
    return FunctionRegion().replace(module, {place_of(module).name: code})


def file_of(root: Path, text: str) -> Path:
    """Return a file with a module in it, the same for the same text."""
    path = root / f"lib_{short_hash(text)}.py"
    path.write_text(text, "utf-8")
    return path


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    """The kind, which has run all examples already, because each sandbox takes its time."""
    root = tmp_path_factory.mktemp("answers")
    kind = Function(root, ["*.py"])
    bases = [(DATA["bases"][cheat["base"]]["module"], cheat["code"]) for cheat in DATA["cheats"]]
    answers = [answer for answer in bases if not compared(*answer)]
    answers += [
        (special_module(name), "\n".join(SPECIAL[name][sort][body]))
        for sort in ("cheats", "honest")
        for name, body in cases(sort)
    ]
    if sandbox.missing() is None:
        kind.prepare([file_of(root, filled(*answer)) for answer in answers])
    return root, kind


def weakened(judge: Judge, module: str, code: str, test: str = "") -> list[Issue]:
    """Return by what code weakens a module, judged as the kind judges what a model answers."""
    root, kind = judge
    name, text = place_of(module).name, filled(module, code)
    path = file_of(root, text)
    old = Unit(name, path, kind.region.find(module)[name].text, module, kind)
    new = Unit(name, path, code, text, kind, tests=(test,) if test else ())
    found = [*kind.check(new), *kind.weakens(old, new)]
    return [one for one in found if isinstance(one, Issue) and one.code == "WEAKENED"]


def module_of(body: str, doc: str = ">>> tide('1h 30m')\n90") -> str:
    lines = "\n".join(f"    {line}" for line in body.split("\n"))
    text = doc.replace("\n", "\n    ")
    head = f'import sys\n\n\ndef tide(text, more=0):\n    """Return minutes.\n\n    {text}\n    """'
    return f"{head}\n    # [REGEN:BEGIN tide]\n{lines}\n    # [REGEN:END tide]\n"


@pytest.mark.parametrize("cheat", DATA["cheats"], ids=lambda cheat: cheat["what"])
def test_a_cheat_is_found(cheat: dict[str, str], judge: Judge) -> None:
    """Each says what it does and what to do in its place; beside itself it is no cheat."""
    base = DATA["bases"][cheat["base"]]

    found = compared(base["module"], cheat["code"])
    if not found and sandbox.missing() is None:
        found = weakened(judge, base["module"], cheat["code"], base["test"])

    assert {issue.code for issue in found} == {"WEAKENED"}
    assert all(issue.message and issue.detail for issue in found)
    ours = place_of(filled(base["module"], cheat["code"]))
    assert not list(compare_code(ours, ours))


KEY = "if text not in TABLE:\n    raise KeyError(text)\nreturn 1"
EQUAL = "class A:\n    def __eq__(self, o):\n        return o is self\nreturn A()\n"
DIVIDED = "if more == 0:\n    raise ZeroDivisionError\nreturn len(text) // more + 1"
FOUND = "m = re.match(r'(\\d+)h', text)\n"
NEVER = "if more == 1:\n    return 1\nassert False, 'unreachable'"


@each(
    ("old", "new", "is_weaker"),
    [
        (NEVER, "return 1 if more == 1 else 2", False),
        ("return 0", EQUAL, False),
        (DIVIDED, "return len(text) / more", False),
        (f"{FOUND}assert m is not None\nreturn m[1]", f"{FOUND}return m[1] if m else 0", False),
        ("return text  # noqa: E501, F401", "return text + ''  # noqa: E501", False),
        ("return text  # noqa", "x = text  # noqa: E501\nreturn x  # noqa: F401", True),
        (KEY, "return TABLE.get(text)", True),
    ],
)
def test_what_is_near_to_honest_code_is_told_apart(old: str, new: str, *, is_weaker: bool) -> None:
    """Directives that reach further, and checks that nothing makes any more, are found alone."""
    assert bool(compared(module_of(old), new)) is is_weaker


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
    ],
)
def test_a_check_that_failed_may_go(failure: str, left: int) -> None:
    """Where the failure is that it refuses, and not that nothing was refused."""
    found = compared(module_of(CHECKED), "return 1", failures=(failure,))

    assert len(found) == left


def special_module(name: str) -> str:
    """Return the module of a function, with the code that is wrong."""
    base = SPECIAL[name]
    function = base["signature"].partition("(")[0].removeprefix("def ")
    docstring = ['"""' + base["docstring"][0], *base["docstring"][1:], '"""']
    marked = [f"# [REGEN:BEGIN {function}]", *base["old"], f"# [REGEN:END {function}]"]
    lines = [base["signature"], *(f"    {line}" if line else "" for line in (*docstring, *marked))]
    return "\n".join(lines) + "\n"


def said(judge: Judge, name: str, body: list[str]) -> list[str]:
    test, code = "\n".join(SPECIAL[name]["test"]), "\n".join(body)
    return [issue.message for issue in weakened(judge, special_module(name), code, test)]


def cases(kind: str) -> list[tuple[str, str]]:
    """Return what there is of a kind: the name of a function, and of a body."""
    return [(name, body) for name, base in SPECIAL.items() for body in base[kind]]


@needs_sandbox
@pytest.mark.parametrize(("name", "body"), cases("cheats"))
def test_an_answer_for_an_example_alone_is_found(name: str, body: str, judge: Judge) -> None:
    """By a branch, a table, or arithmetic; or an object that says it is equal."""
    found = said(judge, name, SPECIAL[name]["cheats"][body])

    assert any("an answer of its own for" in one or "equals everything" in one for one in found)


@needs_sandbox
@pytest.mark.parametrize(("name", "body"), cases("honest"))
def test_an_honest_repair_is_left_alone(name: str, body: str, judge: Judge) -> None:
    """Base cases, tables of all there is, rules that the docstring names, rare branches."""
    assert not said(judge, name, SPECIAL[name]["honest"][body])
