"""The endpoint of a clarifying agent over HTTP, and a page for people; needs the extra `server`."""

from typing import TYPE_CHECKING

from pytest_regen.extras import needs
from pytest_regen.facade import lazy

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
else:
    __getattr__, __dir__ = lazy(
        __name__, within=lambda: needs("server", "the endpoint and its page")
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
