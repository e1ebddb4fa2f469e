"""Make the example's recordings anew.

    python examples/subject_line/record.py          against the emulator, no key needed
    python examples/subject_line/record.py --live   against the real API, with ANTHROPIC_API_KEY

The replies of the emulated form are written by hand, below. No language model wrote them, and the
recordings say ``source: emulator``.
"""

import json
import os
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

from pytest_regen import Emulator

HERE = Path(__file__).parent
SECOND = "## My Previous Analysis"


def main() -> None:
    """Record the tests, then the flow of ``flow.py``."""
    for folder in ("cassettes", "transcripts"):
        shutil.rmtree(HERE / folder, ignore_errors=True)
    with nullcontext() if "--live" in sys.argv else emulator():
        run("-m", "pytest", "-q", "--regen-record=rewrite", str(HERE))
        run(str(HERE / "flow.py"), "--record")


def run(*command: str) -> None:
    """Run Python."""
    subprocess.run([sys.executable, *command], cwd=HERE, check=True)


def emulator() -> Emulator:
    """Return an emulator with the replies below, and point the SDK at it."""
    running = Emulator(answer).start()
    os.environ |= {"ANTHROPIC_BASE_URL": running.base_url, "ANTHROPIC_API_KEY": "none-needed"}
    return running


def answer(body: dict[str, object]) -> str:
    """Return the reply to a request."""
    messages = body["messages"]
    assert isinstance(messages, list)
    prompt = messages[0]["content"]
    prompt = prompt if isinstance(prompt, str) else prompt[0]["text"]
    again = len(messages) > 1
    if "6th street" in prompt:
        # A model that does not listen: it asks on the second turn as well, until it is told.
        return write(SIXTH_STREET_TEXT) if again else ask(SIXTH_STREET)
    for said, first, second in REPLIES:
        if said in prompt:
            return write(second) if first is None or SECOND in prompt else ask(first)
    raise AssertionError(f"no reply is written for this prompt: {prompt}")


def ask(content: dict[str, object]) -> str:
    """Return a reply that asks."""
    return json.dumps({"needs_clarification": True, **content}, indent=1)


def write(content: dict[str, object]) -> str:
    """Return a reply that writes, in a fence as models like to."""
    found = {"needs_clarification": False, "clarification_questions": [], **content}
    return f"```json\n{json.dumps(found, indent=1)}\n```"


def inferred(
    location: str | None, scope: str, target: str, sure: tuple[float, float, float], why: str
) -> dict[str, object]:
    """Return the inferences of a reply."""
    names = ("location_confidence", "scope_confidence", "target_type_confidence")
    return {
        "detected_location": location,
        "detected_scope": scope,
        "detected_target_type": target,
        **dict(zip(names, sure, strict=True)),
        "reasoning": why,
    }


RENT: dict[str, object] = {
    "clarification_questions": [
        {
            "id": "location",
            "question": "Which city is this about?",
            "type": "location_picker",
            "location_level": "city",
            "required": True,
        }
    ],
    "inferred_context": inferred(
        None, "local", "government", (0.1, 0.8, 0.7), "No city is named; a council could act."
    ),
}
RENT_TEXT: dict[str, object] = {
    "subject_line": "Rent Is Out of Control and City Hall Lets It Happen",
    "core_message": "The city council has to cap what rents may rise in a year.",
    "topics": ["rent", "housing", "city council"],
    "url_slug": "cap-our-rent",
    "voice_sample": "rent is out of control",
    "detected_ask": None,
    "inferred_context": inferred(
        "San Francisco, CA", "local", "government", (0.95, 0.9, 0.9), "The city was given."
    ),
}
TUITION: dict[str, object] = {
    "clarification_questions": [
        {
            "id": "framing",
            "question": "Which one is closer?",
            "type": "multiple_choice",
            "options": [
                {"id": "too_much", "label": "it costs more than I can earn"},
                {"id": "no_reason", "label": "they never say what it is for"},
            ],
            "allow_other": True,
            "required": True,
        },
        {
            "id": "school",
            "question": "Which school is it?",
            "type": "open_text",
            "placeholder": "its name",
            "required": False,
        },
    ],
    "inferred_context": inferred(
        None, "state", "institutional", (0.0, 0.4, 0.6), "Price or secrecy: two different demands."
    ),
}
TUITION_TEXT: dict[str, object] = {
    "subject_line": "Tuition Goes Up Again, and Nobody Says What For",
    "core_message": "The university has to publish what every increase pays for.",
    "topics": ["tuition", "universities", "transparency"],
    "url_slug": "explain-our-tuition",
    "voice_sample": "nobody explains why",
    "inferred_context": inferred(
        None, "state", "institutional", (0.0, 0.5, 0.8), "The lack of reasons is what hurts."
    ),
}
AMAZON_TEXT: dict[str, object] = {
    "subject_line": "Past What a Body Can Take: Slow the Lines Down",
    "core_message": "Amazon has to lower the pace that its warehouses demand.",
    "topics": ["amazon", "warehouses", "working conditions"],
    "url_slug": "slow-the-lines",
    "voice_sample": "pushed past what a body can take",
    "inferred_context": inferred(
        None, "national", "corporate", (0.0, 0.9, 0.95), "The company is named."
    ),
}
LAWS: dict[str, object] = {
    "clarification_questions": [
        {
            "id": "location",
            "question": "Whose laws are they: which state?",
            "type": "location_picker",
            "location_level": "state",
            "required": True,
        }
    ],
    "inferred_context": inferred(
        None, "state", "government", (0.0, 0.9, 0.9), "Legislatures write rent control laws."
    ),
}
SIXTH_STREET: dict[str, object] = {
    "clarification_questions": [
        {
            "id": "location",
            "question": "Which city's 6th street is it?",
            "type": "location_picker",
            "location_level": "city",
            "suggested_locations": ["Austin, TX", "San Francisco, CA"],
            "required": True,
        }
    ],
    "inferred_context": inferred(
        None, "local", "government", (0.3, 0.9, 0.6), "Several cities have a 6th street."
    ),
}
SIXTH_STREET_TEXT: dict[str, object] = {
    "subject_line": "6th Street Is Insane: Give Us Our Nights Back",
    "core_message": "The Austin city council has to make 6th street safe at night.",
    "topics": ["nightlife", "safety"],
    "url_slug": "quiet-6th-street",
    "voice_sample": "6th street is insane",
    "inferred_context": inferred(
        "Austin, TX", "local", "government", (0.95, 0.9, 0.8), "The city was given."
    ),
}
REPLIES: tuple[tuple[str, dict[str, object] | None, dict[str, object]], ...] = (
    ("rent is out of control", RENT, RENT_TEXT),
    ("tuition goes up", TUITION, TUITION_TEXT),
    ("Amazon workers", None, AMAZON_TEXT),
    ("rent control laws", LAWS, RENT_TEXT),
)
"""What somebody wrote, what is asked (``None``: nothing), and what is written."""


if __name__ == "__main__":
    main()
