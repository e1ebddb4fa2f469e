"""Turns by the Message Batches API: at half the price, within an hour or a day.

    requests → those in a batch already wait for it; the rest is noted on disk, then submitted
    → polled → results, in any order, by custom id → replies

What arrives within a quiet moment goes into one batch. A request that expired, failed or was
cancelled there goes into another one. All of it happens in one event loop in the background, so
that a provider serves any number of threads and event loops; ``batch_files`` remembers what was
submitted, so that a run that was killed at any moment submits nothing twice.
"""

import asyncio
import copy
import hashlib
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, Unpack

from pytest_regen.canonical import canonical_json
from pytest_regen.errors import ProviderError, RejectedRequestError, TransportError
from pytest_regen.files import project_root
from pytest_regen.text import plural
from pytest_regen.turns import batch_calls
from pytest_regen.turns.background import background_loop
from pytest_regen.turns.batch_calls import FAILURES, BatchCalls, gave_up
from pytest_regen.turns.batch_files import BatchFile, BatchFolder, digest_of_key
from pytest_regen.turns.interception import TurnInterceptor
from pytest_regen.turns.sdk import SdkOptions, note_retirement
from pytest_regen.turns.values import Reply, TurnRequest
from pytest_regen.turns.wire import RATE_LIMITED, reply_from_body, status_failure

if TYPE_CHECKING:
    from concurrent.futures import Future

R = TypeVar("R")

_BATCHES: Final = 3
"""Batches that one request is submitted in."""
_LARGEST: Final = 2_000
"""Requests of one batch, which may have 256 MB."""
_READINGS: Final = 3
"""Times that results are read where some are missing."""
_QUIET: Final = 0.1
"""Parts of ``poll``: three in a row without an arrival are a quiet moment."""
_NOT_FOUND: Final = 404
_HOUR: Final = 3_600.0


@dataclass(slots=True, eq=False)
class _Item:
    """A request that waits for its reply."""

    params: Mapping[str, Any]
    digest: str
    reply: "asyncio.Future[Reply]"
    batches: int = 0
    """How many of this run's it was in."""

    @property
    def is_done_without(self) -> bool:
        """Whether it waits no longer, and got no reply."""
        return self.reply.done() and (self.reply.cancelled() or self.reply.exception() is not None)


@dataclass(slots=True, eq=False)
class _Batch:
    """A batch that this run waits for."""

    file: BatchFile
    is_submitted_here: bool
    """Else it was there when its requests arrived."""
    items: dict[int, _Item] = field(default_factory=dict)
    """By number; those that this run waits for, or did."""
    status: str = ""
    """What was told of it last."""

    @property
    def waiting(self) -> dict[int, _Item]:
        """The items that are still waited for, by number."""
        return {number: item for number, item in self.items.items() if not item.reply.done()}

    @property
    def model(self) -> str:
        """The model asked, for messages; one of them where there are several."""
        return next((str(item.params["model"]) for item in self.items.values()), "")

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return f"batch {self.file.id or self.file.prefix}"


class BatchProvider(BatchCalls):
    """Sends turns to the Message Batches API, many in one batch.

    Send as many as there are at once, from threads or with ``asyncio.gather``: each waits for its
    reply, which takes from a minute to a day. End with ``close()`` once the replies are kept; leave
    a ``with`` block by an exception, or the process by a kill, and the next provider that is asked
    the same in the same folder waits for the batch that is there, even in another process. One
    provider never gives one reply to two requests.

    Args:
        model: model asked where a request names none.
        folder: where batches are noted; by default ``.regen/batches`` of the project around the
            working directory.
        api_key: as for ``AnthropicProvider``.
        base_url: as there.
        max_retries: as there, for all calls but the one that creates a batch.
        timeout: as there.
        poll: seconds until a batch is looked at first; pauses grow to twelve times that. A batch is
            submitted when a fifth of it passed without another request. By default
            ``PYTEST_REGEN_BATCH_POLL``, or 5.
        tell: called with one line when something is known of a batch, in another thread.
    """

    is_batch = True
    """Requests need no cache to be warmed, and no slots."""
    jobs = 10_000
    """How many requests may wait at the same time."""

    def __init__(
        self,
        model: str | None = None,
        *,
        folder: Path | None = None,
        poll: float | None = None,
        tell: Callable[[str], None] | None = None,
        **options: Unpack[SdkOptions],
    ) -> None:
        super().__init__(model, **options)
        self._poll = batch_calls.seconds_of_poll(poll)
        self._folder = BatchFolder(folder or project_root(Path.cwd()) / ".regen" / "batches")
        self._tell = tell or (lambda _: None)
        # All below belongs to the thread of the loop.
        self._arrived: deque[_Item] = deque()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_gathering = False
        self._under_way: dict[str, _Batch] = {}
        self._taken: dict[tuple[str, int], _Item] = {}
        """Who waits for a request of a file, or has got its reply."""
        self._delivered: set[str] = set()
        """Digests of requests whose replies were handed out."""
        self._left: set[str] = set()
        """Ids of replies out of batches that another run submitted."""

    def __enter__(self) -> Self:
        """Return the provider; it is closed at the end of the block, or stopped by an exception."""
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Close or stop the provider."""
        if kind is None:
            self.close()
        else:
            self.stop()

    @property
    def batches(self) -> int:
        """How many batches are waited for."""
        return len(self._under_way)

    def is_left(self, reply: Reply) -> bool:
        """Return whether another run submitted what this is the reply to."""
        return reply.id in self._left

    def stored(self, requests: Iterable[TurnRequest]) -> None:
        """Note that what became of these requests is kept, so that no run waits for them again."""
        self._settle({_digest(_params(self._body(request))) for request in requests})

    def _settle(self, digests: set[str]) -> None:
        for file in self._folder.read(self._public_address) if digests else ():
            file.settle(n for n, digest in enumerate(file.intent.requests) if digest in digests)

    def close(self) -> None:
        """End a run whose replies are all kept: no later one takes them for left behind."""
        self.stop()
        self._settle(self._delivered)
        self._delivered.clear()

    def stop(self) -> None:
        """End at once. Batches under way go on at the API, and the next run waits for them."""
        if self._tasks or self._clients:
            _in_loop(self._end()).result()

    async def _end(self) -> None:
        """End all that is under way in the loop, and close what is open there."""
        self._arrived.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._taken.clear()
        await self.aclose()

    # Arrivals

    async def _live(
        self,
        request: TurnRequest,
        body: dict[str, Any],
        interceptor: TurnInterceptor | None,
        key: str,
    ) -> Reply:
        return await asyncio.wrap_future(_in_loop(self._wait(_params(body))))

    async def _wait(self, params: Mapping[str, Any]) -> Reply:
        """Return the reply to a request, out of a batch."""
        self._keep(asyncio.current_task())
        item = _Item(params, _digest(params), asyncio.get_running_loop().create_future())
        self._arrived.append(item)
        self._begin_to_gather()
        return await item.reply

    def _begin_to_gather(self) -> None:
        if self._arrived and not self._is_gathering:
            self._is_gathering = True
            self._keep(asyncio.create_task(self._gather()))

    def _keep(self, task: "asyncio.Task[Any] | None") -> None:
        """Remember a task until it is done."""
        assert task is not None, "this is called in the loop"
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _gather(self) -> None:
        """Submit what has arrived, in groups of all that comes within a quiet moment."""
        try:
            with suppress(Exception):  # Raised again where somebody is told.
                # The SDK takes a second to import; more arrives meanwhile.
                await self._client(self._key_for(None))
            while self._arrived:
                looks = quiet = 0
                # Three looks, because on a busy machine all threads come late.
                while quiet < 3 and looks * _QUIET < batch_calls.LONGEST:
                    count = len(self._arrived)
                    await asyncio.sleep(_QUIET * self._poll)
                    looks += 1
                    quiet = quiet + 1 if len(self._arrived) == count else 0
                group = [self._arrived.popleft() for _ in range(min(_LARGEST, len(self._arrived)))]
                # Nobody waits for the others any more.
                await self._place([item for item in group if not item.reply.done()])
        finally:
            self._is_gathering = False

    async def _place(self, items: Sequence[_Item]) -> None:
        """Let items wait for batches that hold them already, and submit the others as one."""
        if not items:
            return
        for model in {str(item.params["model"]) for item in items}:
            note_retirement(model)
        address, key = self._public_address, self._key_for(None)
        try:
            # Who has reached the API once waits for it; else the address may be wrong.
            failures = FAILURES if self._is_reached else 1
            before = await self._patiently(self._newest, items[0].params["model"], failures)
            async with self._folder.alone():
                new = self._join(items)
                digests = [item.digest for item in new]
                file = self._folder.note(address, key, before, digests) if new else None
        except Exception as error:  # noqa: BLE001 - raised where each of them is waited for
            self._fail(items, error)
            return
        if file is not None:
            batch = self._begin_batch(file, is_submitted_here=True)
            for number, item in enumerate(new):
                item.batches += 1
                self._put(item, batch, number)

    def _join(self, items: Sequence[_Item]) -> list[_Item]:
        """Let items wait for batches that hold them; return those that none holds."""
        places: dict[str, deque[tuple[BatchFile, int]]] = {}
        for file in self._folder.read(self._public_address):
            for number, digest in enumerate(file.intent.requests):
                waiter = self._taken.get((file.prefix, number))
                is_free = waiter is None or waiter.is_done_without
                if is_free and number not in file.settled:
                    places.setdefault(digest, deque()).append((file, number))
        new = []
        for item in items:
            if places.get(item.digest):
                file, number = places[item.digest].popleft()
                under_way = self._under_way.get(file.prefix)
                self._put(item, under_way or self._begin_batch(file), number)
            else:
                new.append(item)
        return new

    def _put(self, item: _Item, batch: _Batch, number: int) -> None:
        self._taken[batch.file.prefix, number] = batch.items[number] = item

    def _begin_batch(self, file: BatchFile, *, is_submitted_here: bool = False) -> _Batch:
        batch = self._under_way[file.prefix] = _Batch(file, is_submitted_here)
        self._keep(asyncio.create_task(self._work(batch)))
        return batch

    # One batch

    async def _work(self, batch: _Batch) -> None:
        """Create or find a batch, wait until it has ended, and hand out its results."""
        try:
            is_there = await (self._create if batch.is_submitted_here else self._locate)(batch)
            while is_there and batch.waiting:
                state = await self._wait_for_end(batch)
                is_there = bool(state and state.get("results_url"))
                if state and is_there:
                    await self._read(batch, state)
            if not is_there:
                batch.file.remove()
                why = "it was deleted, or is too old to have results"
                gone = gave_up(f"{batch.name} is gone", why)
                self._ask_again(batch, dict.fromkeys(batch.waiting, gone))
        except Exception as error:  # noqa: BLE001 - raised where each of its items is waited for
            self._fail(batch.items.values(), error)
        finally:
            batch.file.release()
            del self._under_way[batch.file.prefix]

    async def _create(self, batch: _Batch) -> bool:
        """Create a batch whose intent is on the disk, once, and note its id.

        Raises:
            RejectedRequestError: there is none, and the next call would not make one either.
        """
        # The call is never simply sent again: where its answer does not come, there may be a batch.
        file, failures = batch.file, 0
        pauses = batch_calls.pauses_of(self._poll)
        requests = [
            {"custom_id": f"{file.prefix}-{number}", "params": item.params}
            for number, item in batch.items.items()
        ]
        while not file.id:
            file.note_try()
            try:
                file.note_id(await self._post(requests))
            except Exception as error:
                failure, _ = self._failure(error, batch.model)
                if not isinstance(failure, TransportError):
                    file.remove()
                    raise
                if getattr(error, "status_code", None) == RATE_LIMITED:
                    # The queue of batches is full, or calls come too fast: that passes by itself.
                    self._say(batch, f"waits to be submitted: {failure.why or failure.what}")
                    await asyncio.sleep(next(pauses))
                    continue
                failures += 1
                if failures == FAILURES:
                    raise
                file.note_try()
                file.note_id(await self._find(batch))
        file.release()
        self._say(batch, f"{plural(len(requests), 'request')} submitted")
        return True

    async def _locate(self, batch: _Batch) -> bool:
        """Find out what became of a batch that another run noted: whether it was ever created."""
        file = batch.file
        while True:
            is_claimed = not file.id and file.claim()
            # Read again under the claim: the run that had it may just have noted the id.
            is_noted = file.refresh()
            if is_noted and is_claimed and not file.id:
                file.note_id(await self._find(batch))
            if file.id:
                break
            if is_claimed or not is_noted:
                return False
            await asyncio.sleep(_QUIET * self._poll)
        file.release()
        count, total = len(batch.waiting), len(file.intent.requests)
        self._say(batch, f"picked up, with {count:,} of its {plural(total, 'request')} to wait for")
        return True

    async def _find(self, batch: _Batch) -> str:
        """Return the id of a batch whose creation was not answered; empty if there is none."""
        # It is one of those created since the intent, with as many requests. Which one, the custom
        # ids of its results say, and these are there once it has ended. None is a batch that is not
        # listed some time after the call: the API may have been busy with it.
        file, began, longest = batch.file, time(), batch_calls.LONGEST * self._poll
        pauses = batch_calls.pauses_of(self._poll)
        excluded: set[str] = set()
        while True:
            excluded |= {noted.id for noted in self._folder.read(file.intent.address)}
            is_running = False
            for candidate in await self._patiently(lambda: self._list_since(file), batch.model):
                id_, count = candidate["id"], batch_calls.count_of(candidate)
                if id_ in excluded or count != len(file.intent.requests):
                    continue
                if candidate.get("processing_status") != "ended":
                    is_running = True
                    self._say(batch, f"may be {id_}, which shows when that has ended")
                    continue
                results = await self._patiently(partial(self._results, candidate), batch.model)
                if any(file.number_of(result.get("custom_id")) is not None for result in results):
                    return str(id_)
                excluded.add(id_)
            now = time()
            if not is_running and (now - began > longest or now - file.tried > _HOUR):
                return ""
            await asyncio.sleep(next(pauses))

    async def _wait_for_end(self, batch: _Batch) -> dict[str, Any] | None:
        """Return what the API says of a batch once it has ended; ``None`` where there is none.

        Raises:
            RejectedRequestError: there is none for this key, and it was made with another one.
        """
        file, pauses = batch.file, batch_calls.pauses_of(self._poll)
        while True:
            try:
                state: dict[str, Any] = await self._patiently(
                    lambda: self._get(f"/{file.id}"), batch.model
                )
            except RejectedRequestError as error:
                if error.status != _NOT_FOUND:
                    raise
                if file.intent.key != digest_of_key(self._key_for(None)):
                    error.why = "it was submitted with another key, and requests of this run wait"
                    error.hint = f"set ANTHROPIC_API_KEY to that key; or remove {file.path}, and "
                    error.hint += "its requests are submitted and paid again"
                    raise
                if time() - file.tried > batch_calls.LONGEST * self._poll:
                    return None
            else:
                ended = batch_calls.count_of(state, ended=True)
                self._say(batch, f"{ended:,} of {batch_calls.count_of(state):,} done")
                if state.get("processing_status") == "ended":
                    return state
            await asyncio.sleep(next(pauses))

    async def _read(self, batch: _Batch, state: Mapping[str, Any]) -> None:
        """Hand out the results of a batch that has ended; what failed is asked again."""
        numbers = batch.waiting.keys()
        for _ in range(_READINGS):
            results = await self._patiently(partial(self._results, state), batch.model)
            outcomes = {
                batch.file.number_of(result.get("custom_id")): result.get("result")
                for result in results
            }
            if numbers <= outcomes.keys() or len(results) >= batch_calls.count_of(state):
                break
        failed = {}
        for number in numbers & batch.waiting.keys():
            item, outcome = batch.items[number], self._outcome(batch, outcomes.get(number))
            if isinstance(outcome, Reply):
                self._delivered.add(item.digest)
                # Taken out, too, because the emulator gives one id to equal replies of two batches.
                (self._left.discard if batch.is_submitted_here else self._left.add)(outcome.id)
                item.reply.set_result(outcome)
            else:
                failed[number] = outcome
        self._ask_again(batch, failed)

    def _outcome(self, batch: _Batch, result: object) -> Reply | ProviderError:
        """Return what one result says: a reply, or why there is none."""
        match result:
            case {"type": "succeeded", "message": message}:
                try:
                    return reply_from_body(message)
                except TransportError as error:
                    return error
            case {"type": "errored", "error": body}:
                return status_failure(200, body, model=batch.model, address=self._address)
            case {"type": "expired"}:
                return gave_up(f"a request expired in {batch.name}", "it took more than 24 hours")
            case {"type": "canceled"}:
                return gave_up(f"{batch.name} was cancelled", "somebody did so at the API")
            case _:
                return gave_up(f"{batch.name} has no result for a request", f"it says {result!r}")

    def _ask_again(self, batch: _Batch, failed: Mapping[int, ProviderError]) -> None:
        """Put requests that got no reply into another batch, or say that there is none."""
        # What an earlier run was refused may be allowed by now, so that is asked again, too.
        for number, failure in failed.items():
            item = batch.items.pop(number)
            is_final = isinstance(failure, RejectedRequestError) and batch.is_submitted_here
            if is_final or item.batches >= _BATCHES:
                failure.is_alone = True
                self._fail([item], failure)
            else:
                self._arrived.append(item)
        if failed:
            # Nothing is paid for these, so it does not matter if they are forgotten now.
            batch.file.settle(failed)
        self._begin_to_gather()

    def _fail(self, items: Iterable[_Item], error: Exception) -> None:
        for item in items:
            if not item.reply.done():
                failure, cause = self._failure(error, str(item.params["model"]))
                failure = copy.copy(failure)  # Each is raised with a traceback of its own.
                failure.__cause__ = cause
                item.reply.set_exception(failure)

    def _say(self, batch: _Batch, words: str) -> None:
        if batch.status != words:
            batch.status = words
            with suppress(Exception):  # What shows how far it is ends no work.
                self._tell(f"{batch.name}: {words}")


def _in_loop(work: Coroutine[Any, Any, R]) -> "Future[R]":
    """Let work be done in one and the same loop, whoever asks, because what it changes is there."""
    return asyncio.run_coroutine_threadsafe(work, background_loop(is_shared=True))


def _params(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a body as it stands in a batch: nothing there is streamed."""
    return {name: value for name, value in body.items() if name != "stream"}


def _digest(params: Mapping[str, Any]) -> str:
    """Return what tells a request from others."""
    data = canonical_json(params).encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()[:32]
