"""The cassette of a test marked ``vcr``: vcrpy's own, with drift and misses reported."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pytest_regen.cassettes.clients.vcr_run import VcrOptions, VcrRun, use_vcr_cassette
from pytest_regen.cassettes.misses import with_exemption
from pytest_regen.errors import UsageError
from pytest_regen.modes import RECORD_MODES
from pytest_regen.pytest_plugin.choices import choices_of, hosts_argument
from pytest_regen.pytest_plugin.names import node_command, vcr_file_name
from pytest_regen.pytest_plugin.options import plain_usage_error, usage_error
from pytest_regen.pytest_plugin.recording.fixture import diff_folder, passthrough_hosts, policy
from pytest_regen.pytest_plugin.recording.hooks import EXEMPTION, cassette_hooks, note, note_drift
from pytest_regen.pytest_plugin.recording.log import cassette_log
from pytest_regen.pytest_plugin.stash import CALL_PASSED, VCR_RUN


def merge_config(config: Mapping[str, Any], marks: Sequence[pytest.Mark]) -> dict[str, Any]:
    """Return the arguments of vcrpy: the closest mark wins, the fixture comes last."""
    found = dict(config)
    for mark in reversed(marks):
        found.update(mark.kwargs)
    return found


@contextmanager
def vcr_cassette_in_use(
    item: pytest.Item,
    *,
    name: str,
    folder: str,
    mode: str,
    config: Mapping[str, Any],
    marks: Sequence[pytest.Mark],
) -> Iterator[Any]:
    """Use a cassette as pytest-recording does, and report what it would not."""
    options_of_vcr = merge_config(config, marks)
    mode = _mode(item, options_of_vcr.pop("record_mode", mode))
    passing = options_of_vcr.pop("passthrough_hosts", ())
    cassette_hooks(item.config)
    options = VcrOptions(
        path=vcr_file_name(name, options_of_vcr.get("serializer", ".yaml")),
        folder=Path(folder),
        mode=mode,
        config=options_of_vcr,
        extra=tuple(str(arg) for mark in marks for arg in mark.args),
        configure=lambda vcr: item.config.hook.pytest_recording_configure(
            config=item.config, vcr=vcr
        ),
        ignore=choices_of(item.config).settings.cassettes.ignore,
        passing=(*passthrough_hosts(item.config), *hosts_argument(item, "vcr", passing)),
        diff_folder=diff_folder(item.config),
        test=getattr(item, "obj", None),
    )
    with _open_cassette(item, options) as run:
        run.command = node_command(item.config, item.nodeid, options=("--record-mode", "rewrite"))
        item.stash[VCR_RUN] = run
        cassette_log(item.config).use(run.path)
        try:
            yield run.cassette
        finally:
            del item.stash[VCR_RUN]
    refused = run.take_pending_miss(None)
    if refused is not None:
        raise refused
    _report(item, run)


@contextmanager
def _open_cassette(item: pytest.Item, options: VcrOptions) -> Iterator[VcrRun]:
    try:
        with use_vcr_cassette(options) as run:
            yield run
    except UsageError as error:
        raise plain_usage_error(f"{item.nodeid}: {error}") from None


def _mode(item: pytest.Item, value: object) -> str:
    """Return a record mode, given as a word or as a member of vcrpy's enum."""
    mode = getattr(value, "value", value)
    if mode not in RECORD_MODES:
        raise usage_error(
            f"{item.nodeid}: vcr(record_mode={value!r}): unknown record mode",
            hint=f"use one of {', '.join(RECORD_MODES)}",
        )
    return str(mode)


def _report(item: pytest.Item, run: VcrRun) -> None:
    passed = item.stash.get(CALL_PASSED, False)
    drift = policy(item.config, "drift", None, "warn")
    unplayed = policy(item.config, "unplayed", None, "warn")
    if run.drifts:
        note_drift(item, run.path)
    fails = drift == "fail"
    for change in run.drifts if drift != "ignore" else ():
        command, causes = change.next(run.command), change.causes
        note(item, "drift", run.path, change, command=command, failed=fails, causes=causes)
    swallowed = [with_exemption(miss, EXEMPTION["vcr"]) for miss in run.take_swallowed_misses()]
    for miss in swallowed if drift != "ignore" else ():
        what, causes = f"{miss.what}\n    {miss.why}", miss.causes
        note(item, "miss", run.path, what, command=miss.hint, failed=fails, causes=causes)
    if not passed:
        return
    if swallowed and drift == "fail":
        raise swallowed[0]
    if run.drifts and drift == "fail":
        lines = [f"{run.path.name} is no longer what the test asks for", *map(str, run.drifts)]
        nexts = dict.fromkeys(change.next(run.command) for change in run.drifts)
        pytest.fail("\n".join([*lines, *(f"  next: {text}" for text in nexts)]), pytrace=False)
    if run.unplayed and unplayed != "ignore":
        what = f"{run.unplayed} of {run.total} recordings were not asked for"
        fails = unplayed == "fail"
        note(item, "unplayed", run.path, what, command=run.command, failed=fails)
        if fails:
            pytest.fail(f"{run.path.name}: {what}\n  next: {run.command}", pytrace=False)
