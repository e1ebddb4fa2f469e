"""The clock, and rate limits as token buckets per class of model, with their headers."""

import math
import threading
import time
from collections.abc import Mapping
from dataclasses import astuple, dataclass
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
        self._frozen = at
        # Beside it, because a clock that runs goes on running when it is moved.
        self._offset = 0.0

    def now(self) -> float:
        """Return the seconds since the epoch."""
        return (time.time() if self._frozen is None else self._frozen) + self._offset

    def set(self, at: float) -> None:
        """Stop the clock at ``at`` seconds since the epoch."""
        self._frozen, self._offset = at, 0.0

    def advance(self, seconds: float) -> None:
        """Move the clock forward; it keeps running if it ran."""
        self._offset += seconds


_MINUTE = 60.0


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
            UsageError: one of them is not above 0.
        """
        if min(astuple(self)) <= 0:
            raise UsageError(
                f"{self} has a limit that is not above 0",
                why="a bucket that never fills lets nothing through",
                hint="pass more, or limits=None for none",
            )


_UNLIMITED = RateLimits(10**9, 10**12, 10**12, 10**9)


class _Bucket:
    """Refills at ``limit`` per minute, and holds ``burst`` seconds' worth, at least 1."""

    def __init__(self, limit: int, burst: float, now: float) -> None:
        self.limit = limit
        self.capacity = self.level = max(1.0, limit * burst / _MINUTE)
        self.at = now

    def seconds_until(self, amount: float) -> float:
        """Return how long until ``amount`` is available; 0 if it is."""
        return max(0.0, amount - self.level) * _MINUTE / self.limit


class Limiter:
    """Grants requests and tokens. Safe in several threads."""

    def __init__(self, limits: RateLimits | None, clock: Clock) -> None:
        self._limits = limits or _UNLIMITED
        self._clock = clock
        self._lock = threading.Lock()
        self._pools: dict[str, dict[str, _Bucket]] = {}

    def admit(self, model: Model | None, input_tokens: int = 0) -> None:
        """Take one request and its uncached input, or with ``None`` one call about batches.

        Raises:
            ApiError: 429 with ``retry-after``, and nothing is taken.
        """
        # What the output will be nobody knows yet, so it is enough that its bucket is not empty.
        amounts = {"requests": 1, "input-tokens": input_tokens, "output-tokens": 0}
        with self._lock:
            pool = self._pool(model)
            # All are looked at before any is taken, because a refusal costs nothing.
            for kind, bucket in pool.items():
                wait = bucket.seconds_until(max(1, amounts[kind]))
                if wait > 0:
                    subject = f" (model: {model.id})" if model else ""
                    raise ApiError(
                        "This request would exceed the rate limit for your organization of "
                        f"{bucket.limit:,} {kind.replace('-', ' ')} per minute{subject}.",
                        429,
                        retry_after=max(1, math.ceil(wait)),
                    )
            for kind, bucket in pool.items():
                bucket.level -= amounts[kind]

    def spend(self, model: Model, output_tokens: int) -> None:
        """Take the output of a reply, unknown before; the bucket may fall below zero."""
        with self._lock:
            self._pool(model)["output-tokens"].level -= output_tokens

    def headers(self, model: Model) -> Mapping[str, str]:
        """Return the ``anthropic-ratelimit-*`` headers for one model."""
        headers = {}
        with self._lock:
            for kind, bucket in self._pool(model).items():
                prefix = f"anthropic-ratelimit-{kind}"
                full_at = bucket.at + bucket.seconds_until(bucket.capacity)
                headers[f"{prefix}-limit"] = str(bucket.limit)
                headers[f"{prefix}-remaining"] = str(max(0, int(bucket.level)))
                headers[f"{prefix}-reset"] = str(timestamp(full_at))
        return headers

    def _pool(self, model: Model | None) -> dict[str, _Bucket]:
        limits, now = self._limits, self._clock.now()
        # The models of one line and major version share their limits.
        name = f"{model.line}-{model.version[0]}" if model else "batches"
        if name not in self._pools:
            sizes = {
                "requests": limits.requests if model else limits.batch_requests,
                "input-tokens": limits.input_tokens,
                "output-tokens": limits.output_tokens,
            }
            self._pools[name] = {k: _Bucket(v, limits.burst, now) for k, v in sizes.items()}
        pool = self._pools[name]
        # Here, because nothing runs in the background.
        for bucket in pool.values():
            gained = max(0.0, now - bucket.at) * bucket.limit / _MINUTE
            bucket.level, bucket.at = min(bucket.capacity, bucket.level + gained), now
        return pool


def timestamp(seconds: float | None) -> str | None:
    """Return an instant as RFC 3339 in UTC, to the second; ``None`` of one that never was."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(int(seconds), UTC).isoformat().replace("+00:00", "Z")
