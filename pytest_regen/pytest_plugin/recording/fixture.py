"""The cassette of a test, as the fixture ``cassette`` puts it to use."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from pytest_regen.cassettes import CassetteRun, use_cassette
from pytest_regen.cassettes.files.storage import name_parts
from pytest_regen.errors import UsageError
from pytest_regen.modes import POLICIES, FindingPolicy
from pytest_regen.pytest_plugin.choices import (
    CassetteMark,
    cassette_mark,
    choices_of,
    ini_choice,
)
from pytest_regen.pytest_plugin.names import cassette_of_test, mode_to_record, node_command
from pytest_regen.pytest_plugin.options import plain_usage_error, usage_error
from pytest_regen.pytest_plugin.recording.hooks import cassette_hooks
from pytest_regen.pytest_plugin.recording.log import CassetteNote, cassette_log, note_changed
from pytest_regen.pytest_plugin.stash import CALL_FAILED, CASSETTE, scrubber_of

if TYPE_CHECKING:
    from pytest_regen.cassettes.clients.vcr_run import VcrRun

_MANY = 4
"""Tests beyond which a command names their module."""

_KEYS = (("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"), ("OPENAI_API_KEY",))
"""Where SDKs look for a key, each in the first of its variables that is set."""


class _FailedError(Exception):
    """The test failed, so that what was recorded stays beside the cassette."""


@contextmanager
def cassette_in_use(item: pytest.Item, config: Mapping[str, object]) -> Iterator[CassetteRun]:
    """Use the cassette of a test, in the mode chosen; recordings left unplayed fail it.

    Args:
        item: the test.
        config: what the fixture ``cassette_config`` says; the marker wins.
    """
    mark = cassette_mark(item, config)
    path = cassette_of_test(item, mark.name)
    stem, suffix, packed = name_parts(path)
    if suffix == ".json" and not path.exists():
        raise usage_error(
            f"{item.nodeid}: cassette(name={path.name!r}): there is no such file",
            why="cassettes in JSON are replayed; new ones are recorded as YAML",
            hint=f"name it {stem}.yaml{packed}",
        )
    cassette_hooks(item.config)
    log = cassette_log(item.config)
    log.use(path)
    sharing = _sharing_of(item, path, is_named=mark.name is not None)
    with suppress(_FailedError), _open_cassette(item, sharing, mark) as run:
        # Clients insist on a key; where nothing will be sent, any will do.
        keys = [names[0] for names in _KEYS if not any(map(os.environ.get, names))]
        keys = keys if run.is_replay_only else []
        os.environ.update(dict.fromkeys(keys, "none-needed-in-replay"))
        item.stash[CASSETTE] = run
        try:
            yield run
        finally:
            del item.stash[CASSETTE]
            for name in keys:
                os.environ.pop(name, None)
        # One that skips, or fails as its mark expects, does so in every run.
        if item.stash.get(CALL_FAILED, True) and not item.config.option.regen_keep_failed:
            if run.recorded:
                what = f"{item.nodeid} failed: what it recorded is in {run.path.name}.partial"
                advice = "correct the test and record again, or add --regen-keep-failed"
                log.add([CassetteNote("hint", what, next=advice)])
            raise _FailedError
    report_run(item, run, sharing.record_command(), "warn")
    unplayed = policy(item.config, "unplayed", mark.unplayed)
    # What is left of a shared one belongs to the other tests, which may not all have run.
    if run.is_replay_only and not sharing.is_shared:
        command = node_command(item.config, item.nodeid, options=("--regen-record", "rewrite"))
        log.note_unplayed(item, run, run.unplayed + run.played, command, unplayed)


@dataclass(frozen=True, slots=True)
class _Sharing:
    """Who uses a cassette."""

    config: pytest.Config
    path: Path
    tests: tuple[str, ...]
    """Node ids of the tests collected in this run that use it."""
    is_shared: bool
    """Whether more than one test uses it, or may in another run."""

    def record_command(self) -> str:
        """Return the command that records what the cassette lacks, and loses nothing of others."""
        mode, names = mode_to_record(self.path), self.tests
        options = ["--regen-record", mode]
        if not self.is_shared and mode == "new_episodes":
            # What was recorded for requests that are no longer made would fail the next run.
            options.append("--regen-drop-unplayed")
        elif len(self.tests) > 1 and self.path.exists():
            options = ["--regen-record", "rewrite"]
        if len(names) > _MANY:
            names = tuple(dict.fromkeys(test.partition("::")[0] for test in names))
        return node_command(self.config, *names, options=options)


def _sharing_of(item: pytest.Item, path: Path, *, is_named: bool) -> _Sharing:
    """Return who uses the cassette of a test.

    Args:
        item: the test.
        path: the cassette.
        is_named: whether a marker or the fixture gave it its name.

    Raises:
        pytest.UsageError: another test has it by accident: only what no file's name can hold
            tells them apart.
    """
    users = cassette_log(item.config).users(path)
    unnamed = [test for test, was_named in users.items() if not was_named]
    if not is_named and len(unnamed) > 1:
        raise usage_error(
            f"{item.nodeid}: {path.name} is the cassette of {' and of '.join(unnamed)}",
            why="what tells them apart is left out of the names of files",
            hint="give them other ids, parametrize(…, ids=[…]), or @pytest.mark.cassette(name=…)",
        )
    is_for_many = is_named
    for node, mark in item.iter_markers_with_node("cassette"):
        if mark.args or "name" in mark.kwargs:
            # A name of a class, a module or a test with cases is one of several tests.
            is_for_many = is_named and (node is not item or hasattr(item, "callspec"))
        break
    others = [test for test in users if test != item.nodeid]
    return _Sharing(item.config, path, (item.nodeid, *others), bool(others) or is_for_many)


@contextmanager
def _open_cassette(
    item: pytest.Item, sharing: _Sharing, mark: CassetteMark
) -> Iterator[CassetteRun]:
    config, path = item.config, sharing.path
    settings = choices_of(config).settings.cassettes
    mode = choices_of(config).record_mode(mark.record)
    begun = cassette_log(config).begun
    if mode in {"rewrite", "once"} and path in begun:
        # Tests that share a cassette add to what the first of them began.
        mode = "new_episodes"
    elif sharing.is_shared and (mode == "rewrite" or (mode == "once" and not path.exists())):
        begun.add(path)
    with (
        plain_errors(item),
        use_cassette(
            path,
            mode=mode,
            record_command=sharing.record_command(),
            drift=policy(config, "drift", mark.drift),
            ignore=(*settings.ignore, *(mark.ignore or ())),
            normalize=mark.normalize,
            keep_headers=(*settings.keep_headers, *(mark.keep_headers or ())),
            drop_headers=(*settings.drop_headers, *(mark.drop_headers or ())),
            passthrough_hosts=(*passthrough_hosts(config), *(mark.passthrough_hosts or ())),
            scrub=scrubber_of(config),
            diff_folder=diff_folder(config),
            # What one test does not ask for, another one may.
            drop_unplayed=config.option.regen_drop_unplayed and not sharing.is_shared,
        ) as run,
    ):
        yield run


@contextmanager
def plain_errors(item: pytest.Item) -> Iterator[None]:
    """Show a caller's mistake as its three lines, without a traceback."""
    try:
        yield
    except UsageError as error:
        raise plain_usage_error(f"{item.nodeid}: {error}") from None


def policy(
    config: pytest.Config,
    name: Literal["drift", "unplayed"],
    mark: FindingPolicy | None = None,
    default: FindingPolicy = "fail",
) -> FindingPolicy:
    """Return what becomes of ``drift`` or ``unplayed``: marker, ini value, table, default.

    Raises:
        pytest.UsageError: the ini value is not one of the three.
    """
    ini = ini_choice(config, f"regen_{name}", POLICIES)
    table: FindingPolicy | None = getattr(choices_of(config).settings.cassettes, name)
    return mark or ini or table or default


def passthrough_hosts(config: pytest.Config) -> tuple[str, ...]:
    """Return the hosts that pass every cassette by: those of the ini file and of the table."""
    table = choices_of(config).settings.cassettes.passthrough_hosts
    return (*table, *config.getini("regen_passthrough_hosts"))


def diff_folder(config: pytest.Config) -> Path | None:
    """Return where long differences are written: in pytest's cache, nowhere if that is off."""
    if not config.pluginmanager.hasplugin("cacheprovider"):
        return None
    return config.rootpath / str(config.getini("cache_dir")) / "d" / "regen"


def report_run(
    item: pytest.Item, run: "CassetteRun | VcrRun", command: str, drift: FindingPolicy
) -> None:
    """Note what a cassette was recorded with, and the requests that drifted.

    Args:
        item: the test.
        run: its cassette.
        command: what records the cassette anew.
        drift: what becomes of a request that is not what was recorded.
    """
    log, fails = cassette_log(item.config), drift == "fail"
    note_changed(item, run.path, run.changed)
    for change in run.drifts:
        log.note_drift(run.path)
        if drift != "ignore":
            following, causes = change.next(command), change.causes
            log.note(
                item, "drift", run.path, change, command=following, failed=fails, causes=causes
            )
