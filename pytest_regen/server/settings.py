"""What a server allows: sizes, times, quotas, names it is reached under."""

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import IPv6Address, ip_address
from typing import Protocol

from starlette.requests import Request

from pytest_regen.context.requests import ClarificationRequest
from pytest_regen.context.values import TurnResult


@dataclass(frozen=True, slots=True)
class Quota:
    """At most ``limit`` calls in ``seconds``, counted from the first one."""

    limit: int
    seconds: float


@dataclass(frozen=True, slots=True)
class QuotaStatus:
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
        """Return the details of a refusal."""
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

    def charge(self, client: str) -> QuotaStatus | None:
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
            return self._status(windows, spent, now)

    def give_back(self, client: str) -> QuotaStatus | None:
        """Take back one call that never reached the model, and return where the client stands."""
        if not self._quotas:
            return None
        with self._lock:
            now = self._clock()
            windows = self._windows(client, now)
            for window in windows:
                window.used = max(0, window.used - 1)
            return self._status(windows, (), now)

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

    def _status(
        self, windows: Sequence[_Window], spent: Sequence[_Window], now: float
    ) -> QuotaStatus:
        left = [
            (quota.limit - window.used, -window.ends_at, quota.limit)
            for quota, window in zip(self._quotas, windows, strict=True)
        ]
        remaining, ends, limit = min(left)
        wait = max((window.ends_at - now for window in spent), default=0.0)
        return QuotaStatus(not spent, limit, max(0, remaining), -ends, math.ceil(wait))


LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")
HOUR, DAY = 3_600.0, 86_400.0

Screen = Callable[[Sequence[str]], bool | Awaitable[bool]]
"""Takes every text of a request that its client controls, each whole, and returns whether the model
may see them. May be a coroutine function. If it raises, the request is refused."""


class Agent(Protocol):
    """Whatever takes a turn; ``ClarifyingAgent`` does.

    It may also have ``aturn``, the same as a coroutine function, and ``provider``: where that has
    ``asend``, ``aturn`` is used and no thread is taken.
    """

    def turn(self, request: ClarificationRequest) -> TurnResult:
        """Take one turn.

        Raises:
            ProviderError: there is no usable reply.
        """
        ...


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Limits of one server. Times are in seconds."""

    max_body_bytes: int = 131_072
    """Of a request; more than any valid one needs."""
    body_seconds: float = 10.0
    """In which a body has to arrive."""
    head_seconds: float = 10.0
    """In which the head of a request has to arrive; kept by ``python -m pytest_regen.server``."""
    max_connections: int = 1_024
    """Open at once, as far as the system has descriptors; kept by the same. One more ends the one
    that has waited longest without sending a whole head."""
    model_seconds: float = 120.0
    """In which a turn has to be answered, further calls of the agent to the model included."""
    max_concurrent: int = 64
    """Calls of a blocking provider at once; each takes a thread."""
    max_pending: int = 512
    """Turns under way or waiting; one more is answered 503."""
    heartbeat_seconds: float = 15.0
    """Between comments in a stream that waits for the model."""
    first_turns: tuple[Quota, ...] = (Quota(30, HOUR), Quota(150, DAY))
    """Of each client; empty for no limit."""
    second_turns: tuple[Quota, ...] = (Quota(60, HOUR), Quota(300, DAY))
    """Counted apart, so that a client is not cut off between a question and its answer."""
    hosts: tuple[str, ...] = LOOPBACK_HOSTS
    """Names by which the server may be addressed; ``("*",)`` for any."""
    shows_prompt: bool = False
    """Whether the page shows what the model was given."""


def peer_of(request: Request) -> str:
    """Return who asks, by address; one network of IPv6 is one client.

    Headers that a proxy sets are not believed: a client could set them too. Some servers do believe
    them and pass on what they say as the peer; whoever may have named himself so counts with all
    others who did. Behind a proxy, pass ``client_header(...)`` as ``client_of``.
    """
    host = request.client.host if request.client else ""
    if host and any(host in value for value in request.headers.getlist("x-forwarded-for")):
        return "forwarded"
    return _network_of(host)


def client_header(name: str) -> Callable[[Request], str]:
    """Return a function that says who asks by a header that your proxy sets.

    Of several addresses the last one counts, which is the one that the nearest proxy saw. Use it
    only where every request comes through that proxy; without the header, the peer counts.

    Args:
        name: of the header: ``x-forwarded-for``, ``x-real-ip``.
    """

    def client_of(request: Request) -> str:
        hops = [hop for value in request.headers.getlist(name) for hop in value.split(",")]
        last = hops[-1].strip() if hops else ""
        return _network_of(_without_port(last)) if last else peer_of(request)

    return client_of


def _without_port(address: str) -> str:
    if address.startswith("["):
        return address[1:].partition("]")[0]
    return address.partition(":")[0] if address.count(":") == 1 else address


def _network_of(host: str) -> str:
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host or "unknown"
    if isinstance(address, IPv6Address):
        return (
            str(IPv6Address(int(address) >> 64 << 64))
            if not address.ipv4_mapped
            else str(address.ipv4_mapped)
        )
    return str(address)
