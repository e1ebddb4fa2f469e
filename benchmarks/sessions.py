"""What a session of five turns costs, by how it uses the prompt cache.

    python benchmarks/sessions.py

Through the real SDK against the emulator, which accounts for the cache as the API documents it;
prices from genai-prices. The conversation is the same in each row: a first answer of realistic
size, then four turns of feedback and replacements. Tokens are the emulator's estimates, so that
the ratios mean something and the dollars are an order of magnitude.

Below it, what our own code takes of a turn that corrects all of a large set.
"""

import itertools
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal

from pydantic import BaseModel
from table import print_table

from pytest_regen.emulator import Emulator
from pytest_regen.sessions import (
    GeneratorSession,
    ScenarioCorrection,
    ScenarioFeedback,
    ScenarioGeneratorSession,
    ToolAnnotation,
    apply_corrections,
    merge_replacements,
)
from pytest_regen.turns import (
    AnthropicProvider,
    Message,
    ScriptedProvider,
    TurnRequest,
    Usage,
    cost_of,
)
from pytest_regen.turns.values import Reply

MODEL = "claude-sonnet-5-5"
TURNS = 5
SIZES = ((2_000, 3_700), (8_000, 9_400), (20_000, 21_800))
"""Tokens of the system prompt and of the first answer; later answers are a fifth of it."""
FEEDBACK = 600

Send = Callable[[TurnRequest], Reply]


class Answer(BaseModel):
    """What replies hold."""

    words: str


class Altered:
    """A provider that places the cache breakpoints as somebody else does."""

    def __init__(self, provider: AnthropicProvider, *, history: bool, system: bool) -> None:
        self._provider = provider
        self._history, self._system = history, system

    def send(self, request: TurnRequest) -> Reply:
        """Return the reply to a request without the breakpoints that are not placed."""
        messages = request.messages
        if not self._history:
            messages = tuple(replace(message, cache=None) for message in messages)
        cache = request.cache if self._system else None
        return self._provider.send(replace(request, messages=messages, cache=cache))


def main() -> None:
    """Print a row per size and way."""
    rows = []
    for system, answer in SIZES:
        usages_by_way = {name: run(system, answer) for name, run in WAYS.items()}
        dearest = max(price(usages) for usages in usages_by_way.values())
        for name, usages in usages_by_way.items():
            share, usage = price(usages) / dearest * 100, sum(usages, Usage())
            rows.append(
                (
                    f"{system:,}",
                    name,
                    f"{usage.input_tokens or 0:,}",
                    f"{usage.cache_read_tokens or 0:,}",
                    f"{usage.cache_write_tokens or 0:,}",
                    f"{usage.output_tokens or 0:,}",
                    f"${price([replace(usage, output_tokens=0) for usage in usages]):.4f}",
                    f"${price(usages):.4f} ({share:.0f} %)",
                )
            )
    head = ("system", "way", "plain in", "read", "written", "out", "input costs", "all costs")
    print_table(head, rows)
    print_table(("corrections", "told", "put in place", "merged"), [corrected(1_000)])


def corrected(count: int) -> tuple[str, ...]:
    """Return how long it takes to correct every scenario of a set, step by step."""
    items = [
        {
            "description": f"read {number}",
            "request": {
                "server_name": "files",
                "tool_name": "read",
                "arguments": {"path": f"/home/ada/papers/{number}.txt"},
            },
            "reasoning": "so it is",
            "expected_decision": "deny",
        }
        for number in range(count)
    ]
    right = [{**item, "expected_decision": "allow"} for item in items]
    replies = [json.dumps({"scenarios": items}), json.dumps({"scenarios": right})]
    provider = ScriptedProvider(replies)
    tool = ToolAnnotation(server_name="files", tool_name="read")
    session = ScenarioGeneratorSession("x", [tool], provider=provider)
    scenarios = session.generate()
    wrong = [
        ScenarioCorrection(scenario_description=scenario.description, corrected_decision="allow")
        for scenario in scenarios
    ]
    times = [time.perf_counter()]
    replacements = session.regenerate(ScenarioFeedback(corrections=wrong))
    times.append(time.perf_counter())
    scenarios = apply_corrections(scenarios, wrong)
    times.append(time.perf_counter())
    merge_replacements(scenarios, replacements, wrong, [])
    times.append(time.perf_counter())
    took = (f"{end - start:.3f} s" for start, end in itertools.pairwise(times))
    return (f"{count:,}", *took)


def single_shots(system: int, answer: int) -> list[Usage]:
    """Return what five calls take that each start afresh and answer in full."""
    with emulated([answer] * TURNS) as provider:
        usages = []
        for number in range(TURNS):
            feedback = "\n".join(prose(FEEDBACK, f"feedback {turn}") for turn in range(number))
            message = Message("user", f"Generate scenarios.\n{feedback}")
            request = TurnRequest(prose(system, "article"), (message,), MODEL, 32_000)
            usages.append(provider.send(request).usage)
        return usages


def conversation(*, history: bool, system_only: bool = False) -> Callable[[int, int], list[Usage]]:
    """Return a way of holding one conversation of five turns."""

    def run(system: int, answer: int) -> list[Usage]:
        sizes = [answer, *[answer // 5] * (TURNS - 1)]
        with emulated(sizes) as provider:
            altered = Altered(provider, history=history, system=history or system_only)
            session = GeneratorSession(
                prose(system, "article"), Answer, provider=altered, model=MODEL, max_tokens=32_000
            )
            for number in range(TURNS):
                session.ask(prose(FEEDBACK, f"feedback {number}"))
            return [call.usage for call in session.transcript if call.usage]

    return run


WAYS: dict[str, Callable[[int, int], list[Usage]]] = {
    "single shots, no cache": single_shots,
    "session, no cache": conversation(history=False),
    "session, system prompt cached": conversation(history=False, system_only=True),
    "session, ours": conversation(history=True),
}


@contextmanager
def emulated(sizes: list[int]) -> Iterator[AnthropicProvider]:
    """Yield a provider whose API answers with texts of these sizes, in tokens."""
    texts = iter([json.dumps({"words": prose(one, f"answer {n}")}) for n, one in enumerate(sizes)])
    with Emulator(lambda _: next(texts)) as emulator:
        provider = AnthropicProvider(base_url=emulator.base_url, api_key="emulated")
        yield provider
        provider.close()


def prose(tokens: int, seed: str) -> str:
    """Return text that the emulator counts as about ``tokens``."""
    characters = tokens * 100 // 41
    return (f"{seed} of the constitution; " * (characters // 20 + 1))[:characters]


def price(usages: list[Usage]) -> Decimal:
    """Return what requests cost, each priced by itself."""
    return sum((cost_of(usage, MODEL) or Decimal(0) for usage in usages), Decimal(0))


if __name__ == "__main__":
    main()
