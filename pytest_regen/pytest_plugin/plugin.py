"""The pytest plugin as a table of contents: hooks in the order in which pytest calls them.

Every run of every suite that has the package installed passes through here, so that whatever is
not needed to find out that there is nothing to do is imported inside the hooks.
"""

import pytest

from pytest_regen.pytest_plugin.options import add_markers, add_options


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register options and ini values."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Register markers."""
    add_markers(config)
