"""Importing turns, and running an emulator, costs nothing."""

import subprocess
import sys

HEAVY = {"pydantic", "anthropic", "genai_prices", "httpx", "httpx2", "vcr", "yaml", "pytest"}


def test_nothing_heavy_is_imported() -> None:
    """Providers that are made and an emulator that runs load no SDK, prices or pydantic."""
    code = (
        "import sys\n"
        "from pytest_regen.turns import *\n"
        "from pytest_regen.emulator import Emulator\n"
        "AnthropicProvider(); DryRunProvider(); ScriptedProvider([]); CallableProvider(str)\n"
        "with Emulator(): pass\n"
        "print(*{name.split('.')[0] for name in sys.modules})\n"
    )

    loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()

    assert not HEAVY & set(loaded)
