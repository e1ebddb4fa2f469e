"""Connections blocked for one test, as ``block_network`` and ``allowed_hosts`` say."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from pytest_regen.network import AllowedHosts, closed_network
from pytest_regen.pytest_plugin.options import usage_error


def check_mark(item: pytest.Item, mark: pytest.Mark | None) -> None:
    """Refuse arguments that ``block_network`` has not.

    Raises:
        pytest.UsageError: it has others than ``allowed_hosts``.
    """
    if mark is not None and (mark.args or set(mark.kwargs) - {"allowed_hosts"}):
        raise usage_error(
            f"{item.nodeid}: block_network has only the keyword argument allowed_hosts, not "
            f"{mark.args or mark.kwargs}",
            hint="block_network(allowed_hosts=['127.0.0.1', 'api.*'])",
        )


def hosts_of(item: pytest.Item) -> Any:
    """Return the hosts that a test may reach as its marks say, else the option."""
    block, allow = (
        item.get_closest_marker("block_network"),
        item.get_closest_marker("allowed_hosts"),
    )
    hosts = block.kwargs.get("allowed_hosts") if block else None
    hosts = hosts or (allow.args[0] if allow and allow.args else None)
    return hosts or item.config.getoption("--allowed-hosts")


@contextmanager
def refuse_connections(allowed: str | Sequence[str] | None) -> Iterator[None]:
    """Refuse connections to every host but those that match, while the block runs.

    Args:
        allowed: regular expressions; as one text, separated by commas.
    """
    hosts = allowed.split(",") if isinstance(allowed, str) else allowed or ()
    hint = (
        "allow it with @pytest.mark.block_network(allowed_hosts=['…']), or record with "
        "--record-mode"
    )
    with closed_network(AllowedHosts([host.strip() for host in hosts], hint)):
        yield
