"""The cassette of a test marked ``vcr``: vcrpy's own, with drift and misses reported."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pytest_regen.cassettes.clients.vcr_run import VcrOptions, use_vcr_cassette
from pytest_regen.cassettes.misses import with_exemption
from pytest_regen.modes import RECORD_MODES
from pytest_regen.pytest_plugin.choices import choices_of, names_argument
from pytest_regen.pytest_plugin.names import node_command, vcr_file_name
from pytest_regen.pytest_plugin.options import usage_error
from pytest_regen.pytest_plugin.recording import fixture
from pytest_regen.pytest_plugin.recording.hooks import EXEMPTION, cassette_hooks
from pytest_regen.pytest_plugin.recording.log import cassette_log
from pytest_regen.pytest_plugin.stash import CALL_PASSED, VCR_RUN


def merge_config(config: Mapping[str, Any], marks: Sequence[pytest.Mark]) -> dict[str, Any]:
    """Return the arguments of vcrpy: the closest mark wins, the fixture comes last."""
    merged = dict(config)
    for mark in reversed(marks):
        merged.update(mark.kwargs)
    return merged


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
    arguments = merge_config(config, marks)
    value = arguments.pop("record_mode", mode)
    # A word, or a member of vcrpy's enum.
    mode = getattr(value, "value", value)
    if mode not in RECORD_MODES:
        raise usage_error(
            f"{item.nodeid}: vcr(record_mode={value!r}): unknown record mode",
            hint=f"use one of {', '.join(RECORD_MODES)}",
        )
    hosts = names_argument(item, "vcr", "passthrough_hosts", arguments.pop("passthrough_hosts", ()))
    hook, log = item.config.hook, cassette_log(item.config)
    cassette_hooks(item.config)
    options = VcrOptions(
        path=vcr_file_name(name, arguments.get("serializer", ".yaml")),
        folder=Path(folder),
        mode=mode,
        config=arguments,
        extra=tuple(str(arg) for mark in marks for arg in mark.args),
        configure=lambda vcr: hook.pytest_recording_configure(config=item.config, vcr=vcr),
        ignore=choices_of(item.config).settings.cassettes.ignore,
        passing=(*fixture.passthrough_hosts(item.config), *(hosts or ())),
        diff_folder=fixture.diff_folder(item.config),
    )
    with fixture.plain_errors(item), use_vcr_cassette(options) as run:
        run.command = node_command(item.config, item.nodeid, options=("--record-mode", "rewrite"))
        item.stash[VCR_RUN] = run
        log.use(run.path)
        try:
            yield run.cassette
        finally:
            del item.stash[VCR_RUN]
    refused = run.take_pending_miss(None)
    if refused is not None:
        raise refused
    drift = fixture.policy(item.config, "drift", default="warn")
    fails = drift == "fail"
    fixture.report_run(item, run, run.command, drift)
    misses = [with_exemption(miss, EXEMPTION["vcr"]) for miss in run.take_swallowed_misses()]
    for miss in misses if drift != "ignore" else ():
        what, causes = f"{miss.what}\n    {miss.why}", miss.causes
        log.note(item, "miss", run.path, what, command=miss.hint, failed=fails, causes=causes)
    passed = item.stash.get(CALL_PASSED, False)
    if passed and misses and fails:
        raise misses[0]
    if passed and run.drifts and fails:
        lines = [f"{run.path.name} is no longer what the test asks for", *map(str, run.drifts)]
        nexts = dict.fromkeys(change.next(run.command) for change in run.drifts)
        pytest.fail("\n".join([*lines, *(f"  next: {text}" for text in nexts)]), pytrace=False)
    unplayed = fixture.policy(item.config, "unplayed", default="warn")
    log.note_unplayed(item, run, run.total, run.command, unplayed)
