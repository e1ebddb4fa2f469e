"""Providers by name and from the environment."""

from pathlib import Path

import pytest
from turn_values import turn

from pytest_regen.errors import MissingKeyError, UsageError
from pytest_regen.turns import load_provider, provider_from_environment

SOURCE = """
from pytest_regen.turns import Reply

class Echo:
    def send(self, request):
        return Reply("class")

class Needy(Echo):
    def __init__(self, key): ...

ready = Echo()

def make():
    return Echo()

def model(messages):
    return messages[-1]["content"]

def two(a, b): ...

number = 3

class namespace:
    inner = ready
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"providers_{abs(hash(str(tmp_path)))}"
    (tmp_path / f"{name}.py").write_text(SOURCE, "utf-8")
    monkeypatch.chdir(tmp_path)
    return name


@pytest.mark.parametrize(
    ("attribute", "said"),
    [
        ("ready", "class"),
        ("Echo", "class"),
        ("make", "class"),
        ("model", "hi"),
        ("namespace.inner", "class"),
    ],
)
def test_a_reference_names_a_provider(module: str, attribute: str, said: str) -> None:
    """An instance, what makes one, or a function from messages to text."""
    assert load_provider(f"{module}:{attribute}").send(turn("hi")).text == said


@pytest.mark.parametrize("attribute", ["number", "two", "Needy"])
def test_what_is_no_provider_is_refused(module: str, attribute: str) -> None:
    """The message names what was found and what would do."""
    with pytest.raises(UsageError, match="is no provider"):
        load_provider(f"{module}:{attribute}")


@pytest.mark.parametrize("reference", ["module", ":x", "module:", ""])
def test_a_malformed_reference_shows_the_form(reference: str) -> None:
    with pytest.raises(UsageError, match="module:attribute"):
        load_provider(reference)


def test_a_missing_module_or_attribute_is_named(module: str) -> None:
    with pytest.raises(UsageError, match="no_such_module"):
        load_provider("no_such_module:x")
    with pytest.raises(UsageError, match="Echo"):
        load_provider(f"{module}:ehco")


def test_the_environment_makes_the_real_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingKeyError, match="export ANTHROPIC_API_KEY"):
        provider_from_environment()

    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1/")
    assert provider_from_environment("m").base_url == "http://127.0.0.1:1"
