"""Make the ledger and the recordings of the example anew.

    python examples/functions/record.py          against the emulator, no key needed
    python examples/functions/record.py --live   against the real API, with ANTHROPIC_API_KEY

The replies of the emulated form are the bodies that stand in ``src/``: a language model wrote them
from the prompts alone; they were not recorded from an API, and the recordings say
``source: emulator``.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from demo import COPY, FILE, HERE, break_one_function, copy, run_pytest

from pytest_regen import Emulator, regions

CASSETTES = ("cassettes", "tests/cassettes")


def main() -> None:
    """Generate the functions, then record the healing that ``demo.py`` replays."""
    module = HERE / FILE
    answer, whole = answers(module.read_text("utf-8")), module.read_text("utf-8")
    for folder in (".regen", *CASSETTES):
        shutil.rmtree(HERE / folder, ignore_errors=True)
    with nullcontext() if "--live" in sys.argv else emulator(answer):
        region = regions.Marked()
        stubs = dict.fromkeys(region.find(whole), "raise NotImplementedError")
        module.write_text(region.replace(whole, stubs), "utf-8")
        command = [sys.executable, "-m", "pytest_regen", "generate", FILE]
        recording = ["--cassette", "cassettes/generate.yaml", "--record", "rewrite"]
        subprocess.run([*command, *recording], cwd=HERE, check=True)
        record_the_demo()


def answers(text: str) -> Callable[[dict[str, object]], str]:
    """Return what answers a request with the body that stands in the module."""
    bodies = {name: span.text for name, span in regions.Marked().find(text).items()}

    def answer(body: dict[str, object]) -> str:
        prompt = str(body["messages"])
        code = next(code for name, code in bodies.items() if f"[REGEN:BEGIN {name}]" in prompt)
        return f"```python\n{code}\n```"

    return answer


def emulator(answer: Callable[[dict[str, object]], str]) -> Emulator:
    """Return an emulator that answers so, and point the SDK at it."""
    running = Emulator(answer).start()
    os.environ |= {"ANTHROPIC_BASE_URL": running.base_url, "ANTHROPIC_API_KEY": "none-needed"}
    return running


def record_the_demo() -> None:
    """Break a copy as ``demo.py`` does, heal it, and keep the recording."""
    copy()
    break_one_function(COPY)
    run_pytest(COPY, "--regen", "--regen-record=rewrite")
    recordings = Path("tests", "cassettes")
    shutil.copytree(COPY / recordings, HERE / recordings)


if __name__ == "__main__":
    main()
