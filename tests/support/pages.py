"""What a page of the docs shows: its blocks, and the sessions at a terminal among them."""

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from warm_python import run_python

ROOT = Path(__file__).parents[2]
FOLLOWED = (
    "behaviour",
    "diff",
    "documents",
    "functions",
    "kinds",
    "languages",
    "providers",
    "pytest",
    "sandbox",
    "scale",
    "template",
)
"""Articles of docs/ that are followed from top to bottom, as tutorials and how-tos are."""
PROGRAMS = {
    "pytest": ["-m", "pytest", "-p", "no:cacheprovider"],
    "pytest-regen": ["-m", "pytest_regen"],
    "python": [],
}


_PART = re.compile(
    r'^(?P<fence>`{3,})(?P<language>\w*)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^(?P=fence)$'
    r"|^<!-- (?P<order>given|run|level): (?P<words>.+?) -->$",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """A block of an article, or an order in a comment (``language`` is then its first word)."""

    language: str
    title: str
    text: str


def blocks_of(page: Path) -> Iterator[Block]:
    """Yield what an article has to be followed, in order."""
    for part in _PART.finditer(page.read_text("utf-8")):
        language = part["order"] or part["language"]
        yield Block(language, part["title"] or "", part["words"] or part["text"] or "")


def blocks(page: str, kind: str) -> list[str]:
    """Return the blocks of one kind on a page, named from the root of the checkout."""
    return [block.text for block in blocks_of(ROOT / page) if block.language == kind]


def sessions(block: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each command of a session with the lines shown below it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, [line.strip() for line in shown.splitlines() if line.strip()]


def environment() -> dict[str, str]:
    """Return the environment of a user at a wide terminal, outside CI."""
    return {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}


def printed(command: str, folder: Path, env: Mapping[str, str] | None = None) -> list[str]:
    """Run a command as the page words it; return what it printed, line by line."""
    program, *options = shlex.split(command)
    done = run_python([*PROGRAMS[program], *options], folder, {**environment(), **(env or {})})
    return [line.strip() for line in (done.stdout + done.stderr).splitlines()]
