"""The cassette of a test, as the fixture ``cassette`` and the mark ``vcr`` put it to use."""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from pytest_regen.cassettes import CassetteRun, use_cassette
from pytest_regen.cassettes.files.storage import name_parts
from pytest_regen.errors import UsageError
from pytest_regen.modes import POLICIES, RECORD_MODES, FindingPolicy
from pytest_regen.pytest_plugin import choices, names, stash
from pytest_regen.pytest_plugin.options import plain_usage_error, usage_error
from pytest_regen.pytest_plugin.project import from_here
from pytest_regen.pytest_plugin.recording.hooks import cassette_hooks
from pytest_regen.pytest_plugin.recording.log import CassetteNote, cassette_log, note_changed

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
    mark = choices.cassette_mark(item, config)
    path = names.cassette_of_test(item, mark.name)
    stem, suffix, packed = name_parts(path)
    if suffix == ".json" and not path.exists():
        raise usage_error(
            f"{item.nodeid}: cassette(name={path.name!r}): there is no such file",
            why="cassettes in JSON are replayed; new ones are recorded as YAML",
            hint=f"name it {stem}.yaml{packed}",
        )
    cassette_hooks(item.config)
    log = cassette_log(item.config)
    is_shared, record_command = _sharing_of(item, path, is_named=mark.name is not None)
    settings = choices.choices_of(item.config).settings.cassettes
    mode = choices.choices_of(item.config).record_mode(mark.record)
    if mode in {"rewrite", "once"} and path in log.begun:
        # Tests that share a cassette add to what the first of them began.
        mode = "new_episodes"
    elif is_shared and (mode == "rewrite" or (mode == "once" and not path.exists())):
        log.begun.add(path)
    cassette = use_cassette(
        path,
        mode=mode,
        record_command=record_command,
        drift=_policy(item.config, "drift", mark.drift),
        ignore=(*settings.ignore, *(mark.ignore or ())),
        normalize=mark.normalize,
        keep_headers=(*settings.keep_headers, *(mark.keep_headers or ())),
        drop_headers=(*settings.drop_headers, *(mark.drop_headers or ())),
        passthrough_hosts=(*_passthrough_hosts(item.config), *(mark.passthrough_hosts or ())),
        scrub=stash.scrubber_of(item.config),
        diff_folder=_diff_folder(item.config),
        # What one test does not ask for, another one may.
        drop_unplayed=item.config.option.regen_drop_unplayed and not is_shared,
    )
    with suppress(_FailedError), _plain_errors(item), cassette as run:
        # Clients insist on a key; where nothing will be sent, any will do.
        keys = [places[0] for places in _KEYS if not any(map(os.environ.get, places))]
        keys = keys if run.is_replay_only else []
        os.environ.update(dict.fromkeys(keys, "none-needed-in-replay"))
        item.stash[stash.CASSETTE] = run
        try:
            yield run
        finally:
            del item.stash[stash.CASSETTE]
            for name in keys:
                os.environ.pop(name, None)
        # One that skips, or fails as its mark expects, does so in every run.
        has_failed = item.stash.get(stash.CALL_OUTCOME, "failed") == "failed"
        if has_failed and not item.config.option.regen_keep_failed:
            if run.recorded:
                what = f"{item.nodeid} failed: what it recorded is in {run.path.name}.partial"
                advice = "correct the test and record again, or add --regen-keep-failed"
                log.add([CassetteNote("hint", what, next=advice)])
            raise _FailedError
    _report_run(item, run, record_command, "warn")
    unplayed = _policy(item.config, "unplayed", mark.unplayed)
    # What is left of a shared one belongs to the other tests, which may not all have run.
    if run.is_replay_only and not is_shared:
        # Neither asks a model, because what is played need not be recorded again.
        command = (
            record_command if run.played else f"rm {shlex.quote(from_here(path, item.config))}"
        )
        log.note_unplayed(item, run, run.unplayed + run.played, command, unplayed)


def _sharing_of(item: pytest.Item, path: Path, *, is_named: bool) -> tuple[bool, str]:
    """Return whether tests share a cassette, and what records it so that no other test loses any.

    Args:
        item: the test.
        path: the cassette.
        is_named: whether a marker or the fixture gave it its name.

    Returns:
        Whether more than one test uses it, or may in another run; and the command that records
        what it lacks.
    """
    is_for_many = is_named
    for node, mark in item.iter_markers_with_node("cassette"):
        if mark.args or "name" in mark.kwargs:
            # A name of a class, a module or a test with cases is one of several tests.
            is_for_many = is_named and (node is not item or hasattr(item, "callspec"))
        break
    others = [test for test in cassette_log(item.config).users.get(path, ()) if test != item.nodeid]
    is_shared, tests = bool(others) or is_for_many, [item.nodeid, *others]
    options = ["--regen-record", names.mode_to_record(path)]
    if path.exists() and not is_shared:
        # What was recorded for requests that are no longer made would fail the next run.
        options.append("--regen-drop-unplayed")
    elif path.exists() and others:
        options = ["--regen-record", "rewrite"]
    if len(tests) > _MANY:
        tests = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    return is_shared, names.node_command(item.config, *tests, options=options)


@contextmanager
def _plain_errors(item: pytest.Item) -> Iterator[None]:
    """Show a caller's mistake as its three lines, without a traceback."""
    try:
        yield
    except UsageError as error:
        raise plain_usage_error(f"{item.nodeid}: {error}") from None


def _policy(
    config: pytest.Config,
    name: Literal["drift", "unplayed"],
    mark: FindingPolicy | None = None,
    default: FindingPolicy = "fail",
) -> FindingPolicy:
    """Return what becomes of ``drift`` or ``unplayed``: marker, ini value, table, default.

    Raises:
        pytest.UsageError: the ini value is not one of the three.
    """
    ini = choices.ini_choice(config, f"regen_{name}", POLICIES)
    table: FindingPolicy | None = getattr(choices.choices_of(config).settings.cassettes, name)
    return mark or ini or table or default


def _passthrough_hosts(config: pytest.Config) -> tuple[str, ...]:
    """Return the hosts that pass every cassette by: those of the ini file and of the table."""
    table = choices.choices_of(config).settings.cassettes.passthrough_hosts
    return (*table, *config.getini("regen_passthrough_hosts"))


def _diff_folder(config: pytest.Config) -> Path | None:
    """Return where long differences are written: in pytest's cache, nowhere if that is off."""
    if not config.pluginmanager.hasplugin("cacheprovider"):
        return None
    return config.rootpath / str(config.getini("cache_dir")) / "d" / "regen"


def _report_run(
    item: pytest.Item, run: "CassetteRun | VcrRun", command: str, drift: FindingPolicy
) -> None:
    """Note what a cassette was recorded with, and the requests that drifted.

    Args:
        item: the test.
        run: its cassette.
        command: what records the cassette anew.
        drift: what happens to a request that is not as recorded.
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


def merge_config(config: Mapping[str, Any], marks: Sequence[pytest.Mark]) -> dict[str, Any]:
    """Return the arguments of vcrpy: the closest mark wins, the fixture comes last."""
    merged = dict(config)
    for mark in reversed(marks):
        merged.update(mark.kwargs)
    return merged


@contextmanager
def vcr_cassette_in_use(
    request: pytest.FixtureRequest, marks: Sequence[pytest.Mark]
) -> Iterator[Any]:
    """Use a cassette as pytest-recording does, and report what it would not.

    Args:
        request: of the fixture ``vcr``; the other fixtures of that plugin say what is used.
        marks: those of the test, the closest first.
    """
    from pytest_regen.cassettes.clients.vcr_run import VcrOptions, use_vcr_cassette

    item, fixture = request.node, request.getfixturevalue
    name, folder = fixture("default_cassette_name"), Path(fixture("vcr_cassette_dir"))
    arguments = merge_config(fixture("vcr_config"), marks)
    value = arguments.pop("record_mode", fixture("record_mode"))
    # A word, or a member of vcrpy's enum.
    mode = getattr(value, "value", value)
    if mode not in RECORD_MODES:
        raise usage_error(
            f"{item.nodeid}: vcr(record_mode={value!r}): unknown record mode",
            hint=f"use one of {', '.join(RECORD_MODES)}",
        )
    hosts = choices.names_argument(
        item, "vcr", "passthrough_hosts", arguments.pop("passthrough_hosts", ())
    )
    hook, log = item.config.hook, cassette_log(item.config)
    cassette_hooks(item.config)
    options = VcrOptions(
        path=names.vcr_file_name(name, arguments.get("serializer", ".yaml")),
        folder=folder,
        mode=mode,
        config=arguments,
        extra=tuple(str(arg) for mark in marks for arg in mark.args),
        configure=lambda vcr: hook.pytest_recording_configure(config=item.config, vcr=vcr),
        ignore=choices.choices_of(item.config).settings.cassettes.ignore,
        passing=(*_passthrough_hosts(item.config), *(hosts or ())),
        diff_folder=_diff_folder(item.config),
    )
    with _plain_errors(item), use_vcr_cassette(options) as run:
        run.command = names.node_command(
            item.config, item.nodeid, options=("--record-mode", "rewrite")
        )
        item.stash[stash.VCR_RUN] = run
        try:
            yield run.cassette
        finally:
            del item.stash[stash.VCR_RUN]
    drift = _policy(item.config, "drift", default="warn")
    fails = drift == "fail"
    _report_run(item, run, run.command, drift)
    misses = run.take_swallowed_misses()
    for miss in misses if drift != "ignore" else ():
        what, causes = f"{miss.what}\n    {miss.why}", miss.causes
        log.note(item, "miss", run.path, what, command=miss.hint, failed=fails, causes=causes)
    passed = item.stash.get(stash.CALL_OUTCOME, "") == "passed"
    if passed and misses and fails:
        raise misses[0]
    if passed and run.drifts and fails:
        lines = [f"{run.path.name} is no longer what the test asks for", *map(str, run.drifts)]
        nexts = dict.fromkeys(change.next(run.command) for change in run.drifts)
        pytest.fail("\n".join([*lines, *(f"  next: {text}" for text in nexts)]), pytrace=False)
    unplayed = _policy(item.config, "unplayed", default="warn")
    log.note_unplayed(item, run, run.total, run.command, unplayed)
