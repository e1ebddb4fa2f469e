"""The cassette of a test, as the fixture ``cassette`` puts it to use."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

import pytest

from pytest_regen.cassettes import CassetteRun, use_cassette
from pytest_regen.cassettes.files.storage import name_parts
from pytest_regen.errors import UsageError
from pytest_regen.modes import POLICIES, FindingPolicy, RecordMode
from pytest_regen.pytest_plugin.choices import (
    CassetteMark,
    cassette_arguments,
    cassette_mark,
    choices_of,
    ini_choice,
)
from pytest_regen.pytest_plugin.names import cassette_of_test, mode_to_record, node_command
from pytest_regen.pytest_plugin.options import plain_usage_error, usage_error
from pytest_regen.pytest_plugin.recording.hooks import cassette_hooks, note
from pytest_regen.pytest_plugin.recording.log import CassetteNote, cassette_log
from pytest_regen.pytest_plugin.stash import CALL_FAILED, CALL_PASSED, CASSETTE, scrubber_of

_MANY = 4
"""Tests beyond which a command names their module."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """Who uses a cassette."""

    config: pytest.Config
    path: Path
    tests: tuple[str, ...]
    """Node ids of the tests collected in this run that use it."""
    is_shared: bool
    """Whether more than one test uses it, or may in another run."""

    def record_command(self) -> str:
        """Return the command that records what the cassette lacks, and loses nothing of others."""
        mode = mode_to_record(self.path)
        if not self.is_shared:
            # What was recorded for requests that are no longer made would fail the next run.
            drop = ["--regen-drop-unplayed"] if mode == "new_episodes" else []
            options = ("--regen-record", mode, *drop)
            return node_command(self.config, self.tests[0], options=options)
        modules = tuple(dict.fromkeys(test.partition("::")[0] for test in self.tests))
        named = self.tests if len(self.tests) <= _MANY else modules
        if len(self.tests) > 1 and self.path.exists():
            mode = "rewrite"
        return node_command(self.config, *named, options=("--regen-record", mode))

    def rewrite_command(self) -> str:
        """Return the command that records anew what an unshared cassette is asked for."""
        options = ("--regen-record", "rewrite")
        return node_command(self.config, self.tests[0], options=options)


def sharing_of(item: pytest.Item, path: Path, *, is_named: bool) -> Sharing:
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
    others = [test for test in users if test != item.nodeid]
    is_shared = bool(others) or (is_named and _is_for_many(item))
    return Sharing(item.config, path, (item.nodeid, *others), is_shared)


def _is_for_many(item: pytest.Item) -> bool:
    """Whether a name was given to more than this test: to its class, its cases or its module."""
    for node, mark in item.iter_markers_with_node("cassette"):
        if mark.args or "name" in mark.kwargs:
            return node is not item or hasattr(item, "callspec")
        break
    return True


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
    mark = _complete_mark(item, config)
    path = cassette_of_test(item, mark.name)
    stem, suffix, packed = name_parts(path)
    if suffix == ".json" and not path.exists():
        raise usage_error(
            f"{item.nodeid}: cassette(name={path.name!r}): there is no such file",
            why="cassettes in JSON are replayed; new ones are recorded as YAML",
            hint=f"name it {stem}.yaml{packed}",
        )
    option = item.config.option
    cassette_hooks(item.config)
    cassette_log(item.config).use(path)
    sharing = sharing_of(item, path, is_named=mark.name is not None)
    with suppress(_FailedError), _open_cassette(item, sharing, mark) as run, _placeholder_keys(run):
        item.stash[CASSETTE] = run
        try:
            yield run
        finally:
            del item.stash[CASSETTE]
        # One that skips, or fails as its mark expects, does so in every run.
        if item.stash.get(CALL_FAILED, True) and not option.regen_keep_failed:
            _report_partial(item, run)
            raise _FailedError
    _report(item, run, mark, sharing)


@contextmanager
def _open_cassette(
    item: pytest.Item, sharing: Sharing, mark: CassetteMark
) -> Iterator[CassetteRun]:
    config = item.config
    settings = choices_of(config).settings.cassettes
    try:
        with use_cassette(
            sharing.path,
            mode=_mode(item, sharing, mark),
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
        ) as run:
            yield run
    except UsageError as error:
        raise plain_usage_error(f"{item.nodeid}: {error}") from None


def _mode(item: pytest.Item, sharing: Sharing, mark: CassetteMark) -> RecordMode:
    """Return the mode chosen; tests that share a cassette add to what the first of them began."""
    mode = choices_of(item.config).record_mode(mark.record)
    begun = cassette_log(item.config).begun
    begins = mode == "rewrite" or (mode == "once" and not sharing.path.exists())
    if mode in {"rewrite", "once"} and sharing.path in begun:
        return "new_episodes"
    if sharing.is_shared and begins:
        begun.add(sharing.path)
    return mode


@contextmanager
def _placeholder_keys(run: CassetteRun) -> Iterator[None]:
    """Set placeholder keys for clients that insist on one, if nothing will be sent."""
    lacking = [names[0] for names in _KEYS if not any(map(os.environ.get, names))]
    if not run.is_replay_only:
        lacking = []
    os.environ.update(dict.fromkeys(lacking, "none-needed-in-replay"))
    try:
        yield
    finally:
        for name in lacking:
            os.environ.pop(name, None)


def _complete_mark(item: pytest.Item, config: Mapping[str, object]) -> CassetteMark:
    """Return the marker, completed by what the fixture says."""
    known = {field.name for field in fields(CassetteMark)}
    unknown = sorted(set(config) - known)
    if unknown:
        raise usage_error(
            f"{item.nodeid}: cassette_config has the unknown key {unknown[0]!r}",
            hint=f"use some of {', '.join(sorted(known))}",
        )
    mark, default = cassette_mark(item), cassette_arguments(item, config)
    chosen = {name: getattr(mark, name) for name in known}
    return CassetteMark(
        **{n: getattr(default, n) if value is None else value for n, value in chosen.items()}
    )


def policy(
    config: pytest.Config,
    name: Literal["drift", "unplayed"],
    chosen: FindingPolicy | None,
    default: FindingPolicy = "fail",
) -> FindingPolicy:
    """Return what becomes of ``drift`` or ``unplayed``: marker, ini value, table, default.

    Raises:
        pytest.UsageError: the ini value is not one of the three.
    """
    ini = ini_choice(config, f"regen_{name}", POLICIES)
    table: FindingPolicy | None = getattr(choices_of(config).settings.cassettes, name)
    return chosen or ini or table or default


def passthrough_hosts(config: pytest.Config) -> tuple[str, ...]:
    """Return the hosts that pass every cassette by: those of the ini file and of the table."""
    table = choices_of(config).settings.cassettes.passthrough_hosts
    return (*table, *config.getini("regen_passthrough_hosts"))


def diff_folder(config: pytest.Config) -> Path | None:
    """Return where long differences are written: in pytest's cache, nowhere if that is off."""
    if not config.pluginmanager.hasplugin("cacheprovider"):
        return None
    return config.rootpath / str(config.getini("cache_dir")) / "d" / "regen"


def _report_partial(item: pytest.Item, run: CassetteRun) -> None:
    if run.recorded:
        cassette_log(item.config).add(
            [
                CassetteNote(
                    "hint",
                    f"{item.nodeid} failed: what it recorded is in {run.path.name}.partial",
                    next="correct the test and record again, or add --regen-keep-failed",
                )
            ]
        )


def _report(item: pytest.Item, run: CassetteRun, mark: CassetteMark, sharing: Sharing) -> None:
    for drift in run.drifts:
        command = drift.next(sharing.record_command())
        note(item, "drift", run.path, drift, command=command, causes=drift.causes)
    if sharing.is_shared:
        # What is left belongs to the other tests, which may not all have run.
        return
    unplayed = policy(item.config, "unplayed", mark.unplayed)
    passed = item.stash.get(CALL_PASSED, False)
    if unplayed == "ignore" or not (run.is_replay_only and run.unplayed and passed):
        return
    what = f"{run.unplayed} of {run.unplayed + run.played} recordings were not asked for"
    command = sharing.rewrite_command()
    fails = unplayed == "fail"
    note(item, "unplayed", run.path, what, command=command, failed=fails)
    if fails:
        pytest.fail(f"{run.path}: {what}\n  next: {command}", pytrace=False)
