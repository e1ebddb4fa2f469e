"""Recordings of requests and answers, and their replay."""

from pytest_regen.cassettes.matching import DriftPolicy, Matching
from pytest_regen.cassettes.reading import CassetteFile, read_cassette
from pytest_regen.cassettes.replay import ReplayProvider
from pytest_regen.cassettes.running import CassetteRun, use_cassette
from pytest_regen.cassettes.values import RECORD_MODES, Interaction, RecordMode

__all__ = [
    "RECORD_MODES",
    "CassetteFile",
    "CassetteRun",
    "DriftPolicy",
    "Interaction",
    "Matching",
    "RecordMode",
    "ReplayProvider",
    "read_cassette",
    "use_cassette",
]
