"""Run the benchmarks whose tables stand in docs/benchmarks.md, and write them there.

    python benchmarks/page.py

Each table is measured in one run, on this machine, now. What takes longer, or needs rivals that its
script says how to install, is put in by hand: large runs, and cassettes beside others.
"""

import re
import subprocess
import sys
from pathlib import Path

__all__ = ["PAGE", "PLACE", "SCRIPTS", "section"]

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "benchmarks.md"
SCRIPTS = {
    "install.py": "Installed",
    "unused.py": "The plugin, installed and unused",
    "validate.py": "Validating a large store",
    "one_field.py": "One wrong field",
}
"""Script, with its arguments, to the heading of its table."""
NOTES = {
    "install.py": "Without byte code, in fresh environments. "
    "[Which extra is for what](how-to/install-less.md).",
    "unused.py": "The difference is the median of paired runs.",
    "validate.py": "Whole processes; the start of an empty interpreter is subtracted.",
    "one_field.py": "In the store of `examples/csharp_dto`.",
}
PLACE = re.compile(r"(?<=<!-- numbers -->\n).*?(?=<!-- /numbers -->)", re.DOTALL)


def section(script: str, table: str) -> str:
    """Return the part of the page about one script."""
    command = f"```shell\npython benchmarks/{script}\n```"
    return f"## {SCRIPTS[script]}\n\n{NOTES[script]}\n\n{command}\n\n{table.strip()}\n"


def main() -> None:
    """Replace the tables."""
    parts = []
    for script in SCRIPTS:
        name, *arguments = script.split()
        command = [sys.executable, str(HERE / name), *arguments]
        completed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        parts.append(section(script, completed.stdout))
    text = PAGE.read_text("utf-8")
    numbers = "\n" + "\n".join(parts) + "\n"
    PAGE.write_text(PLACE.sub(lambda _: numbers, text), "utf-8")


if __name__ == "__main__":
    main()
