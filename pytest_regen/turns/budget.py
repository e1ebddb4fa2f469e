"""A limit on tokens, shared by every thread, process and machine that spends from it.

Where the sum stands is a *ledger*: in memory, in a file that the processes of one machine share, or
in what an own class keeps: a row of a database, a variable of a scheduler.
"""

import threading
from pathlib import Path
from typing import Protocol, runtime_checkable

from pytest_regen.errors import BudgetError, UsageError
from pytest_regen.turns.values import Usage


class TokenBudget(Protocol):
    """A limit on the tokens of calls, as ``Budget``; called in any thread."""

    def reserve(self, estimate: int) -> int:
        """Take tokens before a call and return them, or raise ``BudgetError``."""
        ...

    def settle(self, reserved: int, usage: Usage | None) -> None:
        """Replace a reservation by what was used, ``None`` if the call was not made."""
        ...


@runtime_checkable
class TokenLedger(Protocol):
    """The sum of tokens spent, wherever it is kept; called in any thread.

    Processes on several machines spend from one budget when each makes its ``Budget`` with a ledger
    that reaches the same sum.
    """

    def add(self, tokens: int, limit: int | None) -> int:
        """Add to the sum unless it would exceed ``limit``; return the sum as it was before.

        Both in one step: of two callers that want the last tokens one gets them.

        Args:
            tokens: what to add; negative to give back, 0 to look.
            limit: tokens; ``None`` to add them whatever the sum.
        """
        ...


class Budget:
    """Tokens that may still be spent.

    A call reserves its estimate before it is made and settles with what it really used, so two
    workers can never both take the last of the budget. A process that is killed leaves what it had
    reserved in the sum.

    Args:
        limit: tokens, input, output and cache together; ``None`` for no limit.
        ledger: where the sum is kept: a file shared by all processes of a machine, or an object
            that reaches further; ``None`` keeps it in this process. Only a budget with a ledger
            can be pickled.
    """

    def __init__(
        self, limit: int | None = None, ledger: "Path | TokenLedger | None" = None
    ) -> None:
        self.limit = limit
        self._given = ledger.absolute() if isinstance(ledger, Path) else ledger
        self._ledger = _File(ledger) if isinstance(ledger, Path) else ledger or _Memory()

    def __reduce__(self) -> tuple[object, ...]:
        if self._given is None:
            raise TypeError(
                "a budget without a ledger cannot be pickled: each process would have the whole of "
                "it; give it a ledger, Budget(limit, ledger=Path(...))"
            )
        return type(self), (self.limit, self._given)

    @property
    def spent(self) -> int:
        """Tokens spent or reserved so far, by everyone."""
        return self._ledger.add(0, None)

    def reserve(self, estimate: int) -> int:
        """Take ``estimate`` tokens before a call and return them, for ``settle``.

        Raises:
            BudgetError: they are not there; the call must not be made.
        """
        spent = self._ledger.add(estimate, self.limit)
        if self.limit is not None and spent + estimate > self.limit:
            raise BudgetError(
                f"the token budget of {self.limit:,} does not cover the next call: "
                f"{spent:,} are spent, about {estimate:,} more are needed",
                needed=spent + estimate,
                why="a call is made only while its estimate fits the budget",
                hint=f"run again with a budget of {2 * (spent + estimate)}, --regen-budget in "
                "pytest and --budget in commands, or narrow the run",
            )
        return estimate

    def settle(self, reserved: int, usage: Usage | None) -> None:
        """Replace a reservation by what was used.

        Unknown usage keeps the reservation: a provider that does not count must not make the
        budget endless. ``None`` gives it back: the call was not made.
        """
        actual = 0
        if usage is not None:
            is_counted = (usage.input_tokens, usage.output_tokens) != (None, None)
            actual = usage.total_tokens if is_counted else reserved
        if actual != reserved:
            self._ledger.add(actual - reserved, None)


class _Memory:
    """A sum of this process."""

    def __init__(self) -> None:
        self._sum = 0
        self._lock = threading.Lock()

    def add(self, tokens: int, limit: int | None) -> int:
        with self._lock:
            before = self._sum
            if limit is None or before + tokens <= limit:
                self._sum += tokens
        return before


class _File:
    """A sum of all processes of a machine: each line of a file is one change of it."""

    # Appended under a lock, so a killed worker leaves a ledger that still adds up. Only lines that
    # are new since the last look are read.

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._sum = self._read = 0
        """What the first bytes of the file add up to, and how many those are."""

    def add(self, tokens: int, limit: int | None) -> int:
        from filelock import FileLock

        with self._lock, FileLock(f"{self._path}.lock"), self._path.open("a+b") as file:
            size = file.seek(0, 2)
            if size < self._read:
                self._sum = self._read = 0  # It was begun anew.
            file.seek(self._read)
            *lines, torn = file.read().split(b"\n")
            try:
                self._sum += sum(int(line or b"0") for line in lines)
            except ValueError as error:
                raise UsageError(
                    f"{self._path} is not the ledger of a budget: {error}",
                    why="each of its lines is a number of tokens",
                    hint="name a file that nothing else writes, or remove it to begin anew",
                ) from None
            self._read = size - len(torn)
            before = self._sum
            if tokens and (limit is None or before + tokens <= limit):
                # What has no line end was cut by a kill; its call was never made.
                file.truncate(self._read)
                self._read += file.write(b"%d\n" % tokens)
                self._sum += tokens
        return before
