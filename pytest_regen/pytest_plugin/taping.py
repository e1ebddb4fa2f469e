"""The cassette of a test, as the fixture ``cassette`` puts it to use."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from pytest_regen.cassettes import CassetteRun, use_cassette
from pytest_regen.pytest_plugin.choices import choices_of
from pytest_regen.pytest_plugin.failures import node_command
from pytest_regen.pytest_plugin.fixtures import CALL_PASSED
from pytest_regen.pytest_plugin.marks import cassette_mark
from pytest_regen.pytest_plugin.places import cassette_of_test
from pytest_regen.pytest_plugin.providers import CASSETTE, mode_to_record

__all__ = ["taping"]


class _NotPassed(Exception):  # noqa: N818 - a way out of a block, not an error
    """What was recorded stays beside the cassette."""


@contextmanager
def taping(item: pytest.Item) -> Iterator[CassetteRun]:
    """Put the test's cassette to use, in the mode chosen; a recording nobody asked for fails."""
    mode = choices_of(item.config).record_mode(cassette_mark(item).record)
    path = cassette_of_test(item)
    record = node_command(item.nodeid, "--regen-record", mode_to_record(path))
    with suppress(_NotPassed), use_cassette(path, mode=mode, record_command=record) as run:
        item.stash[CASSETTE] = run
        try:
            yield run
        finally:
            del item.stash[CASSETTE]
        if not item.stash.get(CALL_PASSED, False):
            raise _NotPassed
    if run.is_replay_only and run.unplayed and item.stash.get(CALL_PASSED, False):
        pytest.fail(
            f"{path}: {run.unplayed} of {run.unplayed + run.played} recordings were not asked for\n"
            f"  next: {node_command(item.nodeid, '--regen-record', 'rewrite')}",
            pytrace=False,
        )
