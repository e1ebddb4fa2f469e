"""Help is complete, and costs nothing but itself."""

import subprocess
import sys

import pytest
from command_line import command
from syrupy.assertion import SnapshotAssertion

from pytest_regen.cli.app import COMMANDS

HEAVY = ("anthropic", "vcr", "rich", "pydantic", "yaml", "tree_sitter", "filelock")


@pytest.mark.parametrize("name", ["", *(name for name in COMMANDS if name != "cassettes")])
def test_help_texts(
    name: str, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a command can do, as its users read it."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "dumb")

    ran = command(*filter(None, [name]), "--help")

    assert (ran.code, ran.err) == (0, "")
    assert ran.out == snapshot


@pytest.mark.parametrize(
    ("words", "never"),
    [
        (("--help",), HEAVY),
        (("validate", "--help"), ("anthropic", "vcr", "rich", "yaml")),
        (("emulator", "--help"), ("anthropic", "vcr", "rich")),
    ],
)
def test_help_imports_only_what_it_needs(words: tuple[str, ...], never: tuple[str, ...]) -> None:
    """A plain ``--help`` pays for no machinery; ``validate`` for none of models or documents."""
    code = (
        "import sys\n"
        "from pytest_regen.cli.app import main\n"
        "try:\n    main()\nfinally:\n    print(*sys.modules, file=sys.stderr)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
    )

    assert not {module.split(".")[0] for module in done.stderr.split()}.intersection(never)
