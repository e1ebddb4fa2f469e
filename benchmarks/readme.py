"""Run the benchmarks whose tables stand in the README, and write them there.

    python benchmarks/readme.py

Each table is measured in one run, on this machine, now.
"""

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
SCRIPTS = {
    "unused.py": "The plugin, installed and unused; the difference is the median of paired runs",
    "validate.py": "Validating a large store (whole processes, an empty interpreter subtracted)",
    "one_field.py": "One wrong field in the example's store",
    "scale.py processes": "Eight processes, a page each of one store, a model of 1 s",
}
_PLACE = re.compile(r"(?<=<!-- numbers -->\n).*?(?=<!-- /numbers -->)", re.DOTALL)


def main() -> None:
    """Replace the tables."""
    parts = []
    for script, title in SCRIPTS.items():
        name, *arguments = script.split()
        command = [sys.executable, str(HERE / name), *arguments]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        parts.append(f"{title} (`python benchmarks/{script}`):\n\n{done.stdout.strip()}\n")
    text = README.read_text("utf-8")
    numbers = "\n" + "\n".join(parts) + "\n"
    README.write_text(_PLACE.sub(lambda _: numbers, text), "utf-8")


if __name__ == "__main__":
    main()
