"""Programs of the examples, run as a user runs them."""

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["run"]


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run Python in ``folder`` at a wide terminal, without a key."""
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
