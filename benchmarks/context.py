"""What a second turn costs before the model is asked: validate, check the seal, render.

    python benchmarks/context.py

The first table is of a typical context, two questions with their answers, against 200 µs. The
second grows every text of it: the time must grow no faster than the size.
"""

import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from table import print_table

from pytest_regen.context import ConversationContext, Sealer, parse_context, render_context

BAR = 200
RUNS = 1_000
ROUNDS = 5
SIZES = (1, 5, 20, 80)
CONVERSATION = "c-1"


def main() -> None:
    """Print both tables."""
    sealer = Sealer({"k1": "only a benchmark seals with this key"})
    data = typical(1)
    context = parse_context(data)
    seal = sealed(sealer, context)
    steps: dict[str, Callable[[], object]] = {
        "validate": lambda: parse_context(data),
        "check the seal": lambda: sealer.unseal(seal, context, conversation=CONVERSATION),
        "render": lambda: render_context(context),
        f"all three (bar: {BAR} µs)": lambda: second_turn(sealer, seal, data),
        "seal (first turn)": lambda: sealed(sealer, context),
    }
    print_table(("step", "time"), [(name, f"{cost(step):.0f} µs") for name, step in steps.items()])
    print()
    print_table(("texts", "JSON", "all three", "per KB"), grown(sealer))


def grown(sealer: Sealer) -> list[tuple[str, str, str, str]]:
    """Return a row per size."""
    rows = []
    for size in SIZES:
        data = typical(size)
        seal = sealed(sealer, parse_context(data))
        taken = cost(partial(second_turn, sealer, seal, data))
        length = len(json.dumps(data))
        per_kb = taken / length * 1_000
        rows.append((f"{size}x", f"{length:,} B", f"{taken:.0f} µs", f"{per_kb:.0f} µs"))
    return rows


def second_turn(sealer: Sealer, seal: str, data: dict[str, Any]) -> str:
    """Do what a server does with a second turn, once its JSON is read."""
    context = parse_context(data)
    sealer.unseal(seal, context, conversation=CONVERSATION)
    return render_context(context)


def sealed(sealer: Sealer, context: ConversationContext) -> str:
    """Return the seal of a context's first turn."""
    return sealer.seal(context, conversation=CONVERSATION)


def typical(size: int) -> dict[str, Any]:
    """Return a context as JSON; its texts are `size`` times as long as people's."""
    words = ("and nobody asks. " * size)[:1_000]
    return {
        "originalDescription": ("rent is out of control in my city and nobody acts. " * size)[
            :4_000
        ],
        "questionsAsked": [
            {
                "id": "location",
                "question": ("Which city? " * size)[:300],
                "type": "location_picker",
                "location_level": "city",
                "suggested_locations": ["Austin, TX", "San Francisco, CA"],
                "required": True,
            },
            {
                "id": "framing",
                "question": ("Which is closer? " * size)[:300],
                "type": "multiple_choice",
                "options": [
                    {"id": "hikes", "label": "the landlord raises it"},
                    {"id": "cap", "label": "the city never capped it"},
                ],
                "required": False,
            },
        ],
        "inferredContext": {
            "detected_location": None,
            "detected_scope": "local",
            "detected_target_type": "government",
            "location_confidence": 0.1,
            "scope_confidence": 0.8,
            "target_type_confidence": 0.7,
            "reasoning": ("No city is named; a council could act. " * size)[:1_000],
        },
        "answers": {
            "location": {"kind": "place", "label": "San Francisco, CA", "city": "San Francisco"},
            "framing": {"kind": "choice", "selected": ["cap"], "other": words},
        },
    }


def cost(step: Callable[[], object]) -> float:
    """Return the microseconds of processor time that one call takes: the best of some rounds."""
    rounds = []
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(RUNS):
            step()
        rounds.append((time.process_time() - start) / RUNS * 1e6)
    return min(rounds)


if __name__ == "__main__":
    main()
