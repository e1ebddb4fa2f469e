"""The recordings of a cassette while it plays: found by key, given out once each, by any thread.

Without a lock, for which an event loop would wait: each step is one operation of a list or a dict.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable

from pytest_regen.cassettes.files.reading import StoredInteraction
from pytest_regen.cassettes.values import Interaction

__all__ = ["Tape"]

_Index = dict[str, deque[int]]
"""Key to the indexes of its recordings."""


class Tape:
    """Recordings in recorded order, each of them good for one request.

    Callers know a recording by its number in the file, from 1; an index, from 0, stays inside.

    Args:
        interactions: the recordings.
        rekey: gives the key of a recording where requests are normalized; used, and every
            recording parsed, only for a request whose key stands in no recording.
    """

    def __init__(
        self,
        interactions: Iterable[StoredInteraction] = (),
        rekey: Callable[[Interaction], str] | None = None,
    ) -> None:
        self._all = tuple(interactions)
        self._waiting = _index(enumerate(stored.first_key for stored in self._all))
        self._scrubbed: _Index | None = None
        self._rekey = rekey
        self._rekeyed: _Index | None = None
        self._played: dict[int, object] = {}
        """By index, what shows which of several callers was the first to want it."""
        self._first_unplayed = 0

    def __len__(self) -> int:
        return len(self._all)

    def take(self, key: str) -> StoredInteraction | None:
        """Return the next recording for ``key`` and mark it played, or ``None``."""
        index = self._next(self._waiting, key)
        if index is None:
            index = self._next(self._by_scrubbed(), key)
        if index is None and self._rekey is not None:
            index = self._next(self._normalized(self._rekey), key)
        return None if index is None else self._all[index]

    def take_in_order(
        self, fits: Callable[[Interaction], bool]
    ) -> tuple[int, StoredInteraction] | None:
        """Mark the first unplayed recording that ``fits`` played; return it and its number."""
        first = self._first_unplayed
        while first in self._played:
            first += 1
        self._first_unplayed = first
        for index in range(first, len(self._all)):
            if index in self._played or not fits(self._all[index].interaction):
                continue
            if self._claims(index):
                return index + 1, self._all[index]
        return None

    def mark(self, number: int) -> None:
        """Mark a recording played that was given out elsewhere, by its number."""
        self._claims(number - 1)

    def _claims(self, index: int) -> bool:
        """Mark a recording played; returns whether it was not before."""
        token = object()
        return self._played.setdefault(index, token) is token

    def _next(self, waiting: _Index, key: str) -> int | None:
        indexes = waiting.get(key)
        while indexes:
            try:
                index = indexes.popleft()
            except IndexError:
                return None  # another thread took the last
            if self._claims(index):
                return index
        return None

    def _by_scrubbed(self) -> _Index:
        """Return the index by the keys of requests without their credentials.

        In files of ours all requests are; of others it takes long, and few requests need it.
        """
        if self._scrubbed is None:
            every = enumerate(self._all)
            self._scrubbed = _index((n, one.key) for n, one in every if one.key != one.first_key)
        return self._scrubbed

    def _normalized(self, rekey: Callable[[Interaction], str]) -> _Index:
        if self._rekeyed is None:
            self._rekeyed = _index(enumerate(rekey(one.interaction) for one in self._all))
        return self._rekeyed

    def knows(self, key: str) -> bool:
        """Whether ``key`` was recorded at all, played or not."""
        known = (self._waiting, self._by_scrubbed(), self._rekeyed or {})
        return any(key in index for index in known)

    @property
    def played(self) -> int:
        """How many recordings were given out."""
        return len(self._played)

    @property
    def unplayed(self) -> tuple[tuple[int, StoredInteraction], ...]:
        """The recordings nobody asked for, each with its number."""
        return tuple(
            (number, stored)
            for number, stored in enumerate(self._all, 1)
            if number - 1 not in self._played
        )

    @property
    def everything(self) -> tuple[tuple[int, StoredInteraction], ...]:
        """All recordings, each with its number."""
        return tuple(enumerate(self._all, 1))


def _index(keys: Iterable[tuple[int, str]]) -> _Index:
    index: defaultdict[str, deque[int]] = defaultdict(deque)
    for at, key in keys:
        index[key].append(at)
    # A plain one: looking up a key that is not there must not make it.
    return dict(index)
