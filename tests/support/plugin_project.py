"""A project in which pytest runs with the plugin."""

import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest
from store_factory import MISSPELT, make_store

__all__ = ["Project"]

Wrong = Mapping[tuple[str, int], str]


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
        """Run pytest in this process, without plugins that have no part in it."""
        return self.pytester.runpytest_inprocess("-p", "no:syrupy", *args)
