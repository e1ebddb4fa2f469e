"""The plugin is invisible when unused, and what is used brings in no more than it needs."""

import subprocess
import sys

from tables import each

HEAVY = frozenset(
    ("pydantic", "vcr", "anthropic", "rich", "tree_sitter", "yaml", "filelock", "typer")
)
ASKING = tuple(
    f"pytest_regen.{name}"
    for name in ("prompts.", "regeneration.asking", "turns.budget", "turns.exchange")
)


def added_by(code: str) -> list[str]:
    """Return the modules that code brings in beyond pytest, in a process of its own."""
    program = (
        "import sys, pytest\n"
        "before = set(sys.modules)\n"
        f"{code}\n"
        "print(*sorted(set(sys.modules) - before))\n"
    )
    return subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout.split()


@each(
    ("code", "most", "heavy"),
    [
        ("import pytest_regen; assert 'fail' in dir(pytest_regen)", 2, ()),
        ("import pytest_regen.pytest_plugin.plugin", 10, ()),
        ("import pytest_regen.kinds.functions, pytest_regen.units.opening", 70, ()),
        ("import pytest_regen.pytest_plugin.recording.fixture", 1_000, ("yaml",)),
    ],
    ids=["the names of the package", "the plugin", "the units of files", "the cassette of a test"],
)
def test_an_import_brings_in_no_more_than_it_needs(
    code: str, most: int, heavy: tuple[str, ...]
) -> None:
    """At most so many modules; of the heavy ones none, or YAML where a cassette is read.

    What asks a model is loaded by nothing but a request.
    """
    added = added_by(code)

    assert len(added) <= most, added
    assert {name.split(".")[0] for name in added} & HEAVY <= {*heavy}
    assert "pytest_regen.stores" not in added
    assert not [name for name in added if name.startswith(ASKING)]
