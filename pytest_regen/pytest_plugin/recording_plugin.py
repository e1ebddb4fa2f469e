"""What a suite written for pytest-recording uses: its marks, fixtures, options and hook.

Registered only where that plugin is not loaded. Nothing here is automatic for
tests without its marks, so that they cost nothing.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_regen.modes import RECORD_MODES

MARKERS = (
    "vcr(*cassettes, **config): record or replay the requests of the test with vcrpy.",
    "default_cassette(name): name of the test's cassette.",
    "block_network(allowed_hosts=None): let no connection leave, except to hosts that match.",
    "allowed_hosts(patterns): hosts, as regular expressions, that may be reached all the same.",
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
    group = parser.getgroup("recording", "cassettes of tests marked vcr")
    group.addoption(
        "--record-mode",
        choices=RECORD_MODES,
        default=None,
        help="Record mode of vcrpy (default: none).",
    )
    group.addoption(
        "--block-network", action="store_true", default=False, help="Block the network in tests."
    )
    group.addoption(
        "--allowed-hosts",
        default=None,
        help="Hosts that may be reached all the same: regular expressions, separated by commas.",
    )
    group.addoption(
        "--disable-recording",
        action="store_true",
        default=False,
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
        return plain_cassette_name(
            request.node, lambda: Path(request.getfixturevalue("vcr_cassette_dir"))
        )
    if not mark.args:
        raise pytest.UsageError("default_cassette needs a name: default_cassette('name.yaml')")
    return str(mark.args[0])


@pytest.fixture
def allowed_hosts(request: pytest.FixtureRequest) -> Any:
    """Hosts that may be reached all the same, as regular expressions."""
    from pytest_regen.pytest_plugin.recording.network import hosts_of

    return hosts_of(request.node) or request.getfixturevalue("vcr_config").get("allowed_hosts")


@pytest.fixture
def block_network(
    request: pytest.FixtureRequest, record_mode: str, vcr_markers: list[pytest.Mark]
) -> Iterator[None]:
    """Let no connection of the test leave; not while a marked test records."""
    from pytest_regen.pytest_plugin.recording.network import check_mark, refuse_connections

    mark = request.node.get_closest_marker("block_network")
    check_mark(request.node, mark)
    if vcr_markers and request.config.option.record_mode is None:
        from pytest_regen.pytest_plugin.recording.vcr import merge_config

        config = merge_config(request.getfixturevalue("vcr_config"), vcr_markers)
        record_mode = config.get("record_mode", record_mode)
    asked = mark is not None or request.config.getoption("--block-network")
    if not asked or (vcr_markers and record_mode != "none"):
        yield
        return
    with refuse_connections(request.getfixturevalue("allowed_hosts")):
        yield


@pytest.fixture
def vcr(
    request: pytest.FixtureRequest,
    vcr_markers: list[pytest.Mark],
    disable_recording: bool,  # noqa: FBT001 - a fixture
) -> Iterator[Any]:
    """The cassette of a test marked vcr: `.requests`, `.responses`, `.play_count`, ….

    None in tests without the mark, and with `--disable-recording`.
    """
    if disable_recording or not vcr_markers:
        yield None
        return
    from pytest_regen.pytest_plugin.recording.vcr import vcr_cassette_in_use

    get = request.getfixturevalue
    with vcr_cassette_in_use(
        request.node,
        name=get("default_cassette_name"),
        folder=get("vcr_cassette_dir"),
        mode=get("record_mode"),
        config=get("vcr_config"),
        marks=vcr_markers,
    ) as cassette:
        yield cassette
