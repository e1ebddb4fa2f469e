"""The example works as its README says: gated, healed, and generated again, all offline."""

import re
import shutil
from pathlib import Path

import pytest
from example_runs import run

EXAMPLE = Path(__file__).parents[2] / "examples" / "translations"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the example, three folders deep as in the repository."""
    folder = tmp_path / "examples" / "translations"
    ignored = shutil.ignore_patterns("__pycache__", "locks", "history")
    return Path(shutil.copytree(EXAMPLE, folder, ignore=ignored))


@pytest.mark.sweep  # its demonstration ends so
def test_every_string_passes(copy: Path) -> None:
    """The example is green as it is committed, with nothing to warn of."""
    done = run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider")

    assert done.returncode == 0, done.stdout
    assert "50 passed" in done.stdout
    assert "UNRECORDED" not in done.stdout


@pytest.mark.sweep  # as docs/how-to/translate-a-catalogue.md is followed
def test_the_demonstration_heals(copy: Path) -> None:
    """One string fails, is asked again from its recording, and is told apart from the others."""
    done = run(copy, "demo.py")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 failed, 49 passed" in done.stdout
    assert "PLACEHOLDER: lacks {date}" in done.stdout
    assert re.search(r"\b49 passed\b.*\b1 regenerated\b", done.stdout)
    assert '+    "free": "Frei bis {date}"' in done.stdout
    assert "emulated" in done.stdout


@pytest.mark.parametrize("language", ["de", pytest.param("fr", marks=pytest.mark.sweep)])
def test_a_catalogue_is_generated_again_from_its_recording(copy: Path, language: str) -> None:
    """Without the file and the ledger, the same bytes come back."""
    path = copy / "locales" / f"{language}.json"
    kept = path.read_bytes()
    shutil.rmtree(copy / ".regen")
    path.unlink()

    done = run(
        copy,
        *("-m", "pytest_regen", "generate", f"locales/{language}.json"),
        *("--cassette", f"cassettes/generate_{language}.yaml"),
    )

    assert done.returncode == 0, done.stderr
    assert path.read_bytes() == kept
