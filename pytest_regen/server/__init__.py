"""The endpoint of a clarifying agent over HTTP, and a page for people; needs the extra `server`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_regen.server.app import create_app
    from pytest_regen.server.gazetteer import Gazetteer, Place, read_places
    from pytest_regen.server.settings import (
        Agent,
        Quota,
        Screen,
        ServerSettings,
        client_header,
        peer_of,
    )

__all__ = [
    "Agent",
    "Gazetteer",
    "Place",
    "Quota",
    "Screen",
    "ServerSettings",
    "client_header",
    "create_app",
    "peer_of",
    "read_places",
]

_HOMES = {
    "Agent": "settings",
    "Gazetteer": "gazetteer",
    "Place": "gazetteer",
    "Quota": "settings",
    "Screen": "settings",
    "ServerSettings": "settings",
    "client_header": "settings",
    "create_app": "app",
    "peer_of": "settings",
    "read_places": "gazetteer",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import the module that holds ``name``; so ``python -m`` can say what is missing."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from pytest_regen.extras import needs

        with needs("server", "the endpoint and its page"):
            return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
