"""How `python -m pytest_regen.server` listens: few connections, each with a deadline.

uvicorn bounds neither the time in which the head of a request arrives nor the connections that
wait for one; once these have used up the descriptors of the process no client is served any more.
"""

import asyncio
import copy
from typing import Any

import h11
from uvicorn.config import LOGGING_CONFIG
from uvicorn.protocols.http.h11_impl import H11Protocol

from pytest_regen.server.problems import WithoutSearch
from pytest_regen.server.settings import ServerSettings

_OTHER_FILES = 64
"""Descriptors for what is no connection: sockets to the model, files, threads' wake-up calls."""
_ENOUGH = 4_096
"""Descriptors asked for where the system gives more."""


def uvicorn_options(settings: ServerSettings) -> dict[str, Any]:
    """Return the options of uvicorn with which a server keeps ``settings``."""
    descriptors = _descriptors()
    # The loop accepts up to `backlog` sockets a round, and needs four rounds until one that is too
    # many is closed; where it finds no descriptor left, it logs as many errors a second.
    backlog = max(8, min(256, descriptors // 16))
    most = max(8, min(settings.max_connections, descriptors - 6 * backlog - _OTHER_FILES))
    return {
        "http": type(
            "Bounded",
            (_BoundedConnection,),
            {"head_seconds": settings.head_seconds, "most": most, "waiting": {}},
        ),
        "ws": "none",
        "backlog": backlog,
        "server_header": False,
        "proxy_headers": False,
        "log_config": _log_config(),
        "timeout_graceful_shutdown": 5,
    }


def _descriptors() -> int:
    """Return how many descriptors this process may open, after asking for enough of them."""
    try:
        import resource
    except ImportError:  # pragma: no cover - as above
        return _ENOUGH
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= _ENOUGH:
        return _ENOUGH
    wanted = _ENOUGH if hard == resource.RLIM_INFINITY else min(_ENOUGH, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


def _log_config() -> dict[str, Any]:
    found: dict[str, Any] = copy.deepcopy(LOGGING_CONFIG)
    found["filters"] = {"without_search": {"()": WithoutSearch}}
    found["handlers"]["access"]["filters"] = ["without_search"]
    found["loggers"]["pytest_regen.server"] = {"handlers": ["default"], "level": "INFO"}
    return found


class _BoundedConnection(H11Protocol):
    """A connection that ends where no whole head arrives in time, or where there are too many."""

    head_seconds: float
    most: int
    waiting: dict["_BoundedConnection", None]
    """Connections without a request, the one that has waited longest first."""
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.most:
            next(iter(self.waiting), self).transport.abort()
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unwatch()
        super().connection_lost(exc)

    def _watch(self) -> None:
        cycle = getattr(self, "cycle", None)  # None until the first request
        busy = cycle is not None and not cycle.response_complete
        if busy or self.conn.their_state is not h11.IDLE:
            self._unwatch()
        elif self._deadline is None and not self.transport.is_closing():
            self.waiting[self] = None
            self._deadline = self.loop.call_later(self.head_seconds, self.transport.abort)

    def _unwatch(self) -> None:
        self.waiting.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
