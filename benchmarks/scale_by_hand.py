"""The loop that one writes without this package, over the stored prompts of ``generated/``.

    python benchmarks/scale_by_hand.py JOBS

As many requests at once as there are jobs, the SDK with the retries it comes with, and nothing
stored. Prints how many got no reply.
"""

import asyncio
import json
import sys
from pathlib import Path

from anthropic import APIError, AsyncAnthropic


def stored_prompts() -> list[tuple[str, str]]:
    """Return the system prompt and the prompt of every page."""
    stored = [
        json.loads(path.read_text("utf-8")) for path in Path("generated").glob("*/prompts.json")
    ]
    return [(entry["system"], entry["user"]) for entries in stored for entry in entries]


async def main(jobs: int, prompts: list[tuple[str, str]]) -> None:
    """Ask for every page once."""
    client, slots = AsyncAnthropic(), asyncio.Semaphore(jobs)

    async def ask(system: str, user: str) -> bool:
        async with slots:
            try:
                await client.messages.create(
                    model="claude-sonnet-5-5",
                    max_tokens=8_192,
                    system=system,
                    messages=[{"role": "user", "content": user}],
                )
            except APIError:
                return False
        return True

    answered = await asyncio.gather(*(ask(*prompt) for prompt in prompts))
    print(f"{answered.count(False)} of {len(answered)} without a reply")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), stored_prompts()))
