"""Cassettes that several tests use: what one of them asks for is not all that is in them."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_regen.pytest_plugin.cassettes.log import cassette_log
from pytest_regen.pytest_plugin.cassettes.names import mode_to_record
from pytest_regen.pytest_plugin.commands import node_command
from pytest_regen.pytest_plugin.usage_errors import usage_error

__all__ = ["Sharing", "sharing_of"]

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
