"""Budgets: one limit for threads, processes and machines."""

import pickle
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

import pytest

from pytest_regen.errors import BudgetError, UsageError
from pytest_regen.turns import Budget, Usage


def take_all(budget: Budget) -> int:
    taken = 0
    try:
        while True:
            budget.reserve(10)
            taken += 1
    except BudgetError:
        return taken


@dataclass
class Row:
    """Stands for a row of a database."""

    spent: int = 0
    asked: list[tuple[int, int | None]] = field(default_factory=list)

    def add(self, tokens: int, limit: int | None) -> int:
        """Add as ``TokenLedger`` says."""
        self.asked.append((tokens, limit))
        before = self.spent
        if limit is None or before + tokens <= limit:
            self.spent += tokens
        return before


def test_processes_spend_from_one_file(tmp_path: Path) -> None:
    """A budget that is handed to other processes is the same budget: none of it is spent twice."""
    budget = Budget(1_000, ledger=tmp_path / "tokens")

    with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
        taken = list(pool.map(take_all, [budget, budget]))

    assert sum(taken) == 100
    assert budget.spent == 1_000


def test_a_ledger_of_ones_own() -> None:
    """Where the sum stands is anybody's; in memory it is not handed on, as each had the whole."""
    row = Row()

    budget = Budget(100, ledger=row)
    budget.settle(budget.reserve(80), Usage(input_tokens=30, output_tokens=5))

    with pytest.raises(BudgetError, match="35 are spent, about 70 more"):
        budget.reserve(70)
    assert row.asked == [(80, 100), (-45, None), (70, 100)]
    assert pickle.loads(pickle.dumps(budget)).spent == budget.spent == 35
    with pytest.raises(TypeError, match=r"give it a ledger"):
        pickle.dumps(Budget(100))


def test_a_file_that_was_cut_or_begins_anew(tmp_path: Path) -> None:
    """Half a line is no change of the sum; what is no number at all is no ledger."""
    ledger = tmp_path / "tokens"
    ledger.write_text("40\n-1")

    budget = Budget(100, ledger=ledger)
    budget.reserve(7)

    assert budget.spent == Budget(100, ledger=ledger).spent == 47
    assert ledger.read_text("utf-8") == "40\n7\n"
    ledger.unlink()
    assert budget.spent == 0
    ledger.write_text("12\ntwelve\n")
    with pytest.raises(UsageError, match=r"is not the ledger of a budget: .*b'twelve'"):
        Budget(100, ledger=ledger).reserve(1)
