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
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

from filelock import FileLock, Timeout

from pytest_regen.cache import user_folder, user_key
from pytest_regen.strict_json import json_or_none
from pytest_regen.turns.buckets import LONGEST_HOLD, Limits, Pool, Ticket, amounts
from pytest_regen.turns.values import Usage

GIVES_UP_AFTER: Final = 3600.0
"""Seconds in which every request was refused by a limit, after which a turn fails."""

_USUAL_REPLY: Final = 1_000.0
"""Tokens that a reply is expected to take before any was seen."""
_LEARNS: Final = 0.2
"""How much the last reply counts in what the next one is expected to take."""
_FIRST_PAUSE: Final = 0.02
"""Seconds after a refusal, doubled each time, where the server asks for less."""
_LONGEST_PAUSE: Final = 60.0

_LONGEST_SLEEP: Final = 0.1
"""Seconds between two looks of the first who waits: what others settle may let it go earlier."""

_LOCK_SECONDS: Final = 2.0
"""How long another process may hold the file; after that this one goes by what it knows."""
_POLL: Final = 0.001
_VERSION: Final = 2


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
    """What its reply took; ``None`` where there is none, for a reason that may pass."""
    limits: Limits = field(default_factory=dict)
    """Those that the answer named."""
    refused: float | None = None
    """The seconds it was told to wait, where a limit refused it."""


@dataclass(slots=True, eq=False)
class _Line:
    """What this process alone knows about one class of models."""

    gates: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock]" = field(
        default_factory=weakref.WeakKeyDictionary
    )
    """Held by the first who waits in each event loop; the others queue for it."""
    waiting: int = 0
    looks_at: float = 0.0
    """When the first may go, as far as it knows."""
    abandoned: list[Ticket] = field(default_factory=list)
    probes: bool = False
    """Whether one request goes ahead to see whether others may follow."""
    probe: Ticket | None = None
    troubles: int = 0
    """Requests refused or failed since the last reply; those that went out together count once."""
    since: float | None = None
    """When the first of them was."""
    input_share: float = 1.0
    """What counts of the input, compared with its estimate: reads from the cache do not."""
    output: float = _USUAL_REPLY

    def learn(self, ticket: Ticket, usage: Usage) -> None:
        """Expect of the next request what this one took."""
        if ticket.estimate > 0:
            share = min(4.0, _counted_input(usage) / ticket.estimate)
            self.input_share += _LEARNS * (share - self.input_share)
        if usage.output_tokens is not None:
            self.output += _LEARNS * (usage.output_tokens - self.output)

    def endure(self, pool: Pool, now: float, outcome: Outcome, patience: float) -> bool:
        """Hold a pool after trouble; return whether the request is to be sent again."""
        self.troubles += now >= pool.hold
        self.since = now if self.since is None else self.since
        grown = 2.0 ** min(10, self.troubles - 1)
        if outcome.refused is not None:
            pause = max(outcome.refused, _FIRST_PAUSE * grown)
            is_over = now - self.since > GIVES_UP_AFTER or pause > LONGEST_HOLD
        else:
            pause = min(_LONGEST_PAUSE, grown)
            is_over = now - self.since >= patience
        if is_over:
            return False
        if outcome.refused is not None or now >= pool.hold:
            pool.hold = max(pool.hold, now + pause)
        # Where the limits are known the buckets set the pace.
        self.probes = self.probes or outcome.refused is None or not pool.buckets
        return True


def _counted_input(usage: Usage) -> int:
    return (usage.input_tokens or 0) + (usage.cache_write_tokens or 0)


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
        identity = json.dumps([base_url, key]).encode()
        digest = hashlib.sha256(identity).digest()
        with _making:
            limiter = _limiters.get(digest)
            if limiter is None:
                path = None
                with suppress(OSError, RuntimeError):  # The user has no such place.
                    # A hash with the user's secret, because one of the key alone can be guessed.
                    name = hmac.new(user_key(), b"limits\0" + identity, "sha256").hexdigest()[:32]
                    path = user_folder() / "limits" / f"{name}.json"
                limiter = _limiters[digest] = cls(path)
            return limiter

    def state(self) -> RateState:
        """Return the pace of the model that was asked last; looks into no file."""
        with self._lock:
            waiting = sum(line.waiting for line in self._lines.values())
            bucket = self._pools[self._last].buckets.get("requests")
            seconds = self._lines[self._last].looks_at - self._clock() if waiting else 0.0
            return RateState(
                limit=bucket.limit if bucket else None,
                remaining=max(0, int(bucket.level)) if bucket else None,
                waiting=waiting,
                seconds=max(0.0, seconds),
            )

    async def admit(self, model: str, input_tokens: int, output_tokens: int) -> Ticket:
        """Wait until a request may be sent, and take what it is expected to take.

        Args:
            model: the model asked.
            input_tokens: of the request, estimated.
            output_tokens: the most that the reply may take.

        Returns:
            what ``asettle`` or ``abandon`` is to be called with, in any case.
        """
        arguments = model, input_tokens, output_tokens
        with self._lock:
            line = self._lines[model]
            gate = line.gates.setdefault(asyncio.get_running_loop(), asyncio.Lock())
            line.waiting += 1
        try:
            # Who is first alone looks whether it may go, because the others come after it anyway.
            async with gate:
                while True:
                    answer = await self._attempted(*arguments)
                    if isinstance(answer, Ticket):
                        return answer
                    await asyncio.sleep(min(answer, _LONGEST_SLEEP))
        finally:
            with self._lock:
                line.waiting -= 1

    async def _attempted(self, model: str, input_tokens: int, output_tokens: int) -> Ticket | float:
        """Do what ``attempt`` does in a thread, because a file may be read for it."""
        thread = asyncio.to_thread(self.attempt, model, input_tokens, output_tokens)
        attempt = asyncio.ensure_future(thread)

        def give_back(_: object) -> None:
            # What the turn is given after its end goes to the next one.
            if isinstance(answer := attempt.result(), Ticket):
                self.abandon(model, answer)

        try:
            return await asyncio.shield(attempt)
        except asyncio.CancelledError:
            attempt.add_done_callback(give_back)
            raise

    def attempt(self, model: str, input_tokens: int, output_tokens: int) -> Ticket | float:
        """Let a request through, or return the seconds to wait; arguments as of ``admit``."""
        self._last = model
        with self._pool(model) as (pool, line, now):
            if line.probes and line.probe is not None:
                return math.inf
            expected = min(line.output, float(output_tokens))
            needs = amounts(input_tokens * line.input_share, expected)
            answer = pool.attempt(needs, now, self._owner, estimate=input_tokens)
            if isinstance(answer, float):
                line.looks_at = now + answer
            elif line.probes:
                line.probe = answer
            return answer

    def settle(self, model: str, ticket: Ticket, outcome: Outcome, patience: float = 0.0) -> bool:
        """Correct what a request was expected to take, and say whether it is to be sent again.

        After a refusal by a limit nobody sends anything as long as the server asks; after a failure
        one request goes ahead after a pause.

        Args:
            model: the model asked.
            ticket: from ``admit``.
            outcome: what came of it.
            patience: seconds in which requests may fail, all of them, before it is over.
        """
        if self.path is not None and outcome.limits:
            self._is_shared = True  # There are limits to share.
        usage, used = outcome.usage, None
        if usage is not None and (usage.input_tokens, usage.output_tokens) != (None, None):
            written = usage.output_tokens
            expected = ticket.needs["output-tokens"]
            used = amounts(_counted_input(usage), expected if written is None else written)
        is_refused, goes_on = outcome.refused is not None, True
        with self._pool(model) as (pool, line, now):
            pool.settle(
                ticket, now, self._owner, used=used, limits=outcome.limits, is_refused=is_refused
            )
            if line.probe is ticket:
                line.probe = None
            if is_refused or usage is None:
                goes_on = line.endure(pool, now, outcome, patience)
            else:
                line.probes, line.troubles, line.since = False, 0, None
                line.learn(ticket, usage)
        return goes_on

    async def asettle(
        self, model: str, ticket: Ticket, outcome: Outcome, patience: float = 0.0
    ) -> bool:
        """Do what ``settle`` does without blocking the event loop."""
        settling = asyncio.to_thread(self.settle, model, ticket, outcome, patience)
        # Also where the turn ends meanwhile: nobody else has the ticket, and others wait for it.
        return await asyncio.shield(settling)

    def abandon(self, model: str, ticket: Ticket) -> None:
        """Note that nothing will be known of a request; at once, no file is read or written."""
        with self._lock:
            line = self._lines[model]
            line.abandoned.append(ticket)
            if line.probe is ticket:
                line.probe = None

    # What processes share

    @property
    def _owner(self) -> str:
        return f"{os.getpid()}-{self._token}"

    @contextmanager
    def _pool(self, model: str) -> Iterator[tuple[Pool, _Line, float]]:
        """Change one pool, in the file if there is one."""
        with ExitStack() as stack:
            file = self._locked_file(stack) if self._is_shared else None
            pools = _read_pools(file) if file else {}
            with self._lock:
                now = self._clock()
                if model in pools:
                    self._pools[model] = Pool.from_json(pools[model])
                pool, line = self._pools[model], self._lines[model]
                for ticket in line.abandoned:
                    pool.settle(ticket, now, self._owner)
                line.abandoned.clear()
                yield pool, line, now
                pools[model] = pool.to_json() if file else {}
            if file:
                # Neither synced nor moved into place, which takes a hundred times as long on common
                # file systems: half a file says as little as no file, and the next answer names the
                # limits. In one call, over all that was there.
                content = {"version": _VERSION, "digest": _digest(pools), "pools": pools}
                try:
                    size = file.seek(0, os.SEEK_END)
                    file.seek(0)
                    file.write(json.dumps(content).encode().ljust(size))
                except OSError:  # full
                    self._go_alone()

    def _locked_file(self, stack: ExitStack) -> BinaryIO | None:
        """Return the file, locked as long as ``stack`` lasts; ``None`` where that is impossible."""
        stack.enter_context(self._sharing)
        path = self.path
        if path is None:  # Another thread found out meanwhile.
            return None
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        try:
            if not path.exists():
                path.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
            lock = FileLock(path.with_name("limits.lock"), mode=0o600)
            stack.enter_context(lock.acquire(_LOCK_SECONDS, poll_interval=_POLL))
            return stack.enter_context(os.fdopen(os.open(path, flags, 0o600), "r+b", buffering=0))
        except Timeout:
            return None  # somebody was stopped while holding the lock
        except OSError:
            self._go_alone()
            return None

    def _go_alone(self) -> None:
        """Go by what this process knows from now on."""
        self._is_shared, self.path = False, None


_making = threading.Lock()
_limiters: weakref.WeakValueDictionary[bytes, RateLimiter] = weakref.WeakValueDictionary()


def _read_pools(file: BinaryIO) -> dict[str, Any]:
    """Return the pools of a file, by model; empty if it is not one that was written here."""
    content = json_or_none(file.read())
    if not isinstance(content, dict) or content.get("version") != _VERSION:
        return {}
    pools: dict[str, Any] = content.get("pools", {})
    # By a digest of the whole, because half a file, or one that was edited, may say anything.
    return pools if content.get("digest") == _digest(pools) else {}


def _digest(pools: object) -> str:
    return hashlib.sha256(json.dumps(pools, sort_keys=True).encode()).hexdigest()
