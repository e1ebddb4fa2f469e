"""How much one client may ask: fixed windows, bounded memory, a clock that a test may set."""

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

__all__ = ["Quota", "Quotas", "Standing"]


@dataclass(frozen=True, slots=True)
class Quota:
    """At most ``limit`` calls in ``seconds``, counted from the first one."""

    limit: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a client stands after asking for a call."""

    allowed: bool
    limit: int
    """Of the quota that is nearest to its end."""
    remaining: int
    reset_at: float
    """When that quota starts anew, in seconds since the epoch."""
    retry_after: int
    """Whole seconds until a call would be allowed; 0 if this one was."""

    def as_json(self) -> dict[str, object]:
        """Return what a refused client is told."""
        return {"limit": self.limit, "remaining": self.remaining, "resetAt": self._reset_time}

    @property
    def headers(self) -> dict[str, str]:
        """Return what every answer says about the quota."""
        return {
            "x-ratelimit-limit": str(self.limit),
            "x-ratelimit-remaining": str(self.remaining),
            "x-ratelimit-reset": self._reset_time,
        }

    @property
    def _reset_time(self) -> str:
        return datetime.fromtimestamp(self.reset_at, UTC).isoformat(timespec="seconds")


@dataclass(slots=True)
class _Window:
    ends_at: float
    used: int = 0


class Quotas:
    """Counts the calls of each client against every quota; a refused call is charged to none.

    Args:
        quotas: all of them hold at once; none means no limit.
        clock: returns seconds since the epoch.
        max_clients: remembered at once; the one that asked longest ago is forgotten first.
    """

    def __init__(
        self,
        quotas: Sequence[Quota],
        *,
        clock: Callable[[], float] = time.time,
        max_clients: int = 100_000,
    ) -> None:
        self._quotas = tuple(quotas)
        self._clock = clock
        self._max_clients = max_clients
        self._clients: OrderedDict[str, list[_Window]] = OrderedDict()
        self._lock = threading.Lock()

    def charge(self, client: str) -> Standing | None:
        """Count one call of ``client`` if every quota allows it; None where there are none."""
        if not self._quotas:
            return None
        with self._lock:
            now = self._clock()
            windows = self._windows(client, now)
            spent = [
                window
                for quota, window in zip(self._quotas, windows, strict=True)
                if window.used >= quota.limit
            ]
            if not spent:
                for window in windows:
                    window.used += 1
            return self._standing(windows, spent, now)

    def give_back(self, client: str) -> Standing | None:
        """Take back one call that never reached the model, and return where the client stands."""
        if not self._quotas:
            return None
        with self._lock:
            now = self._clock()
            windows = self._windows(client, now)
            for window in windows:
                window.used = max(0, window.used - 1)
            return self._standing(windows, (), now)

    def _windows(self, client: str, now: float) -> list[_Window]:
        windows = self._clients.get(client)
        if windows is None:
            windows = [_Window(now + quota.seconds) for quota in self._quotas]
            self._clients[client] = windows
            if len(self._clients) > self._max_clients:
                self._clients.popitem(last=False)
        self._clients.move_to_end(client)
        for quota, window in zip(self._quotas, windows, strict=True):
            if now >= window.ends_at:
                window.ends_at, window.used = now + quota.seconds, 0
        return windows

    def _standing(
        self, windows: Sequence[_Window], spent: Sequence[_Window], now: float
    ) -> Standing:
        left = [
            (quota.limit - window.used, -window.ends_at, quota.limit)
            for quota, window in zip(self._quotas, windows, strict=True)
        ]
        remaining, ends, limit = min(left)
        wait = max((window.ends_at - now for window in spent), default=0.0)
        return Standing(not spent, limit, max(0, remaining), -ends, math.ceil(wait))
