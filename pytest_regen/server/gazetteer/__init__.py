"""A small gazetteer of our own: well-known cities, states and countries, and their search."""

from pytest_regen.server.gazetteer.places import Level, Place, read_places
from pytest_regen.server.gazetteer.searching import Gazetteer, fold, well_known

__all__ = ["Gazetteer", "Level", "Place", "fold", "read_places", "well_known"]
