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
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from pytest_regen.canonical import canonical_json
from pytest_regen.errors import ProviderError, RejectedRequestError, TransportError
from pytest_regen.files import project_root
from pytest_regen.text import plural
from pytest_regen.turns import batch_calls
from pytest_regen.turns.background import background_loop, is_running
from pytest_regen.turns.batch_calls import FAILURES, BatchCalls, gave_up
from pytest_regen.turns.batch_files import BatchFile, BatchFolder, Origin
from pytest_regen.turns.interception import current_interceptor
from pytest_regen.turns.sdk import heeding_warnings, plain
from pytest_regen.turns.values import Reply, TurnRequest
from pytest_regen.turns.wire import RATE_LIMITED, reply_from_body, status_failure

if TYPE_CHECKING:
    from types import TracebackType

_BATCHES: Final = 3
"""Batches that one request is submitted in."""
_READINGS: Final = 3
"""Times that results are read where some are missing."""
_TOO_LARGE: Final = 413
_NOT_FOUND: Final = 404
_HOUR: Final = 3_600.0


@dataclass(slots=True, eq=False, weakref_slot=True)
class _Item:
    """A request that waits for its reply."""

    params: Mapping[str, Any]
    digest: str
    reply: "Future[Reply]" = field(default_factory=Future)
    batches: int = 0
    """How many of this run's it was in."""


@dataclass(slots=True, eq=False)
class _Batch:
    """A batch that this run waits for."""

    file: BatchFile
    is_submitted_here: bool
    """Else it was there when its requests arrived."""
    items: dict[int, _Item] = field(default_factory=dict)
    """By number; those that this run waits for."""
    status: str = ""
    """What was told of it last."""

    @property
    def model(self) -> str:
        """The model asked, for messages; one of them where there are several."""
        return next((str(item.params["model"]) for item in self.items.values()), "")

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return f"batch {self.file.id or self.file.prefix}"


class _NoBatch(Exception):  # noqa: N818 - not raised past this module
    """There is no such batch, or no results of it any more."""


class _TooLarge(Exception):  # noqa: N818 - not raised past this module
    """The API takes no batch of that size."""


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
        api_key: str | None = None,
        base_url: str | None = None,
        max_retries: int = 2,
        timeout: float = 600.0,
        poll: float | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(
            model, api_key=api_key, base_url=base_url, max_retries=max_retries, timeout=timeout
        )
        self._poll = batch_calls.seconds_of_poll(poll)
        self._folder = BatchFolder(folder or project_root(Path.cwd()) / ".regen" / "batches")
        self._tell = tell or (lambda _: None)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._guard = threading.Lock()
        """Held by whoever changes the loop or the next two."""
        self._items: weakref.WeakSet[_Item] = weakref.WeakSet()
        """All that wait, those on their way from here to there included."""
        self._arrived: deque[_Item] = deque()
        self._arrival = 0.0
        # All below belong to the thread of the loop.
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_gathering = False
        self._under_way: dict[str, _Batch] = {}
        self._taken: set[tuple[str, int]] = set()
        self._delivered: set[str] = set()
        """Digests of requests whose replies were handed out."""
        self._left: set[str] = set()
        """Ids of replies out of batches that another run submitted."""

    def __enter__(self) -> Self:
        """Return the provider; it is closed at the end of the block, or stopped by an exception."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: "TracebackType | None",
    ) -> None:
        """Close or stop the provider."""
        if kind is None:
            self.close()
        else:
            self.stop()

    @property
    def batches(self) -> int:
        """How many batches are waited for."""
        return len(self._under_way)

    def send(self, request: TurnRequest) -> Reply:
        """Return the model's reply, once its batch has ended; a refusal is a reply, too.

        Raises:
            MissingKeyError: no key is set and the turn is not replayed.
            MissingExtraError: the SDK is not installed, or knows no batches.
            RejectedRequestError: the API refused this request, or batches as such.
            TransportError: there is no reply after three batches, or the API cannot be reached.
            CassetteMissError: a cassette in use has no answer.
        """
        reply = self._begin(request)
        return reply if isinstance(reply, Reply) else reply.result()

    async def asend(self, request: TurnRequest) -> Reply:
        """Return the model's reply without blocking the event loop; raises as ``send`` does."""
        reply = self._begin(request)
        return reply if isinstance(reply, Reply) else await asyncio.wrap_future(reply)

    def is_left(self, reply: Reply) -> bool:
        """Return whether another run submitted what this is the reply to."""
        return reply.id in self._left

    def stored(self, requests: Iterable[TurnRequest]) -> None:
        """Note that what became of these requests is kept, so that no run waits for them again."""
        self._settle({_digest(_params(self._body(request))) for request in requests})

    def _settle(self, digests: set[str]) -> None:
        for file in self._folder.read(self._public_address) if digests else ():
            file.settle(n for n, digest in enumerate(file.digests) if digest in digests)

    def close(self) -> None:
        """End a run whose replies are all kept: no later one takes them for left behind."""
        self.stop()
        self._settle(self._delivered)
        self._delivered.clear()

    def stop(self) -> None:
        """End at once. Batches under way go on at the API, and the next run waits for them."""
        with self._guard:
            loop, self._loop = self._loop, None
        if loop is not None and is_running(loop):
            asyncio.run_coroutine_threadsafe(self._end(), loop).result()
        super().close()

    # Arrivals

    def _begin(self, request: TurnRequest) -> "Reply | Future[Reply]":
        """Return a recorded reply, or what will hold the one out of a batch."""
        body, interceptor = self._body(request), current_interceptor()
        replayed = self._replay(body, interceptor)
        if replayed is not None:
            return replayed
        self._key_for(None)
        params = _params(body)
        item = _Item(params, _digest(params))
        with self._guard:
            if self._loop is None or not is_running(self._loop):
                self._loop = background_loop()
            self._items.add(item)
            self._arrived.append(item)
            self._arrival = time.monotonic()
            self._loop.call_soon_threadsafe(self._begin_to_gather)
        return item.reply

    def _begin_to_gather(self) -> None:
        # Once more, because a loop that was busy meanwhile is about to bring others.
        self._arrival = time.monotonic()
        if self._arrived and not self._is_gathering:
            self._is_gathering = True
            self._start(self._gather())

    async def _end(self) -> None:
        """End all that is under way in the loop, and close what is open there."""
        with self._guard:
            items = [*self._items]
            self._arrived.clear()
        for item in items:
            item.reply.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._taken.clear()
        await self.aclose()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        async def unwarned() -> None:
            with heeding_warnings():
                await work

        task = asyncio.get_running_loop().create_task(unwarned())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _gather(self) -> None:
        """Submit what has arrived, in groups of all that comes within a quiet moment."""
        try:
            with suppress(Exception):  # Raised again where somebody is told.
                await self._batches()  # The SDK takes a second to import; more arrives meanwhile.
            last = None
            while self._arrived:
                latest = time.monotonic() + self._longest
                while len(self._arrived) < self.jobs and time.monotonic() < latest:
                    pause = self._arrival + self._quiet - time.monotonic()
                    # Two looks, because on a busy machine all threads come late.
                    if pause <= 0 and self._arrived[-1] is last:
                        break
                    last = self._arrived[-1]
                    await asyncio.sleep(max(pause, self._quiet / 2))
                group = [self._arrived.popleft() for _ in range(min(self.jobs, len(self._arrived)))]
                # Nobody waits for the others any more.
                await self._place([item for item in group if not item.reply.done()])
        finally:
            self._is_gathering = False

    async def _place(self, items: Sequence[_Item]) -> None:
        """Let items wait for batches that hold them already, and submit the others as one."""
        if not items:
            return
        try:
            # Who has reached the API once waits for it; else the address may be wrong.
            failures = FAILURES if self._is_reached else 1
            before = await self._patiently(self._newest, items[0].params["model"], failures)
            async with self._folder.alone():
                origin = Origin.of(self._public_address, self._key_for(None))
                new = self._join(items, origin)
                digests = [item.digest for item in new]
                file = self._folder.note(origin, before, digests) if new else None
        except OSError as error:
            why = f"{error.strerror or error}; what is submitted is noted there first, so that it"
            failure = TransportError(
                f"no batch was submitted: {self._folder.path} cannot be written",
                why=f"{why} is never paid twice",
                hint="make the folder writable, then run again; or ask without a batch",
            )
            failure.__cause__ = error
            self._fail(items, failure)
        except Exception as error:  # noqa: BLE001 - raised where each of them is waited for
            self._fail(items, error)
        else:
            if file is not None:
                batch = self._begin_batch(file, is_submitted_here=True)
                for number, item in enumerate(new):
                    item.batches += 1
                    self._put(item, batch, number)

    def _join(self, items: Sequence[_Item], origin: Origin) -> list[_Item]:
        """Let items wait for batches that hold them; return those that none holds."""
        for batch in self._under_way.values():
            self._has_items(batch)
        places: dict[str, deque[tuple[BatchFile, int]]] = {}
        for file in self._folder.read(origin.address):
            for number, digest in enumerate(file.digests):
                if number not in file.settled and (file.prefix, number) not in self._taken:
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
        self._taken.add((batch.file.prefix, number))
        batch.items[number] = item

    def _begin_batch(self, file: BatchFile, *, is_submitted_here: bool = False) -> _Batch:
        batch = self._under_way[file.prefix] = _Batch(file, is_submitted_here)
        self._start(self._work(batch))
        return batch

    def _has_items(self, batch: _Batch) -> bool:
        """Return whether anybody waits for a batch; let go of what nobody waits for any more."""
        for number in [n for n, item in batch.items.items() if item.reply.done()]:
            self._let_go(batch, number)
        return bool(batch.items)

    def _let_go(self, batch: _Batch, number: int) -> _Item:
        """Take an item out of a batch, where the same request may wait for its reply again."""
        self._taken.discard((batch.file.prefix, number))
        return batch.items.pop(number)

    # One batch

    async def _work(self, batch: _Batch) -> None:
        """Create or find a batch, wait until it has ended, and hand out its results."""
        try:
            await (self._create(batch) if batch.is_submitted_here else self._locate(batch))
            while self._has_items(batch):
                await self._read(batch, await self._wait_for_end(batch))
        except _NoBatch:
            batch.file.remove()
            why = gave_up(f"{batch.name} is gone", "it was deleted, or is too old to have results")
            self._ask_again(batch, dict.fromkeys(batch.items, why))
        except _TooLarge:
            items = [*batch.items.values()]
            for item in items:
                item.batches -= 1
            middle = (len(items) + 1) // 2
            for half in (items[:middle], items[middle:]):
                self._start(self._place(half))
        except Exception as error:  # noqa: BLE001 - raised where each of its items is waited for
            self._fail([self._let_go(batch, number) for number in list(batch.items)], error)
        finally:
            batch.file.release()
            del self._under_way[batch.file.prefix]

    async def _create(self, batch: _Batch) -> None:
        """Create a batch whose intent is on the disk, once, and note its id.

        Raises:
            RejectedRequestError: there is none, and the next call would not make one either.
            _TooLarge: there is none, because it would have been too large.
        """
        # The call is never simply sent again: where its answer does not come, there may be a batch.
        file, pauses, failures = batch.file, self._pauses(), 0
        requests: list[Any] = [
            {"custom_id": file.custom_id(number), "params": item.params}
            for number, item in batch.items.items()
        ]
        while not file.id:
            file.note_try()
            try:
                batches = await self._batches(max_retries=0)
                file.note_id(batch_calls.id_of(plain(await batches.create(requests=requests))))
            except Exception as error:
                status = getattr(error, "status_code", None)
                failure, _ = self._failure(error, batch.model)
                if not isinstance(failure, TransportError):
                    file.remove()
                    if status == _TOO_LARGE and len(requests) > 1:
                        raise _TooLarge from error
                    raise
                if status == RATE_LIMITED:
                    # The queue of batches is full, or calls come too fast: that passes by itself.
                    self._say(batch, f"waits to be submitted: {failure.why or failure.what}")
                    await asyncio.sleep(max(next(pauses), batch_calls.asked_pause(error)))
                    continue
                failures += 1
                if failures == FAILURES:
                    raise
                file.note_try()
                file.note_id(await self._find(batch))
        file.release()
        self._say(batch, f"{plural(len(batch.items), 'request')} submitted")

    async def _locate(self, batch: _Batch) -> None:
        """Find out what became of a batch that another run noted.

        Raises:
            _NoBatch: it was never created.
        """
        file = batch.file
        while True:
            is_claimed = not file.id and file.claim()
            # Read again under the claim: the run that had it may just have noted the id.
            is_there = file.refresh()
            if is_there and not file.id and is_claimed:
                file.note_id(await self._find(batch))
            if file.id:
                break
            if is_claimed or not is_there:
                raise _NoBatch
            await asyncio.sleep(self._quiet)
        file.release()
        count, total = len(batch.items), len(file.digests)
        self._say(batch, f"picked up, with {count:,} of its {plural(total, 'request')} to wait for")

    async def _find(self, batch: _Batch) -> str:
        """Return the id of a batch whose creation was not answered; empty if there is none."""
        # It is one of those created since the intent, with as many requests. Which one, the custom
        # ids of its results say, and these are there once it has ended. None is a batch that is not
        # listed some time after the call: the API may have been busy with it.
        file, pauses, began = batch.file, self._pauses(), time.time()
        excluded: set[str] = set()
        while True:
            excluded |= {noted.id for noted in self._folder.read(file.origin.address)}
            listed = await self._patiently(lambda: self._list_since(file), batch.model)
            running = 0
            for candidate in listed:
                id_ = batch_calls.id_of(candidate)
                count = batch_calls.count_of(candidate)
                if id_ in excluded or count != len(file.digests):
                    continue
                if candidate.get("processing_status") != "ended":
                    running += 1
                    self._say(batch, f"may be {id_}, which shows when that has ended")
                elif await self._patiently(partial(self._is_of, candidate, file), batch.model):
                    return id_
                else:
                    excluded.add(id_)
            now = time.time()
            if not running and (now - began > self._longest or now - file.tried > _HOUR):
                return ""
            await asyncio.sleep(next(pauses))

    async def _wait_for_end(self, batch: _Batch) -> dict[str, Any]:
        """Return what the API says of a batch once it has ended.

        Raises:
            _NoBatch: there is no such batch.
            RejectedRequestError: there is none for this key, and it was made with another one.
        """
        file, pauses = batch.file, self._pauses()
        while True:
            try:
                state = await self._patiently(lambda: self._retrieve(file.id), batch.model)
            except RejectedRequestError as error:
                if error.status != _NOT_FOUND:
                    raise
                if file.origin != Origin.of(self._public_address, self._key_for(None)):
                    error.why = "it was submitted with another key, and requests of this run wait"
                    error.hint = f"set ANTHROPIC_API_KEY to that key; or remove {file.path}, and "
                    error.hint += "its requests are submitted and paid again"
                    raise
                if time.time() - file.tried > self._longest:
                    raise _NoBatch from error
            else:
                ended = batch_calls.count_of(state, ended=True)
                self._say(batch, f"{ended:,} of {batch_calls.count_of(state):,} done")
                if state.get("processing_status") == "ended":
                    return state
            await asyncio.sleep(next(pauses))

    async def _read(self, batch: _Batch, state: Mapping[str, Any]) -> None:
        """Hand out the results of a batch that has ended; what failed is asked again.

        Raises:
            _NoBatch: it has no results any more.
        """
        if not state.get("results_url"):
            raise _NoBatch
        numbers = set(batch.items)
        failed: dict[int, ProviderError] = {}
        for _ in range(_READINGS):
            count = await self._patiently(lambda: self._hand_out(batch, state, failed), batch.model)
            missing = numbers & batch.items.keys() - failed.keys()
            if not missing or count >= batch_calls.count_of(state):
                break
        gone = gave_up(f"{batch.name} has no result for a request", "its results leave it out")
        self._ask_again(batch, {**dict.fromkeys(missing, gone), **failed})

    async def _hand_out(
        self, batch: _Batch, state: Mapping[str, Any], failed: dict[int, ProviderError]
    ) -> int:
        """Read results, and return how many there are; those without a reply go to ``failed``."""
        count = 0
        async with aclosing(self._results(state)) as results:
            async for result in results:
                count += 1
                number = batch.file.number_of(result.get("custom_id"))
                item = None if number is None else batch.items.get(number)
                if number is None or item is None:
                    continue
                if item.reply.done():
                    self._let_go(batch, number)  # Nobody waits for it; its reply stays there.
                    continue
                outcome = self._outcome(batch, result.get("result"))
                if not isinstance(outcome, Reply):
                    failed[number] = outcome
                    continue
                del batch.items[number]
                if item.reply.set_running_or_notify_cancel():
                    self._delivered.add(item.digest)
                    (self._left.discard if batch.is_submitted_here else self._left.add)(outcome.id)
                    item.reply.set_result(outcome)
        return count

    def _outcome(self, batch: _Batch, result: object) -> Reply | ProviderError:
        """Return what one result says: a reply, or why there is none."""
        content = result if isinstance(result, dict) else {}
        match content.get("type"):
            case "succeeded":
                try:
                    return reply_from_body(content.get("message"))
                except TransportError as error:
                    return error
            case "errored":
                body = content.get("error")
                return status_failure(200, body, model=batch.model, address=self._address)
            case "expired":
                return gave_up(f"a request expired in {batch.name}", "it took more than 24 hours")
            case "canceled":
                return gave_up(f"{batch.name} was cancelled", "somebody did so at the API")
            case kind:
                return gave_up(f"{batch.name} has a result of the type {kind!r}", "it is unknown")

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
            if item.reply.done():
                continue
            failure, cause = self._failure(error, str(item.params["model"]))
            failure = copy.copy(failure)  # Each is raised with a traceback of its own.
            failure.__cause__ = cause
            if item.reply.set_running_or_notify_cancel():
                item.reply.set_exception(failure)

    def _say(self, batch: _Batch, words: str) -> None:
        if batch.status != words:
            batch.status = words
            with suppress(Exception):  # What shows how far it is ends no work.
                self._tell(f"{batch.name}: {words}")


def _params(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a body as it stands in a batch: nothing there is streamed."""
    return {name: value for name, value in body.items() if name != "stream"}


def _digest(params: Mapping[str, Any]) -> str:
    """Return what tells a request from others."""
    data = canonical_json(params).encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()[:32]
