"""The files that hold settings: those of pytest, which reads one of them alone, and our table."""

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pytest_regen.errors import UsageError
from pytest_regen.files import PYTEST_FILES

TABLE: Final = "pytest-regen"
FILES: Final = ("pyproject.toml", f".{TABLE}.toml")
"""What may hold the table ``[tool.pytest-regen]``, in the root of a project."""
_MISNAMED: Final = (f"{TABLE}.toml", ".pytest_regen.toml", "pytest_regen.toml")


# The table


def find_table(folder: Path) -> tuple[Path, Mapping[str, Any]] | None:
    """Return the file of a folder that holds ``[tool.pytest-regen]``, and what the table says.

    Raises:
        UsageError: a file cannot be read, spells the table otherwise, or both hold one.
    """
    for path in filter(Path.is_file, map(folder.joinpath, _MISNAMED)):
        hint = shlex.join(["mv", str(path), str(folder / FILES[1])])
        raise UsageError(f"{path} is not read", why=f"the file is called {FILES[1]}", hint=hint)
    files = filter(Path.is_file, map(folder.joinpath, FILES))
    tables = [(path, table_in(path, load_toml(path))) for path in files]
    located = [(path, table) for path, table in tables if table is not None]
    if len(located) > 1:
        raise UsageError(
            f"both {' and '.join(FILES)} in {folder} hold [tool.{TABLE}]",
            why="a project has one such table",
            hint=f"move what {FILES[1]} says to {FILES[0]}",
        )
    return located[0] if located else None


def table_in(path: Path, data: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the table ``[tool.pytest-regen]`` of a file; ``None`` where it has none.

    Raises:
        UsageError: it is no table, or not spelt like this.
    """
    tools = data.get("tool")
    # Of anything else pytest itself says that it is wrong.
    tools = tools if isinstance(tools, dict) else {}
    table = tools.get(TABLE)
    if table is not None and not isinstance(table, dict):
        raise UsageError(
            f"{path}: tool.{TABLE} is {table!r:.80}, not a table",
            hint=f"write [tool.{TABLE}] on a line of its own",
        )
    if "pytest_regen" in tools:
        raise UsageError(
            f"{path}: [tool.pytest_regen] is not read",
            why=f"the table is called [tool.{TABLE}]",
            hint=f"write [tool.{TABLE}]",
        )
    stray = [key for key in data if key != "tool"] if path.name == FILES[1] else []
    if stray:
        raise UsageError(
            f"{path}: {stray[0]} stands outside of [tool.{TABLE}]",
            why="the file holds the same table as a pyproject.toml would",
            hint=f"write [tool.{TABLE}] above it",
        )
    return table


def refuse_unread(root: Path, folders: Iterable[Path]) -> None:
    """Refuse a table in one of these folders, as the root of the project is another one.

    A folder below the root may be a project of its own: pytest started there reads its table.

    Raises:
        UsageError: nobody reads one of them.
    """
    for folder in folders:
        located = find_table(folder)
        is_below = root in folder.parents
        if located is None or (is_below and find_root(folder) == folder):
            continue
        if is_below:
            hint = f"move the table to {root / FILES[0]}, with paths from there"
        elif not is_anchored(root):
            hint = shlex.join(["touch", str(folder / "pytest.ini")])
        else:
            hint = shlex.join(["pytest", "--rootdir", str(folder)])
        raise UsageError(
            f"{located[0]} holds [tool.{TABLE}], and nothing reads it",
            why=f"pytest takes {root} for the root of the project",
            hint=hint,
        )


# Files of pytest


def find_root(start: Path) -> Path:
    """Return the folder that pytest takes for the root where it is started in ``start``.

    The nearest one with settings of pytest, else with a pyproject.toml, else with a setup.py, else
    ``start`` itself.
    """
    folders = (start, *start.parents)
    for holds in _ANCHORS:
        if root := next((folder for folder in folders if holds(folder)), None):
            return root
    return start


def is_anchored(folder: Path) -> bool:
    """Return whether something in a folder makes it pytest's root from folders below as well."""
    return any(holds(folder) for holds in _ANCHORS)


def pytest_settings(folder: Path) -> tuple[Path, Mapping[str, Any]] | None:
    """Return the file of a folder that pytest reads its settings from, and what they say.

    Raises:
        UsageError: it cannot be read; pytest stops there, too.
    """
    from _pytest.config.exceptions import UsageError as PytestUsageError
    from _pytest.config.findpaths import load_config_dict_from_file
    from _pytest.outcomes import Failed

    for path in filter(Path.is_file, map(folder.joinpath, PYTEST_FILES)):
        try:
            values: Mapping[str, Any] | None = load_config_dict_from_file(path)
        except (PytestUsageError, Failed, ValueError, RecursionError, OSError) as error:
            raise UsageError(
                f"{path} cannot be read", why=str(error), hint="correct the file"
            ) from None
        if values is not None:
            # pytest 9 wraps them.
            return path, {key: getattr(value, "value", value) for key, value in values.items()}
    return None


# What makes a folder the root, by rank.
_ANCHORS: Final[Sequence[Callable[[Path], object]]] = (
    pytest_settings,
    lambda folder: (folder / "pyproject.toml").is_file(),
    lambda folder: (folder / "setup.py").is_file(),
)


# TOML


def load_toml(path: Path) -> dict[str, Any]:
    """Return what a file holds.

    Raises:
        UsageError: it cannot be read, or is no TOML.
    """
    try:
        return parse_toml(path.read_bytes().decode("utf-8"), str(path))
    except (UnicodeDecodeError, OSError) as error:
        raise UsageError(f"{path} cannot be read", why=str(error), hint="correct it") from error


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """Return what a text says.

    Raises:
        UsageError: it is no TOML; ``name`` is what the message calls it.
    """
    import tomllib

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        what = f"{name} is not readable as TOML"
        raise UsageError(what, why=str(error), hint="correct the file") from None
