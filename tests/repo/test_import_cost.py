"""The plugin is invisible when unused, and what is used brings in no more than it needs."""

import subprocess
import sys

HEAVY = ("pydantic", "vcr", "anthropic", "rich", "tree_sitter", "yaml", "filelock", "typer")


def added_by(module: str) -> list[str]:
    """Return the modules that importing one brings in beyond pytest, in a process of its own."""
    code = (
        "import sys, pytest\n"
        "before = set(sys.modules)\n"
        f"import {module}\n"
        "print(*sorted(set(sys.modules) - before))\n"
    )
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()


def test_importing_the_plugin_imports_nothing_heavy() -> None:
    """The entry module brings in at most ten modules beyond pytest, none of them heavy."""
    added = added_by("pytest_regen.pytest_plugin.plugin")

    assert len(added) <= 10, added
    assert not [name for name in added if name.split(".")[0] in HEAVY]


def test_the_cassette_of_a_test_loads_neither_stores_nor_what_only_they_need() -> None:
    """A test that replays a cassette pays for reading YAML, and for nothing else that is heavy."""
    added = added_by("pytest_regen.pytest_plugin.recording.fixture")

    assert "pytest_regen.stores" not in added
    assert not [name for name in added if name.split(".")[0] in {*HEAVY} - {"yaml"}]
