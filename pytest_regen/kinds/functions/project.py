"""What code of a project may import, and where its own modules lie: read from files alone."""

import ast
import os
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import Any, Final

from pytest_regen.canonical import canonical_hash, file_hash
from pytest_regen.errors import UsageError
from pytest_regen.kinds.functions.source import parse
from pytest_regen.units.loading import PytestLists, read_pytest_lists

_OLDEST: Final = (3, 11)
"""The first version of Python that this package itself runs on."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_MINIMUM: Final = re.compile(r"(?:>=|~=|==|\^)\s*3\.(\d+)")


class Project:
    """A project's modules and what it depends on.

    Args:
        root: of the project, where its pyproject.toml may lie.
        path: more folders, from the root, that modules are imported from.
        lists: pytest's own settings; by default as its file has them.

    Raises:
        UsageError: pyproject.toml is no TOML.
    """

    def __init__(
        self, root: Path, path: Sequence[str] = (), lists: PytestLists | None = None
    ) -> None:
        self.root = root
        self._more = tuple(path)
        self._lists = lists or read_pytest_lists(root)
        self._table = _load(root / "pyproject.toml")
        self._states: dict[Path, tuple[str, dict[Path, _Stamp], str]] = {}
        """By module: its text, the files it depends on as they stood, and the hash of all that."""

    @cached_property
    def import_path(self) -> tuple[Path, ...]:
        """The folders of modules: as said, pytest's ``pythonpath``, ``src``, the root."""
        folders = [self.root / name for name in (*self._more, *self._lists["pythonpath"])]
        folders += [self.root / "src", self.root]
        return tuple(dict.fromkeys(folder for folder in folders if folder.is_dir()))

    @property
    def doctest_flags(self) -> Sequence[str]:
        """The names of the flags that pytest's ``doctest_optionflags`` sets for all examples."""
        return self._lists["doctest_optionflags"]

    @cached_property
    def python(self) -> tuple[int, int]:
        """The oldest version of Python that the project supports, as far as it says so."""
        said = _get(self._table, "project", "requires-python") or _get(
            self._table, "tool", "poetry", "dependencies", "python"
        )
        found = _MINIMUM.search(said) if isinstance(said, str) else None
        return (3, int(found[1])) if found else _OLDEST

    @cached_property
    def dependencies(self) -> tuple[str, ...] | None:
        """The distributions that the project asks for, sorted; ``None`` where it does not say."""
        listed = _get(self._table, "project", "dependencies")
        if isinstance(listed, list):
            names = [found[0] for text in listed if (found := _NAME.match(str(text).strip()))]
            return tuple(sorted(dict.fromkeys(names), key=str.lower))
        poetry = _get(self._table, "tool", "poetry", "dependencies")
        if isinstance(poetry, dict):
            return tuple(sorted((name for name in poetry if name != "python"), key=str.lower))
        project = _get(self._table, "project")
        if isinstance(project, dict) and "dependencies" not in (project.get("dynamic") or ()):
            return ()
        return None

    def module_of(self, path: Path) -> tuple[str, Path]:
        """Return the dotted name of a file's module, and the folder it is imported from."""
        folder = path.parent
        while (folder / "__init__.py").is_file() and folder != folder.parent:
            folder = folder.parent
        if folder == path.parent:  # no package with an __init__.py: perhaps one without
            inside = [place for place in self.import_path if path.is_relative_to(place)]
            folder = max(inside, key=lambda place: len(place.parts), default=folder)
        parts = path.relative_to(folder).with_suffix("").parts
        named = parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts
        return ".".join(named), folder

    def find(self, module: str, folder: Path) -> Path | None:
        """Return the file of a module of the project's own; ``None`` for any other."""
        return _find(module, tuple(dict.fromkeys((folder, *self.import_path))))

    def imported(self, path: Path, tree: ast.AST) -> Iterator[tuple[str, str | None, Path | None]]:
        """Yield what a tree imports: module, name taken from it, file if it is the project's."""
        own, folder = self.module_of(path)
        package = own if path.name == "__init__.py" else own.rpartition(".")[0]
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield alias.name, None, self.find(alias.name, folder)
            elif isinstance(node, ast.ImportFrom):
                base = _above(node.module or "", node.level, package)
                for alias in node.names:
                    inner = self.find(f"{base}.{alias.name}", folder)
                    yield base, alias.name, inner or self.find(base, folder)

    def may_import(self, module: str, path: Path) -> bool:
        """Return whether code of the project at ``path`` may import a module.

        It may if that is one of the standard library, of the project, or of its dependencies.
        """
        top = module.partition(".")[0]
        if top in sys.stdlib_module_names or not top:
            return True
        if self.find(top, self.module_of(path)[1]) is not None or _is_folder_of(
            top, (self.module_of(path)[1], *self.import_path)
        ):
            return True
        if self.dependencies is None:
            return top in _distributions()
        wanted = {_plain(name) for name in self.dependencies}
        return _plain(top) in wanted or any(
            _plain(name) in wanted for name in _distributions().get(top, ())
        )

    def state(self, path: Path, text: str) -> str:
        """Return a hash of everything static that decides what a module does.

        These are its text, the project's modules that it imports, directly or not, the versions
        of the other packages, and that of Python.

        Args:
            path: of the module.
            text: of the module, which may be another than the file holds.
        """
        known = self._states.get(path)
        if (
            known is None
            or known[0] != text
            or any(_stamp(file) != stamp for file, stamp in known[1].items())
        ):
            stamps: dict[Path, _Stamp] = {}
            known = text, stamps, self._hash_state(path, text, stamps)
            self._states[path] = known
        return known[2]

    def _hash_state(self, path: Path, text: str, stamps: "dict[Path, _Stamp]") -> str:
        """Return the hash, and note when each file that counts was written, there or not."""
        files: dict[str, str] = {}
        packages: set[str] = set()
        waiting = [path]
        while waiting:
            file = waiting.pop()
            name = os.path.relpath(file, self.root)
            if name in files:
                continue
            data = text.encode("utf-8", "surrogatepass")
            if file != path:
                stamps[file] = _stamp(file)
                data = _read(file)
            files[name] = file_hash(data)
            waiting += _inits(file, self.root)
            for found, top in self._imports_of(file, data):
                if found is None:
                    packages.add(top)
                else:
                    waiting.append(found)
        versions = {name: _version(name) for name in packages - sys.stdlib_module_names}
        return canonical_hash([sys.version, sys.platform, files, versions])

    def _imports_of(self, path: Path, data: bytes) -> Sequence[tuple[Path | None, str]]:
        try:
            tree = _import_statements(data.decode("utf-8"))
        except (UnicodeDecodeError, SyntaxError):
            return ()
        found = {(file, name.partition(".")[0]) for name, _, file in self.imported(path, tree)}
        return sorted(found, key=str)


_Stamp = tuple[int, int, int] | None


def _stamp(path: Path) -> _Stamp:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_ino, facts.st_mtime_ns, facts.st_size


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _load(path: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path} cannot be read", why=str(error), hint="correct the file"
        ) from error


def _get(table: object, *keys: str) -> Any:
    for key in keys:
        table = table.get(key) if isinstance(table, dict) else None
    return table


@lru_cache(maxsize=1024)
def _import_statements(text: str) -> ast.Module:
    """Return what a module imports, in functions too."""
    nodes = ast.walk(parse(text))
    return ast.Module([one for one in nodes if isinstance(one, ast.Import | ast.ImportFrom)], [])


def _above(module: str, level: int, package: str) -> str:
    """Return the absolute name of a module that an import names from ``package``."""
    if not level:
        return module
    parts = package.split(".") if package else []
    base = parts[: len(parts) - level + 1]
    return ".".join((*base, *filter(None, [module])))


def _find(module: str, folders: Iterable[Path]) -> Path | None:
    if not module or not all(part.isidentifier() for part in module.split(".")):
        return None
    for folder in folders:
        base = folder.joinpath(*module.split("."))
        for file in (base / "__init__.py", base.with_name(f"{base.name}.py")):
            if file.is_file():
                return file
    return None


def _is_folder_of(top: str, folders: Iterable[Path]) -> bool:
    """Return whether a package without an ``__init__.py`` lies in one of the folders."""
    return any(any((folder / top).glob("*.py")) for folder in folders if (folder / top).is_dir())


def _inits(path: Path, root: Path) -> Iterator[Path]:
    """Yield the ``__init__.py`` of the packages around a file: importing it runs them."""
    for folder in path.parents:
        init = folder / "__init__.py"
        if folder == root or not init.is_file():
            return
        yield init


def _plain(name: str) -> str:
    """Return a distribution's name as packaging compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def _distributions() -> Mapping[str, Sequence[str]]:
    """Return the installed distributions by the modules that they bring."""
    return packages_distributions()


@cache
def _version(top: str) -> str:
    try:
        return version(top)
    except (PackageNotFoundError, ValueError):
        return ",".join(f"{name} {version(name)}" for name in _distributions().get(top, ()))
