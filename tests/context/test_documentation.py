"""What docs/context.md shows is true: its code runs, and prints what it says."""

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from pytest_regen.context import questions, values
from pytest_regen.emulator import Emulator
from pytest_regen.turns import AnthropicProvider

PAGE = (Path(__file__).parents[2] / "docs" / "context.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def page(tmp_path: Path) -> Iterator[ModuleType]:
    """The code of the page as a module, which a fresh process can import too."""
    file = tmp_path / "context_page.py"
    file.write_text("\n\n".join(text for kind, text in BLOCKS if kind == "python"), "utf-8")
    spec = importlib.util.spec_from_file_location("context_page", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_the_prompt_is_the_one_shown(page: ModuleType) -> None:
    """The rendered conversation of another agent, to the letter."""
    rendered = page.render_conversation(page.ticket)

    assert [text for kind, text in BLOCKS if kind == "text"] == [f"{rendered}\n"]


@pytest.mark.parametrize("name", ["test_my_agent", "test_their_agent"])
def test_the_checks_pass(page: ModuleType, name: str) -> None:
    """Ours, and somebody else's through its adapter."""
    getattr(page, name)()


def test_both_turns_are_taken(page: ModuleType) -> None:
    """The function of the page asks, and writes with the answer, from the example's replies."""
    script = Path(__file__).parents[2] / "examples" / "clarifying_agent" / "replies.yaml"
    with Emulator(script=script) as emulator:
        provider = AnthropicProvider(api_key="any", base_url=emulator.base_url)

        written = page.subject_line(provider, "rent is up", {"location": "Reno, NV"})

    assert written.startswith("Rent Is Out of Control")
    assert "Reno, NV" in str(emulator.requests[1].body)


def test_the_limits_are_those_of_the_code() -> None:
    """The table is not older than the values."""
    for limit in (
        values.MAX_DESCRIPTION,
        questions.MAX_QUESTION,
        questions.MAX_ANSWER,
        questions.MAX_LABEL,
    ):
        assert f"| {limit:,} |" in PAGE
    assert f"| id | {questions.MAX_ID} |" in PAGE
    assert questions.MAX_ANSWER == values.MAX_REASONING
    assert f"questions | {values.MAX_QUESTIONS} |" in PAGE
    assert f"options | {questions.MIN_OPTIONS} to {questions.MAX_OPTIONS} |" in PAGE
    assert f"suggested places | {questions.MAX_SUGGESTIONS} |" in PAGE
