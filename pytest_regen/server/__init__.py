"""The endpoint of a clarifying agent over HTTP, and a page for people; needs the extra `server`."""

from pytest_regen.server.app import create_app
from pytest_regen.server.gazetteer import Gazetteer, Place
from pytest_regen.server.quotas import Quota
from pytest_regen.server.settings import Agent, Screen, ServerSettings, peer_of

__all__ = [
    "Agent",
    "Gazetteer",
    "Place",
    "Quota",
    "Screen",
    "ServerSettings",
    "create_app",
    "peer_of",
]
