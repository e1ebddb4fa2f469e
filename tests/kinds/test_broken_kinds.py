"""What is broken fails its units, and nothing else; a kind that breaks a law fails that law."""

import json

import pytest

RAISING = """
from pytest_regen import Kind


class Broken:
    def find(self, text):
        return {"a": text[10_000]}

    def replace(self, text, texts):
        return text


class Notes(Kind):
    files = "notes.txt"
    region = Broken()

    def units(self, file):
        return ["a"]

    def prompt(self, unit):
        return "Write a note."


class Tricks(Kind):
    files = "tricks.txt"

    def check(self, unit):
        if unit.name == "raises":
            raise ValueError(unit.text)
        yield "NOTE", unit.text
"""


def test_what_raises_fails_its_units_and_moves_no_cursor(pytester: pytest.Pytester) -> None:
    """Whatever a text, an exception or a finding holds, the terminal shows it and does not obey."""
    pytester.makepyfile(regen_kinds=RAISING, test_mine="def test_mine():\n    pass\n")
    names = '["regen_kinds:Notes", "regen_kinds:Tricks"]'
    pytester.makepyprojecttoml(f"[tool.pytest-regen]\nkinds = {names}\n")
    (pytester.path / "notes.txt").write_text("a note\n", "utf-8")
    texts = (f"# [REGEN:BEGIN {name}]\n\x1b[2J\n# [REGEN:END {name}]\n" for name in ("a", "raises"))
    (pytester.path / "tricks.txt").write_text("".join(texts), "utf-8")

    result = pytester.runpytest_subprocess("-o", "regen_annotations=always")

    result.assert_outcomes(passed=1, failed=3)
    result.stdout.fnmatch_lines(
        ["*KIND_ERROR: Notes.region.find raised IndexError*", "*in find", "*IndexError: string*"]
    )
    result.stdout.no_fnmatch_line("*INTERNALERROR*")
    assert result.stdout.str().count("\\x1b[2J") > 3
    assert "\x1b" not in result.stdout.str()


def test_a_broken_source_catalogue_is_said_once_per_target(pytester: pytest.Pytester) -> None:
    """One item of each target fails with the line of the source, without a traceback."""
    pytester.makepyprojecttoml(
        '[[tool.pytest-regen.translations]]\nsource = "en.json"\ntargets = "*.json"\n'
    )
    (pytester.path / "en.json").write_text('{\n"a": "x",\n"a": "y"}', "utf-8")
    (pytester.path / "de.json").write_text(json.dumps({"a": "x"}), "utf-8")

    result = pytester.runpytest_inprocess()

    result.assert_outcomes(failed=1)
    said = "en.json, the source of translations: line 3: the JSON has the key 'a' *"
    result.stdout.fnmatch_lines([said, "*next: correct that line, *"])
    result.stdout.no_fnmatch_line("*direct cause*")


KINDS = """
import itertools

from pytest_regen import Kind, regions

COUNT = itertools.count()


class Notes(Kind):
    files = "notes.json"
    region = regions.JsonStrings()
    examples = [("a", "good", "bad")]

    def units(self, file):
        return ["a"]

    def prompt(self, unit):
        return "Write a note."

    def check(self, unit):
        return ["is bad"] if unit.text == "bad" else []


class Lenient(Notes):
    def check(self, unit):
        return []


class Moody(Notes):
    def check(self, unit):
        return [f"is bad for the {next(COUNT)}th time"] if unit.text == "bad" else []


class Forgetful(regions.JsonStrings):
    def replace(self, text, texts):
        return super().replace(text, {name: new.upper() for name, new in texts.items()})


class Lossy(Notes):
    region = Forgetful()


class Blind(Notes):
    examples = [("b", "good", "bad")]
"""

TESTS = "from pytest_regen.testing import KindConformance\n" + "".join(
    f"class Test{name}(KindConformance):\n    kind = 'regen_kinds:{name}'\n"
    for name in ("Notes", "Lenient", "Moody", "Lossy", "Blind")
)


def test_a_kind_that_breaks_a_law_fails_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(regen_kinds=KINDS, test_kinds=TESTS)

    result = pytester.runpytest_inprocess("-k", "good_texts or comes_back")

    result.assert_outcomes(passed=4, failed=4, errors=2)
    result.stdout.fnmatch_lines(
        [
            "no file has a unit of the examples: the kind's units are a; set examples = *",
            "*a: the bad text passes*",
            "*a: check is not stable*",
            "*a cannot hold this text: the text does not come back*",
        ]
    )
