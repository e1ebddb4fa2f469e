"""The calls of the Message Batches API, and the patience with which they are made.

A batch goes on at the API whether it is looked at or not, so what only reads is tried again for as
long as anybody would. What creates a batch is never simply tried again: see ``batches``.
"""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from pytest_regen.errors import TransportError, UsageError
from pytest_regen.strict_json import json_or_none
from pytest_regen.turns.anthropic import AnthropicProvider
from pytest_regen.turns.batch_files import BatchFile
from pytest_regen.turns.wire import MESSAGES_PATH, RATE_LIMITED

R = TypeVar("R")

POLL_VARIABLE: Final = "PYTEST_REGEN_BATCH_POLL"
"""The environment variable that sets ``poll``."""

FAILURES: Final = 20
"""Calls in a row that may fail while a batch is under way; with pauses, some 20 minutes."""

_PATH: Final = f"{MESSAGES_PATH}/batches"
_POLL: Final = 5.0
LONGEST: Final = 12.0
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
        pauses = pauses_of(self._poll)
        while True:
            try:
                return await call()
            except Exception as error:  # noqa: BLE001 - sorted by what it says
                # To be limited is none, because the API answers and says when to come back.
                failures -= getattr(error, "status_code", None) != RATE_LIMITED
                failure, cause = self._failure(error, model)
                if not isinstance(failure, TransportError):
                    raise failure from cause
                if not failures:
                    if self._is_reached:
                        failure.hint = "batches go on at the API: run the same command again later"
                    raise failure from cause
                await asyncio.sleep(next(pauses))

    @property
    def _public_address(self) -> str:
        url = urlsplit(self.base_url)
        return f"{url.scheme}://{self._address}{url.path}"

    async def _get(self, path: str = "", *, cast_to: type = object, **params: object) -> Any:
        # By path, not by the address that the API names for results, because the key is sent
        # nowhere but to the address that was named for it.
        client = await self._client(self._key_for(None))
        return await client.get(f"{_PATH}{path}", cast_to=cast_to, options={"params": params})

    async def _post(self, requests: list[Any]) -> str:
        """Create a batch, in one try, and return its id."""
        client = (await self._client(self._key_for(None))).with_options(max_retries=0)
        batch = await client.post(_PATH, cast_to=object, body={"requests": requests})
        return str(batch["id"])

    async def _list_since(self, file: BatchFile) -> list[dict[str, Any]]:
        """Return the batches created since the intent, the newest first."""
        oldest = datetime.fromtimestamp(file.intent.created - _DAY, UTC).isoformat()
        since: list[dict[str, Any]] = []
        following: dict[str, Any] = {}
        while True:
            page = await self._get(limit=_PAGE, **following)
            for batch in page["data"]:
                # Compared as texts, because all times of the API are of UTC and of one form.
                if batch["id"] == file.intent.before or str(batch["created_at"]) < oldest:
                    return since
                since.append(batch)
            if not page.get("has_more"):
                return since
            following = {"after_id": page["last_id"]}

    async def _newest(self) -> str:
        """Return the id of the newest batch; empty if there is none."""
        page = await self._get(limit=1)
        self._is_reached = True
        return str(page["data"][0]["id"]) if page["data"] else ""

    async def _results(self, batch: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the results of a batch that has ended; none where they are not kept any more."""
        if not batch.get("results_url"):
            return []
        data: bytes = await self._get(f"/{batch['id']}/results", cast_to=bytes)
        results = map(json_or_none, data.split(b"\n"))
        return [result for result in results if isinstance(result, dict)]


def pauses_of(poll: float) -> Iterator[float]:
    """Yield the seconds between looks at something that takes its time."""
    pause = poll
    while True:
        yield pause
        pause = min(pause * _GROWTH, LONGEST * poll)


def seconds_of_poll(poll: float | None) -> float:
    """Return the seconds until a batch is looked at first, as passed or from the environment."""
    value = poll if poll is not None else os.environ.get(POLL_VARIABLE) or _POLL
    is_number = re.fullmatch(r"[0-9]+(\.[0-9]+)?", str(value), re.ASCII)
    seconds = float(value) if is_number else 0.0
    if not seconds:
        raise UsageError(
            f"poll is {value!r}",
            why="it is the number of seconds until a batch is looked at first",
            hint=f"pass a number above 0 as poll= or in {POLL_VARIABLE}",
        )
    return seconds


def count_of(batch: Mapping[str, Any], *, ended: bool = False) -> int:
    """Return how many requests a batch has, or how many of them have ended."""
    counts: Mapping[str, int] = batch.get("request_counts") or {}
    return sum(n for name, n in counts.items() if not (ended and name == "processing"))


def gave_up(what: str, why: str) -> TransportError:
    """Return the error for what may go better another time."""
    return TransportError(what, why=why, hint="run the command again; what was finished is kept")
