"""Answers that stores beside one another share: pages of the same prompt are asked for once."""

from collections.abc import Iterable
from pathlib import Path

from pytest_regen.errors import RegenError
from pytest_regen.modes import HAND
from pytest_regen.prompts.render import is_shared
from pytest_regen.prompts.values import PageKey, PromptEntry
from pytest_regen.regeneration.values import Known
from pytest_regen.stores import RegenStore, StoredPage

Recipient = tuple[str | None, str]
"""A provider, as pages name it, and the model that it would be asked for."""

# A folder, its page that answers a prompt, and whether this run asked for it.
_Source = tuple[str, StoredPage, bool]


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
        """By hash of a prompt."""
        self._is_read = not reads_stored
        self._asking: dict[str, str] = {}
        """By hash of a prompt: the folder of the store, of those being made, that asks for it."""

    def add(self, path: Path, asked: Iterable[PageKey] = ()) -> None:
        """Take in the pages of a store that answer their prompts as they are; of a broken one none.

        Args:
            path: the store.
            asked: its pages that were answered in this run.
        """
        fresh = frozenset(asked)
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
                sources = self._sources.setdefault(entry.prompt_hash, [])
                # The store that asked for a page comes before those that have a copy of it.
                place = 0 if page.shared_from is None else len(sources)
                sources.insert(place, (path.name, page, page.key in fresh))

    def find(self, path: Path, entry: PromptEntry, recipient: Recipient | None) -> Known | None:
        """Return the answer that another store has to a prompt.

        Args:
            path: the store that lacks it.
            entry: the prompt.
            recipient: who would be asked, and so has to be who answered; ``None`` for anybody.
        """
        if not is_shared(entry):
            return None
        if not self._is_read:
            self._is_read = True
            for file in sorted(self._out.glob("*/pages.json")):
                self.add(file.parent)
        for folder, page, is_fresh in self._sources.get(entry.prompt_hash, ()):
            # What this run asked for was answered by whom it would ask again.
            is_by = is_fresh or recipient is None
            if recipient is not None and page.provider == recipient[0]:
                model = recipient[1]
                # An alias of a model stands for its versions.
                is_by |= page.model in {model, page.provider} or page.model.startswith(f"{model}-")
            if folder != path.name and is_by:
                origin = page.shared_from or folder
                # It may have been asked for this store, and lost here.
                origin = folder if origin == path.name else origin
                who, reason = page.provider, page.stop_reason or ""
                return Known(page.output, page.model, who, reason, page.generated_at, origin)
        return None

    def claim(self, path: Path, entry: PromptEntry, recipient: Recipient | None) -> Known | str:
        """Return the answer to a prompt, or the folder of the store that is to ask for it.

        The first store that claims a prompt asks; others wait until that one is released. As one
        that claims a prompt began before those that wait for it, no two wait for each other.

        Args:
            path: the store that lacks the page.
            entry: the prompt.
            recipient: as of ``find``.
        """
        if not is_shared(entry):
            return path.name
        answer = self.find(path, entry, recipient)
        return answer or self._asking.setdefault(entry.prompt_hash, path.name)

    def release(self, path: Path) -> None:
        """Note that a store asks no more: what it has is known by ``add``."""
        # Also where it failed, because those that wait would wait for ever.
        self._asking = {key: name for key, name in self._asking.items() if name != path.name}
