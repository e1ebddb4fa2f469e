"""What is said when a cassette has no answer: which request, what is nearest, where they part."""

from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pytest_regen.cassettes.differences import differences, distance
from pytest_regen.cassettes.reading import StoredInteraction
from pytest_regen.cassettes.tape import Tape
from pytest_regen.cassettes.values import json_or_none
from pytest_regen.errors import CassetteMissError
from pytest_regen.turns.secrets import scrub_text

__all__ = ["miss"]

RECORD_COMMAND = "record it: pytest --regen --regen-record {mode}, with ANTHROPIC_API_KEY set"

_CANDIDATES = 25
"""Recordings compared with a request nobody recorded; more would take longer than the answer."""

_DIFFERENCES = 5
_EXCERPT = 60


def miss(
    path: Path,
    tape: Tape,
    *,
    method: str,
    uri: str,
    body: bytes | Mapping[str, Any],
    key: str,
    exists: bool,
    command: str = "",
) -> CassetteMissError:
    """Return the error for a request that was never recorded.

    Args:
        path: the cassette.
        tape: its recordings.
        method: HTTP method.
        uri: address or path.
        body: what was sent.
        key: its key.
        exists: whether there is a cassette at all.
        command: what to run so that it is recorded.
    """
    sent = json_or_none(body) if isinstance(body, bytes) else body
    address = urlsplit(uri).path or "/"
    asked = f"{method.upper()} {address}{_subject(sent)}"
    if not exists:
        return CassetteMissError(
            f"no cassette at {path}, and {asked} needs one",
            why="replay sends nothing over the network",
            hint=command or RECORD_COMMAND.format(mode="once"),
        )
    return CassetteMissError(
        f"{path.name} has no answer to {asked}",
        why=scrub_text(_why(path, tape, key, sent)),
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


def _why(path: Path, tape: Tape, key: str, sent: object) -> str:
    place = f"{path}: {len(tape)} recorded, {tape.played} played"
    if tape.knows(key):
        return f"the same request was recorded and is played already, each answers once ({place})"
    nearest = _nearest(tape.unplayed or tape.everything, sent)
    if nearest is None:
        return f"nothing in it is like this request ({place})"
    number, stored, recorded = nearest
    found = list(islice(differences(recorded, sent), _DIFFERENCES + 1))
    lines = [f"    {difference}" for difference in found[:_DIFFERENCES]]
    if len(found) > _DIFFERENCES:
        lines.append("    and more")
    if not lines:
        lines = ["    method, path or query differ"]
    return "\n".join(
        [f"nearest is interaction {number} at {path.name}:{stored.line} ({place})", *lines]
    )


def _nearest(
    candidates: Iterable[tuple[int, StoredInteraction]], sent: object
) -> tuple[int, StoredInteraction, object] | None:
    best: tuple[float, int, StoredInteraction, object] | None = None
    for number, stored in islice(candidates, _CANDIDATES):
        recorded = json_or_none(stored.interaction.request_body)
        apart = distance(recorded, sent)
        if best is None or apart < best[0]:
            best = (apart, number, stored, recorded)
    return best[1:] if best else None
