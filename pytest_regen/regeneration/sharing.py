"""Answers that stores beside one another share: pages of the same prompt are asked for once."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pytest_regen.errors import RefusedError, RegenError
from pytest_regen.prompts.render import is_shared
from pytest_regen.prompts.values import PageKey, PromptEntry
from pytest_regen.regeneration.values import Known
from pytest_regen.stores import RegenStore, StoredPage
from pytest_regen.stores.formats import HAND


@dataclass(frozen=True, slots=True)
class _Source:
    """A page that answers a prompt."""

    folder: str
    """Of the store that holds it."""
    page: StoredPage | None
    """``None`` where it is only planned."""
    is_fresh: bool = False
    """Whether it was written by this run: then it was answered by the model that would be asked."""


class Sharing:
    """What the stores of one folder have answers to.

    A page is shared with a store that has the same prompt, to the letter, the system prompt
    included. So its prompt is the one that its answer was made from, and each store can be
    rebuilt, healed and regenerated without the others.
    """

    def __init__(
        self, out: Path | str, *, is_for_many: bool = True, reads_stored: bool = True
    ) -> None:
        """Share among the stores of a folder.

        Args:
            out: the folder in which each store has a folder of its own.
            is_for_many: whether several stores are made: then new ones have prompts that can be
                shared.
            reads_stored: whether what is there already counts; else only what is added.
        """
        self.is_for_many = is_for_many
        self._out = Path(out)
        self._sources: dict[str, list[_Source]] = {}
        self._is_read = not reads_stored
        self._asking: dict[str, str] = {}
        """By hash of a prompt: the folder of the store, of those being made, that asks for it."""
        self._refused: dict[tuple[str, str], RefusedError] = {}
        """By hash of a prompt and model: what the model said in this run."""

    def add(self, path: Path, keys: Iterable[PageKey]) -> None:
        """Take in a store that this run wrote; ``asked`` are its pages that were answered now."""
        self._take(path, frozenset(keys))

    def refuse(self, entry: PromptEntry, model: str, why: RefusedError) -> None:
        """Note that a model refused a prompt in this run: asked for another store, it would again.

        Args:
            entry: the prompt.
            model: who was asked.
            why: what the store that asked was told.
        """
        if is_shared(entry):
            self._refused[entry.prompt_hash, model] = why

    def plan(self, path: Path, prompts: Iterable[PromptEntry]) -> None:
        """Take in pages that would be asked, so that a dry run counts them once."""
        for entry in filter(is_shared, prompts):
            self._sources.setdefault(entry.prompt_hash, []).append(_Source(path.name, None))

    def find(
        self,
        path: Path,
        prompts: Iterable[PromptEntry],
        may_answer: Callable[[PromptEntry, StoredPage], bool],
    ) -> dict[PageKey, Known | str]:
        """Return the pages of a store that another one has an answer to.

        Args:
            path: the store that lacks them.
            prompts: of the pages it lacks.
            may_answer: whether who wrote a page is who would be asked with a prompt.

        Returns:
            The answer; in a dry run it may be the folder of the store that would have it.
        """
        waiting = list(filter(is_shared, prompts))
        if waiting:
            self._read()
        answers: dict[PageKey, Known | str] = {}
        for entry in waiting:
            for source in self._sources.get(entry.prompt_hash, ()):
                page = source.page
                if source.folder == path.name:
                    continue
                if page is None:
                    answers[entry.key] = source.folder
                    break
                if source.is_fresh or may_answer(entry, page):
                    asked_for = page.shared_from or source.folder
                    is_own = asked_for == path.name  # It was asked for this store, and lost here.
                    answers[entry.key] = _known(source.folder if is_own else asked_for, page)
                    break
        return answers

    def claim(
        self,
        path: Path,
        entry: PromptEntry,
        model: str,
        may_answer: Callable[[PromptEntry, StoredPage], bool],
    ) -> "Known | RefusedError | Literal['wait', 'ask']":
        """Return the answer to a prompt, or whether a store is to ask for it or to wait.

        The first store that claims a prompt asks; others wait until that one is released. As one
        that claims a prompt began before those that wait for it, no two wait for each other.

        Args:
            path: the store that lacks the page.
            entry: the prompt.
            model: who would be asked.
            may_answer: as of ``find``.
        """
        if not is_shared(entry):
            return "ask"
        answer = self.find(path, [entry], may_answer).get(entry.key)
        if isinstance(answer, Known):
            return answer
        if (refused := self._refused.get((entry.prompt_hash, model))) is not None:
            return refused
        owner = self._asking.setdefault(entry.prompt_hash, path.name)
        return "ask" if owner == path.name else "wait"

    def release(self, path: Path) -> None:
        """Note that a store asks no more: what it has is known by ``add``."""
        self._asking = {key: name for key, name in self._asking.items() if name != path.name}

    def _read(self) -> None:
        if not self._is_read:
            self._is_read = True
            for file in sorted(self._out.glob("*/pages.json")):
                self._take(file.parent, frozenset())

    def _take(self, path: Path, fresh: frozenset[PageKey]) -> None:
        for entry, page in _answers(path):
            source = _Source(path.name, page, page.key in fresh)
            sources = self._sources.setdefault(entry.prompt_hash, [])
            # The store that asked for a page comes before those that have a copy of it.
            sources.insert(0 if page.shared_from is None else len(sources), source)


def _answers(path: Path) -> Iterator[tuple[PromptEntry, StoredPage]]:
    """Yield the pages of a store that answer their prompts as they are; of a broken one, none."""
    try:
        store = RegenStore.open(path)
        pages, prompts = store.pages, store.prompts
    except RegenError:
        return
    for entry in prompts:
        page = pages.get(entry.key)
        if page is None or page.is_tampered or entry.is_edited or not is_shared(entry):
            continue
        is_answer = page.prompt_hash == entry.prompt_hash and page.type_hash == entry.type_hash
        if is_answer and page.model != HAND and page.stop_reason != "max_tokens":
            yield entry, page


def _known(folder: str, page: StoredPage) -> Known:
    return Known(
        page.output, page.model, page.provider, page.stop_reason or "", page.generated_at, folder
    )
