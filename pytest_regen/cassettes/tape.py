"""The recordings of a cassette while it plays: found by key, given out once each, by any thread."""

import threading
from collections import defaultdict, deque
from collections.abc import Iterable

from pytest_regen.cassettes.reading import StoredInteraction

__all__ = ["Tape"]


class Tape:
    """Recordings in recorded order, each of them good for one request.

    Args:
        interactions: the recordings.
    """

    def __init__(self, interactions: Iterable[StoredInteraction] = ()) -> None:
        self._lock = threading.Lock()
        self._all = tuple(interactions)
        self._waiting: defaultdict[str, deque[int]] = defaultdict(deque)
        for number, stored in enumerate(self._all):
            self._waiting[stored.key].append(number)
        self._played: set[int] = set()

    def __len__(self) -> int:
        return len(self._all)

    def take(self, key: str) -> StoredInteraction | None:
        """Return the next recording for ``key`` and mark it played, or ``None``."""
        with self._lock:
            waiting = self._waiting.get(key)
            if not waiting:
                return None
            number = waiting.popleft()
            self._played.add(number)
            return self._all[number]

    def knows(self, key: str) -> bool:
        """Whether ``key`` was recorded at all, played or not."""
        return key in self._waiting

    @property
    def played(self) -> int:
        """How many recordings were given out."""
        with self._lock:
            return len(self._played)

    @property
    def unplayed(self) -> tuple[tuple[int, StoredInteraction], ...]:
        """The recordings nobody asked for, each with its number in the file, from 1."""
        with self._lock:
            return tuple(
                (number, stored)
                for number, stored in enumerate(self._all, 1)
                if number - 1 not in self._played
            )

    @property
    def everything(self) -> tuple[tuple[int, StoredInteraction], ...]:
        """All recordings, each with its number in the file, from 1."""
        return tuple(enumerate(self._all, 1))
