"""The files that hold settings: which one pytest reads, and edits that keep what people wrote.

pytest reads one file alone, in an order of its own: a setting in any other file does nothing.
"""

import difflib
import os
import re
import shlex
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from configparser import ConfigParser
from configparser import Error as IniError
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from pytest_regen.errors import UsageError
from pytest_regen.files import locked_file, replace_file
from pytest_regen.settings import load_toml, parse_toml

__all__ = [
    "INI_TABLE",
    "OWN_TABLE",
    "Edit",
    "SettingsFile",
    "add_lines",
    "find_root",
    "refuse_two_tables",
    "settings_file_in",
]

_NATIVE_TABLE: Final = ("tool", "pytest")
INI_TABLE: Final = ("tool", "pytest", "ini_options")
OWN_TABLE: Final = ("tool", "pytest-regen")
_FIRST_WITH_TOML: Final = 9
"""The pytest that reads pytest.toml, and the table [tool.pytest] itself."""


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A file, and the table or section in it that holds settings."""

    path: Path
    table: tuple[str, ...]

    @property
    def is_toml(self) -> bool:
        """Whether values are those of TOML."""
        return self.path.suffix == ".toml"

    @property
    def header(self) -> str:
        """The table as a line of the file."""
        return f"[{'.'.join(self.table)}]"

    def get(self, key: str) -> object:
        """Return a value as the file has it; ``None`` where there is none.

        Raises:
            UsageError: the file cannot be read.
        """
        if self.is_toml:
            table = _table_of(load_toml(self.path), self.table)
            return table.get(key) if table else None
        parser = ConfigParser(interpolation=None)
        try:
            parser.read(self.path, "utf-8")
        except (IniError, UnicodeDecodeError) as error:
            raise UsageError(
                f"{self.path} cannot be read", why=str(error), hint="correct the file"
            ) from None
        section = self.table[0]
        return parser.get(section, key).strip() if parser.has_option(section, key) else None

    def change(self, settings: Mapping[str, Any]) -> "Callable[[str], str]":
        """Return what adds settings to the text of the file.

        Keys that are there stay as they are, but for lists: these get the items that they lack.
        """
        if self.is_toml:
            return lambda text: _keep_line_ends(
                text, lambda plain: _add_to_toml(plain, self, settings)
            )
        return lambda text: _keep_line_ends(text, lambda plain: _add_to_ini(plain, self, settings))


def find_root(start: Path) -> Path:
    """Return the folder that pytest takes for the root where it is started in ``start``.

    The nearest one with settings of pytest, else with a pyproject.toml, else with a setup.py, else
    ``start`` itself.
    """
    folders = (start, *start.parents)
    for holds in (
        settings_file_in,
        lambda folder: (folder / "pyproject.toml").is_file(),
        lambda folder: (folder / "setup.py").is_file(),
    ):
        if found := next((folder for folder in folders if holds(folder)), None):
            return found
    return start


def settings_file_in(folder: Path) -> SettingsFile | None:
    """Return the file of a folder that pytest reads its settings from; ``None`` if none has any.

    One that cannot be read counts: pytest stops there, too.
    """
    for name in ("pytest.toml", ".pytest.toml"):
        if (folder / name).is_file() and _reads_toml():
            return SettingsFile(folder / name, ("pytest",))
    for name in ("pytest.ini", ".pytest.ini"):
        if (folder / name).is_file():
            return SettingsFile(folder / name, ("pytest",))
    if table := _pyproject_table(folder / "pyproject.toml"):
        return SettingsFile(folder / "pyproject.toml", table)
    for name, section in (("tox.ini", "pytest"), ("setup.cfg", "tool:pytest")):
        if _has_section(folder / name, section):
            return SettingsFile(folder / name, (section,))
    return None


def _pyproject_table(path: Path) -> tuple[str, ...] | None:
    if not path.is_file():
        return None
    try:
        data = load_toml(path)
    except UsageError:
        return INI_TABLE  # Told where a value is read from it.
    native = _table_of(data, _NATIVE_TABLE) or {}
    # With both pytest stops: it does not matter which of them is named.
    if native.keys() - {"ini_options"} and _reads_toml():
        return _NATIVE_TABLE
    return INI_TABLE if "ini_options" in native else None


def refuse_two_tables(file: SettingsFile) -> None:
    """Raise a UsageError for a file that pytest refuses: it takes one of two tables."""
    if file.table == _NATIVE_TABLE and _table_of(load_toml(file.path), INI_TABLE):
        raise UsageError(
            f"{file.path.name} has both [tool.pytest] and [tool.pytest.ini_options]",
            why="pytest refuses to start with both",
            hint="move the settings into one of them",
        )


def _has_section(path: Path, section: str) -> bool:
    parser = ConfigParser(interpolation=None)
    try:
        parser.read(path, "utf-8")
    except (IniError, UnicodeDecodeError):
        return True  # pytest stops there, too; told where a value is read from it.
    return parser.has_section(section)


@cache
def _reads_toml() -> bool:
    """Return whether the pytest that is installed has settings in tables of its own."""
    try:
        first = version("pytest").partition(".")[0]
    except PackageNotFoundError:
        return True
    return not first.isdigit() or int(first) >= _FIRST_WITH_TOML


def _table_of(data: Mapping[str, Any], table: Sequence[str]) -> dict[str, Any] | None:
    found: Any = data
    for part in table:
        found = found.get(part) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None


# Edits


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of a file that can be shown before it is made."""

    root: Path
    """Of the project: no file outside of it is written."""
    path: Path
    change: Callable[[str], str]
    """Returns the text that is to be there; the same text where there is nothing to do."""
    header: str = ""
    """The table or section that is edited, as a line of the file."""

    @property
    def is_needed(self) -> bool:
        """Whether anything is to be written."""
        return self.change(self._text()) != self._text()

    @property
    def is_new(self) -> bool:
        """Whether the file is not there yet."""
        return not self.path.exists()

    @property
    def lines(self) -> Iterator[str]:
        """The lines that go, with ``-`` before them, and those that come, with ``+``."""
        before = self._text()
        after = self.change(before)
        found = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
        return (line for line in list(found)[2:] if not line.startswith("@"))

    def joined(self, others: "Sequence[Edit]") -> "Edit":
        """Return this edit and others of the same file as one."""

        def change(text: str) -> str:
            for each in (self, *others):
                text = each.change(text)
            return text

        return replace(self, change=change)

    def write(self) -> bool:
        """Write the file whole, or leave it as it is; return whether it was changed.

        Raises:
            UsageError: it must not be written, or cannot be edited.
            OSError: it cannot be written.
        """
        target = self._target()
        target.parent.mkdir(parents=True, exist_ok=True)
        with locked_file(target):
            before = self._text()
            after = self.change(before)
            if after == before:
                return False
            replace_file(target, after)
        return True

    def refuse(self) -> None:
        """Raise what ``write`` would raise for what stands in its way now."""
        self._target()
        _ = self.is_needed

    def _text(self) -> str:
        try:
            # As bytes: line ends stay what they are.
            return self.path.read_bytes().decode("utf-8") if self.path.exists() else ""
        except UnicodeDecodeError as error:
            raise UsageError(
                f"{self.path} is not UTF-8", why=str(error), hint="correct the file"
            ) from None

    def _target(self) -> Path:
        """Return the file itself, behind links."""
        real = Path(os.path.realpath(self.path))
        if not real.is_relative_to(os.path.realpath(self.root)):
            raise UsageError(
                f"{self.path} leads out of the project, to {real}",
                why="only files below the root of the project are edited",
                hint=f"edit it by hand: {'; '.join(line[1:] for line in self.lines if line[1:])}",
            )
        if real.is_symlink() or (real.exists() and not (real.is_file() or real.is_dir())):
            raise UsageError(
                f"{self.path} cannot be edited",
                why="it is a link that leads to itself, or no file",
                hint=f"rm {shlex.quote(str(self.path))}",
            )
        if real.exists() and not real.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP):
            raise UsageError(
                f"{self.path} is read-only",
                hint="allow it to be written, then the same command again",
            )
        return real


def add_lines(*wanted: str) -> Callable[[str], str]:
    """Return what adds those of these lines to a text that it lacks, at its end."""

    def change(text: str) -> str:
        there = {line.strip() for line in text.removeprefix("\ufeff").splitlines()}
        missing = [line for line in wanted if line not in there]
        lead = "" if not text or text.endswith("\n") else "\n"
        return text + lead + "".join(f"{line}\n" for line in missing) if missing else text

    return lambda text: _keep_line_ends(text, change)


def _keep_line_ends(text: str, change: Callable[[str], str]) -> str:
    """Change a text whose lines may all end in CRLF, and keep it so."""
    plain = text.replace("\r\n", "\n")
    if plain == text or plain.count("\n") != text.count("\r\n"):
        return change(text)
    made = change(plain)
    return text if made == plain else made.replace("\n", "\r\n")


def _with_settings(table: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table with the settings that it lacks."""
    made = deepcopy(dict(table))
    for key, value in settings.items():
        if key not in made:
            made[key] = value
        elif isinstance(value, list):
            made[key] = _with_items(made[key], value)
    return made


def _with_items(there: Any, wanted: Sequence[Any]) -> Any:
    if isinstance(there, str):  # pytest's own way to write a list as one text
        missing = [item for item in wanted if item not in there.split("\n")]
        return "\n".join([there.rstrip("\n"), *missing]) if missing else there
    if not isinstance(there, list):
        return there
    # Where entries are tables, a glob is a table, too.
    has_tables = any(isinstance(item, dict) for item in there)
    made = [{"files": item} if has_tables and isinstance(item, str) else item for item in wanted]
    return [*there, *(item for item in made if item not in there)]


def _add_to_toml(text: str, file: SettingsFile, settings: Mapping[str, Any]) -> str:
    """Return a document with settings in one of its tables.

    Raises:
        UsageError: it cannot be read, or has a form that is left to its author.
    """
    data = parse_toml(text, file.path.name)
    table = _table_of(data, file.table) or {}
    wanted = _with_settings(table, settings)
    if wanted == table:
        return text
    _set_table(data, file.table, wanted)
    # Whatever a library makes of the text: it must say what was wanted, and all that it said.
    for made in _toml_candidates(text, file, table, wanted):
        if made is not None and _toml_data_or_none(made) == data:
            return made
    lines = [f"{key} = {_toml_value(value)}" for key, value in settings.items()]
    raise UsageError(
        f"{file.path.name} has a form that is not edited here",
        why=f"{file.header} stands in it in an unusual way",
        hint=f"write below {file.header} yourself: {'; '.join(lines)}",
    )


def _toml_data_or_none(text: str) -> dict[str, Any] | None:
    try:
        return parse_toml(text, "")
    except UsageError:
        return None


def _set_table(data: dict[str, Any], table: Sequence[str], value: dict[str, Any]) -> None:
    for part in table[:-1]:
        data = data.setdefault(part, {})
    data[table[-1]] = value


def _toml_candidates(
    text: str, file: SettingsFile, table: Mapping[str, Any], wanted: Mapping[str, Any]
) -> Iterator[str | None]:
    """Yield the text with what is wanted: as an edit would look best, then what always works."""
    tables = {key: value for key, value in wanted.items() if _are_tables(value)}
    new = {key: value for key, value in wanted.items() if table.get(key) != value}
    if not table or all(key in tables and key not in table for key in new):
        yield _appended(text, file, new)
    elif not table.keys() & new.keys():
        yield _inserted(text, file, new)
    yield _edited(text, file, table, new)
    yield _appended(text, file, new)


def _are_tables(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _appended(text: str, file: SettingsFile, new: Mapping[str, Any]) -> str:
    """Return a document with a table at its end."""
    plain = {key: value for key, value in new.items() if not _are_tables(value)}
    parts = [text.rstrip("\n")] if text.strip() else []
    if plain:
        lines = [f"{key} = {_toml_value(value)}" for key, value in plain.items()]
        parts.append("\n".join([file.header, *lines]))
    for key, value in new.items():
        if _are_tables(value):
            parts += (
                "\n".join(
                    [
                        f"[[{'.'.join((*file.table, key))}]]",
                        *(f"{name} = {_toml_value(item)}" for name, item in entry.items()),
                    ]
                )
                for entry in value
            )
    return "\n\n".join(parts) + "\n"


def _inserted(text: str, file: SettingsFile, new: Mapping[str, Any]) -> str | None:
    """Return a document with keys below the last one of a table; ``None`` without its header.

    A comment at the end of a table mostly belongs to the next one, which a library cannot know.
    """
    lines = text.split("\n")
    head = next((at for at, line in enumerate(lines) if line.startswith(file.header)), None)
    if head is None:
        return None
    last = _last_setting(lines, head)
    added = [f"{key} = {_toml_value(value)}" for key, value in new.items()]
    return "\n".join([*lines[: last + 1], *added, *lines[last + 1 :]])


def _toml_value(value: Any) -> str:
    import tomlkit

    text: str = tomlkit.item(value).as_string()
    return text


def _edited(
    text: str, file: SettingsFile, table: Mapping[str, Any], new: Mapping[str, Any]
) -> str | None:
    """Return a document with keys in a table that is there; ``None`` where that is not possible."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        place: Any = document
        for part in file.table:
            place = place[part]
        for key, value in new.items():
            if isinstance(value, list) and isinstance(table.get(key), list):
                for item in value[len(table[key]) :]:
                    _append(place[key], item)
            elif isinstance(value, str) and key in table:
                place[key] = tomlkit.string(value, multiline=True)
            else:
                place[key] = value
        return tomlkit.dumps(document)
    except (TOMLKitError, KeyError, TypeError, ValueError, AttributeError, IndexError):
        return None


def _append(there: Any, item: Any) -> None:
    import tomlkit
    from tomlkit.items import AoT

    if isinstance(there, AoT):
        entry = tomlkit.table()
        entry.update(item)
        there.append(entry)
    elif isinstance(item, dict):
        inline = tomlkit.inline_table()
        inline.update(item)
        there.append(inline)
    else:
        there.append(item)


def _add_to_ini(text: str, file: SettingsFile, settings: Mapping[str, Any]) -> str:
    """Return an ini file with settings in one of its sections, whose lines stay as they are.

    Raises:
        UsageError: it cannot be read, or has a form that is left to its author.
    """
    section = file.table[0]
    data = _ini_data(text)
    made = text
    for key, value in settings.items():
        items = value if isinstance(value, list) else [value]
        there = data.get(section, {}).get(key)
        missing = [item for item in items if there is None or item not in there.split("\n")]
        if not missing or (there is not None and not isinstance(value, list)):
            continue
        made = _with_ini_lines(made, section, key, missing, is_there=there is not None)
        lines = [*([there.strip("\n")] if there else []), *missing]
        data.setdefault(section, {})[key] = "\n".join(lines)
    if made == text:
        return text
    stripped = {name: _stripped(table) for name, table in _ini_data(made).items()}
    if stripped != {name: _stripped(table) for name, table in data.items()}:
        lines = [f"{key} = {' '.join(value)}" for key, value in settings.items()]
        raise UsageError(
            f"{file.path.name} has a form that is not edited here",
            hint=f"write below {file.header} yourself: {'; '.join(lines)}",
        )
    return made


def _stripped(table: Mapping[str, str]) -> dict[str, list[str]]:
    return {key: [line for line in value.split("\n") if line] for key, value in table.items()}


def _ini_data(text: str) -> dict[str, dict[str, str]]:
    parser = ConfigParser(interpolation=None, default_section="\n")
    try:
        parser.read_string(text)
    except IniError as error:
        raise UsageError(
            "the settings cannot be read", why=str(error), hint="correct the file"
        ) from None
    return {name: dict(parser[name]) for name in parser.sections()}


def _with_ini_lines(
    text: str, section: str, key: str, items: Sequence[str], *, is_there: bool
) -> str:
    lines = text.split("\n")
    head = next((at for at, line in enumerate(lines) if line.rstrip() == f"[{section}]"), None)
    new = [f"{key} = {items[0]}"] if len(items) == 1 else [f"{key} =", *(f"    {i}" for i in items)]
    if head is None:
        lead = [] if not text.strip() else [text.rstrip("\n"), ""]
        return "\n".join([*lead, f"[{section}]", *new, ""])
    if is_there:
        begins = re.compile(rf"{re.escape(key)}\s*[=:]", re.IGNORECASE)
        at = next(at for at in range(head, len(lines)) if begins.match(lines[at]))
        last = at
        for below in range(at + 1, len(lines)):
            if _is_setting(lines[below]) and not lines[below][0].isspace():
                break
            last = below if _is_setting(lines[below]) else last
        new = [f"    {item}" for item in items]
    else:
        last = _last_setting(lines, head)
    return "\n".join([*lines[: last + 1], *new, *lines[last + 1 :]])


def _last_setting(lines: Sequence[str], head: int) -> int:
    """Return the last line of a section that is no comment: those may be about the next one."""
    last = head
    for at in range(head + 1, len(lines)):
        if lines[at].startswith("["):
            break
        last = at if _is_setting(lines[at]) else last
    return last


def _is_setting(line: str) -> bool:
    return bool(line.strip()) and line.strip()[0] not in "#;"
