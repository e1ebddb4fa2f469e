"""Projects that run pytest with the plugin, alone and spread over workers."""

from collections.abc import Callable

import anthropic  # noqa: F401 - see below
import pytest
from plugin_project import Project

# pytester forgets what an inner run imported; loaded here, it is loaded once.
import pytest_regen.cassettes.vcr_adapter
import pytest_regen.pytest_plugin.handles
import pytest_regen.pytest_plugin.healing
import pytest_regen.pytest_plugin.summary
import pytest_regen.pytest_plugin.taping  # noqa: F401 - as above


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    """An empty project with ``regen_stores`` set."""
    return Project(pytester)


@pytest.fixture(params=[(), ("-n", "2")], ids=["alone", "workers"])
def spread(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Options that run a project in one process, and in two workers."""
    options: tuple[str, ...] = request.param
    return options


@pytest.fixture
def in_ci(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Make what follows believe that it runs unattended."""
    return lambda: monkeypatch.setenv("CI", "true")
