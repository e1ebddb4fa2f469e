"""The conversation of docs/cassettes.md, recorded: ``python tests/support/talk.py`` does it anew.

The replies are written by hand, below, and given by the emulator: no language model wrote them,
and the recording says ``source: emulator``.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pages import ROOT, blocks, printed

from pytest_regen.emulator import Emulator

__all__ = ["FILE", "RECORDING", "TEST", "answering", "record"]

RECORDING = ROOT / "cassettes" / "talk.yaml"
TEST = next(text for text in blocks("docs/cassettes.md", "python") if "def test_talk" in text)
FILE = Path("cassettes", "test_talk", "test_talk.yaml")
"""Where the fixture looks for the recording of the page's test."""

SETTINGS = """
[tool.pytest-regen.cassettes]
drop_headers = ["anthropic-ratelimit-*", "date", "request-id", "vary"]
"""
"""What differs from recording to recording and tells the page's reader nothing."""

REPLIES = {
    "What grows on a north wall?": "Ivy, climbing hydrangea and winter jasmine do.",
    "And in deep shade?": "Ivy, ferns and lily of the valley.",
    "Which of them feeds bees?": "Ivy, whose nectar comes when little else is left.",
    "Which of them feeds bees and moths?": "Ivy feeds both, winter jasmine the first bees.",
    "When does it flower?": "From September to November.",
    "What does a token of GitHub look like?": f"A token is like ghp_{'a1B2c3D4e5F6' * 3}.",
    "What should I plant first?": "Plant ivy, and keep it off the gutters.",
}


def answer(body: dict[str, Any]) -> str:
    """Return the reply to the last prompt."""
    return REPLIES[body["messages"][-1]["content"]]


@contextmanager
def answering() -> Iterator[dict[str, str]]:
    """Yield an environment in which the real SDK reaches the emulator."""
    with Emulator(answer) as emulator:
        yield {"ANTHROPIC_BASE_URL": emulator.base_url, "ANTHROPIC_API_KEY": "none-needed"}


def record(folder: Path) -> Path:
    """Record the test of the page in a folder; return the cassette."""
    (folder / "test_talk.py").write_text(TEST, "utf-8")
    (folder / "pyproject.toml").write_text(SETTINGS, "utf-8")
    with answering() as env:
        lines = printed("pytest test_talk.py --regen-record rewrite", folder, env)
    assert (folder / FILE).exists(), lines
    return folder / FILE


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        RECORDING.parent.mkdir(exist_ok=True)
        shutil.copy(record(Path(made)), RECORDING)
    sys.stderr.write(f"{os.path.relpath(RECORDING)}\n")
