"""Regenerations are recorded through the real SDK and replayed without a network."""

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from plugin_project import Project, emulated
from store_factory import GOOD

from pytest_regen.cassettes import CassetteRun
from pytest_regen.emulator import Emulator
from pytest_regen.errors import ProviderError, RefusedError, TransportError
from pytest_regen.pytest_plugin.providers import record_turns
from pytest_regen.turns import AnthropicProvider
from pytest_regen.turns.values import DEFAULT_MODEL, Message, Reply, TurnRequest

OWNER = "cassettes/regen/generated/GET_v1_projects/Owner.yaml"


def good_owner(_body: Mapping[str, Any], *, headers: Mapping[str, str]) -> str:
    """Answer every request with the right code of ``Owner``."""
    assert headers
    return GOOD["Owner", 1]


@pytest.fixture
def emulator(monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    """An emulated API that the environment points to."""
    with emulated(monkeypatch, good_owner) as running:
        yield running


def test_record_once_replay_for_ever(project: Project, emulator: Emulator) -> None:
    """The heal of a store item has a cassette of its own; a copy of the store heals from it.

    Without credentials, and without what the hook's functions take out. What the real API once
    answered is replayed by ``once`` as well, and nobody is charged a second time.
    """
    path = project.broken()
    shutil.copytree(path, project.path / "kept")
    project.pytester.makeconftest(
        """
        def pytest_regen_scrubbers(config):
            return [lambda text: text.replace("JSON", "[format]")]
        """
    )

    recorded = project.run("--regen", "--regen-record", "once")
    text = (project.path / OWNER).read_text("utf-8")
    results = []
    for source, options in (("emulator", ()), ("api", ("--regen-record", "once"))):
        changed = text.replace("source: emulator", f"source: {source}")
        (project.path / OWNER).write_text(changed, "utf-8")
        shutil.rmtree(path)
        shutil.copytree(project.path / "kept", path)
        results.append(project.run("--regen", *options))
    replayed, again = results

    assert recorded.parseoutcomes() == replayed.parseoutcomes() == {"passed": 2, "regenerated": 1}
    assert len(emulator.requests) == 1
    assert "planted" not in text
    assert "JSON" in str(emulator.requests)
    assert "JSON" not in text
    assert "[format]" in text
    replayed.stdout.fnmatch_lines(["emulated: *"])
    again.stdout.fnmatch_lines(["regenerated: *Owner page 1, 1 call, *"])
    again.stdout.no_fnmatch_line("emulated: *")
    again.stdout.no_fnmatch_line("*, $*")


def test_a_test_that_connects_is_called_again_unhindered(
    project: Project, emulator: Emulator
) -> None:
    """The body's own requests are neither recorded nor blocked, and its words replay."""
    project.store()
    project.pytester.makepyfile(
        test_own="""
        import os, urllib.error, urllib.request
        import pytest

        @pytest.mark.regen(types="Owner")
        def test_it(regen_store, tmp_path):
            address = os.environ["ANTHROPIC_BASE_URL"]
            with pytest.raises(urllib.error.HTTPError):
                urllib.request.urlopen(address + "/nothing")
            assert (object(), str(tmp_path), regen_store()["Owner"]) == (), "no nickname"
        """
    )
    project.run("--regen", "--regen-record=once", "test_own.py").assert_outcomes(failed=1)

    result = project.run("--regen", "test_own.py")

    result.stdout.fnmatch_lines(["E *no nickname", "still failing: *[[]no_progress[]]*"])
    assert len([one for one in emulator.requests if one.body]) == 1


class Failing:
    """Answers, or fails as it is told."""

    def __init__(self, base_url: str, failures: list[ProviderError | None]) -> None:
        self._inner = AnthropicProvider(base_url=base_url, api_key="sk-ant-emulated")
        self._failures = failures

    def send(self, request: TurnRequest) -> Reply:
        """Send the request, then fail if it is the turn to."""
        reply = self._inner.send(request)
        failure = self._failures.pop(0)
        if failure is not None:
            raise failure
        return reply


@pytest.mark.parametrize(
    ("failures", "is_kept"),
    [
        ([None, RefusedError("no", hint="-")], True),
        ([TransportError("cut", hint="-"), RefusedError("no", hint="-")], False),
    ],
)
def test_a_line_that_failed_once_spoils_the_recording(
    tmp_path: Path, failures: list[ProviderError | None], *, is_kept: bool
) -> None:
    """A refusal is what the model said and is kept, but makes no broken line good again."""
    path = tmp_path / "talk.yaml"
    with (
        Emulator(lambda _: "Yes.") as emulator,
        record_turns(Failing(emulator.base_url, failures), CassetteRun(path, "once")) as used,
    ):
        for _ in range(2):
            with suppress(ProviderError):
                used.send(TurnRequest("Be brief.", (Message("user", "Well?"),), DEFAULT_MODEL, 100))

    assert path.exists() == is_kept


def test_a_killed_run_has_paid_for_its_answers(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one asks only for what was under way, and its recordings are whole."""
    worse = GOOD["Owner", 1].replace('"name"', '"naem"')
    paths = [project.broken(f"GET_{number}") for number in range(2)]
    for path in paths:
        shutil.copytree(path, project.path / "kept" / path.name)
    rounds: list[int] = []
    waiting = threading.Semaphore(0)
    killed = threading.Event()

    def answer(body: Mapping[str, Any]) -> str:
        is_second = "naem" in str(body["messages"])
        rounds.append(2 if is_second else 1)
        if is_second and not killed.is_set():
            waiting.release()
            killed.wait(30)
        return GOOD["Owner", 1] if is_second else worse

    options = ("--regen", "--regen-record=once", "--regen-attempts=3", "--regen-jobs=2")
    with emulated(monkeypatch, answer):
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
        with subprocess.Popen(command, cwd=project.path, stdout=subprocess.DEVNULL) as running:
            both = [waiting.acquire(timeout=60) for _ in paths]
            running.kill()
        killed.set()
        asked = sorted(rounds)
        result = project.run(*options)

    assert all(both)
    assert (asked, sorted(rounds)) == ([1, 1, 2, 2], [1, 1, 2, 2, 2, 2])
    assert result.parseoutcomes() == {"passed": 4, "regenerated": 2}
    for path in paths:
        shutil.rmtree(path)
        shutil.copytree(project.path / "kept" / path.name, path)
    assert project.run("--regen", "--regen-attempts=3").parseoutcomes()["regenerated"] == 2
