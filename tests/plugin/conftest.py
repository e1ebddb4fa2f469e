"""Projects that run pytest with the plugin, alone and spread over workers."""

import pkgutil
import sys
from collections.abc import Callable, Iterator
from importlib import import_module

import anthropic  # noqa: F401 - see below
import httpcore2  # noqa: F401 - loaded by the first call of the SDK
import pytest
import vcr.stubs.urllib3_stubs  # noqa: F401 - loaded by the first block that patches clients
from function_project import FunctionProject
from plugin_project import Project, emulated
from recorded_talk import say
from unit_project import UnitProject

import pytest_regen
from pytest_regen.emulator import Emulator

# pytester forgets what an inner run imported; loaded here, it is loaded once. That what is not
# used stays unloaded is tested in processes of their own.
for module in pkgutil.walk_packages(pytest_regen.__path__, "pytest_regen."):
    # Programs for a child begin at once, or change what they find.
    if not module.name.endswith(("__main__", "sandbox.runner", "python.handler")):
        import_module(module.name)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let other processes load no plugins that have no part in it: they take as long as pytest."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest -p no:syrupy")


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    """An empty project with ``regen_stores`` set."""
    return Project(pytester)


@pytest.fixture
def emulator(monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    """A server that stands for the network, and counts the messages that it is sent."""
    with emulated(monkeypatch, say) as running:
        yield running


@pytest.fixture
def functions(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> FunctionProject:
    """A project of functions; what it imports is forgotten with it."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    for name in ("acme", "acme.times"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return FunctionProject(pytester)


@pytest.fixture
def units(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> UnitProject:
    """The project of the documentation; tests of commands import the kinds of theirs."""
    monkeypatch.delitem(sys.modules, "regen_kinds", raising=False)
    return UnitProject(pytester)


@pytest.fixture
def in_ci(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Make what follows believe that it runs unattended."""
    return lambda: monkeypatch.setenv("CI", "true")
