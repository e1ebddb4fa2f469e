"""``--provider openai:MODEL`` and ``provider`` in the project's table, of commands."""

from pathlib import Path

import pytest
from chat_service import Said, chat_service
from command_line import command
from store_factory import GOOD

from pytest_regen.stores import RegenStore

PAGE = ("--type", "Owner", "--page", "1", "--accept-any")
KEY = "sk-proj-" + "Zz9" * 12


def test_the_table_names_the_service_and_the_command_another_model(
    broken: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The price is the service's list price, and the page says who wrote it."""
    (here / "pyproject.toml").write_text('[tool.pytest-regen]\nprovider = "openai:gpt-4o"\n')
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with chat_service(Said(GOOD["Owner", 1])) as service:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{service.address}/v1")
        first = command("regenerate", broken, *PAGE)
        command("regenerate", broken, *PAGE, "--model", "gpt-4o-mini")

    assert first.code == 0, first.err
    assert "1 call, 50 tokens in, 7 tokens out, about $0.0" in first.err + first.out
    assert [asked.body["model"] for asked in service.requests] == ["gpt-4o", "gpt-4o-mini"]
    assert {page.provider for page in RegenStore.open(broken).pages_of("Owner")} == {"openai"}


def test_what_a_named_provider_lacks_is_said_before_anything_begins(
    broken: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its key; a model that is named twice; batches, which only one API has."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    by_name = ("regenerate", broken, *PAGE, "--provider", "openai:gpt-5")

    keyless = command(*by_name)
    misspelt = command("regenerate", broken, *PAGE, "--provider", "openia:gpt-5")
    twice = command(*by_name, "--model", "gpt-4o")
    batch = command(*by_name, "--engine", "batch")
    unrecorded = command(*by_name, "--cassette", "talk.yaml")

    assert (keyless.code, keyless.err.splitlines()[0]) == (3, "error: OPENAI_API_KEY is not set")
    assert "--provider 'openia:gpt-5' names no provider" in misspelt.err
    assert "did you mean openai:gpt-5?" in misspelt.err
    assert "contradict each other" in twice.err
    assert "contradict each other" in batch.err
    assert "--record once and OPENAI_API_KEY set" in unrecorded.err
