"""Edits of a project's files that are shown before they are made, and keep what people wrote."""

import difflib
import os
import re
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
            # As bytes, because reading as text would change CRLF into LF.
            return self.path.read_bytes().decode("utf-8") if self.path.exists() else ""
        except UnicodeDecodeError as error:
            raise UsageError(
                f"{self.path} is not UTF-8", why=str(error), hint="correct the file"
            ) from None

    def _target(self) -> Path:
        """Return the file itself, behind links."""
        target = Path(os.path.realpath(self.path))
        # Because a link in a foreign repository could lead to a file of its user's, as ~/.bashrc.
        if not target.is_relative_to(os.path.realpath(self.root)):
            raise UsageError(
                f"{self.path} leads out of the project, to {target}",
                why="only files below the root of the project are edited",
                hint=f"edit it by hand: {'; '.join(line[1:] for line in self.lines if line[1:])}",
            )
        # Looked at here, because replacing a file takes only the rights of its folder.
        is_locked = target.is_file() and not target.stat().st_mode & stat.S_IWUSR
        if is_locked or target.is_symlink() or (target.exists() and not target.is_file()):
            raise UsageError(
                f"{self.path} cannot be edited",
                why="it is read-only, no file, or a link that leads to itself",
                hint="allow it to be written, or remove it; then the same command again",
            )
        return target


def add_lines(*lines: str) -> Callable[[str], str]:
    """Return what adds those of these lines to a text that it lacks, at its end."""

    def change(text: str) -> str:
        present = {line.strip() for line in text.removeprefix("\ufeff").splitlines()}
        missing = [line for line in lines if line not in present]
        lead = "" if not text or text.endswith("\n") else "\n"
        return text + lead + "".join(f"{line}\n" for line in missing) if missing else text

    return lambda text: _keep_line_ends(text, change)


def _keep_line_ends(text: str, change: Callable[[str], str]) -> str:
    """Change a text whose lines may end in CRLF, and keep it so."""
    plain = text.replace("\r\n", "\n")
    changed = change(plain)
    if changed == plain:
        return text
    return changed if plain == text else changed.replace("\n", "\r\n")


def add_to_table(path: Path, settings: Mapping[str, Any]) -> Callable[[str], str]:
    """Return what adds settings to ``[tool.pytest-regen]`` in the text of a file.

    Keys that are there stay as they are, but for lists: these get the items that they lack.
    """

    def change(text: str) -> str:
        data = parse_toml(text, path.name)
        table = table_in(path, data) or {}
        joined = {key: _joined(table.get(key), value) for key, value in settings.items()}
        new = {key: value for key, value in joined.items() if table.get(key) != value}
        if not new:
            return text
        data.setdefault("tool", {})[TABLE] = {**table, **joined}
        with suppress(UsageError, ValueError, LookupError, TypeError, AttributeError):
            edited = _edited(text, table, new)
            # Whatever becomes of the text: it says what was wanted, and all that it said.
            if parse_toml(edited, path.name) == data:
                return edited
        raise UsageError(
            f"{path.name} has a form that is not edited here",
            why=f"[tool.{TABLE}] stands in it in an unusual way",
            hint=f"write below [tool.{TABLE}] yourself: {'; '.join(_lines(new).splitlines())}",
        )

    return lambda text: _keep_line_ends(text, change)


def _joined(value: Any, settings: Any) -> Any:
    """Return a setting with what it lacks, which is nothing where it is no list."""
    if value is None:
        return settings
    if not isinstance(value, list) or not isinstance(settings, list):
        return value
    joined = list(value)
    for setting in settings:
        # Where entries are tables, a glob is a table, too.
        is_glob = isinstance(setting, str) and any(isinstance(item, dict) for item in value)
        entry = {"files": setting} if is_glob else setting
        targets = _gettext_targets(entry)
        index = next((n for n, item in enumerate(joined) if _gettext_targets(item)), None)
        if targets and index is not None:
            merged = dict.fromkeys([*_gettext_targets(joined[index]), *targets])
            if len(merged) > 1:
                joined[index] = {**joined[index], "targets": list(merged)}
        elif entry not in joined:
            joined.append(entry)
    return joined


def _gettext_targets(table: Any) -> list[Any]:
    """Return the targets of a table of translations; none where they are not of gettext."""
    targets = table.get("targets") if isinstance(table, dict) else None
    names = targets if isinstance(targets, list) else [targets]
    return names if all(str(name).endswith(".po") for name in names) else []


def _lines(values: Mapping[str, Any]) -> str:
    import tomlkit

    return "".join(f"{key} = {tomlkit.item(values[key]).as_string()}\n" for key in values)


def _edited(text: str, table: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return a document with lists made longer in place, and keys and tables added as text.

    As text, because tomlkit adds keys behind the comments that belong to what follows.
    """
    import tomlkit

    document: Any = tomlkit.parse(text)
    for key in new.keys() & table.keys():
        items = document["tool"][TABLE][key]
        for index, item in enumerate(new[key]):
            if index >= len(table[key]):
                items.append(item)
            elif item != table[key][index]:
                items[index].update(item)
    text = tomlkit.dumps(document)
    blocks = [f"{text.rstrip()}\n"] if text.strip() else []
    keys = ""
    for key, value in new.items():
        if key in table:
            continue
        if isinstance(value, list) and isinstance(value[0], dict):
            blocks += [f"[[tool.{TABLE}.{key}]]\n{_lines(item)}" for item in value]
        else:
            keys += _lines({key: value})
    header = _HEADER.search(text)
    if keys and header:
        below = text[header.end() :].rstrip()
        blocks[0] = f"{text[: header.end()].rstrip()}\n{keys}{below}".rstrip() + "\n"
    elif keys:
        blocks.insert(bool(text.strip()), f"[tool.{TABLE}]\n{keys}")
    return "\n".join(blocks)
