"""The real pytest-recording: beside it ours steps back; a suite for it goes the same with ours.

It is no dependency, and where it is installed it serves the marks. So it lies in a folder of its
own, which the environment names: ``REGEN_TEST_PYTEST_RECORDING``, made with
``pip install --no-deps --target FOLDER pytest-recording``.
"""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from loopback import Answer, Asked, serving
from recording_suite import SUITE

NAMED_BY = "REGEN_TEST_PYTEST_RECORDING"
FOLDER = Path(os.environ.get(NAMED_BY) or "nowhere")
LINE = "pytest-recording is loaded and serves the tests marked vcr"

pytestmark = pytest.mark.skipif(
    not (FOLDER / "pytest_recording").is_dir(),
    reason=f"{NAMED_BY} names no folder with pytest-recording in it",
)


JSON = ("content-type", "application/json")


def echo(asked: Asked) -> Answer:
    """Answer with the words sent."""
    said = json.loads(asked.body)["words"] if asked.method == "POST" else None
    return Answer(json.dumps({"said": said} if said else {}).encode(), headers=(JSON,))


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Where the service is that the suite asks."""
    packed = gzip.compress(b'{"said": "packed"}', mtime=0)
    gzipped = ("content-encoding", "gzip")
    with serving({"/packed": Answer(packed, headers=(JSON, gzipped)), "/*": echo}) as address:
        yield address


@dataclass(frozen=True)
class Run:
    """A run of the suite."""

    text: str
    outcomes: Sequence[tuple[str, str, str]]
    """Node id, phase and outcome, sorted."""
    files: Mapping[str, Any]
    """Method and address of what each cassette holds."""


class Home:
    """A folder in which the suite runs, always with the same of the two plugins.

    Args:
        folder: where.
        url: of the service.
        without: the plugin that has no part.
    """

    def __init__(self, folder: Path, url: str, without: str = "") -> None:
        self.folder = folder
        self._url = url
        self._words = ["-p", f"no:{without}"] if without else []
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, files: Mapping[str, str]) -> None:
        """Write the suite."""
        for name, text in {"pytest.ini": "[pytest]\npythonpath = .\n", **files}.items():
            path = self.folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")

    def run(self, *words: str, **environment: str) -> Run:
        """Run it."""
        told = self.folder.parent / f"{self.folder.name}.outcomes"
        told.unlink(missing_ok=True)
        own = {"SUITE_URL": self._url, "SUITE_OUTCOMES": str(told)}
        words = ("-p", "no:cacheprovider", "-p", "no:syrupy", "-rfE", *self._words, *words)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *words],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(FOLDER), **own, **environment},
            capture_output=True,
            check=False,
            timeout=300,
        )
        text = (done.stdout + done.stderr).decode("utf-8", "replace")
        lines = told.read_text("utf-8").splitlines() if told.exists() else []
        return Run(text, sorted(map(json.loads, lines)), dict(self.cassettes()))

    def cassettes(self) -> Iterator[tuple[str, Any]]:
        """Yield the cassettes, with the requests in them."""
        for path in sorted(self.folder.rglob("*")):
            if path.is_file() and {"cassettes", "tapes"} & set(path.parts):
                text = path.read_text("utf-8")
                data = json.loads(text) if text.startswith("{") else yaml.safe_load(text)
                requests = [one["request"] for one in data["interactions"]]
                asked = [(one["method"], one["uri"].replace(self._url, "")) for one in requests]
                yield path.relative_to(self.folder).as_posix(), asked


# A suite for pytest-recording

STEPS: Mapping[str, tuple[list[str], dict[str, str]]] = {
    "nothing is recorded": ([], {}),
    "recorded": (["--record-mode=once"], {}),
    "replayed": ([], {}),
    "replayed in workers": (["-n", "2"], {}),
    "more is asked": ([], {"SUITE_MORE": "1"}),
    "more is recorded": (["--record-mode=new_episodes"], {"SUITE_MORE": "1"}),
    "all is recorded": (["--record-mode=all"], {"SUITE_MORE": "1"}),
    "rewritten": (["--record-mode=rewrite"], {}),
    "replayed again": ([], {}),
    "nothing has cassettes": (["--disable-recording"], {}),
    "the network is blocked": (["--block-network"], {}),
    "but for some": (["--block-network", "--allowed-hosts=127.0.*,localhost"], {}),
    "blocked and recorded": (["--block-network", "--record-mode=once"], {}),
}


@pytest.mark.sweep  # test_switching says it of single tests
def test_a_suite_for_it_goes_the_same_with_ours(tmp_path: Path, url: str) -> None:
    """Step by step the same outcomes, and the same requests in the same files.

    One difference is meant: the old file that ``rewrite`` leaves where nothing was recorded.
    """
    theirs, ours = (
        Home(tmp_path / "theirs", url, "regen"),
        Home(tmp_path / "ours", url, "recording"),
    )
    for home in (theirs, ours):
        home.write(SUITE)

    for step, (options, environment) in STEPS.items():
        words = ["-p", "anyio", *options]
        there, here = theirs.run(*words, **environment), ours.run(*words, **environment)

        assert len(there.outcomes) > 100, there.text[-3_000:]
        assert here.outcomes == there.outcomes, step
        common = {name: r for name, r in here.files.items() if name in there.files}
        assert common == there.files, step
        ours_alone = here.files.keys() - there.files.keys()
        assert {*map(os.path.dirname, ours_alone)} <= {"cassettes/test_names"}, step


# Both in one run

BESIDE = """
import os

import httpx2
import pytest

KIND = os.environ["SUITE_KIND"]


@pytest.mark.vcr
def test_marked(vcr, record_mode):
    assert type(vcr).__module__.startswith(KIND)
    httpx2.post(os.environ["SUITE_URL"] + "/echo", json={"words": "x"})


def test_own(cassette):
    said = httpx2.post(os.environ["SUITE_URL"] + "/echo", json={"words": "own"})
    assert said.json() == {"said": "own"}


@pytest.mark.block_network
def test_blocked():
    with pytest.raises(RuntimeError, match="Network is disabled"):
        httpx2.get(os.environ["SUITE_URL"])
"""
OURS, THEIRS = "pytest_regen.pytest_plugin.plugin", "pytest_recording.plugin"
ONE_SERVES: Mapping[str, tuple[str, list[str], list[str]]] = {
    "as installed": ("vcr.", [], []),
    "theirs is blocked after ours": ("pytest_regen.", ["-p", OURS, "-p", "no:recording"], []),
    "both in a conftest": ("vcr.", [], [OURS, THEIRS]),
}
"""Who serves the marks, options of pytest, plugins of the conftest."""


@pytest.mark.parametrize("case", ONE_SERVES)
def test_one_of_the_two_serves(tmp_path: Path, url: str, case: str) -> None:
    """Whichever is loaded first; where it is the other one, that is said once."""
    beside = Home(tmp_path / "both", url)
    kind, words, plugins = ONE_SERVES[case]
    beside.write({"test_m.py": BESIDE, "conftest.py": f"pytest_plugins = {plugins!r}\n"})
    environment = {"SUITE_KIND": kind}
    if case != "as installed":
        environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"

    run = beside.run(*words, "--strict-markers", "--record-mode=once", **environment)

    assert "3 passed" in run.text, run.text
    assert run.text.count(LINE) == (kind == "vcr.")
    assert sorted(run.files) == [
        "cassettes/test_m/test_marked.yaml",
        "cassettes/test_m/test_own.yaml",
    ]
