"""Record the example's runs anew.

    python examples/policy_scenarios/record.py          against the emulator, no key needed
    python examples/policy_scenarios/record.py --live   one run against the real API, with a key

The replies of the emulated form stand in ``replies/``. They were written by hand so that one run
needs two repairs and one ends in a disagreement; no language model wrote them, and the recordings
say ``source: emulator``. What a real model does with the same prompts, nobody can promise: a live
run is recorded beside them, as ``cassettes/live.yaml``.
"""

import os
import sys
from pathlib import Path

from verify import ARTIFACT, CASSETTES, HERE, parts, run, tell

from pytest_regen import AnthropicProvider, Emulator, use_cassette
from pytest_regen.sessions import LoopReport, compile_verify_repair

RUNS = ("two_repairs", "disagreement")
VARYING = ("anthropic-ratelimit-*", "date", "request-id", "vary")
"""Headers that differ each time, so that what is recorded anew differs where something changed."""


def main() -> None:
    """Record what was asked for, keep what was verified, and say how each run ended."""
    if "--live" in sys.argv:
        reports = {"live": record("live")}
    else:
        reports = {name: emulated(name) for name in RUNS}
        ARTIFACT.unlink(missing_ok=True)
        run("two_repairs", artifact=ARTIFACT)  # From the recording, as everybody else can.
    for name, report in reports.items():
        tell(f"== {name}\n{report.describe()}")


def emulated(name: str, folder: Path = CASSETTES) -> LoopReport:
    """Record one run against an emulator that says what ``replies/<name>.yaml`` says."""
    with Emulator(script=HERE / "replies" / f"{name}.yaml") as emulator:
        os.environ |= {"ANTHROPIC_BASE_URL": emulator.base_url, "ANTHROPIC_API_KEY": "none-needed"}
        return record(name, folder)


def record(name: str, folder: Path = CASSETTES) -> LoopReport:
    """Record one run against whatever the environment names."""
    with use_cassette(folder / f"{name}.yaml", mode="rewrite", drop_headers=VARYING):
        return compile_verify_repair(parts(AnthropicProvider()), on_progress=tell)


if __name__ == "__main__":
    main()
