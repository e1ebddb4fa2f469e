"""Processes that regenerate pages of one store at the same time lose nothing of each other's."""

from pathlib import Path

import pytest
from at_once import PROCESSES, regenerated_at_once
from served_stores import issues_of


@pytest.mark.sweep  # tests/stores/test_writing.py has eight processes that write
def test_eight_processes_regenerate_eight_pages_of_one_store(tmp_path: Path) -> None:
    """All eight requests are under way at once, so no lock is held during a turn; all are kept."""
    done = regenerated_at_once(tmp_path, delay=1.0)
    print(f"eight at once: {done.seconds:.2f} s")  # noqa: T201 - measured, not asserted

    assert done.in_flight == PROCESSES
    name = done.before.type_names[0]
    changed = [key for key, page in done.after.pages.items() if page != done.before.pages[key]]
    assert [(key.type_name, key.page) for key in changed] == [
        (name, number + 1) for number in range(PROCESSES)
    ]
    assert {done.after.pages[key].attempt for key in changed} == {2}
    assert all("/// <summary>" in done.after.pages[key].output for key in changed)
    assert done.after.source == done.after.assembly()
    assert issues_of(done.after) == []
