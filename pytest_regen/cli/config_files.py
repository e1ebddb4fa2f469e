"""Edits of a project's files that are shown before they are made, and keep what people wrote."""

import difflib
import os
import re
import shlex
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_regen.errors import UsageError
from pytest_regen.files import locked_file, replace_file
from pytest_regen.settings_files import TABLE, parse_toml, table_in

_HEADER: Final = re.compile(rf"^\[tool\.{TABLE}\].*(?:\n|\Z)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of a file that can be shown before it is made."""

    root: Path
    """Of the project: no file outside of it is written."""
    path: Path
    change: Callable[[str], str]
    """Returns the text that is to be there; the same text where there is nothing to do."""

    @property
    def is_needed(self) -> bool:
        """Whether anything is to be written."""
        return self.change(self.text()) != self.text()

    @property
    def is_new(self) -> bool:
        """Whether the file is not there yet."""
        return not self.path.exists()

    @property
    def lines(self) -> Iterator[str]:
        """The lines that go, with ``-`` before them, and those that come, with ``+``."""
        before = self.text()
        after = self.change(before)
        diff = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
        return (line for line in list(diff)[2:] if not line.startswith("@"))

    def write(self) -> None:
        """Write the file whole, or leave it as it is.

        Raises:
            UsageError: it must not be written, or cannot be edited.
            OSError: it cannot be written.
        """
        target = self._target()
        target.parent.mkdir(parents=True, exist_ok=True)
        with locked_file(target):
            before = self.text()
            after = self.change(before)
            if after != before:
                replace_file(target, after)

    def undo(self, before: str | None) -> None:
        """Put back what the file held; ``None``: there was none."""
        if before is None:
            self.path.unlink(missing_ok=True)
        else:
            replace_file(self._target(), before)

    def refuse(self) -> None:
        """Raise what ``write`` would raise for what stands in its way now."""
        self._target()
        _ = self.is_needed

    def text(self) -> str:
        """Return what the file holds; nothing where there is none.

        Raises:
            UsageError: it is not UTF-8.
        """
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


def add_to_table(path: Path, settings: Mapping[str, Any]) -> Callable[[str], str]:
    """Return what adds settings to ``[tool.pytest-regen]`` in the text of a file.

    Keys that are there stay as they are, but for lists: these get the items that they lack.
    """

    def change(text: str) -> str:
        data = parse_toml(text, path.name)
        table = table_in(path, data) or {}
        wanted = {**table, **{key: _joined(table.get(key), settings[key]) for key in settings}}
        new = {key: value for key, value in wanted.items() if table.get(key) != value}
        if not new:
            return text
        data.setdefault("tool", {})[TABLE] = wanted
        # Whatever becomes of the text: it must say what was wanted, and all that it said.
        for edit in (_written, _edited):
            with suppress(UsageError, ValueError, LookupError, TypeError, AttributeError):
                made = edit(text, table, new)
                if parse_toml(made, path.name) == data:
                    return made
        raise UsageError(
            f"{path.name} has a form that is not edited here",
            why=f"[tool.{TABLE}] stands in it in an unusual way",
            hint=f"write below [tool.{TABLE}] yourself: {'; '.join(_lines(new).splitlines())}",
        )

    return lambda text: _keep_line_ends(text, change)


def _joined(value: Any, wanted: Any) -> Any:
    """Return a setting with what it lacks, which is nothing where it is no list."""
    if value is None:
        return wanted
    if not isinstance(value, list) or not isinstance(wanted, list):
        return value
    # Where entries are tables, a glob is a table, too.
    has_tables = any(isinstance(item, dict) for item in value)
    items = [{"files": item} if has_tables and isinstance(item, str) else item for item in wanted]
    joined = list(value)
    for item in items:
        targets = _gettext_targets(item)
        at = next((at for at, one in enumerate(joined) if _gettext_targets(one)), None)
        if targets and at is not None:
            there = _gettext_targets(joined[at])
            if new := [name for name in targets if name not in there]:
                joined[at] = {**joined[at], "targets": [*there, *new]}
        elif item not in joined:
            joined.append(item)
    return joined


def _gettext_targets(table: Any) -> list[Any]:
    """Return the targets of a table of translations; none where they are not of gettext."""
    targets = table.get("targets") if isinstance(table, dict) else None
    names = targets if isinstance(targets, list) else [targets]
    return names if all(str(name).endswith(".po") for name in names) else []


def _written(text: str, table: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return a document with keys below the header, and entries of lists of tables at the end."""
    parts = [text.rstrip("\n") + "\n"] if text.strip() else []
    keys = {}
    for key, value in new.items():
        items = value[len(table.get(key, ())) :] if isinstance(value, list) else ()
        if items and all(isinstance(item, dict) for item in items):
            parts += [f"[[tool.{TABLE}.{key}]]\n{_lines(item)}" for item in items]
        else:
            keys[key] = value
    header = _HEADER.search(text)
    if keys and header:
        head, rest = text[: header.end()].rstrip("\n"), text[header.end() :]
        parts[0] = f"{head}\n{_lines(keys)}{rest}"
    elif keys:
        parts.append(f"[tool.{TABLE}]\n{_lines(keys)}")
    return "\n".join(parts)


def _lines(values: Mapping[str, Any]) -> str:
    import tomlkit

    return "".join(f"{key} = {tomlkit.item(values[key]).as_string()}\n" for key in values)


def _edited(text: str, table: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return a document with the values of a table changed, in whatever form they are."""
    import tomlkit

    document = tomlkit.parse(text)
    place: Any = document
    for name in ("tool", TABLE):
        place = place[name]
    for key, value in new.items():
        if key in table:
            for at, item in enumerate(value):
                if at >= len(table[key]):
                    place[key].append(item)
                elif item != table[key][at]:
                    place[key][at].update(item)
        else:
            place[key] = value
    return tomlkit.dumps(document)
