"""What a suite written for pytest-recording uses: its marks, fixtures, options and hook.

Registered only where that plugin is not loaded. Nothing here is automatic for
tests without its marks, so that they cost nothing.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_regen.modes import RECORD_MODES
from pytest_regen.pytest_plugin.options import usage_error

MARKERS = (
    "vcr(*cassettes, **config): record or replay the requests of the test with vcrpy.",
    "default_cassette(name): name of the test's cassette.",
    "block_network(allowed_hosts=None): let no connection leave, except to hosts that match.",
    "allowed_hosts(patterns): hosts, as regular expressions, that may still be reached.",
)


class _Specs:
    """The hook of pytest-recording."""

    @pytest.hookspec
    def pytest_recording_configure(self, config: pytest.Config, vcr: Any) -> None:
        """Register serializers, matchers and persisters with the VCR object of a test."""


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Make the hook known."""
    pluginmanager.add_hookspecs(_Specs)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options, under the names they have there."""
    # Names, dests and defaults as pytest-recording has them: hooks of suites read them.
    group = parser.getgroup("recording", "cassettes of tests marked vcr")
    group.addoption(
        "--record-mode", choices=RECORD_MODES, help="Record mode of vcrpy (default: none)."
    )
    group.addoption("--block-network", action="store_true", help="Block the network in tests.")
    group.addoption(
        "--allowed-hosts",
        help="Hosts that may still be reached: regular expressions, separated by commas.",
    )
    group.addoption(
        "--disable-recording",
        action="store_true",
        help="Leave tests marked vcr alone: every request is sent.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the marks known."""
    for line in MARKERS:
        config.addinivalue_line("markers", line)


@pytest.fixture(scope="session")
def record_mode(request: pytest.FixtureRequest) -> str:
    """Record mode of tests marked vcr."""
    option = request.config.option
    return str(option.record_mode or option.regen_record or "none")


@pytest.fixture(scope="session")
def disable_recording(request: pytest.FixtureRequest) -> bool:
    """Whether tests marked vcr are left alone."""
    return bool(request.config.getoption("--disable-recording"))


@pytest.fixture(scope="module")
def vcr_config() -> dict[str, Any]:
    """Arguments of vcrpy for a module; override it."""
    return {}


@pytest.fixture(scope="module")
def vcr_cassette_dir(request: pytest.FixtureRequest) -> str:
    """Folder of a module's cassettes; override it."""
    return str(request.node.path.parent / "cassettes" / request.node.path.stem)


@pytest.fixture
def vcr_markers(request: pytest.FixtureRequest) -> list[pytest.Mark]:
    """The marks `vcr` of the test, the closest first."""
    return list(request.node.iter_markers(name="vcr"))


@pytest.fixture
def default_cassette_name(request: pytest.FixtureRequest) -> str:
    """Name of the test's cassette."""
    from pytest_regen.pytest_plugin.names import plain_cassette_name

    mark = request.node.get_closest_marker("default_cassette")
    if mark is None:
        get = request.getfixturevalue
        return plain_cassette_name(request.node, lambda: Path(get("vcr_cassette_dir")))
    if not mark.args:
        raise pytest.UsageError("default_cassette needs a name: default_cassette('name.yaml')")
    return str(mark.args[0])


@pytest.fixture
def allowed_hosts(request: pytest.FixtureRequest) -> Any:
    """Hosts that may still be reached, as regular expressions."""
    block = request.node.get_closest_marker("block_network")
    allow = request.node.get_closest_marker("allowed_hosts")
    # In the order of pytest-recording, because suites have marks that narrow what an option allows.
    hosts = block.kwargs.get("allowed_hosts") if block else None
    if not hosts and allow and allow.args:
        hosts = allow.args[0]
    hosts = hosts or request.config.getoption("--allowed-hosts")
    return hosts or request.getfixturevalue("vcr_config").get("allowed_hosts")


@pytest.fixture
def block_network(
    request: pytest.FixtureRequest, record_mode: str, vcr_markers: list[pytest.Mark]
) -> Iterator[None]:
    """Let no connection of the test leave; not while a marked test records."""
    mark = request.node.get_closest_marker("block_network")
    if mark is not None and (mark.args or set(mark.kwargs) - {"allowed_hosts"}):
        raise usage_error(
            f"{request.node.nodeid}: block_network has only the keyword argument allowed_hosts, "
            f"not {mark.args or mark.kwargs}",
            hint="block_network(allowed_hosts=['127.0.0.1', 'api.*'])",
        )
    # A mark or vcr_config may choose another mode, which the option would overrule.
    if vcr_markers and request.config.option.record_mode is None:
        from pytest_regen.pytest_plugin.recording.fixture import merge_config

        config = merge_config(request.getfixturevalue("vcr_config"), vcr_markers)
        record_mode = config.get("record_mode", record_mode)
    if mark is None and not request.config.getoption("--block-network"):
        yield
        return
    if vcr_markers and record_mode != "none":
        yield
        return
    # Here, for the gate patches sockets: a run that blocks nothing does not load it.
    from pytest_regen.network import AllowedHosts, closed_network

    hosts = request.getfixturevalue("allowed_hosts") or ()
    patterns = hosts.split(",") if isinstance(hosts, str) else hosts
    hint = (
        "allow it with @pytest.mark.block_network(allowed_hosts=['…']), or record with "
        "--record-mode"
    )
    with closed_network(AllowedHosts([pattern.strip() for pattern in patterns], hint)):
        yield


@pytest.fixture
def vcr(request: pytest.FixtureRequest, vcr_markers: list[pytest.Mark]) -> Iterator[Any]:
    """The cassette of a test marked vcr: `.requests`, `.responses`, `.play_count`, ….

    None in tests without the mark, and with `--disable-recording`.
    """
    if request.getfixturevalue("disable_recording") or not vcr_markers:
        yield None
        return
    from pytest_regen.pytest_plugin.recording.fixture import vcr_cassette_in_use

    with vcr_cassette_in_use(request, vcr_markers) as cassette:
        yield cassette
