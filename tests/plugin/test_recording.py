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

OWNER = "cassettes/regen/GET_v1_projects/Owner.yaml"


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

    Without credentials, and without what the hook's functions take out.
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
    shutil.rmtree(path)
    shutil.copytree(project.path / "kept", path)
    replayed = project.run("--regen")

    assert recorded.parseoutcomes() == replayed.parseoutcomes() == {"passed": 2, "regenerated": 1}
    assert len(emulator.requests) == 1
    text = (project.path / OWNER).read_text("utf-8")
    assert "planted" not in text
    assert "JSON" in str(emulator.requests)
    assert "JSON" not in text
    assert "[format]" in text
    replayed.stdout.fnmatch_lines(["emulated: *"])


@pytest.mark.usefixtures("emulator")
def test_a_replay_costs_nothing_whatever_the_mode(project: Project) -> None:
    """``once`` replays what the real API once answered, and nobody is charged a second time."""
    path = project.broken()
    shutil.copytree(path, project.path / "kept")
    project.run("--regen", "--regen-record", "once")
    shutil.rmtree(path)
    shutil.copytree(project.path / "kept", path)
    text = (project.path / OWNER).read_text("utf-8")
    (project.path / OWNER).write_text(text.replace("source: emulator", "source: api"), "utf-8")

    replayed = project.run("--regen", "--regen-record", "once")

    replayed.stdout.fnmatch_lines(["regenerated: *Owner page 1, 1 call, *"])
    replayed.stdout.no_fnmatch_line("emulated: *")
    replayed.stdout.no_fnmatch_line("*, $*")


ASKING = """
    import pytest
    from pytest_regen.turns import AnthropicProvider, Message, TurnRequest

    class TestAsking:
        @pytest.mark.parametrize("word", ["a/b"])
        def test_it(self, cassette, word):
            request = TurnRequest("", (Message("user", word),), "claude-sonnet-5-5", 100)
            assert "Owner" in AnthropicProvider().send(request).text
"""


def test_the_cassette_of_a_test(project: Project, emulator: Emulator) -> None:
    """It lies beside the test under module and test name, and replays without the option."""
    project.pytester.makeini("[pytest]\n")
    project.pytester.makepyfile(test_own=ASKING)

    first = project.run("--regen-record=once")
    second = project.run()

    first.assert_outcomes(passed=1)
    second.assert_outcomes(passed=1)
    assert len(emulator.requests) == 1
    assert (project.path / "cassettes/test_own/TestAsking.test_it[a-b].yaml").is_file()


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
        ([TransportError("cut", hint="-"), None], False),
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
