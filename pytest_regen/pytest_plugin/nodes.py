"""Stores as collected nodes and their types as test items."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_regen.errors import StoreError
from pytest_regen.pytest_plugin.checks import StoreCheck, check_of
from pytest_regen.pytest_plugin.failures import UnitError, shown
from pytest_regen.pytest_plugin.healing.records import add_warnings
from pytest_regen.pytest_plugin.locate import Selection, from_rootdir
from pytest_regen.validation.freshness import update_command

if TYPE_CHECKING:
    from _pytest._code.code import TerminalRepr

__all__ = ["DAMAGED", "StoreNode", "TypeItem", "store_nodes"]

DAMAGED = "store"
"""Name of the one item of a store that cannot be opened."""


def store_nodes(session: pytest.Session, selection: Selection) -> list["StoreNode"]:
    """Return a node for each store of the run."""
    nodes = []
    for path, types in selection.types.items():
        node: StoreNode = StoreNode.from_parent(session, path=path)
        node.asked = types
        nodes.append(node)
    return nodes


class StoreNode(pytest.Directory):
    """One store. A directory, so that the conftest files around it are loaded."""

    asked: set[str] | None = None
    """The types to run; ``None`` for all."""

    def __init__(self, **kwargs: Any) -> None:  # noqa: ANN401 - handed on to pytest
        super().__init__(**kwargs)
        # pytest leaves a directory right below the session out of -k.
        self.extra_keyword_matches.add(from_rootdir(self.path, self.config.rootpath))
        self.add_marker("regen")

    @property
    def check(self) -> StoreCheck:
        """The store and what its validation found."""
        return check_of(self.config, self.path)

    def collect(self) -> Iterable[pytest.Item]:
        """Return an item per type; a store that cannot be opened is one item that fails."""
        try:
            names = self.check.type_names
        except StoreError:
            return [TypeItem.from_parent(self, name=DAMAGED)]
        return [
            TypeItem.from_parent(self, name=name)
            for name in names
            if self.asked is None or name in self.asked
        ]


class TypeItem(pytest.Item):
    """One generated type: passes if its validation finds no error."""

    @property
    def check(self) -> StoreCheck:
        """The store this type belongs to."""
        return check_of(self.config, self.path)

    def runtest(self) -> None:
        """Validate the type.

        Raises:
            UnitError: the type has errors, or is stale where the project lets that fail.
            StoreError: the store cannot be opened.
        """
        check = self.check
        failing, told = check.gate(self.name)
        is_stale = any(issue.code == "STALE" for issue in (*failing, *told))
        command = update_command(check.store) if is_stale else ""
        add_warnings(self, told, note=check.format_note, command=command)
        if failing:
            raise UnitError(check, self.name, failing)

    def repr_failure(
        self,
        excinfo: pytest.ExceptionInfo[BaseException],
        style: Any = None,  # noqa: ANN401 - pytest's private literal type
    ) -> "str | TerminalRepr":
        """Return our own text without a traceback; anything unforeseen as pytest shows it."""
        return shown(excinfo, self.config) or super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return the generated file and the line on which the type begins."""
        try:
            return self.check.source_path, self.check.line_of(self.name), self.nodeid
        except StoreError:
            return self.path, None, self.nodeid
