"""What children do to cassettes while they are killed or run side by side (see killing.py).

Each records through the real SDK from an emulator of its own, and notes what its caller was given.
"""

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anthropic
from recorded import echo

from pytest_regen.cassettes import read_cassette, use_cassette
from pytest_regen.emulator import Emulator

LONG = "word " * 4_000
"""Makes a recording longer than what one write takes."""


@contextmanager
def client() -> Iterator[Any]:
    """Yield a client of the SDK whose emulator says back what it is told."""
    with (
        Emulator(echo) as emulator,
        anthropic.Anthropic(api_key="k", base_url=emulator.base_url, max_retries=0) as made,
    ):
        yield made


def ask(talk: Any, words: str, *, streamed: bool = False) -> None:
    """Ask and hear the answer to its end."""
    call = {
        "model": "claude-sonnet-5-5",
        "max_tokens": 60_000 if streamed else 20_000,
        "messages": [{"role": "user", "content": words}],
    }
    if streamed:
        with talk.messages.stream(**call) as stream:
            assert stream.get_final_text() == words
    else:
        assert talk.messages.create(**call).content[-1].text == words


def note(folder: Path, words: str) -> None:
    """Note that the caller has got the answer to ``words``."""
    with (folder / "noted").open("ab", buffering=0) as file:
        file.write(f"{words.split(maxsplit=1)[0]}\n".encode())


def noted(folder: Path) -> set[str]:
    """Return the first words of every answer that a caller has got."""
    path = folder / "noted"
    return set(path.read_text("ascii").split()) if path.exists() else set()


def kept_words(folder: Path) -> set[str]:
    """Return the first words of every recording in the folder, partial files included."""
    words = set()
    for path in (*folder.glob("*.yaml"), *folder.glob("*.partial")):
        if path.suffix == ".partial" and b"\n    status:\n" not in path.read_bytes():
            continue  # killed before its first recording was whole
        file = read_cassette(path)
        assert file is not None
        for stored in file.interactions:
            body = stored.interaction.request_body.decode()
            words.add(body.partition('"content": "')[2].split()[0].rstrip('"'))
    return words


def record_for_ever(folder: Path) -> None:
    """Record block after block, four threads in each, until killed."""
    with client() as talk, ThreadPoolExecutor(4) as pool:
        for block in itertools.count():
            with use_cassette(folder / "c.yaml", mode="new_episodes"):

                def one(number: int) -> None:
                    words = f"{block}-{number} {LONG if number % 2 else ''}"  # noqa: B023 - at once
                    ask(talk, words, streamed=number % 3 == 0)
                    note(folder, words)

                list(pool.map(one, range(8)))


def rewrite_for_ever(folder: Path) -> None:
    """Record the same cassette anew, four recordings each time, until killed."""
    with client() as talk:
        for block in itertools.count():
            with use_cassette(folder / "c.yaml", mode="rewrite"):
                for number in range(4):
                    ask(talk, f"{block}-{number} {LONG}")
            note(folder, str(block))


def record_one_of_many(folder: Path, number: int) -> None:
    """Record six turns in two blocks into the cassette of all."""
    with client() as talk:
        for block in range(2):
            with use_cassette(folder / "c.yaml", mode="new_episodes"):
                for turn in range(3):
                    ask(talk, f"{number}-{block}-{turn}", streamed=turn == 1)
