"""Figures of pytest: what tests with a cassette take, what the others take, and the start."""

import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

from cassette_figures import cpu_of
from cassette_subjects import MAKERS, Subject, made

__all__ = ["ROWS"]

_PLUGINS = {
    "pytest-regen": "pytest_regen.pytest_plugin.plugin",
    "vcrpy": "pytest_recording.plugin",
    "cassetter": "cassetter.pytest_plugin",
}
_TESTS = 300
_PLAIN = 1_000
_ROUNDS = 5
_NONE = "import pytest\n@pytest.mark.parametrize('i', range({n}))\ndef test_a(i): pass\n"
_MARKED = _NONE.replace("\n", "\n@pytest.mark.vcr\n", 1)
_OURS = "import pytest\n@pytest.mark.parametrize('i', range({n}))\ndef test_a(i, cassette): pass\n"
_EMPTY = (
    "import pytest\n@pytest.fixture\ndef nothing(): yield\n"
    "@pytest.mark.parametrize('i', range({n}))\ndef test_a(i, nothing): pass\n"
)
_BARE = [sys.executable, "-m", "pytest", "-q", "-pno:cacheprovider"]


def _with_plugin(subject: Subject) -> list[str]:
    ours = ["-oregen_unplayed=ignore"] if subject.name == "pytest-regen" else []
    return [*_BARE, f"-p{_PLUGINS[subject.name]}", *ours]


def _suite(folder: Path, name: str, text: str, seed: bytes) -> Path:
    """Return a folder with a module of tests, and a cassette for each."""
    suite = folder / name
    cassettes = suite / "cassettes" / f"test_{name}"
    cassettes.mkdir(parents=True)
    (suite / "pytest.ini").write_text("[pytest]\n", "utf-8")
    (suite / f"test_{name}.py").write_text(text.format(n=_TESTS), "utf-8")
    for number in range(_TESTS):
        (cassettes / f"test_a[{number}].yaml").write_bytes(seed)
    return suite


def _median_test(words: list[str], suite: Path) -> float:
    """Return the milliseconds of CPU time of a test that is not the first."""
    file = suite / "phases.json"
    phases = {
        "PYTHONPATH": ":".join([str(Path(__file__).parent), *sys.path[1:]]),
        "REGEN_BENCH_PHASES": str(file),
    }
    cpu_of([*words, "-pcassette_phases"], suite, phases)
    taken: list[float] = json.loads(file.read_text("utf-8"))[1:]
    return statistics.median(taken) * 1e3


def _over_empty(subject: Subject, folder: Path, text: str, seed: bytes) -> str:
    marked, empty = (_suite(folder, n, t, seed) for n, t in (("marked", text), ("empty", _EMPTY)))
    # In turn: what else the machine does meets both alike. The least of the medians: it met least.
    rounds = [
        (_median_test(_with_plugin(subject), marked), _median_test(_BARE, empty))
        for _ in range(_ROUNDS)
    ]
    taken, bare = map(min, zip(*rounds, strict=True))
    return f"{taken - bare:.2f} ms"


def _vcr(subject: Subject, folder: Path) -> str:
    """Milliseconds of a test marked ``vcr`` whose cassette vcrpy wrote."""
    seed = made(MAKERS["vcrpy"](), folder, 1).read_bytes()
    return _over_empty(subject, folder, _MARKED, seed)


def _cassette(subject: Subject, folder: Path) -> str:
    """Milliseconds of a test with our own fixture."""
    if subject.name != "pytest-regen":
        return "has none"
    return _over_empty(subject, folder, _OURS, made(subject, folder, 1).read_bytes())


def _plain(subject: Subject, folder: Path) -> str:
    """Milliseconds of each test without a cassette, and of the start of a run."""
    for name, count in (("one", 1), ("plain", _PLAIN)):
        (folder / f"test_{name}.py").write_text(_NONE.format(n=count), "utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", "utf-8")
    full = _with_plugin(subject)
    found = []
    for _ in range(_ROUNDS):
        bare_one, recorded, bare_plain, plain = (
            cpu_of([*words, f"test_{name}.py"], folder) * 1e3
            for words, name in ((_BARE, "one"), (full, "one"), (_BARE, "plain"), (full, "plain"))
        )
        start = recorded - bare_one
        found.append(((plain - bare_plain - start) / _PLAIN, start))
    unmarked, start = map(statistics.median, zip(*found, strict=True))
    return f"{max(unmarked, 0):.3f} / {start:.0f} ms"


ROWS: dict[str, Callable[[Subject, Path], str]] = {
    "test marked `vcr`, over an empty fixture": _vcr,
    "test with the fixture `cassette`, over an empty one": _cassette,
    "test without a cassette / start of pytest": _plain,
}
