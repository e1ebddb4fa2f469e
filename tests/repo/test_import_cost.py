"""The plugin is invisible when unused."""

import subprocess
import sys

HEAVY = ("pydantic", "vcr", "anthropic", "rich", "tree_sitter", "yaml", "filelock", "typer")


def test_importing_the_plugin_imports_nothing_heavy() -> None:
    """The entry module brings in at most ten modules beyond pytest, none of them heavy."""
    code = (
        "import sys, pytest\n"
        "before = set(sys.modules)\n"
        "import pytest_regen.pytest_plugin.plugin\n"
        "print(*sorted(set(sys.modules) - before))\n"
    )

    added = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()

    assert len(added) <= 10, added
    assert not [name for name in added if name.split(".")[0] in HEAVY]
