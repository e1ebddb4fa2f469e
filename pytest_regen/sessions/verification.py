"""Generate, verify, repair: the loop that policies and items of any type go through."""

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Literal, TypeVar

from pytest_regen.errors import BudgetError, NoProgressError, ProviderError, UsageError
from pytest_regen.sessions.item_session import ItemFault, ItemFeedback, ItemSession
from pytest_regen.text import plural
from pytest_regen.turns.steps import adrive, drive, in_thread, tell

T = TypeVar("T")
R = TypeVar("R")

LoopStop = Literal["passed", "no_progress", "attempts"]
Oracle = Callable[[T], str | None]
"""Returns what is wrong with an item, in words for the model; ``None`` where nothing is."""

FAILED_TURN = (ProviderError, BudgetError, NoProgressError)
"""What ends one turn with a model and not the run: what was reached so far is kept."""


@dataclass(frozen=True, slots=True)
class PartCall:
    """A method of one part by its plain name, and what it is given."""

    part: object
    method: str
    arguments: tuple[object, ...] = ()


PartCalls = Generator[PartCall, Any, R]
"""Yields calls, is sent what they return, has thrown into it what they raise."""


class PartCaller:
    """Makes the calls."""

    def send(self, call: PartCall, /) -> object:
        """Return what the method returns.

        Raises:
            UsageError: the part does not have it.
        """
        return _method(call)(*call.arguments)

    async def asend(self, call: PartCall, /) -> object:
        """Return what the asynchronous twin of the method returns, or the method in a thread.

        Raises:
            UsageError: the part has neither.
        """
        # The twin first, because a method that waits would hold up the event loop.
        twin = getattr(call.part, f"a{call.method}", None)
        if twin is not None:
            return await twin(*call.arguments)
        return await in_thread(_method(call), *call.arguments)


def _method(call: PartCall) -> Callable[..., object]:
    method: Callable[..., object] | None = getattr(call.part, call.method, None)
    if method is None:
        raise UsageError(
            f"{type(call.part).__name__} has no {call.method}()",
            why="the loop asks for it",
            hint=f"add it; or, where a{call.method}() is there, await acompile_verify_repair(…)",
        )
    return method


def wrong_type(part: object, method: str, value: object, right: str) -> UsageError:
    """Return the error of a part of the caller's that returned something else."""
    return UsageError(
        f"{method} of {getattr(part, '__name__', type(part).__name__)} returned {value!r:.200}",
        why=f"it is of type {type(value).__name__}, and the loop needs {right}",
        hint=f"let it return {right}",
    )


def check_list(value: object, type_: type[T], method: str, part: object) -> list[T]:
    """Return what a part gave as a list, if it is one of such values.

    Raises:
        UsageError: it is something else.
    """
    if not isinstance(value, list | tuple) or not all(isinstance(item, type_) for item in value):
        raise wrong_type(part, method, value, f"a list of {type_.__name__}")
    return list(value)


def repeat(
    verify: Callable[[int], PartCalls[bool]],
    repair: Callable[[int], PartCalls[bool]],
    state: Callable[[], object],
    attempts: int,
) -> PartCalls[LoopStop]:
    """Verify and repair until everything passes, attempts are used up or nothing changes.

    Args:
        verify: returns whether nothing is left to repair; attempts count from 1.
        repair: returns whether another attempt about the same state would be the same.
        state: returns what a repair has to change.
        attempts: times that a repair is tried.
    """
    for attempt in range(1, attempts + 2):
        if (yield from verify(attempt)):
            return "passed"
        if attempt > attempts:
            break
        before = state()
        is_final = yield from repair(attempt)
        # What changed may pass now, so that only a repair without effect ends the run early.
        if is_final and state() == before:
            return "no_progress"
    return "attempts"


@dataclass(frozen=True)  # No slots, because ``VerifiedItems[Row](…)`` would not work.
class VerifiedItems(Generic[T]):
    """How a run of ``generate_verify_repair`` ended."""

    passed: bool
    """Whether every item that was written is right by the oracle, and there is one."""
    stop_reason: LoopStop
    items: tuple[T, ...]
    """Those that the oracle found right, as they were when it did."""
    faults: tuple[ItemFault[T], ...] = ()
    """Those that are still wrong, each with what the oracle says."""
    repairs: int = 0
    notes: tuple[str, ...] = ()
    """Turns that failed, and why."""


class _ItemRun(Generic[T]):
    def __init__(
        self, session: ItemSession[T], oracle: Oracle[T], progress: Callable[[str], None] | None
    ) -> None:
        self._session = session
        self._oracle = oracle
        self._tell = partial(tell, progress)
        self._items: dict[str, T] = {}
        self._problems: dict[str, str] = {}
        self._judged: set[str] = set()
        self._repairs = 0
        self._notes: list[str] = []

    def run(self, max_repairs: int) -> PartCalls[VerifiedItems[T]]:
        generated = yield PartCall(self._session, "generate")
        self._items = {self._session.key_of(item): item for item in generated}
        stop = yield from repeat(self.verify, self.repair, self.snapshot, max_repairs)
        right = tuple(item for key, item in self._items.items() if key not in self._problems)
        passed, notes = stop == "passed" and bool(right), tuple(self._notes)
        return VerifiedItems(passed, stop, right, self._faults(), self._repairs, notes)

    def _faults(self) -> tuple[ItemFault[T], ...]:
        return tuple(ItemFault(self._items[key], text) for key, text in self._problems.items())

    def verify(self, attempt: int) -> PartCalls[bool]:
        """Ask the oracle about each item that it has not seen."""
        del attempt
        for key, item in self._items.items():
            if key in self._judged:
                continue
            # Each once, because an oracle may be slow, and what was right is never looked at again.
            problem = yield PartCall(self._oracle, "__call__", (item,))
            if problem is not None and not isinstance(problem, str):
                raise wrong_type(self._oracle, "the oracle", problem, "a text or None")
            self._judged.add(key)
            if problem is not None:
                self._problems[key] = problem or "the oracle refuses it"
        return not self._problems

    def repair(self, attempt: int) -> PartCalls[bool]:
        self._tell(f"{plural(len(self._problems), 'item')} failed, repair {attempt}...")
        self._repairs = attempt
        feedback = ItemFeedback(corrections=self._faults())
        try:
            items: Iterable[T] = yield PartCall(self._session, "regenerate", (feedback,))
        except FAILED_TURN as error:
            self._notes.append(f"no replacements: {error}")
            return True
        for item in items:
            key = self._session.key_of(item)
            # What was right stays, whatever came: only a faulty item gives way.
            if key in self._problems or key not in self._items:
                self._items[key] = item
                self._problems.pop(key, None)
                self._judged.discard(key)
        return True

    def snapshot(self) -> object:
        return dict(self._items), dict(self._problems)


def generate_verify_repair(
    session: ItemSession[T],
    oracle: Oracle[T],
    *,
    max_repairs: int = 2,
    on_progress: Callable[[str], None] | None = None,
) -> VerifiedItems[T]:
    """Have items written, ask an oracle about each, and have those replaced that are wrong.

    The oracle decides alone: an item is verified only where it says ``None``. Items that are right
    are never asked for again, and stay as they were. A turn that fails ends no run.

    Args:
        session: of which no turn was taken.
        oracle: says what is wrong with an item, in words for the model, or ``None``: a parser, a
            database, a program under test.
        max_repairs: times that what is wrong is asked for again.
        on_progress: called with one line per step.

    Raises:
        RegenError: the first items could not be made.
        UsageError: the oracle returns neither words nor ``None``.
    """
    return drive(_ItemRun(session, oracle, on_progress).run(max_repairs), PartCaller())


async def agenerate_verify_repair(
    session: ItemSession[T],
    oracle: Oracle[T],
    *,
    max_repairs: int = 2,
    on_progress: Callable[[str], None] | None = None,
) -> VerifiedItems[T]:
    """Do as ``generate_verify_repair`` without blocking the event loop; the oracle gets threads."""
    run = _ItemRun(session, oracle, on_progress).run(max_repairs)
    return await adrive(run, PartCaller())
