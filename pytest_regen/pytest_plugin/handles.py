"""What the fixture ``regen_store`` hands to a test."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_regen.documents.ir import TypeIR
from pytest_regen.errors import MissingBlockError
from pytest_regen.pytest_plugin.checks import StoreCheck
from pytest_regen.pytest_plugin.locate import store_path
from pytest_regen.sources import extract_type_block
from pytest_regen.stores import RegenStore, StoredPage
from pytest_regen.validation.issues import Issue

__all__ = ["StoreHandle", "StoreOpener", "TypeHandle"]


class StoreOpener:
    """Opens stores for one test."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item

    def __repr__(self) -> str:
        return "regen_store"

    def __call__(self, path: str | os.PathLike[str] | None = None) -> "StoreHandle":
        """Return a store: the one at ``path`` (from the rootdir), the marker's, or the only one.

        Raises:
            pytest.UsageError: none is named, and there is not just one.
        """
        return StoreHandle(self._item.config, store_path(self._item, path))


class StoreHandle:
    """A store as it stands whenever it is looked at.

    Nothing is remembered between two looks: when a test is called again after a regeneration, its
    fixtures are those of the first call, and must show what is there now.
    """

    def __init__(self, config: pytest.Config, path: Path) -> None:
        self._config = config
        self.path = path

    def __repr__(self) -> str:
        return f"regen_store({self.path.name!r})"

    @property
    def store(self) -> RegenStore:
        """The artifacts as they are now.

        Raises:
            StoreError: they are missing or do not hold together.
        """
        return RegenStore.open(self.path)

    def __getitem__(self, type_name: str) -> "TypeHandle":
        """Return one type, by its declared name or its schema's.

        Raises:
            UnknownTypeError: there is none of that name; the message lists those there are.
        """
        return TypeHandle(self._config, self.path, self.store.resolve_type(type_name))

    def __iter__(self) -> Iterator["TypeHandle"]:
        """Yield the types, in the order of the source."""
        return (TypeHandle(self._config, self.path, name) for name in self.store.type_names)


class TypeHandle:
    """One type of a store, read anew on each access."""

    def __init__(self, config: pytest.Config, path: Path, name: str) -> None:
        self._config = config
        self._path = path
        self.name = name
        """As the source declares it."""

    @property
    def store_path(self) -> Path:
        """The store's folder."""
        return self._path

    def __repr__(self) -> str:
        # Without an address: an assertion that shows it becomes part of a recorded correction.
        return f"{self._path.name}[{self.name!r}]"

    @property
    def source(self) -> str:
        """The type's block of the source file, hand edits included.

        Raises:
            MissingBlockError: the file has no block of that name.
        """
        store = RegenStore.open(self._path)
        block = extract_type_block(store.source, self.name)
        if block is None:
            raise MissingBlockError(
                f"{store.source_path} has no block {self.name}",
                hint=f"pytest-regen regenerate {self._path} --type {self.name}",
            )
        return block

    @property
    def pages(self) -> tuple[StoredPage, ...]:
        """The stored outputs, by page."""
        return RegenStore.open(self._path).pages_of(self.name)

    @property
    def ir(self) -> TypeIR | None:
        """What the type must be."""
        return RegenStore.open(self._path).ir.type_named(self.name)

    def issues(self) -> tuple[Issue, ...]:
        """Return what is wrong with the type, warnings included; none if it is as it must be."""
        return StoreCheck(self._config, self._path).result(self.name).issues
