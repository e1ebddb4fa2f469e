"""What is said of a request nobody recorded: which it is, what is nearest, where they part."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pytest_regen.cassettes.differences import (
    Difference,
    differences,
    distance,
    whole_differences,
)
from pytest_regen.cassettes.matching import Matching
from pytest_regen.cassettes.reading import StoredInteraction
from pytest_regen.cassettes.tape import Tape
from pytest_regen.cassettes.values import Interaction, json_or_none
from pytest_regen.errors import CassetteMissError
from pytest_regen.turns.secrets import scrub_text

__all__ = ["Asked", "Drift", "drift_between", "drift_of", "miss"]

RECORD_COMMAND = "record it: pytest --regen --regen-record {mode}, with ANTHROPIC_API_KEY set"

_CANDIDATES = 25
"""Recordings compared with a request nobody recorded; more would take longer than the answer."""

_DIFFERENCES = 5
_EXCERPT = 60


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it is looked up: normalized."""

    method: str
    uri: str
    body: bytes | Mapping[str, Any]

    @property
    def json(self) -> Any:  # noqa: ANN401 - any JSON value
        """The body as JSON, or ``None``."""
        return json_or_none(self.body) if isinstance(self.body, bytes) else self.body

    @property
    def path(self) -> str:
        """The path asked for."""
        return urlsplit(self.uri).path or "/"

    def same_place(self, recorded: Interaction) -> bool:
        """Whether a recording is of the same method and path."""
        return (
            recorded.method.upper() == self.method.upper()
            and (urlsplit(recorded.uri).path or "/") == self.path
        )

    def __str__(self) -> str:
        return f"{self.method.upper()} {self.path}{_subject(self.json)}"


@dataclass(frozen=True, slots=True)
class Drift:
    """A request that was given the recording of another one."""

    request: str
    """Method, path, model, turn and last words."""
    interaction: int
    """Number of the recording in the file, from 1."""
    line: int
    differences: tuple[Difference, ...]
    """The first of them."""
    more: int
    diff_file: Path | None = None

    def __str__(self) -> str:
        line = f" (line {self.line})" if self.line else ""
        lines = [f"{self.request} was given interaction {self.interaction}{line}"]
        return "\n".join([*lines, *_shown(self.differences, self.more, self.diff_file)])


def drift_of(
    path: Path, asked: Asked, number: int, stored: StoredInteraction, matching: Matching
) -> Drift:
    """Return how a request differs from the recording that stood in its place."""
    recorded = json_or_none(matching.normalized(stored.interaction.request_body))
    found, more, file = _compared(path, recorded, asked.json, matching, number)
    return Drift(str(asked), number, stored.line, found, more, file)


def drift_between(
    path: Path, asked: Asked, number: int, recorded: bytes, matching: Matching
) -> Drift | None:
    """Return how a request differs from a recorded body; ``None`` if it does not."""
    old, new = json_or_none(recorded), asked.json
    if old is None and new is None:
        return None
    found, more, file = _compared(path, old, new, matching, number)
    return Drift(str(asked), number, 0, found, more, file) if found else None


def miss(
    path: Path,
    tape: Tape,
    asked: Asked,
    *,
    key: str,
    exists: bool,
    matching: Matching,
    command: str = "",
) -> CassetteMissError:
    """Return the error for a request that was never recorded.

    Args:
        path: the cassette.
        tape: its recordings.
        asked: the request.
        key: its key.
        exists: whether there is a cassette at all.
        matching: how bodies are compared, and where a long difference is written.
        command: what to run so that it is recorded.
    """
    if not exists:
        return CassetteMissError(
            f"no cassette at {path}, and {asked} needs one",
            why="replay sends nothing over the network",
            hint=command or RECORD_COMMAND.format(mode="once"),
        )
    return CassetteMissError(
        f"{path.name} has no answer to {asked}",
        why=scrub_text(_why(path, tape, key, asked, matching)),
        hint=command or RECORD_COMMAND.format(mode="new_episodes"),
    )


def _subject(sent: object) -> str:
    """Return what tells this request from others: its model, turn and last words."""
    if not isinstance(sent, Mapping) or not isinstance(sent.get("messages"), list):
        return ""
    messages = sent["messages"]
    turn = sum(isinstance(m, Mapping) and m.get("role") == "user" for m in messages)
    words = " ".join(_words(messages[-1]).split()) if messages else ""
    shown = words if len(words) <= _EXCERPT else words[:_EXCERPT] + "..."
    return f" (model {sent.get('model')}, turn {turn}: {scrub_text(shown)!r})"


def _words(message: object) -> str:
    content = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(content, list):
        texts = [str(b.get("text") or "") for b in content if isinstance(b, Mapping)]
        return " ".join(texts)
    return str(content or "")


def _why(path: Path, tape: Tape, key: str, asked: Asked, matching: Matching) -> str:
    place = f"{path}: {len(tape)} recorded, {tape.played} played"
    if tape.knows(key):
        return f"the same request was recorded and is played already, each answers once ({place})"
    nearest = _nearest(tape.unplayed or tape.everything, asked, matching.normalized)
    if nearest is None:
        return f"nothing in it is like this request ({place})"
    number, stored, recorded = nearest
    found, more, file = _compared(path, recorded, asked.json, matching, number)
    at = f" at {path.name}:{stored.line}" if stored.line else ""
    lines = _shown(found, more, file) or ["    method, path or query differ"]
    return "\n".join([f"nearest is interaction {number}{at} ({place})", *lines])


def _shown(found: Iterable[Difference], more: int, file: Path | None) -> list[str]:
    lines = [f"    {difference}" for difference in found]
    if more:
        lines.append(f"    and {more} more")
    if file is not None:
        lines.append(f"    in full: {file}")
    return lines


def _compared(
    path: Path, recorded: object, sent: object, matching: Matching, number: int
) -> tuple[tuple[Difference, ...], int, Path | None]:
    """Return the first differences, how many more there are, and the file that has them whole."""
    every = list(differences(recorded, sent))
    first, more = tuple(every[:_DIFFERENCES]), max(0, len(every) - _DIFFERENCES)
    if matching.diff_folder is None or not (more or any(one.is_cut for one in first)):
        return first, more, None
    name = re.sub(r"[^\w.-]", "_", path.stem)[:100]
    file = matching.diff_folder / f"{name}-{number}.txt"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(scrub_text(whole_differences(recorded, sent)), "utf-8")
    except OSError:
        # The file is a courtesy; what was found must be told all the same.
        return first, more, None
    return first, more, file


def _nearest(
    candidates: Iterable[tuple[int, StoredInteraction]],
    asked: Asked,
    normalized: Callable[[bytes], bytes],
) -> tuple[int, StoredInteraction, object] | None:
    """Return the recording least far from the request; the first of several equally far."""
    best: tuple[tuple[bool, float], int, StoredInteraction, object] | None = None
    sent = asked.json
    for number, stored in islice(candidates, _CANDIDATES):
        recorded = json_or_none(normalized(stored.interaction.request_body))
        # Another path is farther than any body.
        apart = (not asked.same_place(stored.interaction), distance(recorded, sent))
        if best is None or apart < best[0]:
            best = (apart, number, stored, recorded)
    return best[1:] if best else None
