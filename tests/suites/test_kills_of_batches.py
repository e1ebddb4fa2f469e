"""Commands with the batch engine, killed again and again: no page is lost or paid twice."""

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from batch_work import emulator
from killing import kill_until_done
from many_operations import PAGES, write_many_operations
from reference_writer import ReferenceWriter
from served_stores import KEY, issues_of

from pytest_regen.canonical import canonical_hash
from pytest_regen.emulator import BatchStep, Fault
from pytest_regen.stores import RegenStore

STORES = 30


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(2))
def test_a_run_killed_at_twenty_moments_pays_each_page_once(tmp_path: Path, seed: int) -> None:
    """Batches are found again, replies too, whether noted, read, or waiting to be stored."""
    paid: Counter[str] = Counter()
    write = ReferenceWriter()

    def answer(body: Mapping[str, Any]) -> str:
        paid[canonical_hash(body)] += 1
        return write(dict(body))

    write_many_operations(tmp_path / "api.json", STORES)
    steps = [BatchStep(fault=Fault(kind="drop")), BatchStep(seconds=0.5, unlisted=0.3), BatchStep()]
    with emulator(*steps, answer=answer, batch_seconds=0.2) as emulated:
        environment = {"ANTHROPIC_BASE_URL": emulated.base_url, "ANTHROPIC_API_KEY": KEY}
        with patch.dict(os.environ, environment):
            work = "regeneration_work:generate_all_in_batches"
            kills = kill_until_done(work, tmp_path, 20, within=1_200, seed=seed)

    stores = [RegenStore.open(path) for path in tmp_path.glob("generated/GET_*")]
    assert kills
    assert len(stores) == STORES
    assert not any(store.missing_pages or issues_of(store) for store in stores)
    assert set(paid.values()) == {1}
    assert len(paid) == STORES * PAGES
