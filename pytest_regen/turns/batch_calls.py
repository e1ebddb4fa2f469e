"""The calls of the Message Batches API, and the patience with which they are made.

A batch goes on at the API whether it is looked at or not, so what only reads is tried again for as
long as anybody would. What creates a batch is never simply tried again: see ``batches``.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from pytest_regen.errors import MissingExtraError, ProviderError, TransportError, UsageError
from pytest_regen.turns.anthropic import AnthropicProvider
from pytest_regen.turns.batch_files import BatchFile
from pytest_regen.turns.sdk import plain
from pytest_regen.turns.wire import RATE_LIMITED

R = TypeVar("R")

POLL_VARIABLE: Final = "PYTEST_REGEN_BATCH_POLL"
"""The environment variable that sets ``poll``."""

FAILURES: Final = 20
"""Calls in a row that may fail while a batch is under way; with pauses, some 20 minutes."""

_POLL: Final = 5.0
_QUIET: Final = 0.2
"""Parts of ``poll`` for which nothing more arrives before a batch is submitted."""
_PATIENCE: Final = 12.0
"""Parts of ``poll``: the longest pause, and how long an arrival waits for others."""
_GROWTH: Final = 1.5
"""From one pause to the next."""
_PAGE: Final = 100
"""Batches listed per call."""
_DAY: Final = 86_400.0


class BatchCalls(AnthropicProvider):
    """A provider that can make calls about batches."""

    _poll: float
    """Seconds until a batch is looked at first."""
    _is_reached = False
    """Whether the API has answered: then its address is no mistake."""

    async def _batches(self, *, max_retries: int | None = None) -> Any:
        """Return the part of the client that is about batches.

        Raises:
            MissingExtraError: the SDK has none.
        """
        client = await self._clients.aget(self._key_for(None), self._amake)
        retries = self.max_retries if max_retries is None else max_retries
        batches = getattr(client.with_options(max_retries=retries).messages, "batches", None)
        if batches is None:
            raise MissingExtraError(
                "the installed release of the package anthropic knows no batches",
                why="they are part of it from 0.42 on",
                hint="pip install --upgrade 'pytest-regen[anthropic]'; or ask without a batch",
                extra="anthropic",
            )
        return batches

    async def _patiently(
        self, call: Callable[[], Awaitable[R]], model: str, failures: int = FAILURES
    ) -> R:
        """Return what a call returns; while the connection or the API fails, it is made again.

        Args:
            call: reads, and changes nothing.
            model: for messages.
            failures: after which it is given up. To be limited is none.

        Raises:
            ProviderError: it is refused, or failed too often in a row.
        """
        # A batch goes on at the API whether it is looked at or not.
        pauses = self._pauses()
        while True:
            try:
                return await call()
            except Exception as error:  # noqa: BLE001 - sorted by what it says
                failures -= getattr(error, "status_code", None) != RATE_LIMITED
                failure, cause = self._failure(error, model)
                if not isinstance(failure, TransportError):
                    raise failure from cause
                if not failures:
                    if self._is_reached:
                        failure.hint = "batches go on at the API: run the same command again later"
                    raise failure from cause
                await asyncio.sleep(max(next(pauses), asked_pause(error)))

    def _pauses(self) -> Iterator[float]:
        pause = self._poll
        while True:
            yield pause
            pause = min(pause * _GROWTH, self._longest)

    @property
    def _quiet(self) -> float:
        return _QUIET * self._poll

    @property
    def _longest(self) -> float:
        return _PATIENCE * self._poll

    @property
    def _public_address(self) -> str:
        url = urlsplit(self.base_url)
        return f"{url.scheme}://{self._address}{url.path}"

    async def _list_since(self, file: BatchFile) -> list[dict[str, Any]]:
        """Return the batches created since the intent, the newest first."""
        since = []
        batches = await self._batches()
        async for listed in batches.list(limit=_PAGE):
            batch = plain(listed)
            created = batch.get("created_at")
            # As texts, because old SDKs parse no times and all are of UTC.
            moment = created.isoformat() if isinstance(created, datetime) else str(created)
            oldest = datetime.fromtimestamp(file.created - _DAY, UTC).isoformat()
            if batch.get("id") == file.before or moment < oldest:
                break
            since.append(batch)
        return since

    async def _is_of(self, candidate: Mapping[str, Any], file: BatchFile) -> bool:
        """Return whether the results of a batch that has ended are those of an intent."""
        if not candidate.get("results_url"):
            return False
        async with aclosing(self._results(candidate)) as results:
            async for result in results:
                return file.number_of(result.get("custom_id")) is not None
        return False

    async def _newest(self) -> str:
        """Return the id of the newest batch; empty if there is none."""
        page = await (await self._batches()).list(limit=1)
        listed = [plain(batch) for batch in page.data]
        self._is_reached = True
        return id_of(listed[0]) if listed else ""

    async def _retrieve(self, id_: str) -> dict[str, Any]:
        batch: dict[str, Any] = plain(await (await self._batches()).retrieve(id_))
        return batch

    async def _results(self, batch: Mapping[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the results of a batch."""
        host = urlsplit(str(batch["results_url"])).netloc
        if host != urlsplit(self.base_url).netloc.rpartition("@")[2]:
            raise ProviderError(
                f"the results of {id_of(batch)} lie at {host}, not at {self._address}",
                why="the key is sent nowhere but to the address that was named for it",
                hint=f"set ANTHROPIC_BASE_URL to the address of {host}, or ask without a batch",
            )
        stream = await (await self._batches()).results(id_of(batch))
        try:
            async for result in stream:
                entry = plain(result)
                if isinstance(entry, dict):
                    yield entry
        finally:
            await stream.http_response.aclose()


def seconds_of_poll(poll: float | None) -> float:
    """Return the seconds until a batch is looked at first, as passed or from the environment."""
    value = poll if poll is not None else os.environ.get(POLL_VARIABLE) or _POLL
    try:
        seconds = float(value)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < float("inf"):
        raise UsageError(
            f"poll is {value!r}",
            why="it is the number of seconds until a batch is looked at first",
            hint=f"pass a number above 0 as poll= or in {POLL_VARIABLE}",
        )
    return seconds


def id_of(batch: object) -> str:
    """Return the id of a batch."""
    id_ = batch.get("id") if isinstance(batch, Mapping) else None
    if not isinstance(id_, str) or not id_:
        raise gave_up("what the API calls a batch has no id", f"it says {batch!r:.80}")
    return id_


def count_of(batch: Mapping[str, Any], *, ended: bool = False) -> int:
    """Return how many requests a batch has, or how many of them have ended."""
    counts: Mapping[str, int] = batch.get("request_counts") or {}
    return sum(n for name, n in counts.items() if not (ended and name == "processing"))


def asked_pause(error: Exception) -> float:
    """Return the seconds that an answer asks to wait for."""
    headers = getattr(getattr(error, "response", None), "headers", {})
    seconds = str(headers.get("retry-after", ""))
    return min(float(seconds), _DAY) if seconds.isascii() and seconds.isdigit() else 0.0


def gave_up(what: str, why: str) -> TransportError:
    """Return the error for what may go better another time."""
    return TransportError(what, why=why, hint="run the command again; what was finished is kept")
