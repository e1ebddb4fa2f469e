"""Where two JSON values differ, by path, and how far apart they are."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_regen.cassettes.paths import member_path

__all__ = ["Difference", "differences", "distance", "whole_differences"]

_SHOWN = 60
"""Characters of a value that are shown."""

_ABSENT = "(absent)"

_INDEX = re.compile(r'("(?:[^"\\]|\\.)*")|\[\d+\]')
"""A quoted name, which may hold anything, or the number of a list item."""

_BEFORE = 30
"""Characters shown before the place where two texts part."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where the request is not what was recorded."""

    path: str
    """As JSONPath: ``$.messages[2].content``."""
    recorded: str
    """The recorded value, shortened; ``(absent)`` where there is none."""
    sent: str

    def __str__(self) -> str:
        return f"{self.path}: recorded {self.recorded}, sent {self.sent}"

    @property
    def cause(self) -> str:
        """What happened, in the words that other requests share: ``$.messages[*].content differs``.

        The values and the numbers of list items are left out.
        """
        path = _INDEX.sub(lambda found: found[1] or "[*]", self.path)
        if _ABSENT not in (self.recorded, self.sent):
            return f"{path} differs"
        return f"{path} is {'new' if self.recorded == _ABSENT else 'gone'}"

    @property
    def is_cut(self) -> bool:
        """Whether one of the values is longer than what is shown of it."""
        return any(
            text.startswith("...") or text.endswith("...") for text in (self.recorded, self.sent)
        )


def differences(recorded: Any, sent: Any, path: str = "$") -> Iterator[Difference]:  # noqa: ANN401 - JSON
    """Yield the places where ``sent`` differs from ``recorded``, outermost first."""
    if isinstance(recorded, Mapping) and isinstance(sent, Mapping):
        for name in [*recorded, *(n for n in sent if n not in recorded)]:
            yield from _members(recorded, sent, name, member_path(path, name))
    elif isinstance(recorded, list) and isinstance(sent, list):
        for number in range(max(len(recorded), len(sent))):
            step = f"{path}[{number}]"
            old, new = recorded[number : number + 1], sent[number : number + 1]
            yield from _members(dict(enumerate(old)), dict(enumerate(new)), 0, step)
    elif recorded != sent or type(recorded) is not type(sent):
        old_text, new_text = _excerpts(recorded, sent)
        yield Difference(path, old_text, new_text)


def _members(
    recorded: Mapping[Any, Any],
    sent: Mapping[Any, Any],
    name: Any,  # noqa: ANN401 - a key or an index
    path: str,
) -> Iterator[Difference]:
    if name not in sent:
        yield Difference(path, _short(_text(recorded[name])), _ABSENT)
    elif name not in recorded:
        yield Difference(path, _ABSENT, _short(_text(sent[name])))
    else:
        yield from differences(recorded[name], sent[name], path)


def _excerpts(recorded: object, sent: object) -> tuple[str, str]:
    """Return both values, cut around the place where they part if they are long texts."""
    if not isinstance(recorded, str) or not isinstance(sent, str):
        return _short(_text(recorded)), _short(_text(sent))
    pairs = zip(recorded, sent, strict=False)
    parting = next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(recorded), len(sent)))
    start = max(0, parting - _BEFORE)
    return _cut(recorded, start), _cut(sent, start)


def _cut(text: str, start: int) -> str:
    shown = text[start : start + _SHOWN]
    before = "..." if start else ""
    after = "..." if start + _SHOWN < len(text) else ""
    return f"{before}{_text(shown)}{after}"


def _text(value: object, indent: int | None = None) -> str:
    """Return a value as JSON that can be written anywhere: half a character stays escaped."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, default=str)
    return text.encode("utf-8", "backslashreplace").decode()


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def whole_differences(recorded: Any, sent: Any) -> str:  # noqa: ANN401 - JSON
    """Return both values as a unified diff of their laid-out JSON, uncut."""
    from difflib import unified_diff  # noqa: PLC0415 - only what drifted is compared

    old, new = (_text(value, indent=2).splitlines() for value in (recorded, sent))
    return "\n".join([*unified_diff(old, new, "recorded", "sent", lineterm="", n=10_000), ""])


def distance(recorded: Any, sent: Any) -> float:  # noqa: ANN401 - JSON
    """Return how far apart two JSON values are: 0.0 for equal, 1.0 for nothing in common."""
    if isinstance(recorded, Mapping) and isinstance(sent, Mapping):
        names = {*recorded, *sent}
        return _mean([_part(recorded, sent, name) for name in names])
    if isinstance(recorded, list) and isinstance(sent, list):
        count = max(len(recorded), len(sent))
        old, new = dict(enumerate(recorded)), dict(enumerate(sent))
        return _mean([_part(old, new, number) for number in range(count)])
    if isinstance(recorded, str) and isinstance(sent, str):
        return _text_distance(recorded, sent)
    return 0.0 if recorded == sent else 1.0


def _part(recorded: Mapping[Any, Any], sent: Mapping[Any, Any], name: object) -> float:
    if name not in recorded or name not in sent:
        return 1.0
    return distance(recorded[name], sent[name])


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _text_distance(recorded: str, sent: str) -> float:
    """Return the share of the longer text outside the ends both texts have in common."""
    longer = max(len(recorded), len(sent))
    shorter = min(len(recorded), len(sent))
    if longer == 0:
        return 0.0
    head = _common(recorded, sent, shorter)
    tail = _common(recorded[::-1], sent[::-1], shorter - head)
    return (longer - head - tail) / longer


def _common(left: str, right: str, limit: int) -> int:
    """Return the length of the common start, by bisection: slices compare in C."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if left[:middle] == right[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
