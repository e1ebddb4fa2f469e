"""The pace of requests: no faster than the API allows, whoever sends them.

A limiter belongs to an address and a key. Once an answer has named the limits, its state lies in a
file in the user's cache folder, so that all processes of the machine share one limit. The file
holds counts, and its name is a hash made with a secret of the user's: no key stands there.
"""

import asyncio
import hashlib
import hmac
import json
import math
import os
import secrets
import threading
import time
import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar

from filelock import FileLock, Timeout

from pytest_regen.cache import user_folder, user_key
from pytest_regen.strict_json import json_or_none
from pytest_regen.turns.buckets import LONGEST_HOLD, Pool, Said, Ticket, amounts
from pytest_regen.turns.values import Usage

R = TypeVar("R")

GIVES_UP_AFTER: Final = 3600.0
"""Seconds in which every request was refused by a limit, after which a turn fails."""

_USUAL_REPLY: Final = 1_000.0
"""Tokens that a reply is expected to take before any was seen."""
_LEARNS: Final = 0.2
"""How much the last reply counts in what the next one is expected to take."""
_FIRST_PAUSE: Final = 0.02
"""Seconds after a refusal, doubled each time, where the server asks for less."""
_LONGEST_PAUSE: Final = 60.0

_LOCK_SECONDS: Final = 2.0
"""How long another process may hold the file; after that this one goes by what it knows."""
_POLL: Final = 0.001
_OLD: Final = 3600.0
"""Seconds after which a file says nothing any more: buckets are full again after one minute."""
_MOST_POOLS: Final = 64
_LARGEST: Final = 1 << 20
"""Bytes of a file that are read."""


@dataclass(frozen=True, slots=True)
class RateState:
    """How fast turns may be sent at the moment."""

    limit: int | None
    """Requests per minute; ``None`` as long as no answer said."""
    remaining: int | None
    """Requests that may be sent at once."""
    waiting: int
    """Turns of this process that wait to be sent."""
    seconds: float
    """How long the first of them waits yet, at least; 0 if nobody does."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a request."""

    usage: Usage | None = None
    """What its reply took; ``None`` where there is no reply, or it does not say."""
    said: Said = field(default_factory=dict)
    """The limits that the answer named."""
    refused: float | None = None
    """The seconds it was told to wait, where a limit refused it."""
    has_failed: bool = False
    """Whether there is no reply for another reason, which may pass."""


class _Place:
    """A place in a queue, held by a thread or by what runs in an event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._loop = loop
        self._thread_event = threading.Event()
        self._loop_event = asyncio.Event() if loop else None

    def clear(self) -> None:
        """Forget that it was woken."""
        self._thread_event.clear()
        if self._loop_event:
            self._loop_event.clear()

    def wake(self) -> None:
        """End its wait, from any thread."""
        self._thread_event.set()
        if self._loop and self._loop_event:
            with suppress(RuntimeError):  # the loop is closed, and so is what waited in it
                self._loop.call_soon_threadsafe(self._loop_event.set)

    def wait(self, seconds: float) -> None:
        """Block so long, or until it is woken."""
        self._thread_event.wait(min(seconds, LONGEST_HOLD))

    async def wait_in_loop(self, seconds: float) -> None:
        """Do what ``wait`` does without blocking the event loop."""
        assert self._loop_event is not None
        with suppress(TimeoutError):
            await asyncio.wait_for(self._loop_event.wait(), min(seconds, LONGEST_HOLD))


@dataclass(slots=True, eq=False)
class _Line:
    """What this process alone knows about one class of models."""

    places: deque[_Place] = field(default_factory=deque)
    looks_at: float = 0.0
    """When the first place looks again."""
    abandoned: list[Ticket] = field(default_factory=list)
    probes: bool = False
    """Whether one request goes ahead to see whether others may follow."""
    probe: Ticket | None = None
    troubles: int = 0
    """Requests refused or failed since the last reply; those that went out together count once."""
    refused_since: float | None = None
    failing_since: float | None = None
    input_share: float = 1.0
    """What counts of the input, compared with its estimate: reads from the cache do not."""
    output: float = _USUAL_REPLY

    def learn(self, ticket: Ticket, usage: Usage) -> None:
        """Expect of the next request what this one took."""
        counted = (usage.input_tokens or 0) + (usage.cache_write_tokens or 0)
        if ticket.estimate > 0:
            share = min(4.0, counted / ticket.estimate)
            self.input_share += _LEARNS * (share - self.input_share)
        if usage.output_tokens is not None:
            self.output += _LEARNS * (usage.output_tokens - self.output)


class RateLimiter:
    """Lets requests through at the pace that the answers allow.

    Each model has its own limits: which of them share theirs is not told. As long as no answer has
    named limits everything goes through at once. Who waits is let through in the order in which
    they came. Safe in any number of threads and event loops.

    Args:
        path: where the state is shared; ``None`` keeps it in this process.
        clock: seconds that all processes of the machine count alike.
    """

    def __init__(
        self, path: Path | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.path = path
        self._clock = clock
        self._token = secrets.token_hex(4)
        self._lock = threading.Lock()
        """Held for arithmetic only, never while a file is read or written."""
        self._sharing = threading.Lock()
        self._pools: defaultdict[str, Pool] = defaultdict(Pool)
        self._lines: defaultdict[str, _Line] = defaultdict(_Line)
        self._is_shared = path is not None and path.exists()
        self._last = ""

    @classmethod
    def of(cls, base_url: str, key: str) -> "RateLimiter":
        """Return the limiter of an address and a key; the same for all who ask in this process."""
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
        with _making:
            found = _known.get((base_url, digest))
            if found is None:
                found = cls(_shared_path(base_url, key))
                _known[base_url, digest] = found
            return found

    def state(self) -> RateState:
        """Return the pace of the model that was asked last; looks into no file."""
        with self._lock:
            waiting = sum(len(line.places) for line in self._lines.values())
            bucket = self._pools[self._last].buckets.get("requests")
            seconds = self._lines[self._last].looks_at - self._clock() if waiting else 0.0
            return RateState(
                limit=bucket.limit if bucket else None,
                remaining=max(0, int(bucket.level)) if bucket else None,
                waiting=waiting,
                seconds=max(0.0, seconds),
            )

    def admit(self, model: str, input_tokens: int, output_tokens: int) -> Ticket:
        """Wait until a request may be sent, and take what it is expected to take.

        Args:
            model: the model asked.
            input_tokens: of the request, estimated.
            output_tokens: the most that the reply may take.

        Returns:
            what ``settle`` or ``abandon`` is to be called with, in any case.
        """
        with self._queued(model, _Place()) as place:
            while True:
                place.clear()
                found = self.attempt(model, input_tokens, output_tokens, place)
                if isinstance(found, Ticket):
                    return found
                place.wait(found)

    async def aadmit(self, model: str, input_tokens: int, output_tokens: int) -> Ticket:
        """Do what ``admit`` does without blocking the event loop."""
        with self._queued(model, _Place(asyncio.get_running_loop())) as place:
            while True:
                place.clear()
                if not self._is_first(model, place):
                    found: Ticket | float = math.inf
                elif self._is_shared:
                    trying = asyncio.ensure_future(
                        asyncio.to_thread(self.attempt, model, input_tokens, output_tokens, place)
                    )
                    try:
                        found = await asyncio.shield(trying)
                    except asyncio.CancelledError:
                        # What the turn is given after its end goes to the next one.
                        trying.add_done_callback(lambda done: self._give_back(model, done))
                        raise
                else:
                    found = self.attempt(model, input_tokens, output_tokens, place)
                if isinstance(found, Ticket):
                    return found
                await place.wait_in_loop(found)

    def attempt(
        self, model: str, input_tokens: int, output_tokens: int, place: object = None
    ) -> Ticket | float:
        """Let a request through, or return the seconds to wait.

        Args:
            model: as of ``admit``.
            input_tokens: as of ``admit``.
            output_tokens: as of ``admit``.
            place: the first in the queue may go, and anybody who has none.
        """

        def work(pool: Pool, line: _Line, now: float) -> Ticket | float:
            if line.probes and line.probe is not None:
                return math.inf
            share, most = line.input_share, float(output_tokens)
            needs = amounts(input_tokens * share, min(line.output, most))
            found = pool.attempt(needs, now, self._owner, estimate=input_tokens)
            if isinstance(found, float):
                line.looks_at = now + found
            elif line.probes:
                line.probe = found
            return found

        self._last = model
        if place is not None and not self._is_first(model, place):
            return math.inf  # and nobody reads a file for it
        return self._change(model, work)

    def settle(
        self, model: str, ticket: Ticket, outcome: Outcome, *, patience: float = 0.0
    ) -> bool:
        """Correct what a request was expected to take, and say whether it is to be sent again.

        After a refusal by a limit nobody sends anything as long as the server asks; after a failure
        one request goes ahead after a pause.

        Args:
            model: the model asked.
            ticket: from ``admit``.
            outcome: what came of it.
            patience: seconds in which requests may fail, all of them, before it is over.
        """

        def work(pool: Pool, line: _Line, now: float) -> bool:
            used = _amounts_of(outcome.usage, ticket)
            is_refused = outcome.refused is not None
            pool.settle(
                ticket, now, self._owner, used=used, said=outcome.said, is_refused=is_refused
            )
            if line.probe is ticket:
                line.probe = None
            if is_refused or outcome.has_failed:
                return _endure(pool, line, now, outcome, patience)
            line.probes, line.troubles = False, 0
            line.refused_since = line.failing_since = None
            if outcome.usage is not None:
                line.learn(ticket, outcome.usage)
            return True

        self._share(outcome)
        goes_on = self._change(model, work)
        self._wake_first(model)
        return goes_on

    async def asettle(
        self, model: str, ticket: Ticket, outcome: Outcome, *, patience: float = 0.0
    ) -> bool:
        """Do what ``settle`` does without blocking the event loop."""
        self._share(outcome)
        if not self._is_shared:
            return self.settle(model, ticket, outcome, patience=patience)
        settling = asyncio.to_thread(self.settle, model, ticket, outcome, patience=patience)
        # Also where the turn ends meanwhile: nobody else has the ticket, and others wait for it.
        return await asyncio.shield(settling)

    def abandon(self, model: str, ticket: Ticket) -> None:
        """Note that nothing will be known of a request; at once, no file is read or written."""
        with self._lock:
            line = self._lines[model]
            line.abandoned.append(ticket)
            if line.probe is ticket:
                line.probe = None
        self._wake_first(model)

    def _give_back(self, model: str, done: "asyncio.Future[Ticket | float]") -> None:
        found = None if done.cancelled() or done.exception() else done.result()
        if isinstance(found, Ticket):
            self.abandon(model, found)

    @contextmanager
    def _queued(self, model: str, place: _Place) -> Iterator[_Place]:
        with self._lock:
            places = self._lines[model].places
            places.append(place)
        try:
            yield place
        finally:
            with self._lock:
                places.remove(place)
            self._wake_first(model)

    def _is_first(self, model: str, place: object) -> bool:
        with self._lock:
            places = self._lines[model].places
            return bool(places) and places[0] is place

    def _wake_first(self, model: str) -> None:
        with self._lock:
            places = self._lines[model].places
            first = places[0] if places else None
        if first is not None:
            first.wake()

    # What processes share

    @property
    def _owner(self) -> str:
        return f"{os.getpid()}-{self._token}"

    def _share(self, outcome: Outcome) -> None:
        """Use the file from now on, if there are limits to share."""
        if self.path is not None and any(outcome.said.values()):
            self._is_shared = True

    def _change(self, model: str, work: Callable[[Pool, _Line, float], R]) -> R:
        """Change one pool, in the file if there is one."""
        if not self._is_shared:
            return self._locked(model, work, None)
        with self._sharing, self._exclusive(self.path) as file:
            found = _read_pools(file) if file else None
            result = self._locked(model, work, found)
            if file and found:
                try:
                    _write_pools(file, found)
                except OSError:  # full
                    self._go_alone()
            return result

    def _locked(
        self, model: str, work: Callable[[Pool, _Line, float], R], found: dict[str, Any] | None
    ) -> R:
        """Change a pool as it was found in the file, else as this process knows it."""
        with self._lock:
            now = self._clock()
            shared = Pool.from_json(found.get(model)) if found else None
            if shared is not None:
                self._pools[model] = shared
            pool, line = self._pools[model], self._lines[model]
            for ticket in line.abandoned:
                pool.settle(ticket, now, self._owner)
            line.abandoned.clear()
            result = work(pool, line, now)
            if found is not None:
                found[model] = pool.to_json()
            return result

    @contextmanager
    def _exclusive(self, path: Path | None) -> Iterator[BinaryIO | None]:
        """Open the file, while no other process does; ``None`` where that is impossible."""
        if path is None:  # another thread found out meanwhile
            yield None
            return
        with ExitStack() as stack:
            file = None
            try:
                file = _open_locked(path, stack)
            except Timeout:
                pass  # somebody was stopped while holding the lock
            except OSError:
                self._go_alone()
            yield file

    def _go_alone(self) -> None:
        """Go by what this process knows from now on."""
        self._is_shared, self.path = False, None


_making = threading.Lock()
_known: weakref.WeakValueDictionary[tuple[str, bytes], RateLimiter] = weakref.WeakValueDictionary()


def _endure(pool: Pool, line: _Line, now: float, outcome: Outcome, patience: float) -> bool:
    """Hold a pool after trouble; return whether the request that met it is to be sent again."""
    is_refused = outcome.refused is not None
    if now >= pool.hold:
        line.troubles += 1
    if is_refused:
        line.refused_since = now if line.refused_since is None else line.refused_since
        pause = max(outcome.refused or 0.0, _FIRST_PAUSE * 2 ** min(10, line.troubles - 1))
        is_over = now - line.refused_since > GIVES_UP_AFTER or pause > LONGEST_HOLD
    else:
        line.failing_since = now if line.failing_since is None else line.failing_since
        pause = min(_LONGEST_PAUSE, 2.0 ** min(10, line.troubles - 1))
        is_over = now - line.failing_since >= patience
    if is_over:
        return False
    if is_refused or now >= pool.hold:
        pool.wait_until(now + pause)
    # Where the limits are known the buckets set the pace.
    line.probes = line.probes or not is_refused or not pool.buckets
    return True


def _amounts_of(usage: Usage | None, ticket: Ticket) -> dict[str, float] | None:
    if usage is None or (usage.input_tokens is None and usage.output_tokens is None):
        return None
    counted = (usage.input_tokens or 0) + (usage.cache_write_tokens or 0)
    written = usage.output_tokens
    return amounts(counted, ticket.needs["output-tokens"] if written is None else written)


def _shared_path(base_url: str, key: str) -> Path | None:
    """Return where the state of an address and a key is shared, if the user has such a place."""
    try:
        folder, secret = user_folder(), user_key()
    except (OSError, RuntimeError):
        return None
    named = json.dumps([base_url, key]).encode()
    name = hmac.new(secret, b"limits\0" + named, "sha256").hexdigest()[:32]
    return folder / "limits" / f"{name}.json"


def _open_locked(path: Path, stack: ExitStack) -> BinaryIO:
    """Open a file for as long as ``stack`` lasts, and lock it.

    Raises:
        Timeout, OSError: that is impossible.
    """
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    if not path.exists():
        path.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
        _drop_old(path.parent)
    lock = FileLock(path.with_name("limits.lock"), mode=0o600)
    stack.enter_context(lock.acquire(_LOCK_SECONDS, poll_interval=_POLL))
    return stack.enter_context(os.fdopen(os.open(path, flags, 0o600), "r+b", buffering=0))


def _read_pools(file: BinaryIO) -> dict[str, Any]:
    """Return the pools of a file, by model; empty if it is not one that was written here."""
    content = json_or_none(file.read(_LARGEST))
    pools = content.get("pools") if isinstance(content, dict) else None
    if not isinstance(pools, dict) or content.get("version") != 1:
        return {}
    return {name: pool for name, pool in pools.items() if Pool.from_json(pool) is not None}


def _write_pools(file: BinaryIO, pools: Mapping[str, Any]) -> None:
    """Write the pools where they were.

    Neither synced nor moved into place, which takes a hundred times as long on common file systems:
    half a file is no JSON, which says as little as no file, and the next answer names the limits.
    """
    kept = dict(sorted(pools.items(), key=lambda pool: -pool[1]["at"])[:_MOST_POOLS])
    content = json.dumps({"version": 1, "pools": kept}).encode()
    before = file.seek(0, os.SEEK_END)
    file.seek(0)
    # In one call, over all that was there.
    file.write(content.ljust(before if before <= _LARGEST else 0))
    if before > _LARGEST:
        file.truncate()


def _drop_old(folder: Path) -> None:
    for path in folder.glob("*.json"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _OLD:
                path.unlink()
