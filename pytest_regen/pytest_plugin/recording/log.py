"""The section on cassettes at the end of a run: misses, drift, unplayed recordings."""

import os
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from pytest_regen.credentials.search import scrub_text
from pytest_regen.errors import CassetteError
from pytest_regen.modes import FindingPolicy
from pytest_regen.pytest_plugin.choices import choices_of
from pytest_regen.pytest_plugin.names import node_command
from pytest_regen.pytest_plugin.stash import CALL_OUTCOME, VCR_PLUGINS, other_vcr_plugin
from pytest_regen.text import plural, shorten, visible

if TYPE_CHECKING:
    from pytest_regen.cassettes import CassetteRun
    from pytest_regen.cassettes.clients.vcr_run import VcrRun
    from pytest_regen.cassettes.recording import ChangedValue


@dataclass(frozen=True, slots=True)
class CassetteNote:
    """One line of the summary about a cassette."""

    kind: Literal["miss", "drift", "unplayed", "recorded", "hint"]
    what: str
    test: str = ""
    """Node id."""
    cassette: str = ""
    """The file, from the rootdir."""
    next: str = ""
    """What to run or to do."""
    failed: bool = False
    """Whether the test failed with it, so that the section need not say it again."""
    causes: tuple[str, ...] = ()
    """What it has in common with notes of other tests: ``$.tool_choice is new``."""

    def __str__(self) -> str:
        name = Path(self.cassette).name
        match self.kind:
            case "recorded":
                mending = f"\n    next: {self.next}" if self.next else ""
                return f"{self.cassette}: {self.what}{mending}"
            case "unplayed":
                return f"unplayed: {self.test}: {name}: {self.what}"
            case "hint":
                return f"{self.what}; {self.next}"
            case _:
                return f"{self.kind}: {self.test}: {name}: {self.what}"


_NAME = "regen-cassette-log"
_DRIFTED = "regen/drifted"


def cassette_log(config: pytest.Config) -> "CassetteLog":
    """Return the log of this run, made and registered when it is first needed."""
    log = config.pluginmanager.get_plugin(_NAME)
    if not isinstance(log, CassetteLog):
        log = CassetteLog(config)
        config.pluginmanager.register(log, _NAME)
    return log


_QUERY = "request query "
_DIFFERENT = 3
"""Members of answers that are told with their lengths; the line before names all."""


def note_changed(item: pytest.Item, path: Path, values: Sequence["ChangedValue"]) -> None:
    """Keep what a cassette that was recorded holds otherwise than it was sent or answered."""
    if not values:
        return
    replaced = Counter(value.place for value in values)
    places = [f"{place} ({count:,})" if count > 1 else place for place, count in replaced.items()]
    lines = [f"{plural(replaced.total(), 'value')} replaced: {shorten(places)}"]
    different: dict[str, ChangedValue] = {}
    for value in values:
        if value.is_answer:
            different.setdefault(value.place, value)
    lines += map(str, list(different.values())[:_DIFFERENT])
    advice = []
    if different:
        file = shlex.quote(os.path.relpath(path, item.config.invocation_params.dir))
        has_one = choices_of(item.config).settings.cassettes.baseline
        baseline = "" if has_one else " --baseline cassettes-baseline.json"
        check = f"pytest-regen cassettes check {file}{baseline} --update-baseline"
        advice.append(f"where it is public, write it back into the cassette, then {check}")
    names = sorted(p.removeprefix(_QUERY) for p in replaced if p.startswith(_QUERY))
    if names and item.get_closest_marker("vcr") is not None:
        advice.append(
            "vcrpy compares the query: for runs with another key, vcr_config needs "
            f"filter_query_parameters={names}"
        )
    causes = tuple(dict.fromkeys(value.place for value in values))
    what, following = "\n    ".join(lines), "; ".join(advice)
    log = cassette_log(item.config)
    log.note(item, "recorded", path, what, command=following, causes=causes)


class CassetteLog:
    """Collects notes about cassettes during a run, and prints them at its end."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.notes: list[CassetteNote] = []
        self.drifted: set[str] = set()
        """Cassettes that are not what their tests ask for, from the rootdir."""
        self.users: dict[Path, list[str]] = {}
        """Node ids of the collected tests with a cassette of their own, by cassette."""
        self.begun: set[Path] = set()
        """Shared cassettes that were recorded from scratch in this run."""

    def add(self, notes: Iterable[CassetteNote]) -> None:
        """Keep notes, each once."""
        self.notes = list(dict.fromkeys([*self.notes, *notes]))

    def note(
        self,
        item: pytest.Item,
        kind: Literal["miss", "drift", "unplayed", "recorded"],
        path: Path,
        what: object,
        *,
        command: str,
        failed: bool = False,
        causes: Sequence[str] = (),
    ) -> None:
        """Keep something about the cassette of a test for the end of the run.

        Args:
            item: the test.
            kind: see ``CassetteNote``.
            path: the cassette.
            what: what happened.
            command: what to run next.
            failed: whether the test fails with it, and so reports it already.
            causes: what it has in common with what other tests note.
        """
        file = self._from_rootdir(path)
        self.add([CassetteNote(kind, str(what), item.nodeid, file, command, failed, tuple(causes))])
        # What was never recorded has not drifted.
        if kind == "drift" or (kind == "miss" and failed and path.exists()):
            self.note_drift(path)

    def note_drift(self, path: Path) -> None:
        """Remember that a cassette is not what its test asks for."""
        self.drifted.add(self._from_rootdir(path))

    def note_miss(self, item: pytest.Item, path: Path, miss: CassetteError) -> None:
        """Keep a miss that a test fails with."""
        what, causes = "\n".join(filter(None, (miss.what, miss.why))), getattr(miss, "causes", ())
        self.note(item, "miss", path, what, command=miss.hint, failed=True, causes=causes)

    def note_unplayed(
        self,
        item: pytest.Item,
        run: "CassetteRun | VcrRun",
        total: int,
        command: str,
        outcome: FindingPolicy,
    ) -> None:
        """Keep that a passing test left recordings; fail it where the project wants that."""
        passed = item.stash.get(CALL_OUTCOME, "") == "passed"
        if not passed or not run.unplayed or outcome == "ignore":
            return
        what = f"{run.unplayed} of {total} recordings were not asked for"
        fails = outcome == "fail"
        self.note(item, "unplayed", run.path, what, command=command, failed=fails)
        if fails:
            pytest.fail(f"{run.path}: {what}\n  next: {command}", pytrace=False)

    def take_over(self, data: Mapping[str, Any]) -> None:
        """Keep what a worker sent."""
        self.add(CassetteNote(**note) for note in data["notes"])
        self.drifted.update(data["drifted"])

    def claim(self, items: Iterable[pytest.Item]) -> None:
        """Note who uses which cassette, before any test is deselected."""
        from pytest_regen.pytest_plugin.names import own_cassette

        other = other_vcr_plugin(self._config.pluginmanager)
        if other and any(item.get_closest_marker("vcr") is not None for item in items):
            package = other.partition(".")[0].replace("_", "-")
            what = f"{package} is loaded and serves the tests marked vcr"
            advice = f"uninstall it, or pass -p no:{VCR_PLUGINS[other]}, and pytest-regen does"
            self.add([CassetteNote("hint", what, next=advice)])
        for item in items:
            try:
                cassette = own_cassette(item)
            except pytest.UsageError:
                continue  # its set-up says what is wrong
            if cassette is not None:
                self.users.setdefault(cassette, []).append(item.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Send what a worker noted; leave what drifted to ``pytest-regen cassettes check``."""
        output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
        if output is not None:
            # As execnet sends it, to which tuples are tuples.
            notes = list(map(asdict, self.notes))
            output["regen_cassettes"] = {"notes": notes, "drifted": sorted(self.drifted)}
            return
        cache: pytest.Cache | None = getattr(session.config, "cache", None)
        if cache is not None and (self.drifted or cache.get(_DRIFTED, [])):
            cache.set(_DRIFTED, sorted(self.drifted))

    def _from_rootdir(self, path: Path) -> str:
        return os.path.relpath(path, self._config.rootpath)

    def pytest_terminal_summary(self, terminalreporter: "pytest.TerminalReporter") -> None:
        """Print the section, if there are notes."""
        lines = summary_lines(self.notes, self._config)
        if lines:
            terminalreporter.write_sep("=", "cassettes", yellow=True)
        for line in lines:
            terminalreporter.write_line(visible(line))


_SCREEN = 30
"""Lines beyond which notes of a kind are grouped by cause."""
_MANY = 4
"""Tests beyond which a command reads their names from a file, and failing ones are told again."""
_CAUSES = 8
"""Causes that are shown, those of most tests first."""
_NAMES = 3
"""Tests that are named below a cause."""

_HEADS = {
    "drift": "replayed recordings of other requests",
    "miss": "asked for what is not recorded",
    "unplayed": "did not ask for all of their recordings",
    "recorded": "recorded other values than came or were sent",
}


def summary_lines(notes: Sequence[CassetteNote], config: pytest.Config) -> list[str]:
    """Return the lines of the section; none without notes.

    Args:
        notes: everything, in the order in which it was noted.
        config: says where files may be written, and how commands name tests.
    """
    lines: list[str] = []
    for kind in _HEADS:
        lines += _of_kind(kind, [note for note in notes if note.kind == kind], config)
    return [*lines, *(str(note) for note in notes if note.kind == "hint")]


def by_cause(notes: Iterable[CassetteNote]) -> dict[tuple[str, str], list[str]]:
    """Return the tests of notes by kind and cause, causes that most tests share first."""
    causes: dict[tuple[str, str], list[str]] = {}
    for note in notes:
        for cause in note.causes:
            tests = causes.setdefault((note.kind, cause), [])
            if note.test not in tests:
                tests.append(note.test)
    return dict(sorted(causes.items(), key=lambda entry: (-len(entry[1]), entry[0])))


def _of_kind(kind: str, notes: Sequence[CassetteNote], config: pytest.Config) -> Iterator[str]:
    if len({note.test for note in notes if note.failed}) <= _MANY:
        # Not again, because each test failed with its own; of many none shows what they share.
        notes = [note for note in notes if not note.failed]
    if not notes:
        return
    lines = [line for note in notes for line in str(note).splitlines()]
    if len(lines) <= _SCREEN and not any(note.failed for note in notes):
        yield from lines
    else:
        yield from _group_lines(kind, notes)
        # In a file, because what a recording run has said cannot be seen by running it again.
        file = _write_lines(f"{kind}.txt", map(scrub_text, lines), config)
        yield from [f"in full: {file}"] if file else []
    if kind == "recorded":
        return  # What mends a recording stands below it.
    from pytest_regen.cassettes.misses import IGNORING

    before, behind = IGNORING.split("{}")
    commands: dict[str, list[str]] = {}
    paths: list[str] = []
    for note in notes:
        for line in filter(None, map(str.strip, note.next.splitlines())):
            # A setting and no command: the paths of all tests are one line.
            if line.startswith("ignore = "):
                paths += line.removeprefix(before).removesuffix(behind).split(", ")
            else:
                commands.setdefault(line, []).append(note.test)
    yield from (f"next: {command}" for command in _joined(kind, commands, config))
    if paths:
        yield f"next: {IGNORING.format(', '.join(dict.fromkeys(paths)))}"


def _group_lines(kind: str, notes: Sequence[CassetteNote]) -> Iterator[str]:
    all_tests = list(dict.fromkeys(note.test for note in notes))
    yield f"{kind}: {plural(len(all_tests), 'test')} {_HEADS[kind]}"
    causes = list(by_cause(notes).items())
    if not causes:
        yield f"    {_names(all_tests)}"
    for (_, cause), tests in causes[:_CAUSES]:
        yield f"    {cause}: {plural(len(tests), 'test')}"
        yield f"        {_names(tests)}"
    if len(causes) > _CAUSES:
        yield f"    and {plural(len(causes) - _CAUSES, 'other cause')}"


def _names(tests: Sequence[str]) -> str:
    more = len(tests) - _NAMES
    return ", ".join(tests[:_NAMES]) + (f" and {more:,} more" if more > 0 else "")


def _joined(
    kind: str, commands: Mapping[str, Sequence[str]], config: pytest.Config
) -> Iterator[str]:
    """Yield the commands that tests name, those with the same options as one for all tests."""
    if len(commands) == 1:
        yield from commands
        return
    ways: dict[str, dict[str, None]] = {}
    for command, tests in commands.items():
        # From the first option on, because the names of tests stand before it.
        ways.setdefault(command[command.find(" --") :], {}).update(dict.fromkeys(tests))
    for options, names in ways.items():
        command, file = node_command(config, *names), ""
        # Before 8.2 pytest reads no arguments from a file.
        if len(names) > _MANY and pytest.version_tuple[:2] >= (8, 2):
            file = _write_lines(f"{kind}-tests.txt", shlex.split(command)[1:], config)
        yield (shlex.join(["pytest", f"@{file}"]) if file else command) + options


def _write_lines(name: str, lines: Iterable[str], config: pytest.Config) -> str:
    """Return where lines were written, as seen from where pytest was called; empty if nowhere."""
    cache: pytest.Cache | None = getattr(config, "cache", None)
    if cache is None:
        return ""
    file = cache.mkdir("regen") / name
    file.write_text("\n".join(lines), "utf-8")
    return os.path.relpath(file, config.invocation_params.dir)
