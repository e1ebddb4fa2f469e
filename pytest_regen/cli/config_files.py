"""Edits of a project's files that are shown before they are made, and keep what people wrote."""

import difflib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_regen.errors import UsageError
from pytest_regen.files import replace_file
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
        """Whether anything is to be written.

        Raises:
            UsageError: the file must not be written, or cannot be edited.
        """
        before, _ = self.text(), self._target()
        return self.after(before) != before

    @property
    def is_new(self) -> bool:
        """Whether the file is not there yet."""
        return not self.path.exists()

    @property
    def lines(self) -> Iterator[str]:
        """The lines that go, with ``-`` before them, and those that come, with ``+``."""
        before = self.text()
        old, new = before.splitlines(), self.after(before).splitlines()
        diff = difflib.unified_diff(old, new, n=0, lineterm="")
        return (line for line in list(diff)[2:] if not line.startswith("@"))

    def write(self) -> None:
        """Write the file whole, or leave it as it is.

        Raises:
            UsageError: it must not be written, or cannot be edited.
            OSError: it cannot be written.
        """
        target = self._target()
        target.parent.mkdir(parents=True, exist_ok=True)
        # Read again, because somebody may have edited it since it was shown.
        before = self.text()
        after = self.after(before)
        if after != before:
            replace_file(target, after)

    def undo(self, before: str | None) -> None:
        """Put back what the file held; ``None``: there was none."""
        if before is None:
            self.path.unlink(missing_ok=True)
        else:
            replace_file(self._target(), before)

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

    def after(self, text: str) -> str:
        """Return the text that is to be there, with the line ends of the file."""
        plain = text.replace("\r\n", "\n")
        changed = self.change(plain)
        return changed if plain == text else changed.replace("\n", "\r\n")

    def _target(self) -> Path:
        """Return the file itself, behind links."""
        target = Path(os.path.realpath(self.path))
        # Because a link in a foreign repository could lead to a file of its user's, as ~/.bashrc.
        if target.is_symlink() or not target.is_relative_to(os.path.realpath(self.root)):
            raise UsageError(
                f"{self.path} leads out of the project, to {target}",
                why="only files below the root of the project are edited",
                hint="edit it by hand, or remove the link; then the same command again",
            )
        return target


def add_lines(*lines: str) -> Callable[[str], str]:
    """Return what adds those of these lines to a text that it lacks, at its end."""

    def change(text: str) -> str:
        present = {line.strip() for line in text.removeprefix("\ufeff").splitlines()}
        missing = [line for line in lines if line not in present]
        lead = "" if not text or text.endswith("\n") else "\n"
        return text + lead + "".join(f"{line}\n" for line in missing) if missing else text

    return change


def add_to_table(path: Path, settings: Mapping[str, Any]) -> Callable[[str], str]:
    """Return what adds settings to ``[tool.pytest-regen]`` in the text of a file.

    Keys that are there stay as they are, but for lists: these get the items that they lack.
    """

    def change(text: str) -> str:
        data = parse_toml(text, path.name)
        table = table_in(path, data) or {}
        new = {key: value for key, value in settings.items() if key not in table}
        more = {
            key: items
            for key, value in settings.items()
            if isinstance(value, list) and isinstance(table.get(key), list)
            if (items := [item for item in value if item not in table[key]])
        }
        if not (new or more):
            return text
        longer = {key: [*table[key], *items] for key, items in more.items()}
        data.setdefault("tool", {})[TABLE] = {**table, **new, **longer}
        # An inline table, or keys with dots.
        with suppress(UsageError, ValueError, LookupError, TypeError, AttributeError):
            edited = _edited(text, new, more)
            # Whatever becomes of the text: it says what was wanted, and all that it said.
            if parse_toml(edited, path.name) == data:
                return edited
        lines = "; ".join(_toml_lines({**new, **longer}).splitlines())
        raise UsageError(
            f"{path.name} has a form that is not edited here",
            why=f"[tool.{TABLE}] stands in it in an unusual way",
            hint=f"write below [tool.{TABLE}] yourself: {lines}",
        )

    return change


def _edited(text: str, new: Mapping[str, Any], more: Mapping[str, list[Any]]) -> str:
    """Return a document with lists made longer in place, and keys and tables added as text.

    As text, because tomlkit adds keys behind the comments that belong to what follows.
    """
    import tomlkit

    document: Any = tomlkit.parse(text)
    for key, items in more.items():
        for item in items:
            document["tool"][TABLE][key].append(item)
    text = tomlkit.dumps(document).rstrip()
    blocks = [f"{text}\n"] if text else []
    keys = ""
    for key, value in new.items():
        if isinstance(value, list) and isinstance(value[0], dict):
            blocks += [f"[[tool.{TABLE}.{key}]]\n{_toml_lines(item)}" for item in value]
        else:
            keys += _toml_lines({key: value})
    header = _HEADER.search(text)
    if keys and header:
        below = text[header.end() :]
        blocks[0] = f"{text[: header.end()].rstrip()}\n{keys}{below}".rstrip() + "\n"
    elif keys:
        blocks.insert(bool(text), f"[tool.{TABLE}]\n{keys}")
    return "\n".join(blocks)


def _toml_lines(values: Mapping[str, Any]) -> str:
    import tomlkit

    return "".join(f"{key} = {tomlkit.item(values[key]).as_string()}\n" for key in values)
