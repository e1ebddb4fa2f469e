"""The whole flow from the command line: describe, answer or skip, read the subject line.

    python flow.py                     from the recordings, nothing is sent
    ANTHROPIC_API_KEY=... python flow.py --live "rent is out of control"

Nothing is kept between the two turns but what this program holds in ``context``: the second turn
would work in another process, on another machine, after a deployment.
"""

import argparse
from contextlib import nullcontext
from pathlib import Path

from pytest_regen import AnthropicProvider, use_cassette
from pytest_regen.context import (
    Ask,
    ClarificationQuestion,
    ClarificationRequest,
    ClarifyingAgent,
    Generate,
    parse_request,
)

HERE = Path(__file__).parent
RECORDING = HERE / "cassettes" / "flow.yaml"
DESCRIPTION = "rent is out of control in my city"


def main() -> None:
    """Take the flow, asking the person at the keyboard, or as recorded."""
    options = argparse.ArgumentParser(description="From a complaint to a subject line.")
    options.add_argument("description", nargs="?", default=DESCRIPTION)
    options.add_argument("--live", action="store_true", help="ask the real API")
    options.add_argument("--record", action="store_true", help="record the flow anew")
    chosen = options.parse_args()
    mode = "rewrite" if chosen.record else "none"
    command = f"python {__file__} --record, with ANTHROPIC_API_KEY set"
    cassette = use_cassette(RECORDING, mode=mode, record_command=command)
    tape = nullcontext() if chosen.live else cassette
    with tape:
        agent = ClarifyingAgent(AnthropicProvider())
        take_flow(agent, chosen.description, by_keyboard=chosen.live)


def take_flow(agent: ClarifyingAgent, description: str, *, by_keyboard: bool = False) -> Generate:
    """Take both turns, or one where the description says enough."""
    say(f"> {description}")
    first = ClarificationRequest(message=description)
    result = agent.turn(first)
    if isinstance(result, Ask):
        answers = {
            question.id: typed(question) if by_keyboard else "San Francisco, CA"
            for question in result.questions
        }
        for question in result.questions:
            say(f"? {question.question}\n> {answers[question.id] or '(skipped)'}")
        context = {
            "originalDescription": description,
            "questionsAsked": [q.model_dump(mode="json") for q in result.questions],
            "inferredContext": result.inferred_context.model_dump(mode="json"),
            "answers": answers,
        }
        result = agent.turn(parse_request({"message": description, "conversationContext": context}))
    assert isinstance(result, Generate)
    say(f"= {result.subject_line}\n  {result.core_message}\n  {', '.join(result.topics)}")
    return result


def typed(question: ClarificationQuestion) -> str:
    """Return what somebody types; nothing skips the question."""
    for option in question.options or ():
        say(f"  - {option.label}")
    return input(f"  {question.question} ")


def say(text: str) -> None:
    """Show a line of the conversation."""
    print(text, flush=True)  # noqa: T201 - a demonstration prints


if __name__ == "__main__":
    main()
