"""Programs of the examples, run as a user runs them."""

import os
import subprocess
from pathlib import Path

from warm_python import run_python

__all__ = ["run"]


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run Python in ``folder`` at a wide terminal, without a key."""
    return run_python(command, folder, {**os.environ, "COLUMNS": "200"})
