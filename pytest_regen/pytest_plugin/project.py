"""The project of a run: its kinds of units and its stores."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_regen.errors import RegenError
from pytest_regen.pytest_plugin.choices import choices_of
from pytest_regen.pytest_plugin.options import plain_usage_error
from pytest_regen.pytest_plugin.selection import stores_in_config

if TYPE_CHECKING:
    from pytest_regen.units.loading import ProjectKinds

_KINDS: "pytest.StashKey[ProjectKinds]" = pytest.StashKey()


def kinds_of(config: pytest.Config) -> "ProjectKinds":
    """Return the kinds of the project, loaded once.

    Raises:
        pytest.UsageError: one cannot be loaded.
    """
    if _KINDS not in config.stash:
        from pytest_regen.units import loading

        lists = dict(loading.PYTEST_LISTS)
        for key in lists:
            with suppress(ValueError):  # -p no:doctest: nobody knows its settings then.
                lists[key] = [str(value) for value in config.getini(key)]
        settings = choices_of(config).settings
        try:
            config.stash[_KINDS] = loading.load_kinds(config.rootpath, settings, lists=lists)
        except RegenError as error:
            raise plain_usage_error(str(error)) from None
    return config.stash[_KINDS]


def notes_on_kinds(config: pytest.Config) -> Iterator[str]:
    """Yield what is to be said of kinds without a unit, as their tests are not there either."""
    from pytest_regen.units.inventory import unmarked_kinds

    for what in unmarked_kinds(kinds_of(config)):
        yield f"note: {what}; next: pytest-regen init"


class RunProject:
    """The project of a run, as the registry of places wants it."""

    def __init__(self, config: pytest.Config) -> None:
        self.root = config.rootpath
        self.ignored_codes = choices_of(config).settings.ignored_codes
        self._config = config

    @property
    def kinds(self) -> "ProjectKinds":
        """The kinds of units."""
        return kinds_of(self._config)

    def stores(self) -> Sequence[Path]:
        """Return the stores that the settings name."""
        return stores_in_config(self._config)
