"""The candidates of a project on a desk: found, looked at, accepted and rejected."""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from pytest_regen.cli.project import Project, short_path
from pytest_regen.errors import OutdatedCandidateError, RegenError, UsageError
from pytest_regen.regeneration.flow import source_diff
from pytest_regen.regeneration.pending import Candidate, PendingFolder, Waiting
from pytest_regen.regeneration.places import Place
from pytest_regen.regeneration.review import Look, accept_candidate, look_at, reject_candidate
from pytest_regen.regeneration.store_place import StorePlace
from pytest_regen.stores import is_store
from pytest_regen.text import plural
from pytest_regen.units.naming import node_id, unit_id

_NAMED: Final = 3
"""Pieces that the next command names; of more, it runs all tests."""


@dataclass(frozen=True)
class Desk:
    """The candidates of a project, and what can be done with them."""

    project: Project
    folder: PendingFolder
    given: Path | None = None
    """The folder as it was named on the command line; ``None`` for the project's own."""

    @classmethod
    def here(cls, folder: Path | None) -> "Desk":
        """Return the desk of the project around the working directory.

        Raises:
            UsageError: ``folder`` is named and not there.
        """
        project = Project.here()
        if folder is None:
            return cls(project, PendingFolder.of_project(project.root))
        if not folder.is_dir():
            raise UsageError(
                f"--from {folder}: there is no such folder",
                hint="name the folder of candidates that CI kept, unpacked",
            )
        return cls(project, PendingFolder(folder), folder)

    def command(self, *words: str) -> str:
        """Return a command of the review about the same folder."""
        given = () if self.given is None else ("--from", str(self.given))
        return shlex.join(["pytest-regen", "review", *words, *given])

    @contextmanager
    def _naming_its_folder(self) -> Iterator[None]:
        """Let errors name their next command with the folder that this review is about."""
        try:
            yield
        except RegenError as error:
            words = shlex.split(error.hint) if self.given else []
            if words[:2] == ["pytest-regen", "review"]:
                error.hint = self.command(*words[2:])
            raise

    @cached_property
    def waiting(self) -> Waiting:
        """What waits, as it was read first."""
        return self.folder.read()

    def id_of(self, candidate: Candidate) -> str:
        """Return the piece as pytest names it."""
        return unit_id(candidate.place, candidate.name)

    def path_of(self, candidate: Candidate) -> Path:
        """Return its place as it is seen from the working directory."""
        return short_path(self.project.root / candidate.place)

    def name_of(self, candidate: Candidate) -> str:
        """Return the piece as people read it, with the path from the working directory."""
        return f"{self.path_of(candidate).as_posix()}::{candidate.name}"

    def place_of(self, candidate: Candidate) -> Place[Any] | None:
        """Return the place of a candidate; ``None`` where nothing of the project asks for it.

        A candidate that names a file which is neither is not believed.
        """
        path = self.path_of(candidate)
        if candidate.has_pages:
            ignore = self.project.ignored_in(path)
            return StorePlace(path, ignore) if is_store(path) else None
        if is_store(path) or self.project.kinds.kind_of(Path.cwd() / path) is None:
            return None
        return self.project.unit_file(path)

    def look(self, candidate: Candidate) -> Look[Any]:
        """Return what accepting a candidate would change; raises RegenError."""
        with self._naming_its_folder():
            return look_at(self._known_place(candidate), candidate)

    def accept(self, candidate: Candidate, *, accept_any: bool = False) -> Look[Any]:
        """Store a candidate; raises RegenError."""
        with self._naming_its_folder():
            place = self._known_place(candidate)
            return accept_candidate(place, candidate, self.folder, accept_any=accept_any)

    def reject(self, candidate: Candidate) -> None:
        """Put a candidate into the history; raises RegenError."""
        with self._naming_its_folder():
            reject_candidate(self.place_of(candidate), candidate, self.folder)

    def _known_place(self, candidate: Candidate) -> Place[Any]:
        place = self.place_of(candidate)
        if place is None:
            what = "store" if candidate.has_pages else "file with units"
            raise OutdatedCandidateError(
                f"candidate {candidate.id} is for {self.id_of(candidate)}",
                why=f"the project has no such {what}: it was made in another one, or "
                "what it is for is gone",
                hint=f"pytest-regen review reject {candidate.id}",
            )
        return place

    def named(self, words: Sequence[str]) -> list[Candidate]:
        """Return the candidates with these ids, beginnings of ids, or names.

        Raises:
            UsageError: a word names none, or several.
        """
        found: dict[str, Candidate] = {}
        for word in words:
            candidates = [each for each in self.waiting.candidates if word in self._names(each)]
            if not candidates and word:
                candidates = [
                    each for each in self.waiting.candidates if each.id.startswith(word.lower())
                ]
            if len(candidates) != 1:
                raise self._unclear(word, candidates)
            found[candidates[0].id] = candidates[0]
        return list(found.values())

    def _names(self, candidate: Candidate) -> set[str]:
        here = self.path_of(candidate).as_posix()
        return {
            candidate.id,
            self.id_of(candidate),
            unit_id(here, candidate.name),
            f"{candidate.place}::{candidate.name}",
            f"{here}::{candidate.name}",
        }

    def _unclear(self, word: str, found: Sequence[Candidate]) -> UsageError:
        known = ", ".join(each.id for each in found or self.waiting.candidates)
        return UsageError(
            f"{word!r:.80} names {plural(len(found), 'candidate') if found else 'no candidate'}",
            why=f"{'it begins the ids' if found else 'those that wait are'} {known}"
            if known
            else "none waits",
            hint=self.command("list") if known else "pytest --regen --regen-pending",
        )

    def below(self, paths: Sequence[Path]) -> list[Candidate]:
        """Return the candidates at or below paths, or that are named; all without any.

        Raises:
            UsageError: one of these is no path, and names no candidate.
        """
        if not paths:
            return list(self.waiting.candidates)
        found: dict[str, Candidate] = {}
        for path in paths:
            real = path.absolute().resolve()
            at = [
                each
                for each in self.waiting.candidates
                if self.path_of(each).resolve().is_relative_to(real)
            ]
            if not at and not path.exists():
                at = self.named([str(path)])
            found |= {each.id: each for each in at}
        return [each for each in self.waiting.candidates if each.id in found]


def answerers(candidate: Candidate) -> str:
    """Return who wrote a candidate."""
    return ", ".join(dict.fromkeys(output.model for output in candidate.outputs))


def candidate_facts(candidate: Candidate) -> list[tuple[str, str]]:
    """Return who made a candidate and when, as labels and words."""
    usage = candidate.usage
    tokens = f"{usage.input_tokens or 0:,} tokens in, {usage.output_tokens or 0:,} out"
    pages = ", ".join(str(output.page) for output in candidate.outputs)
    made = f"{answerers(candidate)}, {candidate.made_at}, {tokens}"
    facts = [("asked by", candidate.asked_by), ("answered", made)]
    if candidate.has_pages:
        noun = "page" if len(candidate.outputs) == 1 else "pages"
        facts.append((noun, pages))
    return facts


def stored_diff(candidate: Candidate) -> str:
    """Return the diff of a candidate's own texts; its place may hold others by now."""
    return "".join(
        source_diff(_lines(output.old or ""), _lines(output.new), f"{candidate.name}")
        for output in candidate.outputs
    )


def _lines(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def following(desk: Desk, accepted: Sequence[Candidate]) -> str:
    """Return what to run after candidates were accepted or rejected."""
    left = len(desk.folder.read().candidates)
    if left:
        return desk.command()
    if not accepted or len(accepted) > _NAMED:
        return "pytest"
    ids = (node_id(desk.path_of(each).as_posix(), each.name) for each in accepted)
    return f"pytest {' '.join(map(shlex.quote, ids))}"
