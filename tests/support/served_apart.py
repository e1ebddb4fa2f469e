"""An emulator in a process of its own, which outlives what is killed and takes no time from it.

Run as a program, it serves until its input ends and logs each request as it is answered. As a
module, it starts that program and reads the log: the witness of what was asked, how often, what was
refused and what was in flight at once.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from reference_writer import ReferenceWriter

from pytest_regen.emulator import EmulatedReply, Emulator, RateLimits, ReceivedRequest

__all__ = ["Apart", "Logged", "concurrency", "most_in_flight", "served_apart"]


@dataclass(frozen=True, slots=True)
class Logged:
    """One request that was answered."""

    method: str
    path: str
    status: int
    began: float
    """When it had arrived, in seconds since the epoch."""
    ended: float
    """When its reply began to be sent."""
    prompts: tuple[str, ...]
    """Digests of the prompts it asks."""


@dataclass(frozen=True)
class Apart:
    """The emulator of another process."""

    base_url: str
    log: Path
    pid: int

    @property
    def environment(self) -> dict[str, str]:
        """What a child needs to ask it."""
        return {"ANTHROPIC_BASE_URL": self.base_url, "ANTHROPIC_API_KEY": "sk-ant-of-a-test"}

    def requests(self) -> list[Logged]:
        """Return what was answered so far, in the order in which the answers went out."""
        lines = self.log.read_text("utf-8").splitlines() if self.log.exists() else []
        return [_read(json.loads(line)) for line in lines]


def _read(entry: Mapping[str, Any]) -> Logged:
    return Logged(**{**entry, "prompts": tuple(entry["prompts"])})


@contextmanager
def served_apart(
    folder: Path,
    *,
    delay: float = 0.0,
    requests_per_minute: int | None = None,
) -> Iterator[Apart]:
    """Serve while the block runs.

    Args:
        folder: takes the log.
        delay: seconds that the model takes for a reply.
        requests_per_minute: the limit that is enforced, if any.
    """
    log = folder / "requests.jsonl"
    limit = [] if requests_per_minute is None else [f"--limit={requests_per_minute}"]
    server = subprocess.Popen(
        [
            sys.executable,
            __file__,
            f"--log={log}",
            f"--delay={delay}",
            *limit,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        address = server.stdout.readline().strip()
        assert address, "the emulator did not start"
        yield Apart(address, log, server.pid)
    finally:
        server.stdin.close()
        server.stdout.close()
        server.wait(30)


def concurrency(turns: Sequence[Logged], jobs: int) -> float:
    """Return how much of the possible concurrency was used, from 0 to 1.

    1 would be ``jobs`` requests in flight at every moment from the first one to the last reply.
    """
    flown = sum(turn.ended - turn.began for turn in turns)
    return flown / (jobs * (max(turn.ended for turn in turns) - min(t.began for t in turns)))


def most_in_flight(turns: Sequence[Logged]) -> int:
    """Return how many requests were in flight at the busiest moment."""
    changes = [(turn.began, 1) for turn in turns] + [(turn.ended, -1) for turn in turns]
    flying = most = 0
    for _, change in sorted(changes):
        flying += change
        most = max(most, flying)
    return most


def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--delay", type=float, required=True)
    parser.add_argument("--limit", type=int)
    options = parser.parse_args()
    most = options.limit
    limits = RateLimits(most, input_tokens=10**9, output_tokens=10**9) if most else None
    write = ReferenceWriter()
    emulator = Emulator(
        lambda body: EmulatedReply(write(body), delay=options.delay),
        limits=limits,
    )
    with options.log.open("a", encoding="utf-8") as log, emulator:
        _log_to(log, emulator)
        print(emulator.base_url, flush=True)  # noqa: T201 - the parent reads it
        sys.stdin.read()


def _log_to(log: Any, emulator: Emulator) -> None:
    lock = threading.Lock()

    def write(request: ReceivedRequest, status: int) -> None:
        entry = asdict(
            Logged(
                request.method,
                request.path,
                status,
                request.at,
                time.time(),
                _prompts(request.body),
            )
        )
        with lock:
            log.write(json.dumps(entry) + "\n")
            log.flush()
            emulator.requests.clear()  # Ten thousand bodies would fill the memory.

    emulator.answering = write


def _prompts(body: Any) -> tuple[str, ...]:
    """Return digests of the prompts of a turn or a batch, wherever their cache marks stand."""
    if not isinstance(body, dict):
        return ()
    asked = [item.get("params", {}) for item in body["requests"]] if "requests" in body else [body]
    return tuple(
        hashlib.sha256(json.dumps(one.get("messages"), sort_keys=True).encode()).hexdigest()[:16]
        for one in asked
    )


if __name__ == "__main__":
    _main()
