"""Projects that run pytest with the plugin, alone and spread over workers."""

import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module

import anthropic  # noqa: F401 - see below
import httpcore2  # noqa: F401 - loaded by the first call of the SDK
import pytest
import vcr.stubs.urllib3_stubs  # noqa: F401 - loaded by the first block that patches clients
from plugin_project import Project, emulated
from recorded_talk import say

import pytest_regen
from pytest_regen.emulator import Emulator

# pytester forgets what an inner run imported; loaded here, it is loaded once. That what is not
# used stays unloaded is tested in processes of their own.
for module in pkgutil.walk_packages(pytest_regen.__path__, "pytest_regen."):
    # Programs for a child begin at once, or change what they find.
    if not module.name.endswith(("__main__", "sandbox.runner", "python.handler")):
        import_module(module.name)


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    """An empty project with ``regen_stores`` set."""
    return Project(pytester)


@pytest.fixture
def emulator(monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    """A server that stands for the network, and counts the messages that it is sent."""
    with emulated(monkeypatch, say) as running:
        yield running


@pytest.fixture(params=[(), ("-n", "2")], ids=["alone", "workers"])
def spread(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Options that run a project in one process, and in two workers."""
    options: tuple[str, ...] = request.param
    return options


@pytest.fixture
def in_ci(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Make what follows believe that it runs unattended."""
    return lambda: monkeypatch.setenv("CI", "true")
