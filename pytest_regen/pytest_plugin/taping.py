"""The cassette of a test, as the fixture ``cassette`` puts it to use."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import cast

import pytest

from pytest_regen.cassettes import CassetteRun, DriftPolicy, use_cassette
from pytest_regen.errors import UsageError
from pytest_regen.pytest_plugin.choices import choices_of
from pytest_regen.pytest_plugin.failures import node_command
from pytest_regen.pytest_plugin.fixtures import CALL_PASSED
from pytest_regen.pytest_plugin.marks import (
    POLICIES,
    CassetteMark,
    cassette_arguments,
    cassette_mark,
)
from pytest_regen.pytest_plugin.places import cassette_of_test
from pytest_regen.pytest_plugin.providers import CASSETTE, mode_to_record
from pytest_regen.pytest_plugin.tape_hooks import note, note_drift, tape_hooks

__all__ = ["diff_folder", "policy", "taping"]


class _NotPassed(Exception):  # noqa: N818 - a way out of a block, not an error
    """What was recorded stays beside the cassette."""


@contextmanager
def taping(item: pytest.Item, config: Mapping[str, object]) -> Iterator[CassetteRun]:
    """Put the test's cassette to use, in the mode chosen; a recording nobody asked for fails.

    Args:
        item: the test.
        config: what the fixture ``cassette_config`` says; the marker wins.
    """
    mark = _merged(item, config)
    path = cassette_of_test(item, mark.name)
    option = item.config.option
    tape_hooks(item.config)
    with suppress(_NotPassed), _used(item, path, mark) as run:
        item.stash[CASSETTE] = run
        try:
            yield run
        finally:
            del item.stash[CASSETTE]
        if not item.stash.get(CALL_PASSED, False) and not option.regen_keep_failed:
            raise _NotPassed
    _tell(item, run, mark)


@contextmanager
def _used(item: pytest.Item, path: Path, mark: CassetteMark) -> Iterator[CassetteRun]:
    config = item.config
    settings = choices_of(config).settings.cassettes
    try:
        with use_cassette(
            path,
            mode=choices_of(config).record_mode(mark.record),
            record_command=_record_command(item, path),
            drift=cast("DriftPolicy", policy(config, "drift", mark.drift)),
            ignore=(*settings.ignore, *(mark.ignore or ())),
            normalize=mark.normalize,
            diff_folder=diff_folder(config),
            drop_unplayed=config.option.regen_drop_unplayed,
        ) as run:
            yield run
    except UsageError as error:
        raise pytest.UsageError(f"{item.nodeid}: {error}") from None


def _merged(item: pytest.Item, config: Mapping[str, object]) -> CassetteMark:
    """Return the marker, completed by what the fixture says."""
    known = {field.name for field in fields(CassetteMark)}
    unknown = sorted(set(config) - known)
    if unknown:
        raise pytest.UsageError(
            f"{item.nodeid}: cassette_config has the unknown key {unknown[0]!r}\n"
            f"  next: use some of {', '.join(sorted(known))}"
        )
    mark, default = cassette_mark(item), cassette_arguments(item, config)
    said = {name: getattr(mark, name) for name in known}
    return CassetteMark(
        **{n: getattr(default, n) if value is None else value for n, value in said.items()}
    )


def policy(config: pytest.Config, name: str, said: str | None, default: str = "fail") -> str:
    """Return what becomes of ``drift`` or ``unplayed``: marker, ini value, table, default.

    Raises:
        pytest.UsageError: the ini value is none of the three.
    """
    ini = str(config.getini(f"regen_{name}")).strip()
    if ini and ini not in POLICIES:
        raise pytest.UsageError(f"regen_{name} = {ini}: must be one of {', '.join(POLICIES)}")
    table = getattr(choices_of(config).settings.cassettes, name)
    return said or ini or table or default


def diff_folder(config: pytest.Config) -> Path:
    """Return where long differences are written: beside what else a run leaves for people."""
    # Without the plugin of the cache there is no such setting.
    has_cache = config.pluginmanager.hasplugin("cacheprovider")
    folder = str(config.getini("cache_dir")) if has_cache else ".pytest_cache"
    return config.rootpath / folder / "d" / "regen"


def _record_command(item: pytest.Item, path: Path) -> str:
    mode = mode_to_record(path)
    # What was recorded for requests that are no longer made would fail the next run.
    drop = ["--regen-drop-unplayed"] if mode == "new_episodes" else []
    return node_command(item.nodeid, "--regen-record", mode, *drop)


def _tell(item: pytest.Item, run: CassetteRun, mark: CassetteMark) -> None:
    for drift in run.drifts:
        note(item, f"drift: {item.nodeid}: {run.path.name}: {drift}")
    if run.drifts:
        note_drift(item, run.path)
        note(item, f"next: {_record_command(item, run.path)}")
    unplayed = policy(item.config, "unplayed", mark.unplayed)
    passed = item.stash.get(CALL_PASSED, False)
    if unplayed == "ignore" or not (run.is_replay_only and run.unplayed and passed):
        return
    what = f"{run.unplayed} of {run.unplayed + run.played} recordings were not asked for"
    command = node_command(item.nodeid, "--regen-record", "rewrite")
    if unplayed == "warn":
        note(item, f"unplayed: {item.nodeid}: {run.path.name}: {what}; next: {command}")
        return
    pytest.fail(f"{run.path}: {what}\n  next: {command}", pytrace=False)
