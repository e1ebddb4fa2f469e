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

from pytest_regen.cassettes.files.storage import name_parts
from pytest_regen.credentials.search import scrub_text
from pytest_regen.pytest_plugin.choices import cassette_mark, choices_of
from pytest_regen.pytest_plugin.names import node_command
from pytest_regen.pytest_plugin.stash import VCR_PLUGINS, other_vcr_plugin
from pytest_regen.text import plural, shorten, visible

if TYPE_CHECKING:
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

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "CassetteNote":
        """Return what ``to_json`` gave away."""
        return cls(**{**data, "causes": tuple(data["causes"])})


_SUFFIXES = frozenset({".yaml", ".yml", ".json"})
_CHOOSING = ("-k", "-m", "--deselect", "--lf", "--last-failed", "--sw", "--stepwise")
"""Options that run some of the tests."""


def is_full_run(session: pytest.Session) -> bool:
    """Return whether all tests were to run, and it came to the last of them.

    What the settings of a project leave out, they leave out every time: that is its full run.
    """
    config = session.config
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    chosen = any(str(word).startswith(_CHOOSING) for word in config.invocation_params.args)
    option = config.option
    # With this one pytest does not even collect the other tests, wherever it was given.
    part = getattr(option, "lf", False) or option.collectonly
    stopped = session.shouldstop or session.shouldfail or session.exitstatus not in _ENDED
    return not (named or chosen or part or stopped)


_ENDED = frozenset({pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED})


def orphans(
    modules: Mapping[Path, bool], claimed: Collection[Path], config: pytest.Config
) -> Iterator[Path]:
    """Yield recordings that may belong to no test, from beside the modules that use cassettes.

    Args:
        modules: the modules collected, and whether a test of theirs uses cassettes.
        claimed: the recordings that the collected tests say they use.
        config: says what is a module of tests.
    """
    patterns = config.getini("python_files")
    for parent in sorted({module.parent for module, uses in modules.items() if uses}):
        for folder in sorted(path for path in (parent / "cassettes").glob("*") if path.is_dir()):
            module = parent / f"{folder.name}.py"
            files = (p for p in folder.rglob("*") if name_parts(p)[1] in _SUFFIXES and p.is_file())
            left = sorted(file for file in files if file not in claimed)
            if module in modules or any(fnmatch(module.name, pattern) for pattern in patterns):
                yield from (file for file in left if _is_unused(module, file, modules))
                yield from (file for file in left if _is_gone_case(file, claimed))


def _is_unused(module: Path, file: Path, modules: Mapping[Path, bool]) -> bool:
    """Whether a module is gone, or was collected and does not name a file.

    What it names may be used by a test that is not collected here, or by ``use_cassette``. A module
    that is there and was not collected counts as well: its tests may use any cassette.
    """
    from pytest_regen.cassettes.files.storage import unused_reason

    return not module.exists() or (module in modules and bool(unused_reason(file)))


def _is_gone_case(file: Path, claimed: Collection[Path]) -> bool:
    """Whether a file is that of one case of a test, of which other cases were collected."""
    test, bracket, _ = file.name.partition("[")
    others = (path.name for path in claimed if path.parent == file.parent)
    return bool(bracket) and any(name.startswith(f"{test}[") for name in others)


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


_QUERY = "request query "
_DIFFERENT = 3
"""Members of answers that are told with their lengths; the line before names all."""


def note_changed(item: pytest.Item, path: Path, values: Sequence["ChangedValue"]) -> None:
    """Keep what a cassette that was recorded holds otherwise than it was sent or answered."""
    from pytest_regen.cassettes.recording import DECOMPRESSED

    replaced = Counter(value.place for value in values if value.is_replaced)
    listed = [f"{place} ({count:,})" if count > 1 else place for place, count in replaced.items()]
    lines = [f"{plural(replaced.total(), 'value')} replaced: {shorten(listed)}"] if listed else []
    # Of each member the first.
    different = {value.place: value for value in reversed(values) if value.is_answer}
    lines += map(str, [*different.values()][: -_DIFFERENT - 1 : -1])
    mending = []
    if not different.keys().isdisjoint(replaced):
        file = shlex.quote(os.path.relpath(path, item.config.invocation_params.dir))
        has_one = choices_of(item.config).settings.cassettes.baseline
        baseline = "" if has_one else " --baseline cassettes-baseline.json"
        check = f"pytest-regen cassettes check {file}{baseline} --update-baseline"
        mending.append(f"where it is public, write it back into the cassette, then {check}")
    if DECOMPRESSED in different:
        mending.append("decompress only where the answer has the header content-encoding")
    elif any(not value.is_replaced for value in values):
        mending.append("the file cannot hold it as it came: let the test not compare it")
    names = sorted(p.removeprefix(_QUERY) for p in replaced if p.startswith(_QUERY))
    if names and item.get_closest_marker("vcr") is not None:
        mending.append(
            "vcrpy compares the query: for runs with another key, vcr_config needs "
            f"filter_query_parameters={names}"
        )
    if lines:
        places = tuple(dict.fromkeys(value.place for value in values))
        file = os.path.relpath(path, item.config.rootpath)
        what = "\n    ".join(lines)
        noted = CassetteNote("recorded", what, item.nodeid, file, "; ".join(mending), causes=places)
        cassette_log(item.config).add([noted])


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

    def take_over(self, data: Mapping[str, Any]) -> None:
        """Keep what a worker sent."""
        self.add(CassetteNote.from_json(note) for note in data["notes"])
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
            self.add([_other_plugin_note(other)])
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
            # `pytest-regen cassettes check` lists them.
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
        """Print the section, if there are notes."""
        lines = summary_lines(self.notes, self._config)
        if lines:
            terminalreporter.write_sep("=", "cassettes", yellow=True)
        for line in lines:
            terminalreporter.write_line(visible(line))


def _other_plugin_note(other: str) -> CassetteNote:
    package = other.partition(".")[0].replace("_", "-")
    return CassetteNote(
        "hint",
        f"{package} is loaded and serves the tests marked vcr",
        next=f"uninstall it, or pass -p no:{VCR_PLUGINS[other]}, and pytest-regen does",
    )


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
    found: dict[tuple[str, str], list[str]] = {}
    for note in notes:
        for cause in note.causes:
            tests = found.setdefault((note.kind, cause), [])
            if note.test not in tests:
                tests.append(note.test)
    return dict(sorted(found.items(), key=lambda one: (-len(one[1]), one[0])))


def _of_kind(kind: str, notes: Sequence[CassetteNote], config: pytest.Config) -> Iterator[str]:
    shown = [note for note in notes if not note.failed]
    failed = [note for note in notes if note.failed]
    if len({note.test for note in failed}) > _MANY:
        # Each failed with its own miss, but none of them shows what they have in common.
        shown = list(notes)
    if not shown:
        return
    whole = [line for note in shown for line in str(note).splitlines()]
    if len(whole) <= _SCREEN and not any(note.failed for note in shown):
        yield from whole
    else:
        yield from _group_lines(kind, shown, whole, config)
    if kind == "recorded":
        return  # What mends a recording stands below it.
    lines = [(note, line.strip()) for note in shown for line in note.next.splitlines()]
    settings = [line for _, line in lines if line.startswith("ignore = ")]
    commands = [(note.test, line) for note, line in lines if line and line not in settings]
    if commands:
        yield f"next: {_command(kind, commands, config)}"
    if settings:
        from pytest_regen.cassettes.misses import IGNORING

        before, behind = IGNORING.split("{}")
        paths = ", ".join(line.removeprefix(before).removesuffix(behind) for line in settings)
        yield f"next: {IGNORING.format(', '.join(dict.fromkeys(paths.split(', '))))}"


def _group_lines(
    kind: str, notes: Sequence[CassetteNote], whole: Sequence[str], config: pytest.Config
) -> Iterator[str]:
    tests = dict.fromkeys(note.test for note in notes)
    yield f"{kind}: {plural(len(tests), 'test')} {_HEADS[kind]}"
    causes = by_cause(notes)
    if not causes:
        yield f"    {_names(list(tests))}"
    for (_, cause), named in list(causes.items())[:_CAUSES]:
        yield f"    {cause}: {plural(len(named), 'test')}"
        yield f"        {_names(named)}"
    if len(causes) > _CAUSES:
        yield f"    and {plural(len(causes) - _CAUSES, 'other cause')}"
    file = _write_lines(f"{kind}.txt", map(scrub_text, whole), config)
    if file:
        yield f"next: read what mends each: {file}" if kind == "recorded" else f"in full: {file}"


def _names(tests: Sequence[str]) -> str:
    shown, modules = [], ""
    for test in tests[:_NAMES]:
        module, _, name = test.partition("::")
        shown.append(name if module == modules else test)
        modules = module
    more = len(tests) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def _command(kind: str, wanted: Sequence[tuple[str, str]], config: pytest.Config) -> str:
    """Return the command that records anew what all of the tests ask for, each with its own."""
    commands = list(dict.fromkeys(command for _, command in wanted))
    if len(commands) == 1:
        return commands[0]
    ways = dict.fromkeys(tuple(_options(command)) for command in commands)
    options = next(iter(ways)) if len(ways) == 1 else _common_options(commands)
    tests = list(dict.fromkeys(test for test, _ in wanted))
    # Before 8.2 pytest reads no arguments from a file.
    if len(tests) <= _MANY or pytest.version_tuple[:2] < (8, 2):
        return node_command(config, *tests, options=options)
    named = shlex.split(node_command(config, *tests))[1:]
    # As they are: pytest keeps them in its cache, too.
    file = _write_lines(f"{kind}-tests.txt", named, config)
    if not file:
        return node_command(config, *tests, options=options)
    return shlex.join(["pytest", f"@{file}", *options])


def _common_options(commands: Sequence[str]) -> tuple[str, ...]:
    """Return one way for tests that each would record in their own; both marks heed it."""
    every = " ".join(commands)
    mode = "rewrite" if " rewrite" in every else "new_episodes"
    drop = ("--regen-drop-unplayed",) if "--regen-drop-unplayed" in every else ()
    return ("--regen-record", mode, *drop)


def _options(command: str) -> Iterator[str]:
    words = shlex.split(command)
    start = next((n for n, word in enumerate(words) if word.startswith("--")), len(words))
    yield from words[start:]


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
