"""Types that are run by the gate: items, healing, the setting, and what is not there."""

from pathlib import Path

import pytest
from command_line import command
from run_stores import run_store

from pytest_regen.stores import RegenStore

ROUNDED = {
    "    note: str | None = None\n": (
        "    note: str | None = None\n\n"
        "    def model_post_init(self, context: object) -> None:\n"
        "        self.length = float(round(self.length))\n"
    )
}


@pytest.fixture
def rounded(pytester: pytest.Pytester) -> Path:
    """A project with one store, in which a type rounds a number."""
    store = run_store(pytester.path, ROUNDED, language="python", profile="default")
    command("adopt", store.path)
    pytester.makeini("[pytest]\nregen_stores = api/*\n")
    return store.path


def run(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    """Run pytest in this process."""
    return pytester.runpytest_inprocess(*options)


def test_a_type_that_misbehaves_fails_and_is_healed(
    pytester: pytest.Pytester, rounded: Path
) -> None:
    """The item names the field and shows an instance; the types around it pass.

    The ini value turns it off; another word is a usage error.
    """
    gate = run(pytester)
    off = run(pytester, "-o", "regen_behaviour=off")
    wrong = run(pytester, "-o", "regen_behaviour=on")

    assert gate.parseoutcomes() == {"passed": 3, "failed": 1}
    gate.stdout.fnmatch_lines(["*Harbour.py*: ROUND_TRIP: 'length' comes back as *"])
    gate.stdout.fnmatch_lines(["    instance: {*"])
    assert off.parseoutcomes() == {"passed": 4}
    assert wrong.ret == pytest.ExitCode.USAGE_ERROR
    wrong.stderr.fnmatch_lines(["*regen_behaviour = on*auto, off*"])

    healed = run(pytester, "--regen", "--regen-provider", "template")

    assert healed.parseoutcomes() == {"passed": 3, "regenerated": 1}
    assert "round" not in RegenStore.open(rounded).source


def test_what_is_missing_is_said_once(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For all stores together, at the end; the types pass by what reading them shows."""
    for name in ("one", "two"):
        run_store(pytester.path / name, language="typescript", profile="default")
    pytester.makeini("[pytest]\nregen_stores = */api/*\n")
    monkeypatch.setenv("PATH", str(pytester.path))

    result = run(pytester)

    assert result.parseoutcomes() == {"passed": 8}
    line = "behaviour: not run for 2 stores: types were only read: node is not on the PATH"
    assert result.stdout.lines.count(line) == 1
