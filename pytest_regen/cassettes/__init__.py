"""Recordings of requests and answers, and their replay."""

from typing import TYPE_CHECKING

from pytest_regen.facade import lazy

if TYPE_CHECKING:
    from pytest_regen.cassettes.files.reader import CassetteFile as CassetteFile
    from pytest_regen.cassettes.files.reader import read_cassette as read_cassette
    from pytest_regen.cassettes.interactions import Interaction as Interaction
    from pytest_regen.cassettes.matching import DriftPolicy as DriftPolicy
    from pytest_regen.cassettes.matching import Matching as Matching
    from pytest_regen.cassettes.matching import Scrub as Scrub
    from pytest_regen.cassettes.run import CassetteRun as CassetteRun
    from pytest_regen.cassettes.run import ReplayProvider as ReplayProvider
    from pytest_regen.cassettes.run import journal as journal
    from pytest_regen.cassettes.run import use_cassette as use_cassette
    from pytest_regen.modes import RECORD_MODES as RECORD_MODES
    from pytest_regen.modes import RecordMode as RecordMode
else:
    __getattr__, __dir__ = lazy(__name__)
