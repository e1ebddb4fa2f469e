"""Which kinds a project has, and which files each of them claims.

Kinds are named in ``[tool.pytest-regen]``, made by settings of kinds that ship, or registered by
installed packages under the entry-point group ``pytest_regen.kinds``.
"""

import glob
import os
import shlex
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property, partial
from importlib import import_module
from importlib.metadata import entry_points
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from pytest_regen.errors import KindError, RegenError, UsageError
from pytest_regen.settings_files import pytest_settings
from pytest_regen.units.kind import Kind, call_kind

if TYPE_CHECKING:
    from pytest_regen.settings import Settings

ENTRY_POINTS: Final = "pytest_regen.kinds"

PytestLists = Mapping[str, Sequence[str]]

PYTEST_LISTS: Final[PytestLists] = {
    "doctest_optionflags": ("ELLIPSIS",),
    "python_files": ("test_*.py", "*_test.py"),
    "pythonpath": (),
}
"""pytest's own settings that decide about units, with their defaults."""

_NOT_OURS: Final = frozenset({"node_modules", "site-packages", "build", "dist", "__pycache__"})

SHIPPED: Final[Mapping[str, str]] = {
    "functions": "pytest_regen.kinds.functions:function_kinds",
    "translations": "pytest_regen.kinds.translation:translation_kinds",
}
"""Settings of kinds that ship, and the functions that make kinds of them."""


@dataclass(frozen=True, slots=True)
class KindOfFile:
    """A kind, and where it comes from."""

    kind: Kind
    origin: str
    """As messages name it: ``regen_kinds:German``."""
    is_installed: bool = False
    """Whether a package registered it: then it need not find a file in every project."""

    @property
    def globs(self) -> tuple[str, ...]:
        """The globs of the files it claims."""
        files = self.kind.files
        return (files,) if isinstance(files, str) else tuple(files)

    def claims(self, root: Path, place: str) -> bool:
        """Return whether a file that a glob matches is one of the kind's."""
        kind = self.kind
        return call_kind(kind, "claims", lambda: bool(kind.claims(root / place)), where=place)

    def fits(self, place: str | None) -> bool:
        """Return whether a glob matches a path from the root, where nothing need be."""
        return place is not None and any(fits_glob(place, pattern) for pattern in self.globs)

    @property
    def can_enclose(self) -> bool:
        """Whether the region puts markers around what has none yet."""
        return getattr(self.kind.region, "enclose_all", None) is not None


MOST_FILES: Final = 20_000
"""Files that are looked at, because a person may start in a folder that holds a whole disk."""


def files_below(root: Path) -> Iterator[Path]:
    """Yield the files of a project, sorted, without those of other packages."""
    for name, folders, files in os.walk(root):
        # In place, because that is how `os.walk` is told where not to go.
        folders[:] = sorted(
            folder
            for folder in folders
            if not folder.startswith(".")
            and folder not in _NOT_OURS
            and not Path(name, folder, "pyvenv.cfg").exists()
        )
        yield from filter(Path.is_file, (Path(name, file) for file in sorted(files)))  # No pipes.


def has_kinds(settings: "Settings") -> bool:
    """Return whether a project has kinds of units, without loading one."""
    return bool(settings.kinds or settings.shipped or entry_points(group=ENTRY_POINTS))


def read_pytest_lists(root: Path) -> PytestLists:
    """Return pytest's own settings, as a run of pytest at ``root`` would read them from its file.

    Raises:
        UsageError: pytest cannot read the file.
    """
    settings = pytest_settings(root)
    values = settings[1] if settings else {}
    lists = dict(PYTEST_LISTS)
    for key in lists.keys() & values.keys():
        value = values[key]
        lists[key] = shlex.split(value) if isinstance(value, str) else list(value)
    return lists


def load_kinds(
    root: Path, settings: "Settings", *, lists: PytestLists | None = None
) -> "ProjectKinds":
    """Return the kinds of the project at ``root``.

    Args:
        root: the rootdir; what lies there can be imported while kinds are loaded.
        settings: ``[tool.pytest-regen]``.
        lists: pytest's own settings, where a run of pytest knows them: options may have set some.

    Raises:
        UsageError: one cannot be loaded, or is no kind.
    """
    root = Path(os.path.abspath(root))  # a link stays the name the user gave
    lists = lists or read_pytest_lists(root)
    claims: list[KindOfFile] = []
    with _importable(root):
        hint = f"correct [tool.pytest-regen] kinds in {root / 'pyproject.toml'}: "
        hint += '"module:Class", importable from there'
        for name in settings.kinds:
            kind = _load_kind(partial(_import_object, name), name, hint)
            claims.append(KindOfFile(kind, name))
        for key, value in settings.shipped.items():
            make = partial(_import_object(SHIPPED[key]), value, root)
            kinds = make(lists) if key == "functions" else make()
            claims += [KindOfFile(kind, f"[tool.pytest-regen] {key}") for kind in kinds]
        # By name, because the order of installed packages is not the same on every machine.
        for point in sorted(entry_points(group=ENTRY_POINTS), key=attrgetter("name")):
            package = point.dist.name if point.dist else point.value
            origin = f"{point.name} ({package})"
            kind = _load_kind(point.load, origin, f"correct or uninstall {package}")
            claims.append(KindOfFile(kind, origin, is_installed=True))
    for claim in claims:
        _refuse_unusable(claim)
    return ProjectKinds(root, tuple(claims), tuple(lists["python_files"]))


def prepare_kinds(kinds: "ProjectKinds", paths: Iterable[Path]) -> None:
    """Let kinds do for all of these files, which are going to be checked, what is cheaper at once.

    What goes wrong is left to the check of each unit to say.
    """
    by_kind: dict[int, tuple[Kind, list[Path]]] = {}
    for path in dict.fromkeys(paths):
        kind = kinds.kind_of(path)
        if kind is not None:
            by_kind.setdefault(id(kind), (kind, []))[1].append(path)
    for kind, files in by_kind.values():
        with suppress(KindError):
            call_kind(kind, "prepare", partial(kind.prepare, files))


class ProjectKinds:
    """The kinds of a project."""

    def __init__(
        self, root: Path, kinds: tuple[KindOfFile, ...], test_files: tuple[str, ...] = ()
    ) -> None:
        self.root = root
        self.kinds = kinds
        self._test_files = test_files
        self._texts: dict[str, dict[str, str]] = {}

    def __bool__(self) -> bool:
        return bool(self.kinds)

    @cached_property
    def files(self) -> Mapping[Path, Kind]:
        """The files that kinds claim, sorted; a plain path is one of them before it exists.

        Raises:
            UsageError: a glob matches nothing, or a file is claimed twice, or a test module.
        """
        claims: dict[str, list[KindOfFile]] = {}
        for claim in self.kinds:
            for pattern in claim.globs:
                for name in self._matches(pattern, claim):
                    if claim.claims(self.root, name):
                        claims.setdefault(name, []).append(claim)
        return {
            self.root / name: self._claiming_kind(name, claims[name]) for name in sorted(claims)
        }

    def kind_of(self, path: Path) -> Kind | None:
        """Return the kind that claims a file, which need not exist yet.

        Raises:
            UsageError: see ``files``.
        """
        path = self.absolute(path)
        if path in self.files:
            return self.files[path]
        place = self.place(path)
        if place is None or path.is_dir():
            return None
        # A file that is to be made: its name is as a glob wants it.
        claims = [
            claim for claim in self.kinds if claim.fits(place) and claim.claims(self.root, place)
        ]
        return self._claiming_kind(place, claims) if claims else None

    def kind_to_enclose(self, path: Path) -> Kind | None:
        """Return the kind whose globs match a file and whose region can put markers into it."""
        place = self.place(self.absolute(path))
        able = (claim.kind for claim in self.kinds if claim.can_enclose and claim.fits(place))
        return next(able, None)

    def kind_to_read(self, path: Path) -> Kind:
        """Return a kind that can tell which units stand in a file that none claims."""
        # By the suffix, because a file that was moved is still written in the same language.
        globs = ((claim.kind, pattern) for claim in self.kinds for pattern in claim.globs)
        return next((kind for kind, name in globs if Path(name).suffix == path.suffix), Kind())

    def texts_like(self, path: Path) -> Mapping[str, str]:
        """Return the texts of the project's files with the suffix of another, by their places.

        They are read where a unit is looked for that is not where it was, and only once.
        """
        if path.suffix not in self._texts:
            texts: dict[str, str] = {}
            for file in files_below(self.root):
                place = PurePosixPath(file.relative_to(self.root).as_posix())
                if file.suffix == path.suffix and not self.is_collected(place):
                    with suppress(OSError, UnicodeDecodeError):
                        texts[str(place)] = file.read_text("utf-8")
            self._texts[path.suffix] = texts
        return self._texts[path.suffix]

    def absolute(self, path: Path | str) -> Path:
        """Return a path seen from the root, links left as they are."""
        return Path(os.path.normpath(self.root / path))

    def place(self, path: Path) -> str | None:
        """Return a path from the root, with forward slashes; ``None`` where it lies outside."""
        is_below = path.is_relative_to(self.root)
        return path.relative_to(self.root).as_posix() if is_below else None

    def below(self, folder: Path) -> Iterator[Path]:
        """Yield the claimed files below a folder."""
        # Behind links, because the folder may be named by another path than the root.
        real = folder.resolve()
        for path in self.files:
            if path.resolve().is_relative_to(real):
                yield path

    def _matches(self, pattern: str, claim: KindOfFile) -> Sequence[str]:
        # A file that is there first, because its name may hold the characters of globs.
        if not glob.has_magic(pattern) or (self.root / pattern).is_file():
            return [PurePosixPath(os.path.normpath(pattern)).as_posix()]
        names = [
            Path(name).as_posix()
            for name in glob.glob(pattern, root_dir=self.root, recursive=True)
            if (self.root / name).is_file()
        ]
        # A package that was installed claims what there is, because it knows no project.
        if not names and not claim.is_installed:
            raise UsageError(
                f"{claim.origin}: files = {pattern!r} matches no file below {self.root}",
                why="a gate that checks nothing must not pass",
                hint="correct the glob; a plain path, without * and ?, may be absent",
            )
        return names

    def _claiming_kind(self, name: str, claims: Sequence[KindOfFile]) -> Kind:
        first, *others = {id(item.kind): item for item in claims}.values()
        if others:
            raise UsageError(
                f"{name} is claimed by {first.origin} and by {others[0].origin}",
                why="a file has units of one kind",
                hint="narrow the globs of one of them",
            )
        if self.is_collected(PurePosixPath(name)):
            raise UsageError(
                f"{name} is claimed by {first.origin}, and pytest collects it as a test module",
                why="a module with units must not be imported by the run that judges them",
                hint="rename the file, or narrow the globs of the kind",
            )
        return first.kind

    def is_collected(self, path: PurePosixPath) -> bool:
        """Return whether pytest imports a file by itself."""
        return path.name == "conftest.py" or any(
            fnmatchcase(path.as_posix() if "/" in pattern else path.name, pattern)
            for pattern in self._test_files
        )


def fits_glob(name: str, pattern: str) -> bool:
    """Return whether a path from the root is as a glob wants it; ``**`` stands for any folders."""
    return _match_parts(name.split("/"), pattern.split("/"))


def _match_parts(names: Sequence[str], patterns: Sequence[str]) -> bool:
    if not patterns:
        return not names
    if patterns[0] == "**":
        return _match_parts(names, patterns[1:]) or bool(
            names and _match_parts(names[1:], patterns)
        )
    return bool(
        names and fnmatchcase(names[0], patterns[0]) and _match_parts(names[1:], patterns[1:])
    )


@contextmanager
def _importable(root: Path) -> Iterator[None]:
    """Let modules at the root be imported."""
    sys.path.insert(0, str(root))
    try:
        yield
    finally:
        # A kind that was imported may have taken it out, or put it elsewhere.
        with suppress(ValueError):
            sys.path.remove(str(root))


def _load_kind(load: Callable[[], Any], name: str, hint: str) -> Kind:
    """Return the kind that a name in the settings, or an entry point, stands for."""
    try:
        value = load()
        if isinstance(value, type) and issubclass(value, Kind):
            value = value()
    except RegenError:
        raise
    except (Exception, SystemExit) as error:  # an exit would pass for a run without faults
        last = traceback.extract_tb(error.__traceback__)[-1]
        is_theirs = "importlib" not in last.filename and last.filename != __file__
        place = f", {last.filename}:{last.lineno}" if is_theirs else ""
        why = f"{type(error).__name__}: {error}{place}"
        raise UsageError(f"the kind {name} cannot be loaded", why=why, hint=hint) from error
    if not isinstance(value, Kind):
        raise UsageError(
            f"{name} is not a kind but {value!r:.120}",
            hint="name a subclass of pytest_regen.Kind, or an instance of one",
        )
    return value


def _import_object(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return attrgetter(attribute)(import_module(module))


def _refuse_unusable(claim: KindOfFile) -> None:
    """Refuse a kind whose globs cannot serve, before a file is looked for."""
    if not claim.globs or any(map(_leads_out, claim.globs)):
        raise UsageError(
            f"{claim.origin}: files = {claim.kind.files!r} claims nothing in the project",
            hint='set files to paths or globs below the rootdir, such as "locales/*.json"',
        )


def _leads_out(pattern: object) -> bool:
    # Whatever the class says of its type, because a user may have set anything.
    if not (isinstance(pattern, str) and pattern.strip()):
        return True
    path = PurePosixPath(pattern.replace(os.sep, "/"))
    return path.is_absolute() or ".." in path.parts or Path(pattern).is_absolute()
