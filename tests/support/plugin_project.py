"""A project in which pytest runs with the plugin."""

import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from store_factory import MISSPELT, make_store

from pytest_regen.emulator import Emulator
from pytest_regen.emulator.values import Responder

__all__ = ["Project", "emulated"]

Wrong = Mapping[tuple[str, int], str]


@contextmanager
def emulated(
    monkeypatch: pytest.MonkeyPatch, responder: Responder | None = None
) -> Iterator[Emulator]:
    """Run an emulated API that the environment points to, with a key that must stay unseen."""
    with Emulator(responder) as running:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", running.base_url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-planted-0123456789")
        yield running


class Project:
    """A project whose stores lie in ``generated/``."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path
        pytester.makeini("[pytest]\nregen_stores = generated/*\n")

    def store(self, name: str = "GET_v1_projects", wrong: Wrong | None = None) -> Path:
        """Make a store; ``wrong`` outputs take the place of good ones."""
        return make_store(self.path / "generated" / name, wrong).path

    def broken(self, name: str = "GET_v1_projects") -> Path:
        """Make a store whose ``Owner`` has a misspelt field."""
        return self.store(name, MISSPELT)

    def answered_by(self, provider: str, more: str = "") -> None:
        """Let the project's conftest bring a provider of ``plugin_answers``."""
        body = f"""
            import sys

            # Workers start with the path of the first process only where pytest is recent.
            sys.path.insert(0, {str(Path(__file__).parent)!r})

            from plugin_answers import {provider}

            PROVIDER = {provider}()

            def pytest_regen_provider(config):
                return PROVIDER
        """
        self.pytester.makeconftest(textwrap.dedent(body) + textwrap.dedent(more))

    def run(self, *args: str) -> pytest.RunResult:
        """Run pytest in this process."""
        return self.pytester.runpytest_inprocess(*args)
