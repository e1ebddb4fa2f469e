"""What a program that asks generated code sends back: JSON on lines that begin with a secret word.

The first says that the code was loaded; each after it holds the replies of one type. For programs
that are not Python: that one is asked by ``sandbox.ask``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pytest_regen.languages.runner import Answers, Question, Reply, RunFault
from pytest_regen.sandbox import Outcome
from pytest_regen.strict_json import json_or_none

Frame = Mapping[str, Any]
"""What one line says."""


def make_work(word: str, questions: Sequence[Question]) -> dict[str, Any]:
    """Return what the program reads: the word for its lines, the types and their instances."""
    return {
        "word": word,
        "questions": [
            {
                "type": question.type.name,
                "members": list(question.members.values()),
                "instances": list(question.instances),
            }
            for question in questions
        ],
    }


def why_ended(outcome: Outcome, program: str) -> str:
    """Return why a program gave no answers."""
    if outcome.stopped == "seconds":
        return "it took too long"
    words = (outcome.stderr + b"\n" + outcome.stdout).decode("utf-8", "replace").split()
    return f"{program} ended with exit code {outcome.returncode} {' '.join(words)[-400:]}".rstrip()


def read_frame(line: bytes, word: str) -> Frame | None:
    """Return what a line says, or ``None`` if it is not from the program."""
    head, _, body = line.partition(b" ")
    frame = json_or_none(body) if head == word.encode() else None
    return frame if isinstance(frame, dict) else None


def read_replies(frame: Frame, count: int, read: Callable[..., Reply]) -> tuple[Reply, ...] | None:
    """Return the replies in a frame, if they are what the program sends.

    Args:
        frame: of one type.
        count: of the instances that it was asked about.
        read: makes a reply of the values that the program sends for an instance.
    """
    value = frame.get("replies")
    if not isinstance(value, list) or len(value) != count:
        return None
    try:
        return tuple(read(*values) for values in value)
    except (TypeError, ValueError):
        return None


def collect_answers(
    questions: Sequence[Question],
    frames: Iterable[Frame],
    *,
    why: str,
    read: Callable[..., Reply],
    fault: Callable[[str, str], RunFault],
) -> Answers:
    """Return the answers in the frames behind the first; those after a missing one were not asked.

    Args:
        questions: in the order they were asked.
        frames: one for each type that answered.
        why: a frame is missing.
        read: as for ``read_replies``.
        fault: makes a fault of what was raised and the name of the type.
    """
    replies: dict[str, tuple[Reply, ...]] = {}
    faults = []
    # None at the end, because a program that died sends nothing for the rest.
    for question, frame in zip(questions, [*frames, None], strict=False):
        name = question.type.name
        if frame is None:
            faults.append(RunFault(why, name))
            break
        found = read_replies(frame, len(question.instances), read)
        if found is None:
            faults.append(fault(str(frame.get("raised") or "it gives no answer"), name))
        else:
            replies[name] = found
    return Answers(replies, tuple(faults))
