"""Rate limits as arithmetic: token buckets, and what the headers of an answer say about them.

The API counts requests, input tokens that the prompt cache had no part in, and output tokens, each
in a bucket that holds a minute's worth and refills continuously. What is here has no clock, no file
and no lock; ``limits`` has.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

LONGEST_HOLD: Final = 900.0
"""Seconds. A limit is per minute: a server that asks for more speaks of something else."""

_MINUTE: Final = 60.0
_ROUNDING: Final = 1e-6
"""Seconds that are no wait: who waited as long as was said may find that little missing."""
_KINDS: Final = ("requests", "input-tokens", "output-tokens")
_NOTHING: Final = dict.fromkeys(_KINDS, 0.0)
_MOST_REQUESTS: Final = 10**6
_MOST_TOKENS: Final = 10**11
"""Per minute; servers without limits name such numbers, which nobody can reach."""
_SHORTEST_BURST: Final = 1.0
"""Seconds' worth that may go out at once after the worst of refusals."""
_BURST_DOUBLES: Final = 30.0
"""Seconds without such a refusal after which twice as much may."""
_FORGOTTEN: Final = 1800.0
"""Seconds after which what a process has under way is no more believed: it was killed."""
_ROUNDED: Final = 1000
"""The API rounds the tokens that remain to this."""

Amounts = Mapping[str, float]
"""How much of each kind: ``requests``, ``input-tokens``, ``output-tokens``."""
Limits = Mapping[str, tuple[int, int]]
"""What an answer names, by kind: the limit per minute and what remains."""


def amounts(input_tokens: float, output_tokens: float) -> dict[str, float]:
    """Return what one request takes of each kind."""
    return dict(zip(_KINDS, (1.0, input_tokens, output_tokens), strict=True))


@dataclass(slots=True)
class Bucket:
    """Holds at most ``limit``, and refills at ``limit`` per minute."""

    limit: int
    level: float
    """Below zero after a reply that was longer than expected."""
    peak: float = 0.0
    """The most that the server said was left: it may hold less than a minute's worth."""

    def capacity(self, burst: float) -> float:
        """Return what it holds, at least one request."""
        return min(float(self.limit), max(1.0, self.limit * burst / _MINUTE))

    def seconds_until(self, amount: float, burst: float) -> float:
        """Return how long until ``amount`` may be taken."""
        # Up to a second's worth always stays in the bucket: requests do not arrive in the rhythm in
        # which they were sent, and one that comes too early would be refused. What is larger than
        # the bucket is taken from a full one.
        spare = min(max(1.0, self.limit / _MINUTE), self.peak / 4)
        target = min(amount + spare, self.capacity(burst))
        return max(0.0, target - self.level) * _MINUTE / self.limit

    def take(self, amount: float) -> None:
        """Take ``amount``; a negative one is given back."""
        # No debt beyond a minute: an answer that claims to have taken a million must not block.
        self.level = min(float(self.limit), max(-float(self.limit), self.level - amount))


@dataclass(frozen=True, slots=True)
class Ticket:
    """One request that was let through."""

    estimate: float
    """The tokens of the request, whatever counts of them."""
    needs: Amounts
    """What it was expected to take."""
    answered: Amounts
    """What all requests before it had taken whose answers were there."""


@dataclass(slots=True)
class Pool:
    """The buckets of one class of models, and what is under way.

    All methods take ``now``, seconds of a clock that all processes of the machine share. Where it
    goes back nothing is gained.
    """

    at: float = 0.0
    buckets: dict[str, Bucket] = field(default_factory=dict)
    """Empty until an answer named the limits."""
    hold: float = 0.0
    """Nothing goes out before this."""
    burst: float = _MINUTE
    """Seconds' worth that a bucket holds. Less after a refusal that the limits do not explain: the
    API may enforce 60 a minute as one a second, and refuses steep rises."""
    burst_at: float = 0.0
    taken: dict[str, float] = field(default_factory=lambda: dict(_NOTHING))
    flying: dict[str, tuple[float, dict[str, float]]] = field(default_factory=dict)
    """By process: when it last changed, and what its requests without an answer are to take."""

    def attempt(
        self, needs: Amounts, now: float, owner: str, *, estimate: float = 0.0
    ) -> Ticket | float:
        """Let a request through, or return the seconds until it may be tried again, above 0."""
        self._refill(now)
        burst = self._burst(now)
        waits = [bucket.seconds_until(needs[kind], burst) for kind, bucket in self.buckets.items()]
        wait = max(self.hold - now, *waits, 0.0)
        if wait > _ROUNDING:
            return wait
        counts = [count for _, count in self.flying.values()]
        flying = {kind: sum(count[kind] for count in counts) for kind in _KINDS}
        answered = {kind: self.taken[kind] - flying[kind] for kind in _KINDS}
        ticket = Ticket(estimate, needs, answered)
        for kind, bucket in self.buckets.items():
            bucket.take(needs[kind])
        for kind in _KINDS:
            self.taken[kind] += needs[kind]
        self._fly(owner, now, needs, 1)
        return ticket

    def settle(
        self,
        ticket: Ticket,
        now: float,
        owner: str,
        *,
        used: Amounts | None = None,
        limits: Limits | None = None,
        is_refused: bool = False,
    ) -> None:
        """Correct what a request was expected to take.

        Args:
            ticket: the request.
            now: the time.
            owner: the process that sent it.
            used: what it took; as expected if ``None``.
            limits: those that its answer named.
            is_refused: whether a limit kept it from being answered, so that it took nothing.
        """
        self._refill(now)
        self._fly(owner, now, ticket.needs, -1)
        took = _NOTHING if is_refused else used or ticket.needs
        for kind, bucket in self.buckets.items():
            bucket.take(took[kind] - ticket.needs[kind])
        for kind in _KINDS:
            self.taken[kind] += took[kind] - ticket.needs[kind]
        for kind, (limit, remaining) in (limits or {}).items():
            # The API may have looked when the request came in or when the answer left, and may have
            # counted what was sent meanwhile or not: what is left lies between all of it and
            # nothing of it. A level of ours in between is better than either.
            is_rounded = remaining and kind != "requests" and not remaining % _ROUNDED
            inexact = _ROUNDED / 2 if is_rounded else 0
            uncounted = max(0.0, self.taken[kind] - ticket.answered[kind] - took[kind])
            low = remaining - uncounted - inexact
            bucket = self.buckets.setdefault(kind, Bucket(limit, low))
            bucket.limit, bucket.peak = limit, min(float(limit), max(bucket.peak, remaining))
            bucket.take(bucket.level - min(remaining + inexact, max(low, bucket.level)))
        is_enough = all(left >= ticket.needs[kind] for kind, (_, left) in (limits or {}).items())
        if limits and is_refused and is_enough:
            self.burst, self.burst_at = max(_SHORTEST_BURST, self._burst(now) / 4), now
            self._refill(now)

    def _refill(self, now: float) -> None:
        before, burst = self.at, self._burst(now)
        seconds = max(0.0, now - before)
        for bucket in self.buckets.values():
            level = bucket.level + seconds * bucket.limit / _MINUTE
            bucket.level = min(bucket.capacity(burst), level)
        self.at = now
        if now < before:  # the clock began anew
            self.hold = 0.0

    def _burst(self, now: float) -> float:
        passed = max(0.0, now - self.burst_at)
        return min(_MINUTE, self.burst * 2 ** min(10.0, passed / _BURST_DOUBLES))

    def _fly(self, owner: str, now: float, needs: Amounts, sign: int) -> None:
        _, before = self.flying.get(owner, (now, {}))
        after = {kind: before.get(kind, 0.0) + sign * needs[kind] for kind in _KINDS}
        for name, (at, _) in list(self.flying.items()):
            if not 0 <= now - at <= _FORGOTTEN:
                del self.flying[name]
        if after["requests"] > 0.5:
            self.flying[owner] = now, after
        else:
            self.flying.pop(owner, None)

    def to_json(self) -> dict[str, Any]:
        """Return the pool as JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Any) -> "Pool":
        """Return the pool that ``to_json`` wrote."""
        buckets = {kind: Bucket(**bucket) for kind, bucket in value["buckets"].items()}
        return cls(**{**value, "buckets": buckets})


def read_limits(headers: Mapping[str, str]) -> Limits:
    """Return the limits in the ``anthropic-ratelimit-*`` headers; what is no number is left out.

    Args:
        headers: response headers, names in lower case.
    """
    # When a bucket will be full again, reset, follows from the rest, and so does the sum of tokens:
    # they are not read.
    limits: dict[str, tuple[int, int]] = {}
    for kind in _KINDS:
        names = f"anthropic-ratelimit-{kind}-limit", f"anthropic-ratelimit-{kind}-remaining"
        texts = [headers.get(name, "").strip() for name in names]
        if all(re.fullmatch(r"[0-9]{1,15}", text, re.ASCII) for text in texts):
            limit, remaining = map(int, texts)
            if 0 < limit < (_MOST_REQUESTS if kind == "requests" else _MOST_TOKENS):
                limits[kind] = limit, min(limit, remaining)
    return limits
