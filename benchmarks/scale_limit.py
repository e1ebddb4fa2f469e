"""What the rate limiter costs: requests let through and settled, by 1, 4 and 8 processes.

    python benchmarks/scale_limit.py [SECONDS]

All processes share one limit by one file, and none ever waits. Beside it stands what a request
costs anyway: the SDK asking an emulator on loopback, one after the other.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from table import print_table

from pytest_regen.emulator import Emulator
from pytest_regen.turns import AnthropicProvider, Message, TurnRequest
from pytest_regen.turns.buckets import Ticket
from pytest_regen.turns.limits import Outcome, RateLimiter
from pytest_regen.turns.values import Usage

MODEL = "claude-sonnet-5-5"
LIMIT = 999_999
"""Requests a minute: more than can be let through."""
SAID = Outcome(Usage(1_000, 500), {"requests": (LIMIT, LIMIT)})


def count_for(seconds: float, path: Path | None) -> int:
    """Return how many requests are let through and settled within ``seconds``."""
    limiter, count, until = RateLimiter(path), 0, time.monotonic() + seconds
    while time.monotonic() < until:
        ticket = limiter.attempt(MODEL, 1_000, 8_000)
        if isinstance(ticket, Ticket):
            limiter.settle(MODEL, ticket, SAID)
            count += 1
    return count


def rate_of(processes: int, seconds: float) -> float:
    """Return the requests per second of all processes together."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "limits", "state.json"))
        command = [sys.executable, __file__, str(seconds), path]
        running = [
            subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
            for _ in range(processes)
        ]
        for process in running:
            assert process.stdout is not None
            process.stdout.readline()
        for process in running:  # together, once all are loaded
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        return sum(int(process.communicate()[0]) for process in running) / seconds


def rate_of_sdk(seconds: float) -> float:
    """Return how many turns per second the SDK takes, one after the other."""
    request = TurnRequest("Be brief.", (Message("user", "Hello."),), MODEL, 200)
    with Emulator(lambda _: "Hello.") as emulator:
        provider = AnthropicProvider(api_key="none-needed", base_url=emulator.base_url)
        provider.send(request)
        count, until = 0, time.monotonic() + seconds
        while time.monotonic() < until:
            provider.send(request)
            count += 1
    return count / seconds


def main(seconds: float) -> None:
    """Print the table."""
    sdk = rate_of_sdk(seconds)
    rates = {"without a file": count_for(seconds, None) / seconds}
    rates |= {f"{count} processes": rate_of(count, seconds) for count in (1, 4, 8)}
    rows = [
        (name, f"{rate:,.0f}/s", f"{1_000 / rate:.2f} ms", f"{sdk / rate:.2f}")
        for name, rate in rates.items()
    ]
    rows.append(("a turn of the SDK on loopback", f"{sdk:,.0f}/s", f"{1_000 / sdk:.2f} ms", "1"))
    print_table(("who", "requests", "each", "of a turn's time"), rows)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        print("ready", flush=True)
        sys.stdin.readline()
        print(count_for(float(sys.argv[1]), Path(sys.argv[2])))
    else:
        main(float(sys.argv[1]) if len(sys.argv) > 1 else 3.0)
