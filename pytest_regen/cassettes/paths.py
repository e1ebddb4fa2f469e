"""Places in JSON written as JSONPath (``$.messages[*].id``), and what stands there replaced."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pytest_regen.errors import UsageError

__all__ = ["JsonPath", "changed_texts", "leaves", "member_path", "parse_path", "replaced"]

_STEP = re.compile(
    r"""\.\.(?P<deep>\w+)|\.(?P<name>\w[\w-]*)|(?P<any>\.\*|\[\*\])|\[(?P<index>\d+)\]"""
    r"""|\[(?P<quoted>"(?:[^"\\]|\\.)*")\]|\[(?P<single>'[^']*')\]"""
)

_PLAIN = re.compile(r"[^\W\d]\w*")
"""Names that need no quotes."""


@dataclass(frozen=True, slots=True)
class _Step:
    kind: Literal["name", "index", "any", "deep"]
    name: str = ""
    index: int = 0


JsonPath = tuple[_Step, ...]
"""A parsed path: the way from the outermost value to the places it names."""


def parse_path(text: str) -> JsonPath:
    """Return the parsed path.

    Understood are ``$``, ``.name``, ``["any name"]``, ``[0]``, ``[*]``, ``.*`` and ``..name``
    (at any depth).

    Raises:
        UsageError: it is no such path.
    """
    steps: list[_Step] = []
    at = 1
    while text.startswith("$") and at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            break
        steps.append(_step(found))
        at = found.end()
    if not steps or at < len(text):
        raise UsageError(
            f"{text!r} is no path into JSON",
            why='a path is $ and then .name, ["name"], [0], [*], .* or ..name',
            hint='for example ignore = ["$.metadata.user_id", "$.messages[*].content[*].id"]',
        )
    return tuple(steps)


def _step(found: re.Match[str]) -> _Step:
    if found["deep"]:
        return _Step("deep", found["deep"])
    if found["any"]:
        return _Step("any")
    if found["index"]:
        return _Step("index", index=int(found["index"]))
    if found["quoted"]:
        return _Step("name", json.loads(found["quoted"]))
    return _Step("name", found["name"] or found["single"][1:-1])


def replaced(value: Any, path: Sequence[_Step], replacement: object) -> Any:  # noqa: ANN401 - JSON
    """Return ``value`` with ``replacement`` at every place that ``path`` names.

    The value itself is left as it is; what is not there is not made.
    """
    if not path:
        return replacement
    step, rest = path[0], path[1:]

    def below(child: Any) -> Any:  # noqa: ANN401 - JSON
        return replaced(child, rest, replacement)

    changed = _at(value, step, below)
    if step.kind != "deep":
        return changed
    return _mapped(changed, lambda child: replaced(child, path, replacement), skip=step.name)


def _at(value: Any, step: _Step, change: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - JSON
    """Return ``value`` with ``change`` made where ``step`` leads."""
    if step.kind == "any":
        return _mapped(value, change)
    if isinstance(value, Mapping) and step.kind in {"name", "deep"}:
        if step.name not in value:
            return value
        return {k: change(v) if k == step.name else v for k, v in value.items()}
    if isinstance(value, list) and step.kind == "index":
        return [change(v) if n == step.index else v for n, v in enumerate(value)]
    return value


def _mapped(value: Any, change: Callable[[Any], Any], *, skip: str | None = None) -> Any:  # noqa: ANN401
    if isinstance(value, Mapping):
        return {k: v if k == skip else change(v) for k, v in value.items()}
    if isinstance(value, list):
        return [change(v) for v in value]
    return value


def leaves(value: Any, path: str = "$") -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - JSON
    """Yield every value that holds no other, each behind its path."""
    if isinstance(value, Mapping) and value:
        for name, item in value.items():
            yield from leaves(item, member_path(path, name))
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            yield from leaves(item, f"{path}[{number}]")
    else:
        yield path, value


def member_path(path: str, name: str) -> str:
    """Return the path to a member of the object at ``path``, as ``parse_path`` understands it."""
    plain = _PLAIN.fullmatch(name) is not None
    return f"{path}.{name}" if plain else f"{path}[{json.dumps(name)}]"


def changed_texts(value: Any, change: Callable[[str], str]) -> Any:  # noqa: ANN401 - JSON
    """Return a JSON value whose texts, names of members included, are changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(str(name)): changed_texts(item, change) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [changed_texts(item, change) for item in value]
    return value
