"""A limit on tokens, shared by every thread and process that spends from it.

With a ledger file the limit holds across pytest-xdist workers: each line is one change of the sum,
appended under a lock, so a killed worker leaves a ledger that still adds up.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from pytest_regen.errors import BudgetError
from pytest_regen.turns.values import Usage

__all__ = ["Budget", "TokenBudget"]


class TokenBudget(Protocol):
    """A limit on the tokens of calls, as ``Budget``."""

    def reserve(self, estimate: int) -> int:
        """Take tokens before a call and return them, or raise ``BudgetError``."""
        ...

    def settle(self, reserved: int, usage: Usage | None) -> None:
        """Replace a reservation by what was used, ``None`` if the call was not made."""
        ...


class Budget:
    """Tokens that may still be spent.

    A call reserves its estimate before it is made and settles with what it really used, so two
    workers can never both take the last of the budget.

    Args:
        limit: tokens, input, output and cache together; ``None`` for no limit.
        ledger: file shared by all processes; ``None`` keeps the sum in this process.
    """

    def __init__(self, limit: int | None = None, ledger: Path | None = None) -> None:
        self.limit = limit
        self._ledger = ledger
        self._changes: list[int] = []
        self._lock = threading.Lock()

    @property
    def spent(self) -> int:
        """Tokens spent or reserved so far, by everyone."""
        with self._exclusive():
            return self._sum()

    def reserve(self, estimate: int) -> int:
        """Take ``estimate`` tokens before a call and return them, for ``settle``.

        Raises:
            BudgetError: they are not there; the call must not be made.
        """
        with self._exclusive():
            spent = self._sum()
            if self.limit is not None and spent + estimate > self.limit:
                raise self._refusal(spent, estimate)
            self._append(estimate)
        return estimate

    def settle(self, reserved: int, usage: Usage | None) -> None:
        """Replace a reservation by what was used.

        Unknown usage keeps the reservation: a provider that does not count must not make the
        budget endless. ``None`` gives it back: the call was not made.
        """
        if usage is None:
            actual = 0
        else:
            known = usage.input_tokens is not None or usage.output_tokens is not None
            actual = usage.total_tokens if known else reserved
        if actual != reserved:
            with self._exclusive():
                self._append(actual - reserved)

    def _refusal(self, spent: int, estimate: int) -> BudgetError:
        return BudgetError(
            f"the token budget of {self.limit:,} does not cover the next call: "
            f"{spent:,} are spent, about {estimate:,} more are needed",
            needed=spent + estimate,
            why="a call is made only while its estimate fits the budget",
            hint=f"run again with a budget of {2 * (spent + estimate)}, --regen-budget in "
            "pytest and --budget in commands, or narrow the run",
        )

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        with self._lock:
            if self._ledger is None:
                yield
                return
            from filelock import FileLock

            with FileLock(f"{self._ledger}.lock"):
                yield

    def _sum(self) -> int:
        if self._ledger is None:
            return sum(self._changes)
        if not self._ledger.exists():
            return 0
        lines = self._ledger.read_text("utf-8").split("\n")
        # A line without its line end was cut by a kill; its call was never made.
        return sum(int(json.loads(line)) for line in lines[:-1] if line)

    def _append(self, change: int) -> None:
        if self._ledger is None:
            self._changes.append(change)
            return
        with self._ledger.open("a", encoding="utf-8", newline="") as file:
            file.write(f"{change}\n")
