"""The project around the working directory: what it fixed for all commands."""

import glob
import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_regen.cli.config_files import (
    INI_TABLE,
    OWN_TABLE,
    Edit,
    SettingsFile,
    find_root,
    refuse_two_tables,
    settings_file_in,
)
from pytest_regen.errors import UsageError
from pytest_regen.modes import (
    ANNOTATION_POLICIES,
    BEHAVIOUR_POLICIES,
    STALE_POLICIES,
    AnnotationPolicy,
    BehaviourPolicy,
    StalePolicy,
)
from pytest_regen.settings import Settings, read_settings
from pytest_regen.text import join_names

if TYPE_CHECKING:
    from pytest_regen.units.loading import ProjectKinds
    from pytest_regen.units.place import UnitFile

__all__ = ["Project", "short_path"]

T = TypeVar("T", bound=str)


@dataclass(frozen=True)
class Project:
    """A folder with settings, and what they say.

    Attributes:
        root: the folder that pytest takes for the root.
    """

    root: Path

    @classmethod
    def here(cls) -> "Project":
        """Return the project that the working directory belongs to."""
        return cls(find_root(Path.cwd()))

    @cached_property
    def pytest_file(self) -> SettingsFile | None:
        """The file that pytest reads its settings from; ``None`` where there are none yet."""
        return settings_file_in(self.root)

    @cached_property
    def settings(self) -> Settings:
        """The table ``[tool.pytest-regen]``.

        Raises:
            UsageError: it cannot be read, or a key is wrong.
        """
        return read_settings(self.root)

    @property
    def model(self) -> str | None:
        """The model of all commands: the ini value ``regen_model``, else the table's."""
        return self._ini("regen_model") or self.settings.model

    @property
    def store_globs(self) -> tuple[str, ...]:
        """The ini value ``regen_stores``: globs from the root."""
        lines = (self._ini("regen_stores") or "").splitlines()
        return tuple(filter(None, map(str.strip, lines)))

    def stores(self) -> tuple[Path, ...]:
        """Return the stores that pytest collects, as they are seen from the working directory.

        Raises:
            UsageError: none is configured, or a glob matches none.
        """
        from pytest_regen.stores import find_stores

        found = find_stores(self.store_globs, self.root)
        if found.unmatched or not found.stores:
            glob = found.unmatched[0] if found.unmatched else ""
            raise UsageError(
                f"regen_stores: {glob!r} matches no store" if glob else "no store is named",
                why=f"looked below {short_path(self.root)}"
                if glob
                else "neither on the command line nor by regen_stores in pytest's settings",
                hint="name folders of stores, or make one with pytest-regen generate",
            )
        return tuple(map(short_path, found.stores))

    def registration(self, stores: Iterable[Path]) -> Edit | None:
        """Return the edit after which pytest collects these stores; ``None`` if it does already.

        Args:
            stores: folders, which need not exist.
        """
        globs = dict.fromkeys(
            _glob_of(store.absolute(), self.root) for store in stores if not self.collects(store)
        )
        return self.edit_pytest({"regen_stores": list(globs)}) if globs else None

    def collects(self, store: Path) -> bool:
        """Return whether ``regen_stores`` covers a folder, which need not exist."""
        from pytest_regen.stores import find_stores
        from pytest_regen.units.loading import fits_glob

        real = store.resolve()
        place = Path(os.path.relpath(store.absolute(), self.root)).as_posix()
        return any(
            fits_glob(place, os.path.normpath(pattern)) for pattern in self.store_globs
        ) or any(real == each.resolve() for each in find_stores(self.store_globs, self.root).stores)

    def edit_pytest(self, settings: Mapping[str, Any]) -> Edit:
        """Return the edit that adds settings of pytest to the file it reads."""
        file = self.pytest_file or SettingsFile(self.root / "pyproject.toml", INI_TABLE)
        refuse_two_tables(file)
        return Edit(self.root, file.path, file.change(settings), file.header)

    def edit_own(self, settings: Mapping[str, Any]) -> Edit:
        """Return the edit that adds settings to ``[tool.pytest-regen]``."""
        file = SettingsFile(self.root / "pyproject.toml", OWN_TABLE)
        return Edit(self.root, file.path, file.change(settings), file.header)

    @cached_property
    def kinds(self) -> "ProjectKinds":
        """The kinds of units that the project has; none is loaded where none is named.

        Raises:
            UsageError: one cannot be loaded.
        """
        from pytest_regen.units.loading import ProjectKinds, has_kinds, load_kinds

        if not has_kinds(self.settings):
            return ProjectKinds(self.root, ())
        return load_kinds(self.root, self.settings)

    def unit_file(self, path: Path, units: Sequence[str] | None = None) -> "UnitFile | None":
        """Return the file at ``path`` if a kind claims it; ``units`` name nothing elsewhere.

        Raises:
            UsageError: a kind cannot be loaded, two claim the file, or none does and units of it
                are named.
        """
        kinds, path = self.kinds, Path.cwd() / path
        if kinds and kinds.kind_of(path) is not None:
            return self._open(path, is_lost=False)
        self._refuse_unmarked(path)
        self._refuse_absent(path)
        if units:
            raise UsageError(
                f"--unit {units[0]} names nothing: no kind claims {short_path(path)}",
                hint='name a file that one of the "kinds" in [tool.pytest-regen] claims',
            )
        return None

    def _refuse_unmarked(self, path: Path) -> None:
        """Raise a UsageError for a module of which the settings speak, and no function is a unit.

        Nothing else could be meant by it: it is no store, and no API description.
        """
        if self.is_lost(path):
            raise UsageError(
                f"no kind claims {short_path(path)}, and the ledger has units of it",
                why="they are not tested any more",
                hint=f"pytest-regen validate {shlex.quote(short_path(path).as_posix())}",
            )
        if self.kinds and path.is_file() and self.kinds.kind_to_enclose(path) is not None:
            here = short_path(path)
            raise UsageError(
                f"no function of {here} has markers yet",
                why="only what stands between a [REGEN:BEGIN name] and its END is a unit",
                hint=f"pytest-regen init {shlex.quote(str(here))}",
            )

    def _refuse_absent(self, path: Path) -> None:
        """Raise a UsageError for a path that is not there, where a near one is."""
        if path.exists() or self.kinds.kind_of(path) is not None:
            return
        here = short_path(path).as_posix()
        beside = path.parent.iterdir() if path.parent.is_dir() else ()
        known = [short_path(each).as_posix() for each in (*beside, *self.kinds.files)]
        if near := get_close_matches(here, dict.fromkeys(known), n=3, cutoff=0.8):
            raise UsageError(f"{here} is not there", hint=f"name {join_names(near, 'or')}")

    def unit_files(self, folders: Iterable[Path] | None) -> "list[UnitFile]":
        """Return the files with units that are named, or lie in folders named; by default all."""
        for folder in folders or ():
            self._refuse_absent(Path.cwd() / folder)
        if not self.kinds:
            return []
        paths: dict[Path, None] = {}
        for folder in (self.root,) if folders is None else folders:
            real = Path.cwd() / folder
            if not real.is_dir() and self.kinds.kind_of(real) is None:
                self._refuse_unmarked(real)
            paths |= dict.fromkeys(self.kinds.below(real) if real.is_dir() else [real])
        return [
            self._open(path, is_lost=False)
            for path in paths
            if self.kinds.kind_of(path) is not None
        ]

    def recorded_files(self, folders: Iterable[Path] | None) -> "list[UnitFile]":
        """Return the files with units, and those of which only the ledger has some."""
        from pytest_regen.units.inventory import lost_files

        named = [Path.cwd() / folder for folder in folders or (self.root,)]
        lost = dict.fromkeys(
            path
            for path in lost_files(self.kinds)
            if any(path == each or (each.is_dir() and path.is_relative_to(each)) for each in named)
        )
        lost |= dict.fromkeys(self.kinds.absolute(path) for path in named if self.is_lost(path))
        others = None if folders is None else [path for path in named if path not in lost]
        return [
            *(self.unit_files(others) if others != [] else ()),
            *(self._open(path, is_lost=True) for path in lost),
        ]

    def is_lost(self, path: Path) -> bool:
        """Return whether the ledger has units of a file that no kind claims, or that is gone."""
        from pytest_regen.units.inventory import is_lost

        return is_lost(self.kinds, Path.cwd() / path)

    def _open(self, path: Path, *, is_lost: bool) -> "UnitFile":
        from pytest_regen.units.place import open_units

        ignore = self.settings.ignored_codes
        return open_units(self.kinds, path, ignore=ignore, is_lost=is_lost)

    @property
    def stale(self) -> StalePolicy:
        """What becomes of a stale type: the ini value ``regen_stale``, else the table's.

        Raises:
            UsageError: the ini value is not one of the words.
        """
        return self._word("regen_stale", STALE_POLICIES) or self.settings.stale or "auto"

    @property
    def behaviour(self) -> BehaviourPolicy:
        """Whether generated types are run: the ini value ``regen_behaviour``, else the table's.

        Raises:
            UsageError: the ini value is not one of the words.
        """
        return (
            self._word("regen_behaviour", BEHAVIOUR_POLICIES) or self.settings.behaviour or "auto"
        )

    @property
    def annotations(self) -> AnnotationPolicy:
        """Whether issues are printed as GitHub reads them: ``regen_annotations``, else the table's.

        Raises:
            UsageError: the ini value is not one of the words.
        """
        given = self._word("regen_annotations", ANNOTATION_POLICIES)
        return given or self.settings.annotations or "auto"

    def _word(self, key: str, words: Sequence[T]) -> T | None:
        """Return an ini value that is one of several words; ``None`` where it is not given."""
        value = self._ini(key)
        chosen = next((word for word in words if word == value), None)
        if value and chosen is None:
            raise UsageError(
                f"{key} = {value}: must be one of {', '.join(words)}",
                hint="correct the ini value in the configuration of pytest",
            )
        return chosen

    def ignored_in(self, store: Path) -> Callable[[str], frozenset[str]]:
        """Return which codes are not reported, by type name, in the store at ``store``."""
        place = Path(os.path.relpath(store, self.root)).as_posix()
        settings = replace(self.settings, behaviour=self.behaviour)
        return lambda name: settings.ignored_codes(f"{place}::{name}")

    def _ini(self, key: str) -> str | None:
        """Return one of pytest's ini values, from the file that pytest would read it from."""
        if self.pytest_file is None:
            return None
        value = self.pytest_file.get(key)
        if isinstance(value, list):
            return "\n".join(map(str, value))
        return value if isinstance(value, str) else None


def short_path(path: Path) -> Path:
    """Return a path as it is seen from the working directory, where that is the shorter way."""
    near = Path(os.path.relpath(path))
    return near if len(str(near)) < len(str(path)) else path


def _glob_of(store: Path, root: Path) -> str:
    """Return the glob of a store and those beside it."""
    place = Path(os.path.relpath(store.parent, root)).as_posix()
    return "*" if place == "." else f"{glob.escape(place)}/*"
