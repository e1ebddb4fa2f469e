"""The section on cassettes at the end of a run: drift, unplayed recordings, orphans."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_regen.pytest_plugin.cassettes.notes import CassetteNote
from pytest_regen.pytest_plugin.cassettes.orphans import is_full_run, orphans
from pytest_regen.pytest_plugin.marked_fixtures import OTHERS, other_that_serves
from pytest_regen.pytest_plugin.marks import cassette_mark

__all__ = ["CassetteLog", "cassette_log"]

_NAME = "regen-cassette-log"
_DRIFTED = "regen/drifted"


def cassette_log(config: pytest.Config) -> "CassetteLog":
    """Return the log of this run, made and registered when it is first needed."""
    known = config.pluginmanager.get_plugin(_NAME)
    if isinstance(known, CassetteLog):
        return known
    log = CassetteLog(config)
    config.pluginmanager.register(log, _NAME)
    return log


class CassetteLog:
    """Hears of cassettes while tests are collected and run, and tells at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.notes: list[CassetteNote] = []
        self.drifted: set[str] = set()
        """Cassettes that are not what their tests ask for, from the rootdir."""
        self._claimed: set[Path] = set()
        """The cassettes that the collected tests say they use."""
        self._users: dict[Path, dict[str, bool]] = {}
        """Tests with a cassette of their own, by cassette: node id, and whether it was named."""
        self.begun: set[Path] = set()
        """Shared cassettes that were recorded from scratch in this run."""
        self._used: set[Path] = set()
        """Others that were used."""
        self._modules: dict[Path, bool] = {}
        """The modules collected, and whether a test of theirs uses cassettes."""

    def add(self, notes: Iterable[CassetteNote]) -> None:
        """Keep notes, each once."""
        self.notes = list(dict.fromkeys([*self.notes, *notes]))

    def take_over(self, said: Mapping[str, Any]) -> None:
        """Keep what a worker sent."""
        self.add(CassetteNote.from_json(note) for note in said["notes"])
        self.drifted.update(said["drifted"])
        self._used.update(map(Path, said["used"]))

    def use(self, file: Path) -> None:
        """Note that a test uses a cassette, which it may not have said before."""
        path = Path(os.path.abspath(file))  # noqa: PTH100 - a link is where it stands
        if path not in self._claimed:
            self._used.add(path)

    def users(self, path: Path) -> Mapping[str, bool]:
        """Return the collected tests whose own cassette this is, and whether it was named so."""
        return self._users.get(path, {})

    def claim(self, items: Iterable[pytest.Item]) -> None:
        """Note which files the collected tests would use, before any of them is deselected."""
        from pytest_regen.pytest_plugin.cassettes.names import (  # noqa: PLC0415 - few runs
            own_cassette,
            vcr_cassettes,
        )

        other = other_that_serves(self._config.pluginmanager)
        if other and any(item.get_closest_marker("vcr") is not None for item in items):
            self.add([_stepped_back(other)])
        for item in items:
            try:
                own, files = own_cassette(item), vcr_cassettes(item)
            except pytest.UsageError:
                continue  # its set-up says what is wrong
            self._claimed.update(files)
            if own is not None:
                self._claimed.add(own)
                users = self._users.setdefault(own, {})
                users[item.nodeid] = cassette_mark(item).name is not None
            uses = own is not None or bool(files)
            self._modules[item.path] = self._modules.get(item.path, False) or uses

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Look for orphans, where every test was collected; a worker sends what it found."""
        if is_full_run(session):
            found = orphans(self._modules, self._claimed, session.config)
            self.add(map(self._orphan, found))
        output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["regen_cassettes"] = {
                "notes": [note.to_json() for note in self.notes],
                "drifted": sorted(self.drifted),
                "used": sorted(map(str, self._used)),
            }
            return
        used = {self._orphan(file) for file in self._used}
        self.notes = [note for note in self.notes if note not in used]
        cache: pytest.Cache | None = getattr(session.config, "cache", None)
        if cache is not None and (self.drifted or cache.get(_DRIFTED, [])):
            # `pytest-regen cassettes check` tells of them.
            cache.set(_DRIFTED, sorted(self.drifted))

    def _orphan(self, path: Path) -> CassetteNote:
        file = os.path.relpath(path, self._config.rootpath)
        return CassetteNote(
            "orphan",
            "no test of this run asks for it",
            cassette=file,
            next="delete it if none of another run does",
        )

    def pytest_terminal_summary(self, terminalreporter: "pytest.TerminalReporter") -> None:
        """Print the section, if there is anything to tell."""
        from pytest_regen.pytest_plugin.cassettes.telling import section  # noqa: PLC0415 - few runs

        lines = section(self.notes, self._config)
        if lines:
            terminalreporter.write_sep("=", "cassettes", yellow=True)
        for line in lines:
            terminalreporter.write_line(line)


def _stepped_back(other: str) -> CassetteNote:
    package = other.partition(".")[0].replace("_", "-")
    return CassetteNote(
        "hint",
        f"{package} is loaded and serves the tests marked vcr",
        next=f"uninstall it, or pass -p no:{OTHERS[other]}, and pytest-regen does",
    )
