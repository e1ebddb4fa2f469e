"""Eight processes that regenerate eight pages of one store at the same time, and what it took."""

import json
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from killing import run_together
from reference_writer import ReferenceWriter
from served_stores import KEY, example_store, served

from pytest_regen.emulator import EmulatedReply
from pytest_regen.stores import RegenStore

__all__ = ["PROCESSES", "AtOnce", "regenerated_at_once"]

PROCESSES = 8


@dataclass(frozen=True)
class AtOnce:
    """What eight regenerations at once came to."""

    before: RegenStore
    after: RegenStore
    seconds: float
    """From the barrier to the end of the last."""
    in_flight: int
    """The most requests that the API was working on at one moment."""


class Meeting:
    """A model that takes its time, and counts whom it serves at one moment."""

    def __init__(self, delay: float) -> None:
        self._delay = delay
        self._write = ReferenceWriter("documented")
        self._barrier = threading.Barrier(PROCESSES)
        self.in_flight = 0

    def __call__(self, body: Mapping[str, Any]) -> EmulatedReply:
        """Reply once all eight have asked; then after the delay.

        Raises:
            threading.BrokenBarrierError: some did not ask while the others waited.
        """
        self._barrier.wait(30)
        self.in_flight = PROCESSES
        return EmulatedReply(self._write(body), delay=self._delay)


def regenerated_at_once(folder: Path, *, delay: float) -> AtOnce:
    """Regenerate eight pages of one type in eight processes; the model takes ``delay`` seconds."""
    with served() as server:
        before = example_store(server, folder, fields_per_page=5)
        meeting = Meeting(delay)
        server.answers(meeting)
        environment = {
            "ANTHROPIC_BASE_URL": server.emulator.base_url,
            "ANTHROPIC_API_KEY": KEY,
        }
        with patch.dict(os.environ, environment):
            run_together("regeneration_work:regenerate_one_of_many", before.path, PROCESSES)
    files = sorted(before.path.parent.glob("time_*.json"))
    times = [json.loads(file.read_text()) for file in files]
    seconds = max(ended for _, ended in times) - min(began for began, _ in times)
    return AtOnce(before, RegenStore.open(before.path), seconds, meeting.in_flight)
