"""The example works as its README says: gated, healed, and generated again, all offline."""

import json
import re
import shutil
from pathlib import Path

import pytest
from example_runs import run

EXAMPLE = Path(__file__).parents[2] / "examples" / "csharp_dto"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the example, three folders deep as in the repository."""
    folder = tmp_path / "examples" / "csharp_dto"
    shutil.copytree(EXAMPLE, folder)
    return folder


@pytest.mark.sweep  # its demonstration ends so
def test_every_type_and_test_passes(copy: Path) -> None:
    """The example is green as it is committed."""
    done = run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider")

    assert done.returncode == 0, done.stdout
    assert "62 passed" in done.stdout


def test_the_demonstration_heals(copy: Path) -> None:
    """One type fails, is regenerated from its recording, and is told apart from those that pass."""
    done = run(copy, "demo.py")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 failed, 61 passed" in done.stdout
    # Other plugins of the environment may add warnings to the line.
    assert re.search(r"\b61 passed\b.*\b1 regenerated\b", done.stdout)
    assert '+    [JsonPropertyName("bollards")]' in done.stdout
    assert "emulated" in done.stdout


@pytest.mark.sweep  # test_strict_mode.py generates them from the same recordings
@pytest.mark.parametrize("name", ["port_call", "tides"])
def test_a_store_is_generated_again_from_its_recording(copy: Path, name: str) -> None:
    """The same description and recording give the same files, but for the times in pages.json."""
    operation = {"port_call": "GET /v1/port-calls/{callId}", "tides": "GET /v1/tides"}[name]
    namespace = {"port_call": "Vell.Harbour.PortCalls", "tides": "Vell.Harbour.Tides"}[name]

    done = run(
        copy,
        *("-m", "pytest_regen", "generate", "api.yaml", operation, "--out", "again", "--json"),
        *("--namespace", namespace, "--cassette", f"cassettes/generate_{name}.yaml"),
    )

    assert done.returncode == 0, done.stderr
    made = copy / json.loads(done.stdout)["path"]
    kept = copy / "generated" / made.name
    for file in sorted(path for path in kept.iterdir() if path.name != "pages.json"):
        assert (made / file.name).read_bytes() == file.read_bytes(), file.name
    assert pages(made) == pages(kept)


def pages(store: Path) -> list[dict[str, object]]:
    """Return the stored pages without the times at which they were written."""
    entries: list[dict[str, object]] = json.loads((store / "pages.json").read_text("utf-8"))[
        "pages"
    ]
    return [
        {key: value for key, value in page.items() if key != "generated_at"} for page in entries
    ]
