"""Recordings of requests and answers, and their replay."""

from typing import TYPE_CHECKING

from pytest_regen.facade import lazy

if TYPE_CHECKING:
    from pytest_regen.cassettes.files.reader import CassetteFile, read_cassette
    from pytest_regen.cassettes.interactions import Interaction
    from pytest_regen.cassettes.matching import DriftPolicy, Matching, Scrub
    from pytest_regen.cassettes.run import CassetteRun, ReplayProvider, journal, use_cassette
    from pytest_regen.modes import RECORD_MODES, RecordMode
else:
    __getattr__, __dir__ = lazy(__name__)

__all__ = [
    "RECORD_MODES",
    "CassetteFile",
    "CassetteRun",
    "DriftPolicy",
    "Interaction",
    "Matching",
    "RecordMode",
    "ReplayProvider",
    "Scrub",
    "journal",
    "read_cassette",
    "use_cassette",
]
