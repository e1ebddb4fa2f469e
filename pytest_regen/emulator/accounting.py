"""What a request reads from the prompt cache, what it writes, and what remains plain input."""

import hashlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ["WINDOW", "CacheUse", "CachedBlock", "PromptCache"]

WINDOW = 20
"""Positions looked at from each breakpoint backwards, the breakpoint itself included."""
LIFETIMES = {"5m": 300, "1h": 3600}


class CachedBlock(Protocol):
    """One block of a prompt, in the order tools, system, messages."""

    @property
    def data(self) -> bytes:
        """What the prefix hash covers."""

    @property
    def tokens(self) -> int:
        """Its size."""

    @property
    def ttl(self) -> str | None:
        """``5m`` or ``1h`` where a breakpoint stands on it."""


@dataclass(frozen=True, slots=True)
class CacheUse:
    """Tokens of one request by what the cache did with them; they add up to the blocks' total."""

    read: int
    write_5m: int
    write_1h: int
    plain: int
    commit: Callable[[], None]
    """Makes the writes visible to others; called when the response begins."""

    @property
    def write(self) -> int:
        """Tokens written, whatever their lifetime."""
        return self.write_5m + self.write_1h


@dataclass(frozen=True, slots=True)
class _Entry:
    expires_at: float
    lifetime: int


class PromptCache:
    """The prefixes that earlier requests have written. Safe for several threads."""

    def __init__(self) -> None:
        self._entries: dict[bytes, _Entry] = {}
        self._lock = threading.Lock()

    def look_up(
        self, blocks: Sequence[CachedBlock], *, now: float, minimum: int, scope: str = ""
    ) -> CacheUse:
        """Account for one request.

        Args:
            blocks: the whole prompt in order.
            now: when the request started, in seconds; lifetimes are counted from here.
            minimum: fewest tokens of a prefix that is cached.
            scope: prefixes are shared only within one scope: organization and model.
        """
        prefixes, sums = _chain(blocks, scope)
        marks = [index for index, block in enumerate(blocks) if block.ttl]
        total = sums[-1] if sums else 0
        with self._lock:
            hit = self._deepest_hit(prefixes, marks, now)
        read = sums[hit] if hit >= 0 else 0
        written = [index for index in marks if sums[index] >= minimum]
        past_1h = max([sums[i] for i in written if blocks[i].ttl == "1h"], default=read)
        hour = max(read, past_1h)
        last = max([hour, *(sums[i] for i in written)])

        def commit() -> None:
            with self._lock:
                for index in written:
                    self._write(prefixes[index], now, LIFETIMES[blocks[index].ttl or "5m"])
                if hit >= 0:
                    self._write(prefixes[hit], now, self._entries[prefixes[hit]].lifetime)

        return CacheUse(read, last - hour, hour - read, total - last, commit)

    def _deepest_hit(self, prefixes: Sequence[bytes], marks: Sequence[int], now: float) -> int:
        """Return the last block of the longest live prefix, -1 where there is none."""
        deepest = -1
        for mark in marks:
            for index in range(mark, max(-1, mark - WINDOW), -1):
                entry = self._entries.get(prefixes[index])
                if entry is not None and entry.expires_at > now:
                    deepest = max(deepest, index)
                    break
        return deepest

    def _write(self, prefix: bytes, now: float, lifetime: int) -> None:
        self._entries[prefix] = _Entry(now + lifetime, lifetime)


def _chain(blocks: Sequence[CachedBlock], scope: str) -> tuple[list[bytes], list[int]]:
    """Return, for each block, the hash of the prompt up to it and the tokens up to it."""
    running = hashlib.sha256(scope.encode())
    prefixes, sums, tokens = [], [], 0
    for block in blocks:
        running.update(len(block.data).to_bytes(8, "big"))
        running.update(block.data)
        prefixes.append(running.digest())
        tokens += block.tokens
        sums.append(tokens)
    return prefixes, sums
