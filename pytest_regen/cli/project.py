"""The project around the working directory: what it fixed for all commands."""

import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from configparser import ConfigParser
from configparser import Error as IniError
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

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

if TYPE_CHECKING:
    from pytest_regen.units.loading import ProjectKinds
    from pytest_regen.units.place import UnitFile

__all__ = ["Project", "short_path"]

T = TypeVar("T", bound=str)

_MARKS = ("pyproject.toml", "pytest.ini", ".pytest.ini")
_INI_SECTIONS = {
    "pytest.ini": "pytest",
    ".pytest.ini": "pytest",
    "tox.ini": "pytest",
    "setup.cfg": "tool:pytest",
}


@dataclass(frozen=True)
class Project:
    """A folder with settings, and what they say.

    Attributes:
        root: the nearest folder with a configuration file; the working directory if there is none.
    """

    root: Path

    @classmethod
    def here(cls) -> "Project":
        """Return the project that the working directory belongs to."""
        start = Path.cwd()
        for folder in (start, *start.parents):
            if any((folder / name).is_file() for name in _MARKS) or _has_ini_section(folder):
                return cls(folder)
        return cls(start)

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
        return tuple(filter(None, map(str.strip, (self._ini("regen_stores") or "").splitlines())))

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

    def missing_line(self, store: Path) -> str:
        """Return what to add to the settings so that pytest collects a store; empty if it does."""
        from pytest_regen.stores import find_stores

        real = store.resolve()
        if any(
            store.resolve() == real for store in find_stores(self.store_globs, self.root).stores
        ):
            return ""
        globs = [*self.store_globs, _glob_of(real.parent, self.root.resolve())]
        ini = next((name for name in _MARKS[1:] if (self.root / name).is_file()), None)
        if ini is not None:
            lines = " (one per line)" if len(globs) > 1 else ""
            file = short_path(self.root / ini)
            return f"regen_stores = {' '.join(globs)}{lines} to [pytest] of {file}"
        listed = ", ".join(f'"{glob}"' for glob in globs)
        place = short_path(self.root / "pyproject.toml")
        return f"regen_stores = [{listed}] to [tool.pytest.ini_options] of {place}"

    @cached_property
    def kinds(self) -> "ProjectKinds":
        """The kinds of units that the project has; none is loaded where none is named.

        Raises:
            UsageError: one cannot be loaded.
        """
        from pytest_regen.units.loading import TEST_FILES, ProjectKinds, has_kinds, load_kinds

        if not has_kinds(self.settings):
            return ProjectKinds(self.root, ())
        files = (self._ini("python_files") or "").split()
        return load_kinds(self.root, self.settings, test_files=files or TEST_FILES)

    def unit_file(self, path: Path, units: Sequence[str] | None = None) -> "UnitFile | None":
        """Return the file at ``path`` if a kind claims it; ``units`` name nothing elsewhere.

        Raises:
            UsageError: a kind cannot be loaded, two claim the file, or none does and units of it
                are named.
        """
        kinds, path = self.kinds, Path.cwd() / path
        if kinds and kinds.kind_of(path) is not None:
            from pytest_regen.units.place import open_units

            return open_units(kinds, path, ignore=self.settings.ignored_codes)
        self._refuse_unmarked(path)
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
        if self.kinds and path.is_file() and self.kinds.kind_to_enclose(path) is not None:
            here = short_path(path)
            raise UsageError(
                f"no function of {here} has markers yet",
                why="only what stands between a [REGEN:BEGIN name] and its END is a unit",
                hint=f"put them around one that is there: pytest-regen adopt "
                f"{shlex.quote(str(here))} --unit NAME",
            )

    def unit_files(self, folders: Iterable[Path] | None) -> "list[UnitFile]":
        """Return the files with units that are named, or lie in folders named; by default all."""
        if not self.kinds:
            return []
        from pytest_regen.units.place import open_units

        paths: dict[Path, None] = {}
        for folder in (self.root,) if folders is None else folders:
            real = Path.cwd() / folder
            if not real.is_dir() and self.kinds.kind_of(real) is None:
                self._refuse_unmarked(real)
            paths |= dict.fromkeys(self.kinds.below(real) if real.is_dir() else [real])
        return [
            open_units(self.kinds, path, ignore=self.settings.ignored_codes)
            for path in paths
            if self.kinds.kind_of(path) is not None
        ]

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
        for name, section in _INI_SECTIONS.items():
            parser = ConfigParser(interpolation=None)
            try:
                parser.read(self.root / name, "utf-8")
            except (IniError, UnicodeDecodeError) as error:
                raise UsageError(
                    f"{self.root / name} cannot be read", why=str(error), hint="correct the file"
                ) from None
            if parser.has_option(section, key):
                return parser.get(section, key).strip()
        return self._pyproject_ini(key)

    def _pyproject_ini(self, key: str) -> str | None:
        import tomllib

        path = self.root / "pyproject.toml"
        if not path.is_file():
            return None
        _ = self.settings  # Told as what it is where it is no TOML.
        pytest = tomllib.loads(path.read_text("utf-8")).get("tool", {}).get("pytest", {})
        options = pytest.get("ini_options", pytest) if isinstance(pytest, dict) else {}
        value = options.get(key) if isinstance(options, dict) else None
        if isinstance(value, list):
            return "\n".join(map(str, value))
        return value if isinstance(value, str) else None


def _has_ini_section(folder: Path) -> bool:
    """Return whether a file that other tools use too has settings of pytest."""
    for name in ("tox.ini", "setup.cfg"):
        parser = ConfigParser(interpolation=None)
        try:
            parser.read(folder / name, "utf-8")
        except (IniError, UnicodeDecodeError):
            continue  # Told where a value is read from it.
        if parser.has_section(_INI_SECTIONS[name]):
            return True
    return False


def short_path(path: Path) -> Path:
    """Return a path as it is seen from the working directory, where that is the shorter way."""
    near = Path(os.path.relpath(path))
    return near if len(str(near)) < len(str(path)) else path


def _glob_of(folder: Path, root: Path) -> str:
    place = Path(os.path.relpath(folder, root)).as_posix()
    return "*" if place == "." else f"{place}/*"
