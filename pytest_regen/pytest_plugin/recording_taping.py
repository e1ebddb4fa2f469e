"""The cassette of a test marked ``vcr``: vcrpy's own, with drift and misses told."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pytest_regen.cassettes.vcr_compat import VcrOptions, VcrRun, use_vcr_cassette
from pytest_regen.pytest_plugin.failures import node_command
from pytest_regen.pytest_plugin.fixtures import CALL_PASSED
from pytest_regen.pytest_plugin.tape_hooks import VCR_RUN, note, note_drift, tape_hooks
from pytest_regen.pytest_plugin.taping import diff_folder, policy

__all__ = ["vcr_taping"]


@contextmanager
def vcr_taping(
    item: pytest.Item,
    *,
    name: str,
    folder: str,
    mode: str,
    config: Mapping[str, Any],
    marks: Sequence[pytest.Mark],
) -> Iterator[Any]:
    """Put a cassette to use as pytest-recording does, and tell what it would not."""
    # The closest mark wins, as there.
    merged = dict(config)
    for mark in reversed(marks):
        merged.update(mark.kwargs)
    mode = str(merged.pop("record_mode", mode))
    tape_hooks(item.config)
    options = VcrOptions(
        path=name,
        folder=Path(folder),
        mode=mode,
        config=merged,
        extra=tuple(str(one) for mark in marks for one in mark.args),
        configure=lambda vcr: item.config.hook.pytest_recording_configure(
            config=item.config, vcr=vcr
        ),
        diff_folder=diff_folder(item.config),
    )
    with use_vcr_cassette(options) as run:
        run.command = node_command(item.nodeid, "--record-mode", "rewrite")
        item.stash[VCR_RUN] = run
        try:
            yield run.cassette
        finally:
            del item.stash[VCR_RUN]
    _tell(item, run)


def _tell(item: pytest.Item, run: VcrRun) -> None:
    passed = item.stash.get(CALL_PASSED, False)
    drift = policy(item.config, "drift", None, "warn")
    unplayed = policy(item.config, "unplayed", None, "warn")
    if run.drifts:
        note_drift(item, run.path)
    if run.drifts and drift == "warn":
        for one in run.drifts:
            note(item, f"drift: {item.nodeid}: {run.path.name}: {one}")
        note(item, f"next: {run.command}")
    if not passed:
        return
    if run.drifts and drift == "fail":
        lines = [f"{run.path.name} is no longer what the test asks for", *map(str, run.drifts)]
        pytest.fail("\n".join([*lines, f"  next: {run.command}"]), pytrace=False)
    if run.unplayed and unplayed != "ignore":
        what = f"{run.path.name}: {run.unplayed} of {run.total} recordings were not asked for"
        if unplayed == "fail":
            pytest.fail(f"{what}\n  next: {run.command}", pytrace=False)
        note(item, f"unplayed: {item.nodeid}: {what}; next: {run.command}")
