"""Installed but unused, the plugin is not there."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROBE = """
import json, socket, sys
opened = []
real = socket.socket.__init__
def spying(self, *args, **kwargs):
    opened.append(str(args))
    real(self, *args, **kwargs)
socket.socket.__init__ = spying
import pytest
code = pytest.main(sys.argv[1:])
print("\\n" + json.dumps([int(code), sorted(sys.modules), opened]))
"""


def run(folder: Path, *args: str) -> tuple[str, set[str], list[str]]:
    """Run pytest in a fresh process; return its output, its modules and its sockets."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, "-p", "no:cacheprovider", "-q", *args],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    output, _, facts = done.stdout.rstrip().rpartition("\n")
    code, modules, sockets = json.loads(facts)
    assert code == 0, done.stdout + done.stderr
    return output, set(modules), sockets


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A project that has never heard of us."""
    (tmp_path / "test_plain.py").write_text("def test_it():\n    pass\n", "utf-8")
    return tmp_path


def test_an_unused_run_loads_ten_modules_at_most_and_says_nothing(plain: Path) -> None:
    """Against a run without the plugin: few modules, no output, no file, no socket."""
    bare_output, bare, bare_sockets = run(plain, "-p", "no:regen")

    output, modules, sockets = run(plain)

    added = modules - bare
    assert len(added) <= 10, sorted(added)
    assert output.partition(" in ")[0] == bare_output.partition(" in ")[0]
    assert sockets == bare_sockets
    assert sorted(path.name for path in plain.iterdir() if path.name != "__pycache__") == [
        "test_plain.py"
    ]


def test_nothing_is_in_the_way_of_tests_that_do_not_ask(pytester: pytest.Pytester) -> None:
    """No fixture is automatic; pytest rewrites only what users test with: its hook is slow."""
    pytester.makepyfile(
        """
        from pytest_regen import errors
        from pytest_regen.testing import caching

        def test_it(request):
            assert request.fixturenames == ["request"]
            loaders = [type(module.__spec__.loader).__name__ for module in (errors, caching)]
            assert loaders == ["SourceFileLoader", "AssertionRewritingHook"]
        """
    )

    pytester.runpytest_subprocess("-q", "-p", "no:syrupy").assert_outcomes(passed=1)
