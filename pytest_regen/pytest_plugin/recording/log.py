"""The section on cassettes at the end of a run: drift, unplayed recordings, orphans."""

import os
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from pytest_regen.credentials.search import scrub_text
from pytest_regen.errors import CassetteError
from pytest_regen.modes import FindingPolicy
from pytest_regen.pytest_plugin.choices import cassette_mark, choices_of
from pytest_regen.pytest_plugin.names import node_command
from pytest_regen.pytest_plugin.stash import CALL_PASSED, VCR_PLUGINS, other_vcr_plugin
from pytest_regen.text import plural, shorten, visible

if TYPE_CHECKING:
    from pytest_regen.cassettes import CassetteRun
    from pytest_regen.cassettes.clients.vcr_run import VcrRun
    from pytest_regen.cassettes.recording import ChangedValue


@dataclass(frozen=True, slots=True)
class CassetteNote:
    """One line of the summary about a cassette."""

    kind: Literal["miss", "drift", "unplayed", "recorded", "orphan", "hint"]
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
            case "orphan":
                return f"orphan: {self.cassette}: {self.what}; {self.next}"
            case "recorded":
                mending = f"\n    next: {self.next}" if self.next else ""
                return f"{self.cassette}: {self.what}{mending}"
            case "unplayed":
                return f"unplayed: {self.test}: {name}: {self.what}"
            case "hint":
                return f"{self.what}; {self.next}"
            case _:
                return f"{self.kind}: {self.test}: {name}: {self.what}"

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {**asdict(self), "causes": list(self.causes)}


_SUFFIXES = frozenset({".yaml", ".yml", ".json"})
_CHOOSING = ("-k", "-m", "--deselect", "--lf", "--last-failed", "--sw", "--stepwise")
"""Options that run some of the tests."""


def is_full_run(session: pytest.Session) -> bool:
    """Return whether all tests were to run, and it came to the last of them.

    What the settings of a project leave out, they leave out every time: that is its full run.
    """
    config = session.config
    words = map(str, config.invocation_params.args)
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        return False
    # With --lf pytest does not even collect the other tests, wherever it was given.
    if getattr(config.option, "lf", False) or config.option.collectonly:
        return False
    if session.shouldstop or session.shouldfail or any(w.startswith(_CHOOSING) for w in words):
        return False
    return session.exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}


def orphans(
    modules: Mapping[Path, bool], claimed: Collection[Path], config: pytest.Config
) -> Iterator[Path]:
    """Yield recordings that may belong to no test, from beside the modules that use cassettes.

    Args:
        modules: the modules collected, and whether a test of theirs uses cassettes.
        claimed: the recordings that the collected tests say they use.
        config: says what is a module of tests.
    """
    from pytest_regen.cassettes.files.storage import name_parts, unused_reason

    patterns = config.getini("python_files")
    tests = {(path.parent, path.name.partition("[")[0]) for path in claimed if "[" in path.name}
    for parent in sorted({module.parent for module, uses in modules.items() if uses}):
        for folder in sorted(path for path in (parent / "cassettes").glob("*") if path.is_dir()):
            module = parent / f"{folder.name}.py"
            if module not in modules and not any(fnmatch(module.name, p) for p in patterns):
                continue  # Not the folder of a module of tests.
            for file in sorted(path for path in folder.rglob("*") if path.is_file()):
                if file in claimed or name_parts(file)[1] not in _SUFFIXES:
                    continue
                test, bracket, _ = file.name.partition("[")
                # A case of a test of which other cases were collected is gone. Else what the module
                # names may be used by a test that is not collected here, or by `use_cassette`; one
                # that is there and was not collected may use any cassette.
                is_gone_case = bool(bracket) and (file.parent, test) in tests
                is_unnamed = module in modules and bool(unused_reason(file))
                if is_gone_case or is_unnamed or not module.exists():
                    yield file


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
    from pytest_regen.cassettes.recording import DECOMPRESSED

    if not values:
        return
    replaced = Counter(value.place for value in values if value.is_replaced)
    places = [f"{place} ({count:,})" if count > 1 else place for place, count in replaced.items()]
    lines = [f"{plural(replaced.total(), 'value')} replaced: {shorten(places)}"] if places else []
    different: dict[str, ChangedValue] = {}
    for value in values:
        if value.is_answer:
            different.setdefault(value.place, value)
    lines += map(str, list(different.values())[:_DIFFERENT])
    advice = []
    if not different.keys().isdisjoint(replaced):
        file = shlex.quote(os.path.relpath(path, item.config.invocation_params.dir))
        has_one = choices_of(item.config).settings.cassettes.baseline
        baseline = "" if has_one else " --baseline cassettes-baseline.json"
        check = f"pytest-regen cassettes check {file}{baseline} --update-baseline"
        advice.append(f"where it is public, write it back into the cassette, then {check}")
    if DECOMPRESSED in different:
        advice.append("decompress only where the answer has the header content-encoding")
    elif any(not value.is_replaced for value in values):
        advice.append("the file cannot hold it as it came: let the test not compare it")
    names = sorted(p.removeprefix(_QUERY) for p in replaced if p.startswith(_QUERY))
    if names and item.get_closest_marker("vcr") is not None:
        advice.append(
            "vcrpy compares the query: for runs with another key, vcr_config needs "
            f"filter_query_parameters={names}"
        )
    if lines:
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
        if not run.unplayed or outcome == "ignore" or not item.stash.get(CALL_PASSED, False):
            return
        what = f"{run.unplayed} of {total} recordings were not asked for"
        fails = outcome == "fail"
        self.note(item, "unplayed", run.path, what, command=command, failed=fails)
        if fails:
            pytest.fail(f"{run.path}: {what}\n  next: {command}", pytrace=False)

    def take_over(self, data: Mapping[str, Any]) -> None:
        """Keep what a worker sent."""
        for note in data["notes"]:
            self.add([CassetteNote(**{**note, "causes": tuple(note["causes"])})])
        self.drifted.update(data["drifted"])
        self._used.update(map(Path, data["used"]))

    def use(self, file: Path) -> None:
        """Note that a test uses a cassette, which it may not have claimed before."""
        path = Path(os.path.abspath(file))  # noqa: PTH100 - a link is where it stands
        if path not in self._claimed:
            self._used.add(path)

    def users(self, path: Path) -> Mapping[str, bool]:
        """Return the collected tests whose own cassette this is, and whether it was named so."""
        return self._users.get(path, {})

    def claim(self, items: Iterable[pytest.Item]) -> None:
        """Note which files the collected tests would use, before any of them is deselected."""
        from pytest_regen.pytest_plugin.names import own_cassette, vcr_cassettes

        other = other_vcr_plugin(self._config.pluginmanager)
        if other and any(item.get_closest_marker("vcr") is not None for item in items):
            package = other.partition(".")[0].replace("_", "-")
            what = f"{package} is loaded and serves the tests marked vcr"
            advice = f"uninstall it, or pass -p no:{VCR_PLUGINS[other]}, and pytest-regen does"
            self.add([CassetteNote("hint", what, next=advice)])
        for item in items:
            try:
                cassette, files = own_cassette(item), vcr_cassettes(item)
            except pytest.UsageError:
                continue  # its set-up says what is wrong
            self._claimed.update(files)
            if cassette is not None:
                self._claimed.add(cassette)
                users = self._users.setdefault(cassette, {})
                users[item.nodeid] = cassette_mark(item).name is not None
            uses = cassette is not None or bool(files)
            self._modules[item.path] = self._modules.get(item.path, False) or uses

    @pytest.hookimpl(trylast=True)  # The exit status, by which a run is whole, is final by then.
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Look for orphans, where every test was collected; a worker sends what it found."""
        if is_full_run(session):
            files = orphans(self._modules, self._claimed, session.config)
            self.add(map(self._orphan, files))
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
            # `pytest-regen cassettes check` lists them.
            cache.set(_DRIFTED, sorted(self.drifted))

    def _orphan(self, path: Path) -> CassetteNote:
        what, advice = "no test of this run asks for it", "delete it if none of another run does"
        return CassetteNote("orphan", what, cassette=self._from_rootdir(path), next=advice)

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
"""Tests beyond which a command reads their names from a file, and failing ones are repeated."""
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
    return [*lines, *(str(note) for note in notes if note.kind in {"orphan", "hint"})]


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
    failed = {note.test for note in notes if note.failed}
    if len(failed) <= _MANY:
        # Each failed with its own; of many none shows what they have in common.
        notes = [note for note in notes if not note.failed]
    if not notes:
        return
    lines = [line for note in notes for line in str(note).splitlines()]
    if len(lines) <= _SCREEN and not any(note.failed for note in notes):
        yield from lines
    else:
        yield from _group_lines(kind, notes, lines, config)
    if kind == "recorded":
        return  # What mends a recording stands below it.
    from pytest_regen.cassettes.misses import IGNORING

    before, behind = IGNORING.split("{}")
    commands, paths = [], []
    for note in notes:
        for line in filter(None, map(str.strip, note.next.splitlines())):
            if line.startswith("ignore = "):
                paths += line.removeprefix(before).removesuffix(behind).split(", ")
            else:
                commands.append((note.test, line))
    if commands:
        yield f"next: {_command(kind, commands, config)}"
    if paths:
        yield f"next: {IGNORING.format(', '.join(dict.fromkeys(paths)))}"


def _group_lines(
    kind: str, notes: Sequence[CassetteNote], lines: Sequence[str], config: pytest.Config
) -> Iterator[str]:
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
    file = _write_lines(f"{kind}.txt", map(scrub_text, lines), config)
    if file:
        yield f"next: read what mends each: {file}" if kind == "recorded" else f"in full: {file}"


def _names(tests: Sequence[str]) -> str:
    """Return the first tests; a module is named once for those that follow one another."""
    names, last_module = [], ""
    for test in tests[:_NAMES]:
        module, _, name = test.partition("::")
        names.append(name if module == last_module else test)
        last_module = module
    more = len(tests) - len(names)
    return ", ".join(names) + (f" and {more:,} more" if more else "")


def _command(kind: str, commands: Sequence[tuple[str, str]], config: pytest.Config) -> str:
    """Return the command that records anew what all of the tests ask for, each with its own."""
    texts = list(dict.fromkeys(command for _, command in commands))
    if len(texts) == 1:
        return texts[0]
    ways = set()
    for text in texts:
        words = shlex.split(text)
        start = next((n for n, word in enumerate(words) if word.startswith("--")), len(words))
        ways.add(tuple(words[start:]))
    options = ways.pop()
    if ways:
        # One way for tests that each would record in their own; both marks heed it.
        every = " ".join(texts)
        mode = "rewrite" if " rewrite" in every else "new_episodes"
        drop = ("--regen-drop-unplayed",) if "--regen-drop-unplayed" in every else ()
        options = ("--regen-record", mode, *drop)
    tests = list(dict.fromkeys(test for test, _ in commands))
    # Before 8.2 pytest reads no arguments from a file.
    if len(tests) > _MANY and pytest.version_tuple[:2] >= (8, 2):
        names = shlex.split(node_command(config, *tests))[1:]
        # As they are: pytest keeps them in its cache, too.
        file = _write_lines(f"{kind}-tests.txt", names, config)
        if file:
            return shlex.join(["pytest", f"@{file}", *options])
    return node_command(config, *tests, options=options)


def _write_lines(name: str, lines: Iterable[str], config: pytest.Config) -> str:
    """Return where lines were written, as seen from where pytest was called; empty if nowhere."""
    cache: pytest.Cache | None = getattr(config, "cache", None)
    if cache is None:
        return ""
    try:
        file = cache.mkdir("regen") / name
        file.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    except OSError:
        return ""
    return os.path.relpath(file, config.invocation_params.dir)
