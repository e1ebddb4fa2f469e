"""Make the example's store and recordings anew.

    python examples/csharp_dto/record.py          against the emulator, no key needed
    python examples/csharp_dto/record.py --live   against the real API, with ANTHROPIC_API_KEY

The replies of the emulated form come from the reference writer of the test suite: a program that
sees only the request and writes the C# it asks for. No language model wrote them, and the
recordings say ``source: emulator``.
"""

import os
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

from demo import COPY, HERE, STORE, TYPE, break_one_type, run_pytest

from pytest_regen import Emulator

OPERATIONS = {
    "port_call": ("GET /v1/port-calls/{callId}", "Vell.Harbour.PortCalls"),
    "tides": ("GET /v1/tides", "Vell.Harbour.Tides"),
}


def main() -> None:
    """Generate both stores, then record the healing that ``demo.py`` replays."""
    for folder in ("generated", "cassettes"):
        shutil.rmtree(HERE / folder, ignore_errors=True)
    with nullcontext() if "--live" in sys.argv else emulator():
        for name, (operation, namespace) in OPERATIONS.items():
            generate(name, operation, namespace)
        record_the_demo()


def emulator() -> Emulator:
    """Return an emulator that answers with the reference writer, and point the SDK at it."""
    sys.path.insert(0, str(HERE.parents[1] / "tests" / "support"))
    from reference_writer import ReferenceWriter

    running = Emulator(ReferenceWriter()).start()
    os.environ |= {"ANTHROPIC_BASE_URL": running.base_url, "ANTHROPIC_API_KEY": "none-needed"}
    return running


def generate(name: str, operation: str, namespace: str) -> None:
    """Generate one store, recorded."""
    command = [sys.executable, "-m", "pytest_regen", "generate", "api.yaml", operation]
    options = ["--out", "generated", "--namespace", namespace]
    recording = ["--cassette", f"cassettes/generate_{name}.yaml", "--record", "rewrite"]
    subprocess.run([*command, *options, *recording], cwd=HERE, check=True)


def record_the_demo() -> None:
    """Break a copy as ``demo.py`` does, heal it, and keep the recording."""
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(HERE, COPY)
    break_one_type(COPY / STORE)
    run_pytest(COPY, "--regen", "--regen-record=rewrite")
    recording = Path("cassettes", "regen", STORE, f"{TYPE}.yaml")
    (HERE / recording).parent.mkdir(parents=True)
    shutil.copy(COPY / recording, HERE / recording)


if __name__ == "__main__":
    main()
