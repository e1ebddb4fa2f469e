"""The project around the working directory: what it fixed for all commands."""

import glob
import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from itertools import islice, takewhile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, NoReturn

from pytest_regen import modes, settings_files
from pytest_regen.cli.config_files import Edit, add_to_table
from pytest_regen.errors import UsageError
from pytest_regen.settings import Settings, read_settings, settings_of
from pytest_regen.text import join_names

if TYPE_CHECKING:
    from pytest_regen.regeneration.places import Place
    from pytest_regen.units.loading import ProjectKinds

_INI_WORDS: Final[Mapping[str, Sequence[str]]] = {
    "stale": modes.STALE_POLICIES,
    "behaviour": modes.BEHAVIOUR_POLICIES,
    "annotations": modes.ANNOTATION_POLICIES,
}
"""Keys of the table that are ini values of pytest as well, and what they may say."""


@dataclass(frozen=True)
class Project:
    """A folder with settings, and what they say.

    Attributes:
        root: the folder that pytest takes for the root.
        planned: the table ``[tool.pytest-regen]`` where it is not written yet.
    """

    root: Path
    planned: Settings | None = None

    @classmethod
    def here(cls) -> "Project":
        """Return the project that the working directory belongs to.

        Raises:
            UsageError: a table between it and the root of the project is read by nobody.
        """
        start = Path.cwd()
        root = settings_files.find_root(start)
        folders = list(takewhile(lambda folder: folder != root, (start, *start.parents)))
        # Pytest started above it would take another root, and read the table that stands there.
        if not settings_files.is_anchored(root):
            folders += root.parents
        settings_files.refuse_unread(root, folders)
        return cls(root)

    @cached_property
    def pytest_settings(self) -> tuple[Path, Mapping[str, Any]] | None:
        """The file that pytest reads its settings from, and these; ``None`` where there is none."""
        return settings_files.pytest_settings(self.root)

    @cached_property
    def settings(self) -> Settings:
        """The table ``[tool.pytest-regen]``; where an ini value is given, that counts.

        Raises:
            UsageError: it cannot be read, a key is wrong, or an ini value is not one of its words.
        """
        table = self.planned or read_settings(self.root)
        values = {key: self._ini(f"regen_{key}") for key in ("model", *_INI_WORDS)}
        for key, words in _INI_WORDS.items():
            if values[key] and values[key] not in words:
                raise UsageError(
                    f"regen_{key} = {values[key]}: must be one of {', '.join(words)}",
                    hint="correct the ini value in the configuration of pytest",
                )
        changes: dict[str, Any] = {key: value for key, value in values.items() if value}
        return replace(table, **changes)

    def after(self, edit: Edit) -> "Project":
        """Return the project as it is once the table is written.

        Raises:
            UsageError: a key of it is wrong.
        """
        # From the text as it will be, because that is what pytest is going to read.
        data = settings_files.parse_toml(edit.change(edit.text()), edit.path.name)
        table = settings_files.table_in(edit.path, data)
        return Project(self.root, settings_of(edit.path, table or {}))

    @property
    def store_globs(self) -> Mapping[str, str]:
        """Globs of stores, from the root, and which setting each comes from."""
        lines = map(str.strip, (self._ini("regen_stores") or "").splitlines())
        globs = dict.fromkeys(self.settings.stores, "[tool.pytest-regen] stores")
        return globs | dict.fromkeys(filter(None, lines), "regen_stores")

    def stores(self) -> tuple[Path, ...]:
        """Return the stores that pytest collects, as they are seen from the working directory.

        Raises:
            UsageError: a glob matches none.
        """
        from pytest_regen.stores import find_stores

        collected = find_stores(self.store_globs, self.root)
        for glob_ in collected.unmatched:
            raise UsageError(
                f"{self.store_globs[glob_]}: {glob_!r} matches no store",
                why=f"looked below {short_path(self.root)}",
                hint="name folders of stores, or make one with pytest-regen generate",
            )
        return tuple(map(short_path, collected.stores))

    def lacking(self, stores: Iterable[Path]) -> Sequence[str]:
        """Return the globs after which pytest collects these stores, which need not exist."""
        from pytest_regen.stores import find_stores
        from pytest_regen.units.loading import fits_glob

        collected = {store.resolve() for store in find_stores(self.store_globs, self.root).stores}
        patterns = [os.path.normpath(pattern) for pattern in self.store_globs]
        globs: dict[str, None] = {}
        for store in stores:
            place = Path(os.path.relpath(store.absolute(), self.root)).as_posix()
            # Matched as text, because the store need not be there yet.
            is_covered = any(fits_glob(place, pattern) for pattern in patterns)
            if not is_covered and store.resolve() not in collected:
                folder = glob.escape(Path(place).parent.as_posix())
                globs["*" if folder == "." else f"{folder}/*"] = None
        return list(globs)

    def edit_table(self, settings: Mapping[str, Any]) -> Edit:
        """Return the edit that adds settings to ``[tool.pytest-regen]``, where that is or belongs.

        A pyproject.toml is made only where nothing else makes the folder pytest's root.
        """
        located = settings_files.find_table(self.root)
        path, own_file = (self.root / name for name in settings_files.FILES)
        if located:
            path = located[0]
        elif not path.exists() and settings_files.is_anchored(self.root):
            path = own_file
        return Edit(self.root, path, add_to_table(path, settings))

    @cached_property
    def kinds(self) -> "ProjectKinds":
        """The kinds of units that the project has; none is loaded where none is named.

        Raises:
            UsageError: one cannot be loaded.
        """
        from pytest_regen.units.loading import (
            ProjectKinds,
            has_kinds,
            load_kinds,
            read_pytest_lists,
        )

        # Not loaded, because that imports the kinds' modules and what they need.
        if not has_kinds(self.settings):
            test_files = read_pytest_lists(self.root)["python_files"]
            return ProjectKinds(self.root, (), tuple(test_files))
        return load_kinds(self.root, self.settings)

    def places(self, paths: Sequence[Path] | None) -> "list[Place[Any]]":
        """Return the places at or below paths; by default all of the project.

        Raises:
            UsageError: a path holds none, or the project names none.
        """
        from pytest_regen.regeneration.places import places_in

        if not paths:
            places = places_in(self)
            if not places and all(claim.is_installed for claim in self.kinds.kinds):
                raise UsageError(
                    "no store is named",
                    why="neither on the command line nor by stores in [tool.pytest-regen]",
                    hint="name folders of stores, or make one with pytest-regen generate",
                )
            return places
        by_path: dict[str, Place[Any]] = {}
        for path in paths:
            below = places_in(self, [path])
            if not below:
                self._refuse(path)
            by_path |= {place.place: place for place in below}
        return list(by_path.values())

    def find_place(self, path: Path) -> "Place[Any] | None":
        """Return the place at a path; ``None`` where there is none."""
        from pytest_regen.regeneration.places import open_place

        return open_place(self, path)

    def place(self, path: Path) -> "Place[Any]":
        """Return the place at a path.

        Raises:
            UsageError: there is none.
        """
        place = self.find_place(path)
        if place is None:
            self._refuse(path)
        return place

    def _refuse(self, path: Path) -> NoReturn:
        """Raise a UsageError that says why nothing at or below a path is a place."""
        from pytest_regen.stores.store import refuse_no_store

        name = short_path(Path.cwd() / path).as_posix()
        # First, because it knows what is to be done, and not only what is missing.
        self.refuse_unready(path)
        if path.is_file():
            raise UsageError(
                f"no kind claims {name}",
                why="it is not a store either",
                hint='name a file that one of the "kinds" in [tool.pytest-regen] claims',
            )
        refuse_no_store(path)
        raise AssertionError(path)  # a store is a place

    def refuse_unready(self, path: Path) -> None:
        """Raise a UsageError for a module without markers, and where a near path is there."""
        name = short_path(Path.cwd() / path).as_posix()
        if path.is_file() and self.kinds.kind_to_enclose(Path.cwd() / path) is not None:
            raise UsageError(
                f"no function of {name} has markers yet",
                why="only what stands between a [REGEN:BEGIN name] and its END is a unit",
                hint=f"pytest-regen init {shlex.quote(name)}",
            )
        if path.exists() or self.kinds.kind_of(Path.cwd() / path) is not None:
            return
        beside = path.parent.iterdir() if path.parent.is_dir() else ()
        names = dict.fromkeys(short_path(p).as_posix() for p in (*beside, *self.kinds.files))
        if near := get_close_matches(name, names, n=3, cutoff=0.8):
            raise UsageError(f"{name} is not there", hint=f"name {join_names(near, 'or')}")

    @cached_property
    def _test_modules(self) -> Mapping[str, bytes]:
        """The modules of tests; as bytes, because they need not be UTF-8 or legal Python."""
        from pytest_regen.units.loading import MOST_FILES, files_below

        modules = {}
        for path in islice(files_below(self.root), MOST_FILES):
            place = PurePosixPath(path.relative_to(self.root).as_posix())
            if path.suffix == ".py" and self.kinds.is_collected(place):
                modules[short_path(path).as_posix()] = path.read_bytes()
        return modules

    def tests_of(self, ids: Iterable[str]) -> list[str]:
        """Return the modules of tests that name one of these units, as a mark does."""
        # Not where one is the beginning of another name.
        wanted = [re.compile(re.escape(unit.encode()) + rb"(?![\w.])") for unit in ids]
        modules = self._test_modules if wanted else {}
        return [place for place, data in modules.items() if any(p.search(data) for p in wanted)]

    def ignored_in(self, store: Path) -> Callable[[str], frozenset[str]]:
        """Return which codes are not reported, by type name, in the store at ``store``."""
        place = Path(os.path.relpath(store, self.root)).as_posix()
        return lambda name: self.ignored_codes(f"{place}::{name}")

    @property
    def ignored_codes(self) -> Callable[[str], frozenset[str]]:
        """Returns the codes that are not reported, by id of a unit."""
        return self.settings.ignored_codes

    def _ini(self, key: str) -> str | None:
        """Return one of pytest's ini values, from the file that pytest would read it from."""
        value = self.pytest_settings[1].get(key) if self.pytest_settings else None
        # TOML has lists where files of ini values have lines.
        if isinstance(value, list):
            return "\n".join(map(str, value))
        return value if isinstance(value, str) else None


def short_path(path: Path) -> Path:
    """Return a path as it is seen from the working directory, where that is the shorter way."""
    near = Path(os.path.relpath(path))
    return near if len(str(near)) < len(str(path)) else path
