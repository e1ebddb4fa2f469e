"""The cassette of a test, as the fixture ``cassette`` puts it to use."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pytest_regen.cassettes import CassetteRun, use_cassette
from pytest_regen.pytest_plugin.choices import choices_of
from pytest_regen.pytest_plugin.failures import node_command
from pytest_regen.pytest_plugin.marks import cassette_mark
from pytest_regen.pytest_plugin.places import cassette_of_test
from pytest_regen.pytest_plugin.providers import CASSETTE

__all__ = ["taping"]


@contextmanager
def taping(item: pytest.Item) -> Iterator[CassetteRun]:
    """Put the test's cassette to use, in the mode chosen; a recording nobody asked for fails."""
    mode = choices_of(item.config).record_mode(cassette_mark(item).record)
    path = cassette_of_test(item)
    record = node_command(item.nodeid, "--regen-record", "once")
    with use_cassette(path, mode=mode, record_command=record) as run:
        item.stash[CASSETTE] = run
        try:
            yield run
        finally:
            del item.stash[CASSETTE]
    if run.is_replay_only and run.unplayed and run.played:
        pytest.fail(
            f"{path}: {run.unplayed} of {run.unplayed + run.played} recordings were not asked for\n"
            f"  next: {node_command(item.nodeid, '--regen-record', 'rewrite')}",
            pytrace=False,
        )
