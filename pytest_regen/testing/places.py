"""Where tokens stand in a prompt: beside which question, under which label."""

import json
import re
from collections.abc import Iterator
from itertools import groupby, pairwise
from typing import Any, Final

from pytest_regen.testing.agents import readable
from pytest_regen.testing.canaries import ANY_MARK, TOKEN, Shape, leaves

_LABEL: Final = 24
"""Characters before a token that can be its label."""
_LETTERS: Final = 2
"""A label has more of them than a bullet or a quote."""
_OPENING: Final = re.compile(r'\{\s*"|\[\s*[\[{"]')


def find_misplaced(shape: Shape, prompt: str) -> list[str]:
    """Return the paths of the answers that stand with a question that is not theirs.

    Questions and answers are paired by their number. Each answer may stand next to its question,
    or all of them in the order in which the questions are first asked.
    """
    tokens = shape.sent_tokens(ANY_MARK)
    roles = {token: shape.sample.role(path) for path, token in tokens.items()}
    marks = [roles.get(match[0], ("", "")) for match in TOKEN.finditer(readable(prompt))]
    order = [mark for mark, _ in groupby(mark for mark in marks if mark[0])]
    # Both ways, because some prompts have the answer before its question.
    for way in (order, order[::-1]):
        pairs = pairwise([("", ""), *way])
        if all(before == ("question", mark[1]) for before, mark in pairs if mark[0] == "answer"):
            return []
    answers = list(dict.fromkeys(number for kind, number in order if kind == "answer"))
    questions = dict.fromkeys(number for kind, number in order if kind == "question")
    due = [number for number in questions if number in answers]
    # Where a question is not sent at all, which another check tells, nothing is due.
    if len(answers) > len(due):
        return []
    wrong = {
        ("answer", answer) for answer, right in zip(answers, due, strict=True) if answer != right
    }
    return [path for path, token in tokens.items() if roles[token] in wrong]


def posing(shape: Shape, answered: str, skipped: str) -> Iterator[tuple[str, str]]:
    """Yield texts that stand where an answer would stand, once there is none, and that answer.

    Args:
        shape: the turn with all its answers.
        answered: the prompt with answers.
        skipped: the same with fewer.
    """
    tokens = shape.sent_tokens(ANY_MARK)
    with_answers, without = labels(answered), labels(skipped)
    answers = [path for path in tokens if shape.sample.role(path)[0] == "answer"]
    gone = [path for path in answers if tokens[path] not in without]
    for path, token in tokens.items():
        mine, after = with_answers.get(token, set()), without.get(token, set())
        for answer in gone if mine and path not in answers else ():
            if (after & with_answers.get(tokens[answer], set())) - mine:
                yield path, answer
                break


def labels(prompt: str) -> dict[str, set[str]]:
    """Return by token what it stands under: the words before it, and keys of JSON."""
    stands_under: dict[str, set[str]] = {}
    text = readable(prompt)
    for match in TOKEN.finditer(text):
        before = TOKEN.sub("\n", text[max(0, match.start() - 3 * _LABEL) : match.start()])
        label = before.rpartition("\n")[2][-_LABEL:]
        if sum(map(str.isalpha, label)) > _LETTERS:
            stands_under.setdefault(match[0], set()).add(label)
    for value in _json_values(prompt):
        for keys, leaf in leaves(value):
            names = ["*" if type(key) is int else TOKEN.sub("*", str(key)) for key in keys]
            for match in TOKEN.finditer(str(leaf)):
                # Each key on the way: what stands below it may have another form without answers.
                ways = {"/".join(names[:end]) + "/" for end in range(1, len(names) + 1)}
                stands_under.setdefault(match[0], set()).update(ways)
    return stands_under


def _json_values(prompt: str) -> Iterator[Any]:
    """Yield the objects and lists of JSON in a prompt."""
    decoder, at = json.JSONDecoder(), 0
    while match := _OPENING.search(prompt, at):
        try:
            value, at = decoder.raw_decode(prompt, match.start())
        except ValueError:
            # Prose has braces, too, and JSON may begin within them.
            at = match.end()
        else:
            yield value
