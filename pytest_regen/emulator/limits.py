"""The clock, and rate limits as token buckets per class of model, with their headers."""

import math
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Literal

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
            return self._now()

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

    def _now(self) -> float:
        return time.time() + self._offset if self._frozen is None else self._frozen


_MINUTE = 60.0

_PoolName = Literal["count_tokens", "batches"]
"""Pools that are not per class of models."""


@dataclass(frozen=True, slots=True)
class RateLimits:
    """What an organization may use per minute; the defaults are those of the Start tier."""

    requests: int = 1_000
    input_tokens: int = 2_000_000
    """Reads from the prompt cache do not count."""
    output_tokens: int = 400_000
    count_requests: int = 2_000
    """For ``count_tokens``, which has a pool of its own."""
    batch_requests: int = 1_000
    """For all calls about batches, which have a pool of their own."""
    batch_queue: int = 200_000
    """How many requests of batches may wait at any time."""
    burst: float = 60.0
    """Seconds' worth of a limit that may be used at once. The real API may enforce 60 requests a
    minute as one a second: that is ``burst=1``."""

    def __post_init__(self) -> None:
        """Check the limits.

        Raises:
            UsageError: one of them is below 1, or the burst is not above 0.
        """
        if not 0 < self.burst <= _MINUTE:
            raise UsageError(
                f"the rate limit burst is {self.burst}",
                why="it is how many seconds' worth of a minute's limit may be used at once",
                hint="pass more than 0, and at most 60",
            )
        for field in fields(self):
            if field.name != "burst" and getattr(self, field.name) < 1:
                raise UsageError(
                    f"the rate limit {field.name} is {getattr(self, field.name)}",
                    why="a bucket that never fills lets nothing through",
                    hint="pass 1 or more, or limits=None for none at all",
                )


UNLIMITED = RateLimits(10**9, 10**12, 10**12, 10**9, 10**9, 10**9)


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
        with self._lock:
            pool = self._pool(_class_of(model))
            needs = {"requests": 1, "input-tokens": input_tokens, "output-tokens": 1}
            for kind, amount in needs.items():
                self._require(pool, kind, amount, model)
            pool["requests"].level -= 1
            pool["input-tokens"].level -= input_tokens

    def admit_other(self, name: _PoolName) -> None:
        """Take one request that no model answers.

        Raises:
            ApiError: 429 with ``retry-after``.
        """
        with self._lock:
            pool = self._pool(name)
            self._require(pool, "requests", 1, None)
            pool["requests"].level -= 1

    def admit_queued(self, waiting: int) -> None:
        """Admit requests of batches to the queue.

        Raises:
            ApiError: 429, too many are waiting.
        """
        if waiting > self._limits.batch_queue:
            raise ApiError(
                "This batch would exceed the rate limit for your organization of "
                f"{self._limits.batch_queue:,} batch requests in the processing queue.",
                status=429,
            )

    def spend(self, model: Model, output_tokens: int) -> None:
        """Take the output of a reply, unknown before; the bucket may fall below zero."""
        with self._lock:
            self._pool(_class_of(model))["output-tokens"].level -= output_tokens

    def headers(self, model: Model) -> Mapping[str, str]:
        """Return the ``anthropic-ratelimit-*`` headers for one model."""
        with self._lock:
            pool = self._pool(_class_of(model))
            shown = {kind: self._bucket_state(pool[kind]) for kind in pool}
            both = (pool["input-tokens"], pool["output-tokens"])
            shown["tokens"] = (
                sum(bucket.limit for bucket in both),
                sum(bucket.remaining for bucket in both),
                max(bucket.at + bucket.seconds_until(bucket.capacity) for bucket in both),
            )
        return {
            f"anthropic-ratelimit-{kind}-{name}": text
            for kind, (limit, remaining, reset) in sorted(shown.items())
            for name, text in (
                ("limit", str(limit)),
                ("remaining", str(remaining)),
                ("reset", timestamp(reset)),
            )
        }

    def _pool(self, name: str) -> dict[str, _Bucket]:
        now = self._clock.now()
        if name not in self._pools:
            limits = self._limits
            others = {"count_tokens": limits.count_requests, "batches": limits.batch_requests}
            self._pools[name] = {
                "requests": _Bucket(others.get(name, limits.requests), limits.burst, now),
                "input-tokens": _Bucket(limits.input_tokens, limits.burst, now),
                "output-tokens": _Bucket(limits.output_tokens, limits.burst, now),
            }
        pool = self._pools[name]
        for bucket in pool.values():
            bucket.refill(now)
        return pool

    def _require(
        self, pool: Mapping[str, _Bucket], kind: str, amount: int, model: Model | None
    ) -> None:
        wait = pool[kind].seconds_until(amount)
        if wait <= 0:
            return
        subject = f" (model: {model.id})" if model else ""
        raise ApiError(
            "This request would exceed the rate limit for your organization of "
            f"{pool[kind].limit:,} {kind.replace('-', ' ')} per minute{subject}.",
            status=429,
            headers={"retry-after": str(max(1, math.ceil(wait)))},
        )

    def _bucket_state(self, bucket: _Bucket) -> tuple[int, int, float]:
        return bucket.limit, bucket.remaining, bucket.at + bucket.seconds_until(bucket.capacity)


def timestamp(seconds: float) -> str:
    """Return an instant as RFC 3339 in UTC, to the second."""
    return datetime.fromtimestamp(int(seconds), UTC).isoformat().replace("+00:00", "Z")


def _class_of(model: Model) -> str:
    """Return the class whose models share limits: one line of models in one major version."""
    return f"{model.line}-{model.version[0]}"
