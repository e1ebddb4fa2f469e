"""Where the tokens of a conversation stand in a prompt, whatever the prompt looks like.

Nothing is known of how an agent words a prompt. But its tokens are known, and so is what stands
between them: an answer belongs to the question whose token stands next to it, and what stands in
front of a text is the label that the agent gives it.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import groupby, pairwise
from typing import Final

__all__ = ["exchanges", "misplaced", "posing"]

Tokens = Mapping[str, str]
"""Path of a leaf to the token in it."""

_TOKEN: Final = re.compile(r"k[0-9a-f]{8}[a-c]\d\dz")
_LABEL: Final = 24
"""Characters before a token that can be its label."""
_LETTERS: Final = 2
"""A label has more of them than a bullet or a quote."""


def misplaced(tokens: Tokens, prompt: str) -> list[str]:
    """Return the paths of the answers that stand with a question that is not theirs.

    Questions and answers are paired by their number. None is returned if any reading of the prompt
    pairs them rightly: question before answer, answer before question, or two lists of one order.
    """
    owners = {token: path for path, token in tokens.items()}
    found = [owners.get(match[0], "").split(".") for match in _TOKEN.finditer(prompt)]
    marks = [(path[0], path[1]) for path in found if path[0] in ("questions_asked", "answers")]
    order = [mark for mark, _ in groupby(marks)]
    questions = {number for kind, number in order if kind == "questions_asked"}
    answers = {number for kind, number in order if kind == "answers"}
    if not answers or not answers <= questions:
        return []
    readings = [
        _paired([("", ""), *order], backwards=True),
        _paired([*order, ("", "")], backwards=False),
    ]
    if all(reading is None for reading in readings):
        readings.append(_in_order(order))
    if any(reading == set() for reading in readings):
        return []
    wrong = next((reading for reading in readings if reading), answers)
    return [path for path in tokens if path.startswith("answers") and path.split(".")[1] in wrong]


def _paired(order: list[tuple[str, str]], *, backwards: bool) -> set[str] | None:
    """Return the answers whose neighbour is another question; ``None`` if one has none."""
    wrong = set()
    for one, two in pairwise(order):
        neighbour, mark = (one, two) if backwards else (two, one)
        if mark[0] != "answers":
            continue
        if neighbour[0] != "questions_asked":
            return None
        if neighbour[1] != mark[1]:
            wrong.add(mark[1])
    return wrong


def _in_order(order: list[tuple[str, str]]) -> set[str]:
    """Return the answers that do not stand in the order of their questions."""
    said = list(dict.fromkeys(number for kind, number in order if kind == "answers"))
    asked = list(dict.fromkeys(number for kind, number in order if kind == "questions_asked"))
    wanted = [number for number in asked if number in said]
    return {one for one, other in zip(said, wanted, strict=True) if one != other}


def posing(tokens: Tokens, answered: str, skipped: str) -> Iterator[tuple[str, str]]:
    """Yield leaves that pose as an answer once the person skips, and the answer that they play.

    Args:
        tokens: of the conversation.
        answered: the prompt with answers.
        skipped: the same without any.
    """
    for path, answer, moved in _in_places_of_answers(tokens, answered, skipped):
        if not moved:
            yield path, answer


def exchanges(tokens: Tokens, answered: str, skipped: str) -> Iterator[tuple[str, str]]:
    """Yield inferences that change places with an answer as soon as there is one, and the answer.

    Args:
        tokens: of the conversation.
        answered: the prompt with answers.
        skipped: the same without any.
    """
    for path, answer, moved in _in_places_of_answers(tokens, answered, skipped):
        if moved:
            yield path, answer


def _in_places_of_answers(
    tokens: Tokens, answered: str, skipped: str
) -> Iterator[tuple[str, str, bool]]:
    """Yield leaves that have a label without answers which an answer has with them.

    The third value is whether the leaf has a label of its own, only with answers: it moved there.
    """
    answers = [path for path in tokens if path.startswith("answers")]
    for path in tokens:
        if path.startswith("answers") or path.endswith(".id"):
            continue
        mine, before = _labels(tokens[path], answered), _labels(tokens[path], skipped)
        if not mine:
            continue
        for answer in answers:
            if (before & _labels(tokens[answer], answered)) - mine:
                yield path, answer, not mine <= before
                break


def _labels(token: str, prompt: str) -> set[str]:
    """Return what stands before each place of a token, back to the token or line before it."""
    labels = set()
    for match in re.finditer(re.escape(token), prompt):
        before = _TOKEN.sub("\n", prompt[max(0, match.start() - 2 * _LABEL) : match.start()])
        label = before.rpartition("\n")[2][-_LABEL:]
        if sum(map(str.isalpha, label)) > _LETTERS:
            labels.add(label)
    return labels
