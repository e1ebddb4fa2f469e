"""What processes do with cassettes that may not write, or not much; called by ``killing``."""

import json
import os
import resource
from pathlib import Path

from pytest_regen.cassettes import RecordMode, use_cassette
from pytest_regen.cassettes.interactions import Interaction
from pytest_regen.errors import RegenError

_NOBODY = 65534


def exchange(text: str, words: int = 1) -> Interaction:
    """Return an exchange whose answer has that many words."""
    json_type = {"content-type": ("application/json",)}
    sent, said = json.dumps({"say": text}).encode(), json.dumps({"said": "word " * words}).encode()
    uri = "https://x.example/v1/x"
    return Interaction("POST", uri, json_type, sent, 200, "OK", json_type, said)


def ask(path: Path, text: str, *, mode: RecordMode = "none", words: int = 1) -> str:
    """Ask a cassette as a client does, and record the answer where there is none.

    Returns:
        ``played``, ``recorded``, or the error; ``sent and lost: `` before it, if the request left.
    """
    sent = ""
    try:
        with use_cassette(path, mode=mode, http_clients=False) as run:
            made = exchange(text, words)
            if run.take(made.method, made.uri, made.request_body) is not None:
                return "played"
            sent = "sent and lost: "
            run.record(made)
    except RegenError as error:
        return f"{sent}{error}"
    return "recorded"


def _become_nobody(folder: Path) -> None:
    # What is imported late is imported now: an interpreter at home cannot be read by nobody.
    for text in ("one", "two"):
        ask(folder / "warm.yaml", text, mode="new_episodes")
    if os.getuid() == 0:
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)


def record_as_nobody(folder: Path) -> str:
    """Record into a folder that only its owner may write."""
    _become_nobody(folder.parent)
    return ask(folder / "c.yaml", "new", mode="new_episodes")


def record_with_little_room(folder: Path) -> str:
    """Record a large answer where no file may become larger than 16 kB."""
    ask(folder.parent / "warm.yaml", "one", mode="new_episodes")
    resource.setrlimit(resource.RLIMIT_FSIZE, (16_384, 16_384))
    return ask(folder / "c.yaml", "new", mode="new_episodes", words=8_000)
