"""Units as test items: an item for each type of a store, and for each unit of a file."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_regen.errors import KindError, RegenError
from pytest_regen.pytest_plugin import options, project
from pytest_regen.pytest_plugin.looks import Look
from pytest_regen.pytest_plugin.places import look_at, marked_units
from pytest_regen.pytest_plugin.project import from_rootdir, text_from_here
from pytest_regen.pytest_plugin.stash import AHEAD
from pytest_regen.pytest_plugin.summary import record_of
from pytest_regen.text import plural, visible
from pytest_regen.units import loading
from pytest_regen.units.naming import encode_name
from pytest_regen.validation.issues import Issue

if TYPE_CHECKING:
    from _pytest._code.code import TerminalRepr

_SHOWN_ISSUES = 12

_PREPARED: pytest.StashKey[bool] = pytest.StashKey()


class UnitError(AssertionError):
    """Something is wrong with a unit. The text is worded when it is shown, so failing is cheap."""

    def __init__(self, look: Look, name: str, issues: Iterable[Issue]) -> None:
        self.look = look
        self.name = name
        self.issues = tuple(issues)
        self.healing = self.next = ""
        """What came of asking again, where that was tried, and the command that follows."""
        super().__init__(look.place, name, len(self.issues))

    def __str__(self) -> str:
        parts = [f"{self.look.here}::{encode_name(self.name)}: {plural(len(self.issues), 'error')}"]
        parts += map(self._text_of, self.issues[:_SHOWN_ISSUES])
        # Below the last issue, so that what to do is said once.
        commands = self.look.commands(self.name, self.issues, self.next)
        lines = [f"  {word + ':':<15}{command}" for word, command in commands]
        parts[-1] = "\n".join((parts[-1], *lines))
        if len(self.issues) > _SHOWN_ISSUES:
            parts.append(f"… and {len(self.issues) - _SHOWN_ISSUES} more")
        return "\n\n".join(filter(None, (*parts, self.healing)))

    def _text_of(self, issue: Issue) -> str:
        path, line = self.look.location_of(issue)
        path = f"{self.look.here}{path.removeprefix(self.look.place)}"
        lines = [f"{path}:{line}" if line else path]
        lines[0] += f": {issue.code}: {issue.message}"
        lines += [f"    {line}" for line in (issue.detail or "").splitlines()]
        return "\n".join((*lines, *self.look.excerpt_of(issue)))


def findings_json(
    findings: Iterable[Issue | str], look: Look | None = None
) -> list[dict[str, Any]]:
    """Return issues as reports have them: with the file, and the line in it.

    A test's own words become an issue without a code. Duplicates are dropped.
    """
    entries = []
    for finding in dict.fromkeys(findings):
        issue = Issue("", str(finding)) if isinstance(finding, str) else finding
        path, line = look.location_of(issue) if look and issue.code else ("", issue.line)
        entries.append({**issue.to_json(), "path": path, "line": line})
    return entries


class PlaceNode(pytest.Directory):
    """One place. A directory, so that the conftest files around it are loaded."""

    def __init__(self, *, selected: set[str] | None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.selected = selected
        """The units to run; ``None`` for all."""
        # pytest leaves a directory right below the session out of -k.
        self.extra_keyword_matches.add(from_rootdir(self.path, self.config.rootpath))
        self.add_marker("regen")

    def collect(self) -> Iterable[pytest.Item]:
        """Return an item per unit; a place that cannot be read is one item that fails."""
        look = look_at(self.config, self.path)
        names = [name for name in look.item_names if self.selected is None or name in self.selected]
        return [
            UnitItem.from_parent(self, name=encode_name(name), unit=name)
            for name in names or (look.DAMAGED,)
        ]


class UnitItem(pytest.Item):
    """One unit: passes if nothing is wrong with it."""

    parent: PlaceNode

    def __init__(self, *, unit: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.unit = unit
        """The unit's name, as its place has it."""

    @property
    def look(self) -> Look:
        """What is known of its place."""
        return look_at(self.config, self.path)

    def runtest(self) -> None:
        """Check the unit.

        Raises:
            UnitError: something is wrong with it, or it is stale where the project lets that fail.
            RegenError: its place cannot be read.
        """
        # It was worked on ahead of its turn because of what it failed with.
        ahead = self.config.stash.get(AHEAD, None)
        if ahead is not None and (known := ahead.failure(self)) is not None:
            raise known
        look, name = self.look, self.unit
        _prepare(self.session)
        record = record_of(self)
        try:
            failing, warned = look.gate(name)
        except RegenError as error:
            if command := look.rescue(error):
                record.next, record.outdated = command, look.place
            raise
        # Of a unit that has no item this one tells the warning.
        others = [issue.type_name if issue.type_name != name else None for issue in warned]
        ids = [look.id_of(other) if other else "" for other in others]
        texts = [f"{issue.code}: {issue.message}" for issue in warned]
        # In place of what an earlier call has noted.
        record.warnings = list(map(list, zip(ids, texts, strict=True)))
        # Said once per run, because what is read of all stores of a document is the same.
        record.notes = [f"note: {look.format_note}"] if look.format_note else []
        record.not_run = [look.place, look.not_run] if look.not_run else []
        record.next = look.ending(name, (*warned, *failing))
        is_stale = any(issue.code == "STALE" for issue in (*warned, *failing))
        record.outdated = look.place if is_stale else ""
        if failing:
            raise UnitError(look, name, failing)
        if look.is_only_read(name) and (self.path, name) not in _marked_in(self.session):
            record.only_read = look.id_of(name)

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None
    ) -> "str | TerminalRepr":
        """Return our own text without a traceback; anything unforeseen as pytest shows it.

        The crash location is set to the source, which is what report readers annotate.
        """
        error = excinfo.value
        if not isinstance(error, UnitError | RegenError):
            return super().repr_failure(excinfo, style)
        text = excinfo.getrepr(style="value", chain=False)
        for entry in getattr(getattr(text, "reprtraceback", None), "reprentries", ()):
            entry.lines = [text_from_here(line, self.config) for line in entry.lines]
            if isinstance(error, KindError) and error.trace:
                entry.lines += ["", *map(visible, error.trace.splitlines())]
        crash = text.reprcrash
        if crash is not None:
            if isinstance(error, UnitError):
                first, more = error.issues[0], len(error.issues) - 1
                path = self.config.rootpath / error.look.location_of(first)[0]
                line, message = first.line or 1, f"{first.code}: {first.message}"
                message += f" (and {more} more)" if more else ""
            else:
                path, line, message = self.path, 1, error.what
            crash.path, crash.lineno = str(path), line
            crash.message = text_from_here(message, self.config)
        return text

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return the file, and the line on which the unit begins."""
        look = self.look
        return look.source_path, look.line_of(self.unit), look.heading(self.unit)


_MARKED: "pytest.StashKey[set[tuple[Path, str]]]" = pytest.StashKey()


def _marked_in(session: pytest.Session) -> set[tuple[Path, str]]:
    """Return the units that marks of the tests of this run name, as files and names."""
    if _MARKED not in session.stash:
        marked = session.stash[_MARKED] = set()
        for test in session.items:
            # Because a mark that is wrong fails its own test, and no unit.
            with suppress(pytest.UsageError):
                if not isinstance(test, UnitItem):
                    marked |= {(look.path, name) for look, name in marked_units(test)}
    return session.stash[_MARKED]


def _prepare(session: pytest.Session) -> None:
    """Let kinds do for all files of the run what is cheaper at once, before the first is called."""
    config = session.config
    # A worker of pytest-xdist gets its own few items, later.
    if _PREPARED in config.stash or hasattr(config, "workerinput"):
        return
    config.stash[_PREPARED] = True
    if options.has_kinds(config):
        paths = [item.path for item in session.items if isinstance(item, UnitItem)]
        loading.prepare_kinds(project.kinds_of(config), paths)
