"""The cassette of a test, as the fixture ``cassette`` puts it to use."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Literal

import pytest

from pytest_regen.cassettes import CassetteRun, use_cassette
from pytest_regen.cassettes.files.places import name_parts
from pytest_regen.errors import UsageError
from pytest_regen.modes import POLICIES, Policy, RecordMode
from pytest_regen.pytest_plugin.cassettes.hooks import cassette_hooks, note
from pytest_regen.pytest_plugin.cassettes.log import cassette_log
from pytest_regen.pytest_plugin.cassettes.names import cassette_of_test
from pytest_regen.pytest_plugin.cassettes.notes import CassetteNote
from pytest_regen.pytest_plugin.cassettes.sharing import Sharing, sharing_of
from pytest_regen.pytest_plugin.choices import choices_of, ini_choice
from pytest_regen.pytest_plugin.marks import (
    CassetteMark,
    cassette_arguments,
    cassette_mark,
)
from pytest_regen.pytest_plugin.scrubbers import scrubber_of
from pytest_regen.pytest_plugin.stash import CALL_FAILED, CALL_PASSED, CASSETTE
from pytest_regen.pytest_plugin.usage_errors import told_whole, usage_error

__all__ = ["cassette_in_use", "diff_folder", "passthrough_hosts", "policy"]


_KEYS = (("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"), ("OPENAI_API_KEY",))
"""Where SDKs look for a key, each in the first of its variables that is set."""


_DIFF_FOLDER = pytest.StashKey[Path]()


class _FailedError(Exception):
    """The test failed, so that what was recorded stays beside the cassette."""


@contextmanager
def cassette_in_use(item: pytest.Item, config: Mapping[str, object]) -> Iterator[CassetteRun]:
    """Put the test's cassette to use, in the mode chosen; a recording nobody asked for fails.

    Args:
        item: the test.
        config: what the fixture ``cassette_config`` says; the marker wins.
    """
    mark = _merged(item, config)
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
    with suppress(_FailedError), _used(item, sharing, mark) as run, _some_key(run):
        item.stash[CASSETTE] = run
        try:
            yield run
        finally:
            del item.stash[CASSETTE]
        # One that skips, or fails as its mark expects, does so in every run.
        if item.stash.get(CALL_FAILED, True) and not option.regen_keep_failed:
            _tell_kept_apart(item, run)
            raise _FailedError
    _tell(item, run, mark, sharing)


@contextmanager
def _used(item: pytest.Item, sharing: Sharing, mark: CassetteMark) -> Iterator[CassetteRun]:
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
        raise told_whole(f"{item.nodeid}: {error}") from None


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
def _some_key(run: CassetteRun) -> Iterator[None]:
    """Let a client that insists on a key be made where there is none, if nothing will be sent."""
    lacking = [names[0] for names in _KEYS if not any(map(os.environ.get, names))]
    if not run.is_replay_only:
        lacking = []
    os.environ.update(dict.fromkeys(lacking, "none-needed-in-replay"))
    try:
        yield
    finally:
        for name in lacking:
            os.environ.pop(name, None)


def _merged(item: pytest.Item, config: Mapping[str, object]) -> CassetteMark:
    """Return the marker, completed by what the fixture says."""
    known = {field.name for field in fields(CassetteMark)}
    unknown = sorted(set(config) - known)
    if unknown:
        raise usage_error(
            f"{item.nodeid}: cassette_config has the unknown key {unknown[0]!r}",
            hint=f"use some of {', '.join(sorted(known))}",
        )
    mark, default = cassette_mark(item), cassette_arguments(item, config)
    said = {name: getattr(mark, name) for name in known}
    return CassetteMark(
        **{n: getattr(default, n) if value is None else value for n, value in said.items()}
    )


def policy(
    config: pytest.Config,
    name: Literal["drift", "unplayed"],
    said: Policy | None,
    default: Policy = "fail",
) -> Policy:
    """Return what becomes of ``drift`` or ``unplayed``: marker, ini value, table, default.

    Raises:
        pytest.UsageError: the ini value is none of the three.
    """
    ini = ini_choice(config, f"regen_{name}", POLICIES)
    table: Policy | None = getattr(choices_of(config).settings.cassettes, name)
    return said or ini or table or default


def passthrough_hosts(config: pytest.Config) -> tuple[str, ...]:
    """Return the hosts that pass every cassette by: those of the ini file and of the table."""
    table = choices_of(config).settings.cassettes.passthrough_hosts
    return (*table, *config.getini("regen_passthrough_hosts"))


def diff_folder(config: pytest.Config) -> Path:
    """Return where long differences are written: beside what else a run leaves for people."""
    if _DIFF_FOLDER not in config.stash:
        # Without the plugin of the cache there is no such setting.
        has_cache = config.pluginmanager.hasplugin("cacheprovider")
        folder = str(config.getini("cache_dir")) if has_cache else ".pytest_cache"
        config.stash[_DIFF_FOLDER] = config.rootpath / folder / "d" / "regen"
    return config.stash[_DIFF_FOLDER]


def _tell_kept_apart(item: pytest.Item, run: CassetteRun) -> None:
    if run.recorded:
        cassette_log(item.config).add(
            [
                CassetteNote(
                    "hint",
                    f"{item.nodeid} failed: what it recorded is in {run.path.name}.partial",
                    next="mend the test and record again, or add --regen-keep-failed",
                )
            ]
        )


def _tell(item: pytest.Item, run: CassetteRun, mark: CassetteMark, sharing: Sharing) -> None:
    for drift in run.drifts:
        command = sharing.record_command()
        note(item, "drift", run.path, drift, command=command, causes=drift.causes)
    if sharing.is_shared:
        # What is left is the others' business, and nobody knows whether all of them ran.
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
