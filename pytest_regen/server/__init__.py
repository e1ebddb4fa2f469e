"""The endpoint of a clarifying agent over HTTP, and a page for people; needs the extra `server`."""

try:
    from pytest_regen.server.app import create_app
    from pytest_regen.server.gazetteer import Gazetteer, Place, read_places
    from pytest_regen.server.quotas import Quota
    from pytest_regen.server.settings import Agent, Screen, ServerSettings, peer_of
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "starlette":
        raise
    raise ModuleNotFoundError(
        "pytest_regen.server needs Starlette; next: pip install 'pytest-regen[server]'",
        name=error.name,
    ) from error

__all__ = [
    "Agent",
    "Gazetteer",
    "Place",
    "Quota",
    "Screen",
    "ServerSettings",
    "create_app",
    "peer_of",
    "read_places",
]
