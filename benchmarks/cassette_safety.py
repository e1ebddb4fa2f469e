"""Figures of what is lost and what is left: recordings after a crash, credentials on disk."""

import json
import os
from collections.abc import Callable
from pathlib import Path

from cassette_figures import child, start_child
from cassette_subjects import Subject, exchanges

__all__ = ["ROWS", "record_some"]


def record_some(subject: Subject, path: Path, name: str, count: int, *, crash: bool) -> None:
    """Record calls, and end well or not at all."""
    with subject.use(path, "new_episodes", clients=False) as run:
        for number, (sent, reply) in enumerate(exchanges(count)):
            subject.keep(run, sent.replace(b"7-", f"{name}{number}-".encode(), 1), reply)
        if crash:
            os._exit(1)


def kept(subject: Subject, folder: Path) -> str:
    """How many of 5 calls are on disk after a crash, and how many of 4 writers' are kept."""
    crash, shared = folder / "crash.yaml", folder / "shared.yaml"
    name = subject.name
    child(name, "_record", str(crash), "c", "5", "crash")
    children = [start_child(name, "_record", str(shared), f"w{n}", "1", "") for n in range(4)]
    for process in children:
        process.wait()
    return f"{subject.count(crash)} of 5, {subject.count(shared)} of 4"


def secrets(subject: Subject, folder: Path) -> str:
    """How many kinds of planted credential stand on disk."""
    from planted_secrets import KINDS

    path = folder / "secrets.yaml"
    with subject.use(path, "new_episodes") as run:
        for number, secret in enumerate(KINDS.values()):
            sent = {"model": "m", "messages": [{"role": "user", "content": f"{number} {secret}"}]}
            reply = {"content": [{"type": "text", "text": f"it is {secret}"}]}
            subject.keep(run, json.dumps(sent).encode(), json.dumps(reply).encode())
    text = path.read_text("utf-8").replace("\n", " ").replace('\\"', '"')
    squeezed = "".join(text.split())
    left = [s for s in KINDS.values() if "".join(s.replace("\n", "\\n").split()) in squeezed]
    return f"{len(left)} of {len(KINDS)}"


ROWS: dict[str, Callable[[Subject, Path], str]] = {
    "kept: crash after 5 calls, 4 parallel writers": kept,
    "planted secrets on disk": secrets,
}
