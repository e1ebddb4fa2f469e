"""Record the run anew.

    python examples/test_data/record.py          against the emulator, no key needed
    python examples/test_data/record.py --live   against the real API, with ANTHROPIC_API_KEY

The replies of the emulated form stand in ``replies/``. They were written by hand, with mistakes for
the database to find; no language model wrote them, and the recording says ``source: emulator``.
"""

import os
import sys
from contextlib import nullcontext
from pathlib import Path

from library import CASSETTE, HERE, ROWS, as_json, run

from pytest_regen import AnthropicProvider, Emulator, use_cassette

VARYING = ("anthropic-ratelimit-*", "date", "request-id", "vary")
"""Headers that differ each time."""


def main(cassette: Path = CASSETTE, rows: Path = ROWS) -> None:
    """Record the run, and keep the rows that the database took."""
    is_live = "--live" in sys.argv
    with (
        nullcontext() if is_live else Emulator(script=HERE / "replies" / "library.yaml") as emulator
    ):
        if emulator is not None:
            os.environ["ANTHROPIC_BASE_URL"] = emulator.base_url
            os.environ["ANTHROPIC_API_KEY"] = "none-needed"
        with use_cassette(cassette, mode="rewrite", drop_headers=VARYING):
            report = run(AnthropicProvider())
    rows.write_text(as_json(report.items), "utf-8")


if __name__ == "__main__":
    main()
