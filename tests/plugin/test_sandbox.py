"""A run in which code was executed says how far it was kept apart."""

import json
import sys

import pytest

from pytest_regen.sandbox.levels import LEVELS, VARIABLE

KIND = """
from pytest_regen import Kind, regions, sandbox

class Sums(Kind):
    files = "sums.json"
    region = regions.JsonStrings()
    system = "You write sums."

    def prompt(self, unit):
        return "A sum."

    def check(self, unit):
        job = sandbox.Job(sandbox.Module("sums", f"x = {unit.text}"), (None,))
        handler = "def answer(module, question): return module.x"
        [result] = sandbox.ask([job], handler=handler)
        if result.raised:
            yield "SUM", result.raised.message
"""


@pytest.fixture
def sums(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project whose units are Python."""
    monkeypatch.delitem(sys.modules, "regen_kinds", raising=False)
    pytester.makepyfile(regen_kinds=KIND)
    pytester.makefile(".json", sums='{"good": "1 + 1", "bad": "1 / 0"}')
    pytester.makepyprojecttoml(
        '[tool.pytest.ini_options]\n[tool.pytest-regen]\nkinds = ["regen_kinds:Sums"]\n'
    )
    return pytester


@pytest.mark.parametrize("args", [[], ["-n", "1"]], ids=["alone", "in a worker"])
def test_the_level_is_told_where_code_was_run(
    sums: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, args: list[str]
) -> None:
    """In the summary and in the report."""
    monkeypatch.setenv(VARIABLE, "process")

    result = sums.runpytest("--regen-report=report.json", *args)

    assert result.parseoutcomes() == {"passed": 1, "failed": 1}
    assert f"sandbox: process ({LEVELS['process']})" in result.stdout.lines
    assert json.loads((sums.path / "report.json").read_text("utf-8"))["run"]["sandbox"] == "process"


def test_a_run_that_executes_nothing_says_nothing(sums: pytest.Pytester) -> None:
    """Whatever ran in this process before."""
    result = sums.runpytest("--collect-only", "--regen-report=report.json")

    result.stdout.no_fnmatch_line("*sandbox:*")
    assert json.loads((sums.path / "report.json").read_text("utf-8"))["run"]["sandbox"] is None


def test_a_level_that_does_not_work_fails_the_unit_in_plain_words(
    sums: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is run at a weaker one."""
    monkeypatch.setenv(VARIABLE, "castle")

    result = sums.runpytest()

    assert result.parseoutcomes() == {"failed": 2}
    result.stdout.fnmatch_lines(["*REGEN_SANDBOX=castle is no level of the sandbox*"])
