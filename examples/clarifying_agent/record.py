"""Make the example's recordings anew.

    python record.py          against the emulator, no key needed
    python record.py --live   against the real API, with ANTHROPIC_API_KEY

The replies of the emulated form stand in ``replies.yaml``. They were written by hand, and the
recordings say ``source: emulator``.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from pytest_regen import Emulator

HERE = Path(__file__).parent


def main() -> None:
    """Record the tests, then the flow of ``flow.py``."""
    for folder in ("cassettes", "transcripts"):
        shutil.rmtree(HERE / folder, ignore_errors=True)
    if "--live" not in sys.argv:
        emulator = Emulator(script=HERE / "replies.yaml").start()
        os.environ |= {"ANTHROPIC_BASE_URL": emulator.base_url, "ANTHROPIC_API_KEY": "none-needed"}
    for command in (("-m", "pytest", "-q", "--regen-record=rewrite", "."), ("flow.py", "--record")):
        subprocess.run([sys.executable, *command], cwd=HERE, check=True)


if __name__ == "__main__":
    main()
