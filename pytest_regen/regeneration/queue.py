"""One queue for all that a run asks, and the driver of the flows that ask it.

A *flow* is the work on one place as steps (``turns/steps.py``): a generator that yields batches of
asks and is sent what has arrived. ``drive_flows`` drives any number of them in the caller's thread,
where stores are planned, validated and written; an ``AskQueue`` asks in an event loop of its own.
"""

import contextvars
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, Generic, TypeVar, cast

from pytest_regen.errors import RegenError, RejectedRequestError
from pytest_regen.regeneration.asking import Turns, answer_at_once, ask_model, read_answer
from pytest_regen.regeneration.values import Answer, Ask, Known, RunState, TurnSettings
from pytest_regen.turns.background import background_loop
from pytest_regen.turns.values import Usage

if TYPE_CHECKING:
    import asyncio

R = TypeVar("R")

Batch = Sequence[Ask]
"""Asks of one piece whose answers are kept or rejected together; a failure ends the rest of it."""

Flow = Generator[Sequence[Batch], Sequence[tuple[Answer, ...]], R]
"""Yields the batches to ask next, maybe none, and is sent the answers of batches that ended.

Each batch that was yielded is answered once, in any order: by the answers to those of its asks that
were sent, in their order. They are none where something ended the run before. What is returned is
the result of the work.
"""

_GROUP: Final = 32
"""Answers that are enough for one commit."""
_PATIENCE: Final = 2.0
"""Seconds that an answer waits for others, to be committed with them."""
_OF_ONE_REQUEST: Final = frozenset({400, 413})
"""Statuses that may be about one request: it is invalid, or too large."""
_REJECTIONS: Final = 3
"""So many in a row are taken for a rejection of all."""
_TICK: Final = 1.0
"""Seconds after which a wait is begun anew: on Windows nothing interrupts it, and people watch."""


def jobs_of(settings: TurnSettings) -> int:
    """Return how many pages are asked at the same time; the batch engine takes thousands."""
    if getattr(settings.provider, "is_batch", False):
        jobs: int = getattr(settings.provider, "jobs", settings.jobs)
        return max(1, jobs)
    return max(1, settings.jobs)


def drive_flow(flow: Flow[R], settings: TurnSettings) -> R:
    """Drive one flow to its end and return its result; raises what it raises."""
    ((_, result),) = _Driver([("", flow)], settings, 1).run()
    if isinstance(result, RegenError):
        raise result
    return result


def drive_flows(
    flows: Iterable[tuple[str, Flow[R]]], settings: TurnSettings, *, total: int | None = None
) -> Iterator[tuple[str, R | RegenError]]:
    """Drive flows at the same time; yield the name of each with its result, as they finish.

    The next flow begins only while fewer asks wait than may be under way, so that few are open at a
    time. With one job flows follow one another. After a failure that would meet every request
    nothing more is sent, and flows that got no answer are left out.

    Args:
        flows: names and flows; one is taken when it begins.
        settings: with what, and within which limits, pages are asked; the flows have the same.
        total: how many flows there are, where that is known; for ``settings.watch``.

    Raises:
        Exception: what a flow raised that is no ``RegenError``, an interruption for one. What has
            arrived by then is handed to the flows; what is under way is not waited for.
    """
    yield from _Driver(flows, settings, total).run()


# What is asked, in the event loop


@dataclass(slots=True)
class Asked:
    """A batch on its way, and what came back of it."""

    id: int
    rank: int
    """Of the flow: those that began first go first, so that they end, and their plans with them."""
    asks: Sequence[Ask]
    sent: dict[int, Turns | None] = field(default_factory=dict)
    """Number of each ask that was sent, and what came back if it ended."""
    is_stopped: bool = False
    """Whether nothing more of it is to be sent."""

    @property
    def is_over(self) -> bool:
        """Whether everything that was sent has ended, and nothing more will be."""
        is_all_sent = self.is_stopped or len(self.sent) == len(self.asks)
        return is_all_sent and None not in self.sent.values()

    @property
    def turns(self) -> list[Turns]:
        """What came back, in the order of the asks."""
        return [turns for _, turns in sorted(self.sent.items()) if turns is not None]


_Prompt = tuple[str, str]
"""A model and a system prompt."""


class AskQueue:
    """Asks a model for pages of any number of places, so many at the same time.

    A cache entry becomes readable only once the first response has begun, so that cold parallel
    requests would each pay for writing it: of each system prompt the first ask goes alone, while
    those of others go on.

    ``put``, ``take`` and ``close`` are for the thread of the caller; the rest runs in the loop.
    """

    def __init__(self, settings: TurnSettings) -> None:
        self._jobs = jobs_of(settings)
        self._warms = self._jobs > 1 and not getattr(settings.provider, "is_batch", False)
        self._settings = settings
        self._context = contextvars.copy_context()
        self._loop = background_loop()
        self._arrived: SimpleQueue[Asked] = SimpleQueue()
        self._ready: list[tuple[int, int, int]] = []
        """A heap: rank and id of a batch, and the number of an ask in it."""
        self._batches: dict[int, Asked] = {}
        self._warm: set[_Prompt] = set()
        self._held: dict[_Prompt, list[tuple[int, int, int]]] = {}
        """Asks that wait for the first one of their system prompt."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._rejections: int | None = None
        """Requests that were rejected since the last reply; ``None`` before the first one."""
        self.failure: RegenError | None = None
        """What would have met every request; nothing is sent any more."""

    @property
    def in_flight(self) -> int:
        """How many pages are being asked."""
        return len(self._tasks)

    def put(self, batch: Asked) -> None:
        """Ask for a batch; it is taken again once it has ended."""
        self._loop.call_soon_threadsafe(self._begin, batch, context=self._context)

    def take(self, timeout: float) -> list[Asked]:
        """Return the batches that ended since the last call; wait for one if there is none."""
        ended: list[Asked] = []
        with suppress(Empty):
            while True:
                ended.append(self._arrived.get(timeout > 0 and not ended, timeout or None))
        return ended

    def close(self) -> None:
        """Cancel all; nothing is waited for."""
        self._loop.call_soon_threadsafe(self._cancel, context=self._context)

    def _begin(self, batch: Asked) -> None:
        self._batches[batch.id] = batch
        if self.failure is not None:
            batch.is_stopped = True
            self._end(batch)
            return
        for number in range(len(batch.asks)):
            heappush(self._ready, (batch.rank, batch.id, number))
        self._send()

    def _send(self) -> None:
        """Send what is next, as far as there are slots."""
        while self._ready and len(self._tasks) < self._jobs:
            place = heappop(self._ready)
            # It stays in the heap when its batch ends, because to find it there takes longer.
            batch = self._batches.get(place[1])
            if batch is None or batch.is_stopped:
                continue
            request = batch.asks[place[2]].request
            prompt = request.model, request.system
            if self._warms and request.cache is not None and prompt not in self._warm:
                if prompt in self._held:
                    self._held[prompt].append(place)
                    continue
                self._held[prompt] = []
            batch.sent[place[2]] = None
            # A context of its own, because hooks may set variables for one page.
            asking = self._ask(batch, place[2], prompt)
            self._tasks.add(self._loop.create_task(asking, context=self._context.copy()))

    async def _ask(self, batch: Asked, number: int, prompt: _Prompt) -> None:
        import asyncio

        turns = await ask_model(batch.asks[number], self._settings)
        # The slot is free before anything is read from the reply or stored.
        self._tasks.discard(cast("asyncio.Task[None]", asyncio.current_task()))
        self._tell_apart(turns)
        batch.sent[number] = turns
        self._warm.add(prompt)
        for place in self._held.pop(prompt, ()):
            heappush(self._ready, place)
        # The other pages of a unit are not paid for, because half of a correction is of no use.
        batch.is_stopped |= turns.error is not None or turns.failure is not None
        self._end(batch)
        if self.failure is None and turns.ends_all:
            self.failure = turns.failure
            self._ready.clear()
            self._held.clear()
            for waiting in list(self._batches.values()):
                waiting.is_stopped = True
                self._end(waiting)
        self._send()

    def _tell_apart(self, turns: Turns) -> None:
        """Tell a request that is rejected for what it asks from a run that is rejected.

        One that is too long, say, says nothing about the next. Where money is used up the status is
        the same, but then nothing is answered any more.
        """
        failure = turns.failure
        if turns.whole is not None:
            self._rejections = 0
        elif self._rejections is None or not isinstance(failure, RejectedRequestError):
            return
        elif failure.status in _OF_ONE_REQUEST:
            self._rejections += 1
            failure.is_alone = self._rejections < _REJECTIONS

    def _end(self, batch: Asked) -> None:
        """Hand a batch back once nothing of it is under way or to be sent."""
        if batch.is_over:
            del self._batches[batch.id]
            self._arrived.put(batch)

    def _cancel(self) -> None:
        self._ready.clear()
        self._held.clear()
        self._batches.clear()
        for task in self._tasks:
            task.cancel()


# What is driven, in the caller's thread


@dataclass(slots=True)
class _OpenFlow(Generic[R]):
    """A flow that has begun and not ended."""

    name: str
    rank: int
    steps: Flow[R]
    is_started: bool = False
    owed: dict[int, list[Ask | Answer]] = field(default_factory=dict)
    """By id of the batch: what the queue was asked, with answers in the places of what is known."""
    parked: dict[int, Batch] = field(default_factory=dict)
    """What waits for the answer of another flow."""
    unsent: dict[int, Batch] = field(default_factory=dict)
    """What is not sent because the run ended."""
    arrived: dict[int, list[Turns | Answer]] = field(default_factory=dict)
    """What came back and is not handed over yet."""
    since: float = 0.0
    """When the oldest of it came."""
    is_answered: bool = False
    has_failed: bool = False
    """Whether a request of its own met what ends a run: then nothing else has to say why."""

    def is_ripe(self, now: float) -> bool:
        """Return whether it is time to hand over what has arrived."""
        if not self.owed and not self.parked:
            return True
        pages = sum(map(len, self.arrived.values()))
        return pages >= _GROUP or (pages > 0 and now - self.since >= _PATIENCE)

    def arrive(self, id_: int, outcome: list[Turns | Answer]) -> None:
        """Note what came back for a batch."""
        if not self.arrived:
            self.since = time.monotonic()
        self.arrived[id_] = outcome
        self.is_answered = True

    def give_up(self, failure: RegenError) -> None:
        """Put what was not sent among what has arrived; the first such ask says why."""
        for id_, batch in self.unsent.items():
            lost: list[Turns | Answer] = (
                [] if self.has_failed else [Answer(batch[0], failure=failure)]
            )
            self.arrived[id_] = lost
            self.has_failed = True
        self.unsent.clear()


class _Driver(Generic[R]):
    """Flows that are driven at the same time."""

    def __init__(
        self, flows: Iterable[tuple[str, Flow[R]]], settings: TurnSettings, total: int | None
    ) -> None:
        self._flows = iter(flows)
        self._settings = settings
        self._jobs = jobs_of(settings)
        self._queue: AskQueue | None = None
        """Made by the first ask that needs a model."""
        self._open: dict[int, _OpenFlow[R]] = {}
        """By rank: in the order they began."""
        self._owners: dict[int, _OpenFlow[R]] = {}
        """The flow of each batch that the queue was asked for."""
        self._is_exhausted = False
        self._last_rank = self._last_batch = self._owed = 0
        self._report = _Report(settings, total)

    def run(self) -> Iterator[tuple[str, R | RegenError]]:
        """Yield what each flow ends with."""
        try:
            while True:
                self._collect(0)
                # First that there is something to ask: what has arrived can wait, and is safe.
                if self._may_begin():
                    yield from self._begin()
                    continue
                now = time.monotonic()
                ripe = next((flow for flow in self._open.values() if flow.is_ripe(now)), None)
                if ripe is not None:
                    yield from self._advance(ripe)
                elif self._open:
                    self._collect(self._seconds())
                else:
                    return
        except BaseException:
            self._save()
            raise
        finally:
            if self._queue is not None:
                self._queue.close()
            for flow in self._open.values():
                flow.steps.close()

    def _may_begin(self) -> bool:
        if self._is_exhausted or (self._queue is not None and self._queue.failure):
            return False
        if self._jobs == 1:
            return not self._open
        waiting = self._owed - (self._queue.in_flight if self._queue else 0)
        # Flows that only wait for others take no slot; but each has a plan in memory.
        return waiting < self._jobs and len(self._open) < 2 * self._jobs + _GROUP

    def _begin(self) -> Iterator[tuple[str, R | RegenError]]:
        try:
            name, steps = next(self._flows)
        except StopIteration:
            self._is_exhausted = True
            return
        self._last_rank += 1
        flow = self._open[self._last_rank] = _OpenFlow(name, self._last_rank, steps)
        yield from self._resume(flow, ())

    def _seconds(self) -> float:
        """Return how long it may take until a flow is ripe, if nothing arrives."""
        began = [flow.since for flow in self._open.values() if flow.arrived]
        left = min(began) + _PATIENCE - time.monotonic() if began else _TICK
        return min(max(left, 0.0), _TICK)

    def _advance(self, flow: _OpenFlow[R]) -> Iterator[tuple[str, R | RegenError]]:
        """Hand a flow what has arrived for it."""
        if flow.unsent and self._queue is not None and self._queue.failure is not None:
            if not flow.is_answered:
                # Nothing was asked and nothing written: as if it had not begun.
                del self._open[flow.rank]
                flow.steps.close()
                return
            if not flow.owed:
                flow.give_up(self._queue.failure)
        yield from self._resume(flow, *self._read(flow))

    def _read(self, flow: _OpenFlow[R]) -> tuple[list[tuple[Answer, ...]], BaseException | None]:
        """Return what has arrived for a flow, in the order asked, and what is to end its work."""
        answers: list[tuple[Answer, ...]] = []
        arrived, flow.arrived = sorted(flow.arrived.items()), {}
        for _, outcome in arrived:
            try:
                answers.append(
                    tuple(
                        page if isinstance(page, Answer) else read_answer(page, self._settings)
                        for page in outcome
                    )
                )
            except BaseException as error:  # noqa: BLE001 - thrown into the flow
                return answers, error
        return answers, None

    def _resume(
        self,
        flow: _OpenFlow[R],
        answers: Sequence[tuple[Answer, ...]],
        error: BaseException | None = None,
    ) -> Iterator[tuple[str, R | RegenError]]:
        """Let a flow go on until it wants the next answers; yield its result if it ended."""
        result: R | RegenError
        try:
            if error is not None:
                if answers:
                    flow.steps.send(answers)  # Stored before the work ends.
                flow.steps.throw(error)
            batches = flow.steps.send(answers) if flow.is_started else next(flow.steps)
            flow.is_started = True
            try:
                for batch in batches:
                    self._last_batch += 1
                    self._report.pages_known += len(batch)
                    self._place(flow, self._last_batch, batch)
            except RegenError as refused:
                # Into the flow and not past it, because it may hold what has to be let go.
                flow.steps.throw(refused)
        except StopIteration as end:
            result = cast("R", end.value)
        except RegenError as failure:
            result = failure
        else:
            self._report.tell(self._queue)
            return
        del self._open[flow.rank]
        self._report.places_done += 1
        self._report.tell(self._queue)
        self._unpark()
        yield flow.name, result

    def _place(self, flow: _OpenFlow[R], id_: int, batch: Batch) -> None:
        """Answer a batch at once, ask it of the queue, or let it wait for another flow.

        Raises:
            NoTemplateError: the template was chosen, and only a model can write this.
        """
        asks: list[Ask] = []
        for ask in batch:
            claimed = ask.claim() if ask.claim is not None and ask.known is None else "ask"
            if claimed == "wait":
                flow.parked[id_] = batch
                return
            asks.append(replace(ask, known=claimed) if isinstance(claimed, Known) else ask)
        outcome = [answer_at_once(ask, self._settings) or ask for ask in asks]
        unknown = [ask for ask in outcome if isinstance(ask, Ask)]
        self._report.pages_done += len(asks) - len(unknown)
        if not unknown:
            flow.arrive(id_, [answer for answer in outcome if isinstance(answer, Answer)])
            return
        # Late, because a run of the template alone needs neither thread nor event loop.
        if self._queue is None:
            self._queue = AskQueue(self._settings)
        flow.owed[id_] = outcome
        self._owners[id_] = flow
        self._owed += len(unknown)
        self._queue.put(Asked(id_, flow.rank, unknown))

    def _unpark(self) -> None:
        """Look again at what waits for another flow, for one has ended."""
        # Copies, because what is placed may be parked again meanwhile.
        for flow in list(self._open.values()):
            for id_, batch in list(flow.parked.items()):
                del flow.parked[id_]
                self._place(flow, id_, batch)

    def _collect(self, timeout: float) -> None:
        """Take in what has arrived; wait for it at most so long."""
        queue = self._queue
        if queue is None:
            return
        for batch in queue.take(timeout):
            flow = self._owners.pop(batch.id)
            owed = flow.owed.pop(batch.id)
            self._owed -= len(batch.asks)
            self._report.add(batch.turns)
            flow.has_failed |= any(turns.ends_all for turns in batch.turns)
            sent = {id(turns.ask): turns for turns in batch.turns}
            if sent:
                outcome = [
                    page if isinstance(page, Answer) else sent.get(id(page)) for page in owed
                ]
                flow.arrive(batch.id, [page for page in outcome if page is not None])
            else:
                flow.unsent[batch.id] = batch.asks
        if queue.failure is not None:
            for flow in self._open.values():
                flow.unsent |= flow.parked
                flow.parked.clear()
        self._report.tell(queue)

    def _save(self) -> None:
        """Hand over what has arrived before the work is broken off; what is paid for is stored."""
        # Why the work is broken off is what the caller is told, and nothing that comes after it.
        with suppress(Exception):
            self._collect(0)
        for flow in self._open.values():
            answers, _ = self._read(flow)
            if answers:
                with suppress(Exception):
                    flow.steps.send(answers)


class _Report:
    """What a run tells of itself."""

    def __init__(self, settings: TurnSettings, total: int | None) -> None:
        self._settings = settings
        self._total = total
        self._began = time.monotonic()
        self._usage = Usage()
        self.places_done = self.pages_done = self.pages_known = self.pages_failed = 0
        self._calls = 0

    def add(self, arrived: Iterable[Turns]) -> None:
        """Count what came back."""
        for turns in arrived:
            self.pages_done += turns.whole is not None
            self.pages_failed += turns.whole is None
            self._calls += turns.tally.calls
            self._usage += turns.tally.usage

    def tell(self, queue: AskQueue | None) -> None:
        """Tell whoever watches how far the run is."""
        watch = self._settings.watch
        if watch is None:
            return
        rate = getattr(self._settings.provider, "rate", None)
        watch(
            RunState(
                self.places_done,
                self._total,
                self.pages_done,
                self.pages_known,
                self.pages_failed,
                queue.in_flight if queue else 0,
                self._calls,
                self._usage,
                getattr(rate, "limit", None),
                getattr(rate, "waiting", 0),
                time.monotonic() - self._began,
            )
        )
