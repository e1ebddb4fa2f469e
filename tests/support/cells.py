"""A third kind of place: the cells of a notebook, each asked for by a line of its own.

A cell that a model writes says so in its metadata: ``{"regen": {"name", "prompt", "recorded",
"model"}}``. What was replaced stands beside the notebook, in ``<name>.past.json``.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pytest_regen.commit import AtomicFiles
from pytest_regen.errors import HandEditError, RegenError, UsageError
from pytest_regen.files import lock_file
from pytest_regen.regeneration.places import (
    Advice,
    Author,
    Changes,
    Project,
    Score,
    View,
    Written,
)
from pytest_regen.regeneration.values import Answer, Ask, Rejected, TurnSettings
from pytest_regen.text import source_diff
from pytest_regen.turns.values import Message, TurnRequest
from pytest_regen.validation.issues import Feedback, Issue


def at(project: Project, path: Path) -> "Cells | None":
    """Return the notebook at a path."""
    return Cells(Path.cwd() / path, project.root) if path.suffix == ".ipynb" else None


def below(project: Project, folder: Path | None) -> Iterable[Path]:
    """Return the notebooks at or below a folder; by default those of the project."""
    folder = folder or project.root
    return [folder] if folder.is_file() else sorted(folder.rglob("*.ipynb"))


def notebook(path: Path, cells: Mapping[str, str], prompts: Mapping[str, str]) -> Path:
    """Write a notebook whose cells are as a model wrote them."""
    listed = [
        {
            "cell_type": "code",
            "metadata": {
                "regen": {
                    "name": name,
                    "prompt": prompt,
                    "recorded": cells.get(name, ""),
                    "model": "model-a",
                }
            },
            "outputs": [],
            "source": cells.get(name, ""),
        }
        for name, prompt in prompts.items()
    ]
    path.write_text(json.dumps({"cells": listed, "nbformat": 4, "nbformat_minor": 5}, indent=1))
    return path


@dataclass(frozen=True)
class PastCell:
    """What a cell held."""

    id: str
    name: str
    text: str
    reason: str
    model: str
    attempt = page = page_count = 1
    issues = ()

    def to_json(self) -> dict[str, Any]:
        """Return the entry of the history."""
        return {**asdict(self), "output": self.text}


class CellsView(View):
    """The cells of a notebook at one moment."""

    orphans = notes = ()
    text = ""

    def __init__(self, place: str, text: str) -> None:
        self.place = place
        self.text = text
        self.data = json.loads(text)

    @cached_property
    def cells(self) -> dict[str, dict[str, Any]]:
        """What is known of each cell, by its name."""
        regen = (cell for cell in self.data["cells"] if "regen" in cell["metadata"])
        return {cell["metadata"]["regen"]["name"]: cell for cell in regen}

    def memory(self, name: str) -> dict[str, Any]:
        """Return what the notebook remembers of a cell."""
        memory: dict[str, Any] = self.cells[name]["metadata"]["regen"]
        return memory

    def changed(self, sources: Mapping[str, str], **memory: Any) -> "CellsView":
        """Return the view with other texts in cells, and other memories of them."""
        view = CellsView(self.place, self.text)
        for name, source in sources.items():
            view.cells[name]["source"] = source
            view.memory(name).update(recorded=source, **memory)
        return CellsView(self.place, json.dumps(view.data, indent=1))

    @property
    def names(self) -> Sequence[str]:
        """All cells that a model writes."""
        return tuple(self.cells)

    def resolve(self, name: str) -> str:
        """Return the name of a cell."""
        if name not in self.cells:
            raise UsageError(f"{self.place} has no cell {name!r}", hint="name another")
        return name

    def issues(self, name: str) -> tuple[Issue, ...]:
        """Return whether a cell is missing, edited, or no Python."""
        source = self.cells[name]["source"]
        if not source:
            return (Issue.of("MISSING_UNIT", "the cell is empty", type_name=name),)
        if source != self.memory(name)["recorded"]:
            return (Issue.of("DRIFT", "the cell was edited", type_name=name),)
        try:
            compile(source, self.place, "exec")
        except SyntaxError as error:
            return (Issue.of("SYNTAX", str(error.msg), type_name=name, line=error.lineno),)
        return ()

    def author(self, name: str) -> Author:
        """Return the model that wrote a cell."""
        return Author(self.memory(name)["model"])

    def score(self, name: str) -> Score:
        """Return how many errors a cell has."""
        return Score(sum(issue.severity == "error" for issue in self.issues(name)))

    def missing(self, name: str) -> Sequence[int]:
        """Return the page of a cell that is empty."""
        return () if self.cells[name]["source"] else (1,)

    def line(self, _name: str) -> int | None:
        """Return nothing: people read a notebook by its cells."""
        return None

    def advice(self, issues: Sequence[Issue]) -> Advice | None:
        """Return what is to be done about all of them."""
        return Advice(f"pytest-regen regenerate {self.place} --from-errors") if issues else None

    def repairs(
        self, _name: str, _issues: Sequence[Issue], _asking: Sequence[str] = ()
    ) -> Sequence[Advice]:
        """Return nothing."""
        return ()

    def hand_edit(self, name: str) -> RegenError | None:
        """Return the error for a cell that was edited."""
        if all(issue.code != "DRIFT" for issue in self.issues(name)):
            return None
        return HandEditError(f"{name} was edited by hand", why="it would be lost", hint="adopt it")

    def obstacle(self, name: str) -> str:
        """Return whether a cell was edited."""
        error = self.hand_edit(name)
        return error.what if error else ""

    def output(self, name: str, _page: int) -> str | None:
        """Return what stands in a cell."""
        return self.cells[name]["source"] or None

    def basis(self, name: str) -> str:
        """Return what stands in a cell, and what was asked."""
        return json.dumps([self.output(name, 1), self.memory(name)["prompt"]])

    def with_answers(self, answers: Sequence[Answer]) -> "CellsView":
        """Return the view with new texts in cells."""
        view = self
        for answer in answers:
            view = view.changed({answer.ask.name: answer.output}, model=answer.model)
        return view


class Cells:
    """A notebook."""

    noun, title = "cell", "cells"
    group, option, has_pages = "notebooks", "--unit", False
    is_imported, has_users, trial_seconds = False, False, 0.0

    def __init__(self, path: Path, root: Path) -> None:
        self.path = path
        self.place = path.relative_to(root).as_posix()
        self.here = self.source = Path(os.path.relpath(path)).as_posix()
        self.file_name = path.name
        self.past_path = path.with_suffix(".past.json")
        self.history_path = Path(self.here).with_suffix(".past.json").as_posix()
        self.files = AtomicFiles(
            path.parent, what=f"the notebook {path}", lock=lock_file(path), aside=".past"
        )

    def open(self) -> CellsView:
        """Read the notebook."""
        return CellsView(self.place, self.path.read_text("utf-8"))

    def past(self) -> list[PastCell]:
        """Return what was replaced, oldest first."""
        text = self.past_path.read_text("utf-8") if self.past_path.exists() else "[]"
        return [PastCell(**entry) for entry in json.loads(text)]

    def asks(
        self,
        view: CellsView,
        name: str,
        wanted: Mapping[int, Sequence[Feedback]],
        settings: TurnSettings,
    ) -> list[Ask]:
        """Return the request for a cell."""
        wrong = "".join(f"\nwrong: {note}" for notes in wanted.values() for note in notes)
        prompt = view.memory(name)["prompt"] + wrong
        model = settings.model or "model-a"
        request = TurnRequest("You write cells.", (Message("user", prompt),), model, 1_000)
        return [Ask(name, 1, request, 10, name, "".join)]

    def record_issues(self, view: CellsView) -> None:
        """Do nothing."""

    def prepare(self, answers: Sequence[Answer]) -> None:
        """Do nothing."""

    def join(self) -> Changes | None:
        """Return nothing."""
        return None

    @contextmanager
    def update(self) -> Iterator["LockedCells"]:
        """Lock the notebook and read it afresh."""
        with self.files.locked():
            yield LockedCells(self)

    def trial(self, *_: object) -> AbstractContextManager[Any]:
        """Refuse: no test looks at a notebook here."""
        raise NotImplementedError

    def is_on_trial(self) -> bool:
        """Return False."""
        return False

    def changed_paths(self) -> tuple[Path, ...]:
        """Return the notebook."""
        return (self.path,)


class LockedCells:
    """A notebook that is locked for writing."""

    def __init__(self, place: Cells) -> None:
        self._place = place
        self.view = place.open()

    def _write(
        self, after: CellsView, gone: Sequence[tuple[str, str]], reason: str
    ) -> tuple[str, ...]:
        """Write the notebook, and what is gone from cells to the history; return ids of that."""
        past = self._place.past()
        for name, text in gone:
            model = self.view.memory(name)["model"]
            past.append(PastCell(str(len(past)), name, text, reason, model))
        self._place.files.commit(
            {
                self._place.path.name: after.text.encode(),
                self._place.past_path.name: json.dumps(list(map(asdict, past))).encode(),
            }
        )
        self.view = after
        return tuple(map(str, range(len(past) - len(gone), len(past))))

    def _gone(self, names: Iterable[str]) -> list[tuple[str, str]]:
        return [(name, text) for name in names if (text := self.view.output(name, 1))]

    def write(
        self, candidate: CellsView, kept: Sequence[Answer], rejected: Rejected
    ) -> tuple[str, ...]:
        """Write what is kept and put the rest in the history; return the ids of the rest."""
        ids = self._write(self.view, [(one.ask.name, one.output) for one in rejected], "rejected")
        self._write(candidate, self._gone(answer.ask.name for answer in kept), "replaced")
        return ids

    def _edited(self, names: Sequence[str] | None) -> list[str]:
        chosen = self.view.names if names is None else map(self.view.resolve, names)
        return [name for name in chosen if self.view.hand_edit(name)]

    def adopt(self, names: Sequence[str] | None, *, with_stale: bool = False) -> Changes:
        """Record cells as they stand."""
        del with_stale
        edited = self._edited(names)
        gone = [(name, self.view.memory(name)["recorded"]) for name in edited]
        texts = {name: str(self.view.output(name, 1)) for name in edited}
        ids = self._write(self.view.changed(texts, model="hand"), gone, "adopted")
        return Changes(tuple(edited), ids)

    def rebuild(self, names: Sequence[str] | None) -> Changes:
        """Put recorded texts back."""
        before, edited = self.view, self._edited(names)
        texts = {name: self.view.memory(name)["recorded"] for name in edited}
        ids = self._write(self.view.changed(texts), self._gone(edited), "dropped")
        diff = source_diff(before.text, self.view.text, self._place.file_name)
        return Changes(tuple(edited), ids, diff)

    def restore(self, name: str, _page: int | None, to: str | None) -> Changes:
        """Make a past text the recorded one."""
        if error := self.view.hand_edit(self.view.resolve(name)):
            raise error
        past = [entry for entry in self._place.past() if entry.name == name]
        now = self.view.output(name, 1)
        other = [entry for entry in past if entry.reason != "rejected" and entry.text != now]
        entry = [entry for entry in past if entry.id == to][-1] if to else other[-1]
        after = self.view.changed({name: entry.text}, model=entry.model)
        ids = self._write(after, self._gone([name]), "restored")
        return Changes((name,), ids, pages=(Written(name, 1, entry.model),))

    def forget(self, names: Sequence[str] | None) -> Changes:
        """Let cells be a person's from now on."""
        view = CellsView(self.view.place, self.view.text)
        for name in names or ():
            del view.cells[view.resolve(name)]["metadata"]["regen"]
        after = CellsView(view.place, json.dumps(view.data, indent=1))
        ids = self._write(after, self._gone(names or ()), "forgotten")
        return Changes(tuple(names or ()), ids)
