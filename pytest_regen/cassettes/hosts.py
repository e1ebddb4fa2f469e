"""Hosts that are no business of a cassette: what is asked of them passes it by."""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from pytest_regen.errors import UsageError

__all__ = ["checked_hosts", "host_of", "is_loopback", "is_named"]

_HOST = re.compile(r"[\w*.:-]*[\w*]|::")
_PORT = re.compile(r"[^:]+:\d+")


def checked_hosts(hosts: Sequence[str]) -> tuple[str, ...]:
    """Return names and patterns of hosts (``example.com``, ``*.example.com``), in small letters.

    Raises:
        UsageError: one of them names no host, and would match nothing in silence.
    """
    names: tuple[object, ...] = (hosts,) if isinstance(hosts, str) else tuple(hosts)
    for name in names:
        if not isinstance(name, str) or not _HOST.fullmatch(name) or _PORT.fullmatch(name):
            raise UsageError(
                f"passthrough_hosts: {name!r} is no host",
                why="a host has no scheme, port or path",
                hint='name it as in "raw.githubusercontent.com" or "*.example.com"',
            )
    return tuple(str(name).lower() for name in names)


def host_of(uri: str) -> str:
    """Return the host of an address, in small letters; empty where there is none."""
    try:
        return urlsplit(uri).hostname or ""
    except ValueError:
        return ""


def is_named(host: str, names: Iterable[str]) -> bool:
    """Return whether one of ``names`` is the host, or a pattern of it."""
    return bool(host) and any(_pattern(name).fullmatch(host.lower()) for name in names)


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, name.split("*"))))


def is_loopback(host: str) -> bool:
    """Return whether a host, by name or by number, is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
