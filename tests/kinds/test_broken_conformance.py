"""The conformance suite fails for a kind that breaks a law, and names the law."""

import pytest

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

TESTS = """
from pytest_regen.testing import KindConformance


class TestNotes(KindConformance):
    kind = "regen_kinds:Notes"


class TestLenient(KindConformance):
    kind = "regen_kinds:Lenient"


class TestMoody(KindConformance):
    kind = "regen_kinds:Moody"


class TestLossy(KindConformance):
    kind = "regen_kinds:Lossy"


class TestBlind(KindConformance):
    kind = "regen_kinds:Blind"
"""


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
