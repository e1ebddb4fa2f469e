"""Words that choose how cassettes are used, each list spelt once.

Imports nothing from the package and nothing heavy: the plugin offers them to every run of pytest.
"""

from typing import Literal, get_args

__all__ = ["POLICIES", "RECORD_MODES", "Policy", "RecordMode"]

RecordMode = Literal["none", "once", "new_episodes", "all", "rewrite"]
"""``none`` replays and sends nothing. ``once`` records where there is no file, else replays.
``new_episodes`` replays what is recorded and records the rest. ``all`` sends everything; what is
not sent again stays. ``rewrite`` sends everything and keeps nothing of the old file."""

RECORD_MODES: tuple[RecordMode, ...] = get_args(RecordMode)

Policy = Literal["fail", "warn", "ignore"]
"""What becomes of a finding: the test fails, the summary reports it, or nothing."""

POLICIES: tuple[Policy, ...] = get_args(Policy)
