"""The section on cassettes at the end of a run: drift, unplayed recordings, orphans."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

__all__ = ["TapeLog", "tape_log"]

_NAME = "regen-tape-log"
_DRIFTED = "regen/drifted"
_STEPPED_BACK = (
    "pytest-recording is installed and serves the tests marked vcr; "
    "uninstall it, or pass -p no:recording, and pytest-regen does"
)
_SUFFIXES = frozenset({".yaml", ".yml", ".json"})


def tape_log(config: pytest.Config) -> "TapeLog":
    """Return the log of this run, made and registered when it is first needed."""
    known = config.pluginmanager.get_plugin(_NAME)
    if isinstance(known, TapeLog):
        return known
    log = TapeLog(config)
    config.pluginmanager.register(log, _NAME)
    return log


class TapeLog:
    """Hears of cassettes while tests are collected and run, and tells at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._lines: list[str] = []
        self._drifted: set[str] = set()
        self._claimed: set[Path] = set()
        self._modules: set[Path] = set()

    def add(self, lines: Iterable[str]) -> None:
        """Note lines, each once."""
        self._lines += [line for line in lines if line not in self._lines]

    def drifted(self, paths: Iterable[str]) -> None:
        """Note cassettes that are not what their tests ask for."""
        self._drifted.update(paths)

    def claim(self, items: Iterable[pytest.Item]) -> None:
        """Note which files the collected tests would use, before any of them is deselected."""
        from pytest_regen.pytest_plugin.places import cassettes_claimed  # noqa: PLC0415 - few runs

        served = self._config.pluginmanager.has_plugin("regen-recording")
        if not served and any(item.get_closest_marker("vcr") is not None for item in items):
            self.add([_STEPPED_BACK])
        for item in items:
            files = cassettes_claimed(item)
            if files:
                self._modules.add(item.path)
                self._claimed.update(files)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Look for orphans, where every test was collected; a worker sends what it found."""
        if _is_full(session.config):
            self.add(self._orphans())
        output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["regen_tapes"] = (self._lines, sorted(self._drifted))
            return
        cache: pytest.Cache | None = getattr(session.config, "cache", None)
        if cache is not None and (self._drifted or cache.get(_DRIFTED, [])):
            # `pytest-regen cassettes check` tells of them.
            cache.set(_DRIFTED, sorted(self._drifted))

    def _orphans(self) -> Iterator[str]:
        root = self._config.rootpath
        for path in sorted({file for module in self._modules for file in _recordings(module)}):
            if path not in self._claimed:
                yield f"orphan: {os.path.relpath(path, root)} belongs to no test; delete it"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the section, if there is anything to tell."""
        if self._lines:
            terminalreporter.write_sep("=", "cassettes", yellow=True)
        for line in self._lines:
            terminalreporter.write_line(line)


def _recordings(module: Path) -> Iterator[Path]:
    """Yield the cassettes that lie where those of a module's tests do."""
    folder = module.parent / "cassettes" / module.stem
    if folder.is_dir():
        yield from (p for p in folder.rglob("*") if p.suffix in _SUFFIXES and p.is_file())


def _is_full(config: pytest.Config) -> bool:
    """Return whether the run collected all there is: no file or test was named."""
    return config.args_source is not pytest.Config.ArgsSource.ARGS
