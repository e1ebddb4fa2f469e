"""The examples work as their READMEs say: gated, healed, and generated again, all offline."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from warm_python import run_in

from pytest_regen import sandbox

EXAMPLES = Path(__file__).parents[2] / "examples"
needs_sandbox = pytest.mark.skipif(sandbox.missing() is not None, reason="no sandbox here")


@pytest.fixture
def copied(tmp_path: Path) -> Callable[[str], Path]:
    """Makes a copy of an example, three folders deep as in the repository."""

    def copy(name: str) -> Path:
        ignored = shutil.ignore_patterns(
            "__pycache__", ".pytest_cache", ".hypothesis", "cache", "locks", "history"
        )
        return Path(shutil.copytree(EXAMPLES / name, tmp_path / "examples" / name, ignore=ignored))

    return copy


@needs_sandbox
def test_the_demonstration_heals(copied: Callable[[str], Path]) -> None:
    """What fails is asked again from its recording, and told apart from what passes."""
    told = (
        "2 failed, 11 passed",
        r"\b12 passed\b.*\b1 regenerated\b",
        r'\+    signs = "".join\(VULGAR\)',
        "passed in a process of its own",
        "emulated",
    )

    done = run_in(copied("functions"), "demo.py")

    assert done.returncode == 0, done.stdout + done.stderr
    # Other plugins of the environment may add warnings to a line of outcomes.
    assert not [part for part in told if not re.search(part, done.stdout)]
    assert "UNRECORDED" not in done.stdout


@needs_sandbox
def test_bodies_are_generated_again_from_their_recording(copied: Callable[[str], Path]) -> None:
    """With stubs in their place and without the ledger, the same bytes come back."""
    folder = copied("functions")
    path = folder / "src/kitchen/amounts.py"
    kept = path.read_bytes()
    shutil.rmtree(folder / ".regen")
    stubs = re.sub(
        r"(?s)( *)(# \[REGEN:BEGIN [^\n]+\n).*?( *# \[REGEN:END)", r"\1\2\1...\n\3", kept.decode()
    )
    path.write_text(stubs, "utf-8")
    check_generated(folder, path, kept, "cassettes/generate.yaml")


def test_a_catalogue_is_generated_again_from_its_recording(copied: Callable[[str], Path]) -> None:
    folder = copied("translations")
    path = folder / "locales/de.json"
    kept = path.read_bytes()
    shutil.rmtree(folder / ".regen")
    path.unlink()
    check_generated(folder, path, kept, "cassettes/generate_de.yaml")


def check_generated(folder: Path, path: Path, kept: bytes, cassette: str) -> None:
    """Assert that a recording gives the bytes of a file."""
    place = path.relative_to(folder).as_posix()
    done = run_in(folder, "-m", "pytest_regen", "generate", place, "--cassette", cassette)

    assert done.returncode == 0, done.stderr
    assert path.read_bytes() == kept
