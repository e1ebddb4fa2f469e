"""The turns of a session: one at a time, counted once committed, reported in any case."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pytest_regen.errors import BudgetError, UsageError
from pytest_regen.plurals import counted
from pytest_regen.sessions.conversation import Account, SessionSettings
from pytest_regen.sessions.transcript import Transcript, TurnReport, report_turn
from pytest_regen.turns.values import Usage

__all__ = ["SessionBase", "Turn", "TurnLog"]


@dataclass(slots=True)
class Turn:
    """A turn under way."""

    number: int
    """Counted from 1."""
    notes: list[str] = field(default_factory=list)
    """For its report: what was left out of the replies, and why."""
    is_committed: bool = False
    """Whether it has entered the history, and counts."""


class TurnLog:
    """Which turns a session has taken, and which it tried.

    Args:
        account: where their calls are entered.
        max_turns: committed turns after which another one is refused; ``None`` for no limit.

    Attributes:
        count: committed turns.
        reports: one per turn tried.
    """

    def __init__(self, account: Account, max_turns: int | None) -> None:
        self.count = 0
        self.reports: tuple[TurnReport, ...] = ()
        self._account = account
        self._max_turns = max_turns
        self._busy = threading.Lock()

    def restore(self, count: int) -> None:
        """Go on from so many committed turns."""
        self.count = count

    @contextmanager
    def turn(self) -> Iterator[Turn]:
        """Hold the session for one turn, and report the turn, also one that fails.

        Raises:
            UsageError: another turn is under way; two at once would be lost in one history.
            BudgetError: all turns are taken.
        """
        if not self._busy.acquire(blocking=False):
            raise UsageError(
                "another turn of this session is under way",
                why="each turn is asked in the light of the one before it",
                hint="wait for the other turn, or use a session of its own",
            )
        try:
            self._check_limit()
            yield from self._reported(Turn(self.count + 1))
        finally:
            self._busy.release()

    def _check_limit(self) -> None:
        limit = self._max_turns
        if limit is not None and self.count >= limit:
            raise BudgetError(
                f"the session has taken {counted(limit, 'turn')} of {limit:,}",
                why="max_turns bounds what a session may spend",
                hint="raise max_turns, or start a new session",
            )

    def _reported(self, turn: Turn) -> Iterator[Turn]:
        since, failure = len(self._account.transcript), ""
        try:
            yield turn
        except BaseException as error:
            failure = str(error) or type(error).__name__
            raise
        finally:
            self.count += turn.is_committed
            report = report_turn(
                self._account.transcript,
                turn.number,
                since=since,
                committed=turn.is_committed,
                notes=turn.notes,
                failure=failure,
            )
            self.reports = (*self.reports, report)


class SessionBase:
    """What all sessions have: an account of their calls and a log of their turns.

    Args:
        settings: with whom and within which limits the session talks.
    """

    def __init__(self, settings: SessionSettings) -> None:
        self._settings = settings
        self._account = Account(settings)
        self._log = TurnLog(self._account, settings.max_turns)

    @property
    def fingerprint(self) -> str:
        """Hash of what its replies depend on, whatever was asked so far."""
        raise NotImplementedError  # pragma: no cover - each session says it

    @property
    def transcript(self) -> Transcript:
        """Every call made: failed and cancelled ones, repairs and continuations included."""
        return self._account.transcript

    @property
    def turn_count(self) -> int:
        """Committed turns."""
        return self._log.count

    @property
    def usage(self) -> Usage:
        """Tokens of all calls, those of failed turns included: they are paid."""
        return self._account.usage

    @property
    def reports(self) -> tuple[TurnReport, ...]:
        """One report per turn tried since the session was made or restored."""
        return self._log.reports
