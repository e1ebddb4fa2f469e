"""The clock, and rate limits as token buckets per class of model, with their headers."""

import math
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime

from pytest_regen.emulator.values import ApiError
from pytest_regen.errors import UsageError
from pytest_regen.turns.models import Model


class Clock:
    """Seconds since the epoch; follows the system's clock until it is set.

    Args:
        at: if given, time stands still there until it is moved.
    """

    def __init__(self, at: float | None = None) -> None:
        self._lock = threading.Lock()
        self._frozen = at
        self._offset = 0.0

    def now(self) -> float:
        """Return the seconds since the epoch."""
        with self._lock:
            return time.time() + self._offset if self._frozen is None else self._frozen

    def set(self, at: float) -> None:
        """Stop the clock at ``at`` seconds since the epoch."""
        with self._lock:
            self._frozen = at

    def advance(self, seconds: float) -> None:
        """Move the clock forward; it keeps running if it ran."""
        with self._lock:
            if self._frozen is None:
                self._offset += seconds
            else:
                self._frozen += seconds


_MINUTE = 60.0
_BATCHES = "batches"


@dataclass(frozen=True, slots=True)
class RateLimits:
    """What an organization may use per minute; the defaults are those of the Start tier."""

    requests: int = 1_000
    input_tokens: int = 2_000_000
    """Reads from the prompt cache do not count."""
    output_tokens: int = 400_000
    batch_requests: int = 1_000
    """For all calls about batches, which have a pool of their own."""
    burst: float = 60.0
    """Seconds' worth of a limit that may be used at once. The real API may enforce 60 requests a
    minute as one a second: that is ``burst=1``."""

    def __post_init__(self) -> None:
        """Check the limits.

        Raises:
            UsageError: one of them is below 1, or the burst is not above 0.
        """
        for field in fields(self):
            limit = getattr(self, field.name)
            lowest, most = (0, _MINUTE) if field.name == "burst" else (1, math.inf)
            if not lowest <= limit <= most or limit == 0:
                raise UsageError(
                    f"the rate limit {field.name} is {limit}",
                    why="a bucket that never fills lets nothing through, and none holds more than "
                    "a minute's worth",
                    hint="pass 1 or more, for burst up to 60 seconds, or limits=None for none",
                )


UNLIMITED = RateLimits(10**9, 10**12, 10**12, 10**9)


class _Bucket:
    """Refills at ``limit`` per minute, and holds ``burst`` seconds' worth, at least 1."""

    def __init__(self, limit: int, burst: float, now: float) -> None:
        self.limit = limit
        self.capacity = max(1.0, limit * burst / _MINUTE)
        self.level = self.capacity
        self.at = now

    def refill(self, now: float) -> None:
        gained = max(0.0, now - self.at) * self.limit / _MINUTE
        self.level, self.at = min(self.capacity, self.level + gained), now

    def seconds_until(self, amount: float) -> float:
        """Return how long until ``amount`` is available; 0 if it is."""
        return max(0.0, amount - self.level) * _MINUTE / self.limit

    @property
    def remaining(self) -> int:
        return max(0, int(self.level))

    @property
    def full_at(self) -> float:
        return self.at + self.seconds_until(self.capacity)


class Limiter:
    """Grants requests and tokens. Safe in several threads."""

    def __init__(self, limits: RateLimits | None, clock: Clock) -> None:
        self._limits = limits or UNLIMITED
        self._clock = clock
        self._lock = threading.Lock()
        self._pools: dict[str, dict[str, _Bucket]] = {}

    def admit(self, model: Model, input_tokens: int) -> None:
        """Take one request and its uncached input.

        Raises:
            ApiError: 429 with ``retry-after``, and nothing is taken.
        """
        # What the output will be nobody knows yet, so it is enough that its bucket is not empty.
        amounts = {"requests": 1, "input-tokens": input_tokens, "output-tokens": 0}
        self._take(_class_of(model), amounts, f" (model: {model.id})")

    def admit_batches(self) -> None:
        """Take one call about batches, which have a pool of their own.

        Raises:
            ApiError: 429 with ``retry-after``.
        """
        self._take(_BATCHES, {"requests": 1}, "")

    def _take(self, name: str, amounts: Mapping[str, int], subject: str) -> None:
        with self._lock:
            pool = self._pool(name)
            # All are looked at before any is taken, because a refusal costs nothing.
            for kind, amount in amounts.items():
                wait = pool[kind].seconds_until(max(1, amount))
                if wait > 0:
                    raise ApiError(
                        "This request would exceed the rate limit for your organization of "
                        f"{pool[kind].limit:,} {kind.replace('-', ' ')} per minute{subject}.",
                        status=429,
                        headers={"retry-after": str(max(1, math.ceil(wait)))},
                    )
            for kind, amount in amounts.items():
                pool[kind].level -= amount

    def spend(self, model: Model, output_tokens: int) -> None:
        """Take the output of a reply, unknown before; the bucket may fall below zero."""
        with self._lock:
            self._pool(_class_of(model))["output-tokens"].level -= output_tokens

    def headers(self, model: Model) -> Mapping[str, str]:
        """Return the ``anthropic-ratelimit-*`` headers for one model."""
        with self._lock:
            pool = self._pool(_class_of(model))
            report = {kind: (b.limit, b.remaining, b.full_at) for kind, b in pool.items()}
            both = (pool["input-tokens"], pool["output-tokens"])
            report["tokens"] = (
                sum(bucket.limit for bucket in both),
                sum(bucket.remaining for bucket in both),
                max(bucket.full_at for bucket in both),
            )
        return {
            f"anthropic-ratelimit-{kind}-{name}": text
            for kind, (limit, remaining, reset) in sorted(report.items())
            for name, text in (
                ("limit", str(limit)),
                ("remaining", str(remaining)),
                ("reset", str(timestamp(reset))),
            )
        }

    def _pool(self, name: str) -> dict[str, _Bucket]:
        now = self._clock.now()
        if name not in self._pools:
            limits = self._limits
            sizes = {
                "requests": limits.batch_requests if name == _BATCHES else limits.requests,
                "input-tokens": limits.input_tokens,
                "output-tokens": limits.output_tokens,
            }
            self._pools[name] = {k: _Bucket(v, limits.burst, now) for k, v in sizes.items()}
        # By the clock when they are asked, because nothing runs in the background.
        pool = self._pools[name]
        for bucket in pool.values():
            bucket.refill(now)
        return pool


def timestamp(seconds: float | None) -> str | None:
    """Return an instant as RFC 3339 in UTC, to the second; ``None`` of one that never was."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(int(seconds), UTC).isoformat().replace("+00:00", "Z")


def _class_of(model: Model) -> str:
    """Return the class whose models share limits: one line of models in one major version."""
    return f"{model.line}-{model.version[0]}"
