"""What every test of the project shares: pytester, a clean environment, a closed network."""

import ast
import gc
import os
import signal
import socket
import sys
import warnings
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml  # noqa: F401 - its C classes are made once in a process, and pytester forgets
from _pytest._code import code

try:
    from hypothesis import HealthCheck, settings
except ModuleNotFoundError:
    raise SystemExit("the tests of pytest-regen need: pip install -e '.[test]'") from None

pytest_plugins = ["pytester"]

_PROFILE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("default", _PROFILE, max_examples=40)
settings.register_profile("thorough", _PROFILE, max_examples=2_000)
settings.load_profile("default")

_LOOPBACK = {"127.0.0.1", "::1", "localhost"}

_LEAN = "-p no:anyio -p no:hypothesispytest -p no:pytest_cov -p no:syrupy -p no:unraisableexception"
"""Options of every pytest that a test starts: without what is installed for the tests alone.

Loading it takes three times as long as all the rest of a small run, in each of its workers; the
last one collects garbage at the end.
"""


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Leave what was collected out of garbage collections, of which inner runs make thousands."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _lean_children() -> Iterator[None]:
    """Start each pytest of a test without plugins that have no part in it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_ADDOPTS", _LEAN)
        yield


@pytest.fixture
def pytester(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """The fixture of pytest, which forgets the options that all children have."""
    # A kind of another project, which a run in this process imported, is not this one's.
    monkeypatch.delitem(sys.modules, "regen_kinds", raising=False)
    monkeypatch.setenv("PYTEST_ADDOPTS", _LEAN)
    return pytester


@pytest.fixture(scope="session", autouse=True)
def _sources_parsed_once() -> Iterator[None]:
    """Let pytest parse a file once to show lines of it, and not once for each failure.

    It parses whole files, those of the package and its own, of which inner runs show thousands.
    """
    find = vars(code)["getstatementrange_ast"]

    @lru_cache(128)
    def parse(text: str) -> ast.AST:
        with warnings.catch_warnings(action="ignore"):
            return ast.parse(text)

    def found(line: int, source: object, astnode: ast.AST | None = None) -> object:
        return find(line, source, astnode=astnode or parse(str(source)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(code, "getstatementrange_ast", found)
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_authorities(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let every HTTP client, here and in child processes, trust no certificate authority.

    All tests speak plain HTTP on loopback; a client would read the authorities of the system all
    the same, which takes longer than most tests.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SSL_CERT_FILE", raising=False)
        patch.setenv("SSL_CERT_DIR", str(tmp_path_factory.mktemp("no-authorities")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _own_cache_folder() -> Iterator[None]:
    """Keep what belongs to the user, as the state of rate limits, out of the user's own folder.

    It is not below the folders of tests: a key that lies in a project is no secret.
    """
    with TemporaryDirectory(prefix="user-cache-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", folder)
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Let no write in this process wait until the disk has it: a killed process needs no disk.

    What is synced, and in which order, is held by the effects that tests/support/power.py sees; the
    programs that tests start wait as they do for users.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)
        yield


@pytest.fixture(scope="session", autouse=True)
def _interruptible() -> None:
    """Let Ctrl-C reach child processes, also where a shell runs the tests in the background.

    Such a shell has it ignored, and children inherit that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _clean_environ(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a developer's keys, proxies and CI settings out of the tests."""
    for name in list(os.environ):
        is_of_ci = name == "CI" or name.startswith("GITHUB_")
        if name.startswith("ANTHROPIC_") or name.lower().endswith("_proxy") or is_of_ci:
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _no_code_run_before() -> None:
    """Let no test take the level of the sandbox at which another one had code run for its own."""
    levels = sys.modules.get("pytest_regen.sandbox.levels")
    if levels:
        levels.forget_used_level()


@pytest.fixture(autouse=True)
def _loopback_only(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Refuse every connection that would leave this machine."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: tuple[str, int] | str | bytes) -> None:
        if isinstance(address, tuple) and address[0] not in _LOOPBACK:
            pytest.fail(f"a test tried to reach {address!r}; only loopback is allowed")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
    yield  # noqa: PT022 - the patch is undone after the test


@pytest.fixture
def shared_specs() -> Path:
    """The folder of real API descriptions, beside the checkout; the test skips without it."""
    folder = Path(__file__).parent.parent / "shared" / "specs"
    if not folder.is_dir():
        pytest.skip("the folder of real API descriptions is not beside this checkout")
    return folder
