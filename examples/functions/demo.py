"""The main job, offline: a user's test fails, the function is asked again, and passes.

The body is asked from its recording. Works on a copy below ``build/``, so that the example itself
stays as it is. Run it as often as you like: ``python examples/functions/demo.py``.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from pytest_regen import CallableProvider

HERE = Path(__file__).parent
COPY = HERE.parents[1] / "build" / "functions"
FILE = "src/kitchen/amounts.py"
UNIT = "parse_amount"
LEFT_OUT = ("__pycache__", ".pytest_cache", ".hypothesis", "cache", "locks", "history")

CARELESS = """\
```python
total = Fraction(0)
try:
    for word in text.split() or [""]:
        if word[-1:] in VULGAR:
            total += VULGAR[word[-1]]
            word = word[:-1] or "0"
        total += Fraction(word)
except ValueError:
    raise ValueError(f"no amount: {text!r}") from None
return total
```"""
careless = CallableProvider(lambda _messages: CARELESS)
"""A model whose answer passes all examples, and not the tests: 1/0 and -1 are no amounts."""


def main() -> int:
    """Copy the example, let one function go wrong, and heal it; return pytest's exit code."""
    copy()
    break_one_function(COPY)
    say(f"$ cd {os.path.relpath(COPY)}\n$ pytest")
    run_pytest(COPY, "-q", "--no-header", "--tb=line")
    say("\n$ pytest --regen")
    return run_pytest(COPY, "--regen", "-q", "--no-header")


def copy() -> None:
    """Copy the example."""
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(HERE, COPY, ignore=shutil.ignore_patterns(*LEFT_OUT))


def break_one_function(folder: Path) -> None:
    """Let the careless model answer for one function."""
    command = [sys.executable, "-m", "pytest_regen", "regenerate", FILE, "--unit", UNIT]
    options = ["--provider", "demo:careless", "--accept-any", "--yes"]
    subprocess.run([*command, *options], cwd=folder, check=False, capture_output=True)


def run_pytest(folder: Path, *options: str) -> int:
    """Run pytest in ``folder``; return its exit code."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    return subprocess.run(command, cwd=folder, check=False).returncode


def say(text: str) -> None:
    """Show what a user would type."""
    print(text, flush=True)  # noqa: T201 - a demonstration prints


if __name__ == "__main__":
    raise SystemExit(main())
