"""Stores as collected nodes and their types as test items."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_regen.errors import RegenError, StoreError
from pytest_regen.pytest_plugin.names import (
    adopt_command,
    is_adoptable,
    is_edited,
    rebuild_command,
    regenerate_command,
    repair_command,
)
from pytest_regen.pytest_plugin.selection import Selection, from_rootdir, text_from_here
from pytest_regen.pytest_plugin.stash import raise_known_failure
from pytest_regen.pytest_plugin.stores import StoreCheck, check_of, look_at
from pytest_regen.pytest_plugin.summary import add_warnings
from pytest_regen.regeneration import fixable
from pytest_regen.text import excerpt, plural
from pytest_regen.validation.issues import Issue, ValidationResult
from pytest_regen.validation.stores import Origin, update_command

if TYPE_CHECKING:
    from _pytest._code.code import TerminalRepr


_SHOWN_ISSUES = 12


class UnitError(AssertionError):
    """A type of a store has errors. The text is worded when it is shown, so failing is cheap."""

    def __init__(self, check: "StoreCheck", type_name: str, issues: Sequence[Issue]) -> None:
        super().__init__(check.place, type_name, len(issues))
        self.check = check
        self.type_name = type_name
        self.issues = tuple(issues)
        self.healing = self.next = ""
        """What came of regenerating, where that was tried, and the command that follows."""

    def __str__(self) -> str:
        parts = [f"{self.check.here}::{self.type_name}: {plural(len(self.issues), 'error')}"]
        pages = list(dict.fromkeys(issue.page for issue in self._first))
        for page in pages:
            parts += [_issue_text(self.check, issue) for issue in self._first if issue.page == page]
            # Below the last issue of a page, so that what to do is said once; an edit is kept or
            # dropped with all its pages.
            is_last = page == pages[-1]
            commands = self._commands(page) if is_last or not is_edited(self.issues) else ()
            parts[-1] += "\n" + "\n".join((*self._origin(page), *commands))
        if len(self.issues) > _SHOWN_ISSUES:
            parts.append(f"… and {len(self.issues) - _SHOWN_ISSUES} more")
        if self.healing:
            parts.append(self.healing)
        return "\n\n".join(parts)

    @property
    def _first(self) -> tuple[Issue, ...]:
        return self.issues[:_SHOWN_ISSUES]

    def _origin(self, page: int | None) -> Iterator[str]:
        """Yield from which stored prompts the page, or the type, was written."""
        store = self.check.store
        prompts = store.prompts_of(self.type_name)
        asked = [prompt for prompt in prompts if page is None or prompt.page == page]
        if asked:
            numbers = [store.prompts.index(prompt) + 1 for prompt in asked]
            entries = f"entry {numbers[0]}"
            pages = f"page {asked[0].page} of {asked[0].total_pages}"
            if len(asked) > 1:
                entries, pages = f"entries {', '.join(map(str, numbers))}", f"{len(asked)} pages"
            yield f"  stored prompt: {self.check.here}/prompts.json, {entries} ({pages})"

    def _commands(self, page: int | None) -> Iterator[str]:
        """Yield what may be run about the page, or the type."""
        here, name = self.check.here, self.type_name
        command = repair_command(self.check, name, self.issues)
        if is_edited(self.issues):
            if is_adoptable(self.issues):
                yield f"  keep:          {adopt_command(here, name)}"
            yield f"  drop:          {rebuild_command(here, name)}"
        elif not fixable(ValidationResult.of(self.issues)):
            if command:
                word = "rebuild:" if " rebuild " in command else "update: "
                yield f"  {word}       {command}"
        elif self.next:
            yield f"  next:          {self.next}"
        else:
            yield f"  regenerate:    {command}"
            yield f"  or:            {regenerate_command(self.check, name, page)}"

    @property
    def summary(self) -> str:
        """The first issue in one line, for pytest's short summary."""
        first = self.issues[0]
        more = f" (and {len(self.issues) - 1} more)" if len(self.issues) > 1 else ""
        return f"{first.code}: {first.message}{more}"


def failure_repr(
    excinfo: pytest.ExceptionInfo[BaseException], config: pytest.Config
) -> "TerminalRepr | None":
    """Return our own text for our exceptions, ``None`` for any other.

    The crash location is set to the generated file, which is what report readers annotate.
    """
    error = excinfo.value
    if not isinstance(error, UnitError | RegenError):
        return None
    text = excinfo.getrepr(style="value")
    for entry in getattr(getattr(text, "reprtraceback", None), "reprentries", ()):
        entry.lines = [text_from_here(line, config) for line in entry.lines]
    crash = text.reprcrash
    if crash is not None:
        crash.message = text_from_here(
            error.summary if isinstance(error, UnitError) else error.what, config
        )
        if isinstance(error, UnitError):
            first = error.issues[0]
            source = error.check.source_path
            crash.path = str(source.with_name(first.file) if first.file else source)
            crash.lineno = first.line or 1
    return text


def issue_place(check: "StoreCheck", issue: Issue) -> tuple[str, int | None]:
    """Return the file that an issue is about, from the rootdir, and the line in it."""
    if issue.file is not None:
        return f"{check.place}/{issue.file}", issue.line
    begins = check.line_of(issue.type_name or "")
    # What is missing has no line; it is missing from where the type begins.
    line = issue.line or (begins + 1 if begins is not None else None)
    return f"{check.place}/{check.source_path.name}", line


def findings_json(
    findings: Iterable[Issue | str], check: "StoreCheck | None" = None
) -> list[dict[str, Any]]:
    """Return issues as reports have them: with the file, and the line in it.

    A test's own words become an issue without a code. Duplicates are dropped.
    """
    found = []
    for finding in dict.fromkeys(findings):
        issue = Issue("", finding) if isinstance(finding, str) else finding
        path, line = issue_place(check, issue) if check and issue.code else ("", issue.line)
        found.append({**issue.to_json(), "path": path, "line": line})
    return found


def _issue_text(check: "StoreCheck", issue: Issue) -> str:
    path, line = issue_place(check, issue)
    path = f"{check.here}/{Path(path).name}"
    place = f"{path}:{line}" if line else path
    lines = [f"{place}: {issue.code}: {issue.message}"]
    if issue.detail:
        lines += [f"    {line}" for line in issue.detail.splitlines()]
    if issue.line and issue.file is None:
        source, field = check.store.source.splitlines(), issue.field
        lines += excerpt(source, issue.line, mark=lambda text: _span(text, field))
    return "\n".join(lines)


def _span(text: str, field: str | None) -> tuple[int, int]:
    if field and (start := text.find(field)) >= 0:
        return start, len(field)
    stripped = text.strip()
    return len(text) - len(text.lstrip()), len(stripped)


DAMAGED = "store"
"""Name of the one item of a store that cannot be opened."""


def store_nodes(session: pytest.Session, selection: Selection) -> list["StoreNode"]:
    """Return a node for each store of the run."""
    look_at(session.config, list(selection.types))
    nodes = []
    for path, types in selection.types.items():
        node: StoreNode = StoreNode.from_parent(session, path=path)
        node.asked = types
        nodes.append(node)
    return nodes


class StoreNode(pytest.Directory):
    """One store. A directory, so that the conftest files around it are loaded."""

    holds_regen_items = True
    asked: set[str] | None = None
    """The types to run; ``None`` for all."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # pytest leaves a directory right below the session out of -k.
        self.extra_keyword_matches.add(from_rootdir(self.path, self.config.rootpath))
        self.add_marker("regen")

    @property
    def check(self) -> StoreCheck:
        """The store and what its validation found."""
        return check_of(self.config, self.path)

    def collect(self) -> Iterable[pytest.Item]:
        """Return an item per type; a store that cannot be opened is one item that fails."""
        try:
            names = self.check.type_names
        except StoreError:
            return [TypeItem.from_parent(self, name=DAMAGED)]
        return [
            TypeItem.from_parent(self, name=name)
            for name in names
            if self.asked is None or name in self.asked
        ]


class TypeItem(pytest.Item):
    """One generated type: passes if its validation finds no error."""

    @property
    def check(self) -> StoreCheck:
        """The store this type belongs to."""
        return check_of(self.config, self.path)

    def runtest(self) -> None:
        """Validate the type.

        Raises:
            UnitError: the type has errors, or is stale where the project lets that fail.
            StoreError: the store cannot be opened.
        """
        raise_known_failure(self)
        check = self.check
        try:
            failing, warnings = check.gate(self.name)
        except StoreError as error:
            if Origin.of_conflict(self.path):
                add_warnings(self, (), command=error.hint, outdated=check.place)
            raise
        is_stale = any(issue.code == "STALE" for issue in (*failing, *warnings))
        command = update_command(check.store) if is_stale else ""
        not_run = (check.place, check.not_run) if check.not_run else None
        add_warnings(
            self,
            warnings,
            note=check.format_note,
            not_run=not_run,
            command=command,
            outdated=check.place if is_stale else "",
        )
        if failing:
            raise UnitError(check, self.name, failing)

    def repr_failure(
        self,
        excinfo: pytest.ExceptionInfo[BaseException],
        style: Any = None,
    ) -> "str | TerminalRepr":
        """Return our own text without a traceback; anything unforeseen as pytest shows it."""
        return failure_repr(excinfo, self.config) or super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return the generated file and the line on which the type begins."""
        try:
            return self.check.source_path, self.check.line_of(self.name), self.nodeid
        except StoreError:
            return self.path, None, self.nodeid
