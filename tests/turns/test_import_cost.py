"""Importing turns costs nothing, and secrets have shapes."""

import subprocess
import sys

HEAVY = ("pydantic", "anthropic", "genai_prices", "httpx2", "vcr", "yaml", "pytest")


def test_importing_turns_imports_nothing_heavy() -> None:
    """The package, its providers made, loads no SDK, no price list and no pydantic."""
    code = (
        "import sys\n"
        "from pytest_regen.turns import *\n"
        "AnthropicProvider(); DryRunProvider(); ScriptedProvider([]); CallableProvider(str)\n"
        "print(*{name.split('.')[0] for name in sys.modules})\n"
    )

    loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()

    assert not set(HEAVY) & set(loaded)
