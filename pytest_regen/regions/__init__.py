"""Regions: where the units of a file stand, and how their text is taken out and put back."""

from pytest_regen.regions.base import Region, Span, WholeFile
from pytest_regen.regions.json_text import JsonStrings, JsonValues
from pytest_regen.regions.markers import Marked

__all__ = ["JsonStrings", "JsonValues", "Marked", "Region", "Span", "WholeFile"]
