"""What the example's endpoint adds to a model: one turn, and 500 that are asked for at once.

    python benchmarks/endpoint.py

The example runs in a process of its own. The model is the emulator, in this one, which answers at
once; so all of the time is the example, the SDK, HTTP and the emulator itself.
"""

import asyncio
import sys
import time
from pathlib import Path
from statistics import median, quantiles

import httpx2
from table import print_table

sys.path[:0] = [str(Path(__file__).parents[1] / "tests" / "support")]

from clarifying_service import (  # noqa: E402 - found through the line above
    MESSAGE,
    PLACE,
    Model,
    clarifying_service,
    second_turn,
)

TURNS = 500


async def measure(address: str, at_once: int) -> list[float]:
    """Return the seconds that each of so many second turns took."""
    limits = httpx2.Limits(max_connections=at_once)
    async with httpx2.AsyncClient(base_url=address, limits=limits, timeout=120) as client:

        async def turn(body: object) -> float:
            begin = time.perf_counter()
            answer = await client.post("/api/agents/generate-subject", json=body)
            answer.raise_for_status()
            return time.perf_counter() - begin

        first = await client.post("/api/agents/generate-subject", json={"message": MESSAGE})
        body = second_turn(first.json(), {"location": "Reno, NV"})
        return await asyncio.gather(*(turn(body) for _ in range(at_once)))


def main() -> None:
    """Measure and print."""
    rows = []
    with clarifying_service(Model(PLACE)) as address:
        asyncio.run(measure(address, 10))  # what is imported by the first turn
        for at_once in (1, TURNS):
            begin = time.perf_counter()
            seconds = asyncio.run(measure(address, at_once))
            took = time.perf_counter() - begin
            slowest = quantiles(seconds, n=20)[-1] if at_once > 1 else seconds[0]
            rows.append(
                (f"{at_once}", f"{took:.2f} s", f"{median(seconds):.3f} s", f"{slowest:.3f} s")
            )
    print_table(("turns at once", "all", "median", "95 %"), rows)


if __name__ == "__main__":
    main()
