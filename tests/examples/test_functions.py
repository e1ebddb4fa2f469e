"""The example works as its README says: gated, healed by a test of its own, generated again."""

import re
import shutil
from pathlib import Path

import pytest
from example_runs import run

from pytest_regen import sandbox

EXAMPLE = Path(__file__).parents[2] / "examples" / "functions"
MODULE = "src/kitchen/amounts.py"

pytestmark = pytest.mark.skipif(sandbox.missing() is not None, reason="no sandbox here")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the example, three folders deep as in the repository."""
    folder = tmp_path / "examples" / "functions"
    left_out = ("__pycache__", ".pytest_cache", ".hypothesis", "cache", "locks", "history")
    return Path(shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns(*left_out)))


def test_the_demonstration_heals(copy: Path) -> None:
    """One test fails, its function is asked again from the recording, all others pass."""
    done = run(copy, "demo.py")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 failed, 11 passed" in done.stdout
    assert re.search(r"\b12 passed\b.*\b1 regenerated\b", done.stdout)
    assert '+    signs = "".join(VULGAR)' in done.stdout
    assert "passed in a process of its own" in done.stdout
    assert "emulated" in done.stdout
    assert "UNRECORDED" not in done.stdout


@pytest.mark.sweep
def test_every_function_and_test_passes(copy: Path) -> None:
    """The example is green as it is committed, with nothing to warn of."""
    done = run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider")

    assert done.returncode == 0, done.stdout
    assert "13 passed" in done.stdout
    assert "UNRECORDED" not in done.stdout


def test_the_bodies_are_generated_again_from_their_recording(copy: Path) -> None:
    """With stubs in their place and without the ledger, the same bytes come back."""
    path = copy / MODULE
    kept = path.read_bytes()
    shutil.rmtree(copy / ".regen")
    stubs = re.sub(
        r"(?s)( *)(# \[REGEN:BEGIN [^\n]+\n).*?( *# \[REGEN:END)", r"\1\2\1...\n\3", kept.decode()
    )
    path.write_text(stubs, "utf-8")

    command = ("-m", "pytest_regen", "generate", MODULE, "--cassette", "cassettes/generate.yaml")
    done = run(copy, *command)

    assert done.returncode == 0, done.stderr
    assert path.read_bytes() == kept
