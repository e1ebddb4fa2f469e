"""One queue for all that a run asks, and the driver of the flows that ask it.

A *flow* is the work on one place as steps (``turns/steps.py``): a generator that yields batches of
asks and is sent what has arrived. ``drive_flows`` drives any number of them in the caller's thread,
where stores are planned, validated and written; an ``AskQueue`` asks in an event loop of its own.
"""

import contextvars
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, Literal, TypeVar, cast

from pytest_regen.errors import RegenError, RejectedRequestError
from pytest_regen.regeneration.asking import answer_at_once, ask_model, ends_all, read_answer
from pytest_regen.regeneration.values import Answer, Ask, Known, RunState, TurnSettings
from pytest_regen.turns.background import background_loop
from pytest_regen.turns.values import Usage

R = TypeVar("R")

Batch = Sequence[Ask]
"""Asks of one piece whose answers are kept or rejected together; a failure ends the rest of it."""

Flow = Generator[Sequence[Batch], Sequence[tuple[Answer, ...]], R]
"""Yields the batches to ask next, maybe none, and is sent the answers of batches that ended.

Each batch that was yielded is answered once, in any order: by the answers to those of its asks that
were sent, in their order. They are none where something ended the run before. What is returned is
the result of the work.
"""

# Flows that may be open beside those that are asked for: they wait for answers of others.
_SPARE: Final = 32
# Seconds that an answer waits for others, because each commit waits for the disk.
_PATIENCE: Final = 2.0
# So many requests in a row that are rejected are taken for a rejection of all.
_REJECTIONS: Final = 3
# Seconds after which a wait is begun anew: on Windows nothing interrupts it, and people watch.
_TICK: Final = 0.5


def jobs_of(settings: TurnSettings) -> int:
    """Return how many pages are asked at the same time; the batch engine takes thousands."""
    is_batch = getattr(settings.provider, "is_batch", False)
    return max(1, getattr(settings.provider, "jobs", settings.jobs) if is_batch else settings.jobs)


def drive_flow(flow: Flow[R], settings: TurnSettings) -> R:
    """Drive one flow to its end and return its result; raises what it raises."""
    return only_result(_Driver([("", flow)], settings, 1).run())


def only_result(run: Iterator[tuple[str, R | RegenError]]) -> R:
    """Return the result of a run of one flow; raises what it raises."""
    ((_, result),) = run
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


@dataclass(eq=False, slots=True)
class _Batch:
    """A batch, and what came of each of its asks by now."""

    flow: "_OpenFlow[Any]"
    pages: list[Ask | Answer]
    """In their order: what is to be sent, what is known or came back."""
    state: Literal["parked", "asked", "unsent", "arrived"] = "parked"
    """It waits for the answer of another flow, is with the queue, came back from it without a
    request because the run ended, or can be handed over."""
    is_stopped: bool = False
    """Whether nothing more of it is to be sent."""

    @property
    def waiting(self) -> dict[int, Ask]:
        """What is to be sent, by its number."""
        return {number: page for number, page in enumerate(self.pages) if isinstance(page, Ask)}


# What is asked, in the event loop


class AskQueue:
    """Asks a model for pages of any number of places, so many at the same time, first come first.

    A cache entry becomes readable only once the first response has begun, so that cold parallel
    requests would each pay for writing it: of each system prompt the first ask goes alone, while
    those of others go on.

    ``put``, ``take`` and ``close`` are for the thread of the caller; the rest runs in the loop.
    """

    def __init__(self, settings: TurnSettings) -> None:
        # Here, because a run of the template alone needs neither thread nor event loop.
        import asyncio

        jobs = jobs_of(settings)
        self._warms = jobs > 1 and not getattr(settings.provider, "is_batch", False)
        self._settings = settings
        self._context = contextvars.copy_context()
        self._loop = background_loop()
        self._arrived: SimpleQueue[_Batch] = SimpleQueue()
        self._slots = asyncio.Semaphore(jobs)
        self._warm: defaultdict[tuple[str, str], asyncio.Event] = defaultdict(asyncio.Event)
        """By model and system prompt: whether it was answered once."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._rejections: int | None = None
        """Requests that were rejected since the last reply; ``None`` before the first one."""
        self.in_flight = 0
        """How many pages are being asked."""
        self.failure: RegenError | None = None
        """What would have met every request; nothing is sent any more."""

    def put(self, batch: _Batch) -> None:
        """Ask for a batch; it is taken again once it has ended."""
        self._loop.call_soon_threadsafe(self._begin, batch, context=self._context)

    def take(self, timeout: float) -> list[_Batch]:
        """Return the batches that ended since the last call; wait for one if there is none."""
        ended: list[_Batch] = []
        with suppress(Empty):
            # Only the first is waited for, because it can be handed over without the others.
            while True:
                ended.append(self._arrived.get(timeout > 0 and not ended, timeout or None))
        return ended

    def close(self) -> None:
        """Cancel all; nothing is waited for."""
        self._loop.call_soon_threadsafe(self._cancel, context=self._context)

    def _begin(self, batch: _Batch) -> None:
        task = self._loop.create_task(self._ask_for(batch), context=self._context.copy())
        # Kept, because the loop itself does not keep what it runs.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask_for(self, batch: _Batch) -> None:
        import asyncio

        # Tasks of their own, because hooks may set variables for one page.
        await asyncio.gather(*(self._ask(batch, *page) for page in batch.waiting.items()))
        self._arrived.put(batch)

    async def _ask(self, batch: _Batch, number: int, ask: Ask) -> None:
        import asyncio

        prompt = ask.request.model, ask.request.system
        is_cached = self._warms and ask.request.cache is not None
        is_first = prompt not in self._warm
        warm = self._warm[prompt]
        if is_cached and not is_first:
            # Also where it is set, so that nobody passes those who are about to go on.
            await (asyncio.sleep(0) if warm.is_set() else warm.wait())
        async with self._slots:
            # The other pages of a unit are not paid for, because half of a correction is of no use.
            if self.failure is None and not batch.is_stopped:
                self.in_flight += 1
                answer = await ask_model(ask, self._settings)
                self.in_flight -= 1
                self._tell_apart(answer)
                batch.pages[number] = answer
                batch.is_stopped |= not answer.pieces
        warm.set()

    def _tell_apart(self, answer: Answer) -> None:
        """Note what ends the run: a rejected request alone does not, but a rejected run does.

        One that is too long, say, says nothing about the next. Where money is used up the status is
        the same, but then nothing is answered any more.
        """
        if answer.pieces:
            self._rejections = 0
        match answer.failure:
            # Statuses that may be about one request: it is invalid, or too large.
            case RejectedRequestError(status=400 | 413) as failure if self._rejections is not None:
                self._rejections += 1
                failure.is_alone = self._rejections < _REJECTIONS
        if self.failure is None and ends_all(answer):
            self.failure = answer.failure

    def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()


# What is driven, in the caller's thread


@dataclass(eq=False, slots=True)
class _OpenFlow(Generic[R]):
    """A flow that has begun and not ended."""

    name: str
    steps: Flow[R]
    batches: list[_Batch] = field(default_factory=list)
    """Those that are not handed over yet, in their order."""
    since: float = 0.0
    """When the oldest came of what is not handed over."""
    is_answered: bool = False
    has_failed: bool = False
    """Whether a request of its own met what ends a run: then nothing else has to say why."""

    def having(self, *states: str) -> list[_Batch]:
        """Return the batches in one of these states."""
        return [batch for batch in self.batches if batch.state in states]

    @property
    def is_ripe(self) -> bool:
        """Whether all has arrived that is going to, or something has waited long enough."""
        has_waited = time.monotonic() - self.since >= _PATIENCE
        return not self.having("asked", "parked") or (has_waited and bool(self.having("arrived")))

    def arrive(self, batch: _Batch) -> None:
        """Note that a batch can be handed over."""
        if not self.having("arrived"):
            self.since = time.monotonic()
        batch.state = "arrived"
        self.is_answered = True


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
        self._open: list[_OpenFlow[R]] = []
        """In the order they began."""
        self._is_exhausted = False
        self._owed = 0
        self._total = total
        self._began = time.monotonic()
        self._counts: Counter[str] = Counter()
        """By their names in ``RunState``."""
        self._usage = Usage()

    def run(self) -> Iterator[tuple[str, R | RegenError]]:
        """Yield what each flow ends with."""
        try:
            while True:
                self._collect(0)
                # First that there is something to ask: what has arrived can wait, and is safe.
                if self._may_begin():
                    name, steps = next(self._flows, ("", None))
                    if steps is None:
                        self._is_exhausted = True
                        continue
                    self._open.append(_OpenFlow(name, steps))
                    yield from self._advance(self._open[-1])
                elif ripe := [flow for flow in self._open if flow.is_ripe]:
                    yield from self._advance(ripe[0])
                elif self._open:
                    self._collect(_TICK)
                else:
                    return
        except BaseException:
            self._save()
            raise
        finally:
            if self._queue is not None:
                self._queue.close()
            # Because a flow may have a candidate on trial, which it takes out as it is closed.
            for flow in self._open:
                flow.steps.close()

    def _may_begin(self) -> bool:
        if self._is_exhausted or (self._queue is not None and self._queue.failure):
            return False
        if self._jobs == 1:
            return not self._open
        waiting = self._owed - (self._queue.in_flight if self._queue else 0)
        # Flows that only wait for others take no slot; but each has a plan in memory.
        return waiting < self._jobs and len(self._open) < 2 * self._jobs + _SPARE

    def _advance(self, flow: _OpenFlow[R]) -> Iterator[tuple[str, R | RegenError]]:
        """Hand a flow what has arrived, or why nothing more is going to."""
        unsent = flow.having("unsent")
        if unsent and not flow.is_answered:
            # Nothing was asked and nothing written: as if it had not begun.
            self._open.remove(flow)
            flow.steps.close()
            return
        failure = self._queue.failure if self._queue else None
        for batch in [] if flow.having("asked") else unsent:
            # The first ask that was not sent says why.
            first = Answer(next(iter(batch.waiting.values())), failure=failure)
            batch.pages = [] if flow.has_failed else [first]
            batch.state, flow.has_failed = "arrived", True
        yield from self._resume(flow)

    def _resume(self, flow: _OpenFlow[R]) -> Iterator[tuple[str, R | RegenError]]:
        """Let a flow go on until it wants the next answers; yield its result if it ended."""
        answers, error = self._read(flow)
        result: R | RegenError
        try:
            if error is not None:
                if answers:
                    flow.steps.send(answers)  # Stored before the work ends.
                flow.steps.throw(error)
            try:
                # A generator that has not begun takes nothing but ``None``.
                for asks in flow.steps.send(answers or cast("Any", None)):
                    self._counts["pages_known"] += len(asks)
                    flow.batches.append(_Batch(flow, list(asks)))
                    self._place(flow.batches[-1])
            except RegenError as refused:
                # Into the flow and not past it, because it may hold what has to be let go.
                flow.steps.throw(refused)
        except StopIteration as end:
            result = cast("R", end.value)
        except RegenError as failure:
            result = failure
        else:
            self._tell()
            return
        self._open.remove(flow)
        self._counts["places_done"] += 1
        self._tell()
        # What waits for another flow is looked at again, for one has ended.
        for other in self._open:
            for batch in other.having("parked"):
                self._place(batch)
        yield flow.name, result

    def _read(self, flow: _OpenFlow[R]) -> tuple[list[tuple[Answer, ...]], BaseException | None]:
        """Return what has arrived for a flow, in the order asked, and what is to end its work."""
        answers: list[tuple[Answer, ...]] = []
        arrived = flow.having("arrived")
        flow.batches = [batch for batch in flow.batches if batch not in arrived]
        for batch in arrived:
            try:
                pages = [page for page in batch.pages if isinstance(page, Answer)]
                answers.append(tuple(map(read_answer, pages)))
            except BaseException as error:  # noqa: BLE001 - thrown into the flow
                # With those before it, because they are paid for and have to be stored.
                return answers, error
        return answers, None

    def _place(self, batch: _Batch) -> None:
        """Answer a batch at once, ask it of the queue, or let it wait for another flow.

        Raises:
            NoTemplateError: the template was chosen, and only a model can write this.
        """
        for number, ask in batch.waiting.items():
            claimed = ask.claim() if ask.claim is not None and ask.known is None else "ask"
            if claimed == "wait":
                return
            ready = replace(ask, known=claimed) if isinstance(claimed, Known) else ask
            batch.pages[number] = answer_at_once(ready, self._settings) or ready
        unknown = len(batch.waiting)
        self._counts["pages_done"] += len(batch.pages) - unknown
        if not unknown:
            batch.flow.arrive(batch)
            return
        if self._queue is None:
            self._queue = AskQueue(self._settings)
        batch.state = "asked"
        self._owed += unknown
        self._queue.put(batch)

    def _collect(self, timeout: float) -> None:
        """Take in what has arrived; wait for it at most so long."""
        queue = self._queue
        if queue is None:
            return
        for batch in queue.take(timeout):
            answers, flow = (page for page in batch.pages if isinstance(page, Answer)), batch.flow
            # Without those that were there before it was sent.
            turns = [page for page in answers if page.pieces or page.failure or page.fatal]
            self._owed -= len(turns) + len(batch.waiting)
            for page in turns:
                self._counts["pages_done" if page.pieces else "pages_failed"] += 1
                self._counts["calls"] += page.calls
                self._usage += page.usage
                flow.has_failed |= ends_all(page)
            if turns:
                flow.arrive(batch)
            else:
                batch.state = "unsent"
        if queue.failure is not None:
            for flow in self._open:
                for batch in flow.having("parked"):
                    batch.state = "unsent"
        self._tell()

    def _save(self) -> None:
        """Hand over what has arrived before the work is broken off; what is paid for is stored."""
        # Why the work is broken off is what the caller is told, and nothing that comes after it.
        with suppress(Exception):
            self._collect(0)
        for flow in self._open:
            answers, _ = self._read(flow)
            if answers:
                with suppress(Exception):
                    flow.steps.send(answers)

    def _tell(self) -> None:
        """Tell whoever watches how far the run is."""
        if self._settings.watch is not None:
            rate = getattr(self._settings.provider, "rate", None)
            state = RunState(
                **self._counts,
                places_total=self._total,
                in_flight=self._queue.in_flight if self._queue else 0,
                usage=self._usage,
                waiting=getattr(rate, "waiting", 0),
                elapsed=time.monotonic() - self._began,
            )
            self._settings.watch(state)
