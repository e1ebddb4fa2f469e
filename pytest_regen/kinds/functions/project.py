"""What code of a project may import, and where its own modules lie: read from files alone."""

import ast
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, cached_property, lru_cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import Any, Final

from pytest_regen.canonical import canonical_hash, file_hash
from pytest_regen.files import Stamp, stamp
from pytest_regen.kinds.functions.source import Import, parse
from pytest_regen.settings_files import load_toml
from pytest_regen.units.loading import PytestLists, read_pytest_lists

# The first version of Python that this package itself runs on.
_OLDEST: Final = (3, 11)
_NAME: Final = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
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
        self.doctest_flags = self._lists["doctest_optionflags"]
        """The names of the flags that pytest's ``doctest_optionflags`` sets for all examples."""
        pyproject = root / "pyproject.toml"
        self._table = load_toml(pyproject) if pyproject.is_file() else {}
        self._states: dict[Path, tuple[str, dict[Path, Stamp | None], str]] = {}
        """By module: its text, the files it depends on as they stood, and the hash of all that."""

    @cached_property
    def import_path(self) -> tuple[Path, ...]:
        """The folders of modules: as said, pytest's ``pythonpath``, ``src``, the root."""
        folders = [self.root / name for name in (*self._more, *self._lists["pythonpath"])]
        # The layouts that pip and pytest find without settings.
        folders += [self.root / "src", self.root]
        return tuple(dict.fromkeys(folder for folder in folders if folder.is_dir()))

    @cached_property
    def python(self) -> tuple[int, int]:
        """The oldest version of Python that the project supports, as far as it says so."""
        minimum = _get(self._table, "project", "requires-python")
        minimum = minimum or _get(self._table, "tool", "poetry", "dependencies", "python")
        number = _MINIMUM.search(str(minimum))
        return (3, int(number[1])) if number else _OLDEST

    @cached_property
    def dependencies(self) -> tuple[str, ...] | None:
        """The distributions that the project asks for, sorted; ``None`` where it does not say."""
        # Both tables, because poetry has read its own before there was a standard.
        listed = _get(self._table, "project", "dependencies")
        poetry = _get(self._table, "tool", "poetry", "dependencies")
        if isinstance(listed, list):
            names = {name[1] for text in listed if (name := _NAME.match(str(text)))}
        elif isinstance(poetry, dict):
            names = poetry.keys() - {"python"}
        else:
            project = _get(self._table, "project")
            is_dynamic = "dependencies" in (_get(self._table, "project", "dynamic") or ())
            return () if isinstance(project, dict) and not is_dynamic else None
        return tuple(sorted(sorted(names), key=str.lower))

    def module_of(self, path: Path) -> tuple[str, Path]:
        """Return the dotted name of a file's module, and the folder it is imported from."""
        folder = path.parent
        while (folder / "__init__.py").is_file() and folder != folder.parent:
            folder = folder.parent
        if folder == path.parent:  # no package with an __init__.py: perhaps one without
            inside = [place for place in self.import_path if path.is_relative_to(place)]
            folder = max(inside, key=lambda place: len(place.parts), default=folder)
        parts = path.relative_to(folder).with_suffix("").parts
        if parts[-1] == "__init__" and len(parts) > 1:
            parts = parts[:-1]
        return ".".join(parts), folder

    def find(self, module: str, folder: Path) -> Path | None:
        """Return the file of a module of the project's own; ``None`` for any other."""
        parts = module.split(".")
        if all(part.isidentifier() for part in parts):
            for base in dict.fromkeys((folder, *self.import_path)):
                place = base.joinpath(*parts)
                for file in (place / "__init__.py", place.with_name(f"{place.name}.py")):
                    if file.is_file():
                        return file
        return None

    def imported(
        self, path: Path, imports: Iterable[Import]
    ) -> Iterator[tuple[str, str | None, Path | None]]:
        """Yield what is imported: module, name taken from it, file if it is the project's."""
        module, folder = self.module_of(path)
        package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
        for node in imports:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield alias.name, None, self.find(alias.name, folder)
            else:
                above = package[: len(package) - node.level + 1] if node.level else []
                base = ".".join((*above, *filter(None, [node.module])))
                for alias in node.names:
                    inner = self.find(f"{base}.{alias.name}", folder)
                    yield base, alias.name, inner or self.find(base, folder)

    def may_import(self, module: str, path: Path) -> bool:
        """Return whether code of the project at ``path`` may import a module.

        It may if that is one of the standard library, of the project, or of its dependencies.
        """
        top = module.partition(".")[0]
        _, folder = self.module_of(path)
        if top in sys.stdlib_module_names or not top or self.find(top, folder) is not None:
            return True
        # A package of the project may have no `__init__.py`.
        if any(any((base / top).glob("*.py")) for base in (folder, *self.import_path)):
            return True
        if self.dependencies is None:
            return top in _distributions()
        # By both names, because a distribution is often called otherwise than its module.
        names = {_plain(name) for name in (top, *_distributions().get(top, ()))}
        return not names.isdisjoint(map(_plain, self.dependencies))

    def state(self, path: Path, text: str) -> str:
        """Return a hash of everything static that decides what a module does.

        These are its text, the project's modules that it imports, directly or not, the versions
        of the other packages, and that of Python.

        Args:
            path: of the module.
            text: of the module, which may be another than the file holds.
        """
        if path in self._states:
            old_text, stamps, state = self._states[path]
            if old_text == text and all(stamp(file) == stamps[file] for file in stamps):
                return state
        # Files that are not there count, too: one that appears may be imported from now on.
        stamps = {}
        files: dict[str, str] = {}
        packages: set[str] = set()
        waiting = [path]
        while waiting:
            file = waiting.pop()
            name = os.path.relpath(file, self.root)
            if name in files:
                continue
            data = text.encode("utf-8", "surrogatepass") if file == path else b""
            if file != path:
                stamps[file] = stamp(file)
                with suppress(OSError):
                    data = file.read_bytes()
            files[name] = file_hash(data)
            # Importing a module runs the `__init__.py` of the packages around it.
            for folder in file.parents:
                if folder == self.root or not (folder / "__init__.py").is_file():
                    break
                waiting.append(folder / "__init__.py")
            imports = set(self.imported(file, _import_statements(data)))
            waiting += sorted(own for _, _, own in imports if own is not None)
            packages |= {module.partition(".")[0] for module, _, own in imports if own is None}
        versions = {name: _version(name) for name in packages - sys.stdlib_module_names}
        state = canonical_hash([sys.version, sys.platform, files, versions])
        self._states[path] = text, stamps, state
        return state


def _get(table: object, *keys: str) -> Any:
    for key in keys:
        table = table.get(key) if isinstance(table, dict) else None
    return table


@lru_cache(maxsize=1024)
def _import_statements(data: bytes) -> Sequence[Import]:
    """Return what a module imports, in functions too; nothing where it cannot be read."""
    try:
        nodes = ast.walk(parse(data.decode("utf-8")))
        return [node for node in nodes if isinstance(node, Import)]
    except (UnicodeDecodeError, SyntaxError):
        return ()


def _plain(name: str) -> str:
    """Return a distribution's name as packaging compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


# By the modules that they bring; read once, because all that is installed is looked at.
_distributions = cache(packages_distributions)


@cache
def _version(top: str) -> str:
    try:
        return version(top)
    except (PackageNotFoundError, ValueError):
        return ",".join(f"{name} {version(name)}" for name in _distributions().get(top, ()))
