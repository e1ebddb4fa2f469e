"""Settings that nothing reads stop pytest: a gate that checks nothing must not pass."""

import sys
from pathlib import Path

import pytest
from command_line import command
from store_factory import make_store

FUNCTIONS = '[tool.pytest-regen]\nfunctions = ["src/*.py"]\n'
PYTEST = "[tool.pytest.ini_options]\n"


@pytest.fixture(autouse=True)
def here(pytester: pytest.Pytester) -> Path:
    """A project with a test of its own, and a folder of functions."""
    pytester.mkdir("src")
    (pytester.path / "src" / "names.py").write_text("x = 1\n", "utf-8")
    tests = pytester.mkdir("tests")
    (tests / "test_own.py").write_text("def test_own(): pass\n", "utf-8")
    return pytester.path


def refused(pytester: pytest.Pytester, told: str, *words: str) -> None:
    """Run pytest, which stops before any test with a line that says what is wrong."""
    result = pytester.runpytest_inprocess(*words)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: *{told}*"])
    result.stdout.no_fnmatch_line("*passed*")


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ('[tool.pytest-regen]\nfunction = ["src/*.py"]\n', "the unknown key 'function'"),
        ("[tool.pytest-regen.cassettes]\ndrfit = 'warn'\n", "the unknown key 'drfit'"),
        ('[tool.pytest_regen]\nfunctions = ["src/*.py"]\n', "[[]tool.pytest_regen] is not read"),
    ],
)
def test_a_slip_in_the_table_stops_pytest(
    pytester: pytest.Pytester, here: Path, table: str, told: str
) -> None:
    """However the table is written, in a project that has nothing else of ours."""
    (here / "pyproject.toml").write_text(table, "utf-8")

    refused(pytester, told)
    assert told.replace("[[]", "[") in command("validate").told


def test_a_table_below_the_root_stops_pytest(
    pytester: pytest.Pytester, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Started there, or given a file from there; commands say the same."""
    (here / "pyproject.toml").write_text(PYTEST, "utf-8")
    (here / "pkg" / "tests").mkdir(parents=True)
    (here / "pkg" / "tests" / "test_it.py").write_text("def test_it(): pass\n", "utf-8")
    (here / "pkg" / "pyproject.toml").write_text(FUNCTIONS, "utf-8")

    refused(pytester, "nothing reads it", "pkg/tests/test_it.py::test_it")
    monkeypatch.chdir(here / "pkg/tests")
    refused(pytester, "nothing reads it")
    assert f"move the table to {here / 'pyproject.toml'}" in command("status").told


def test_a_project_below_the_root_keeps_its_table(pytester: pytest.Pytester, here: Path) -> None:
    """What pytest reads when it is started there is no slip, and no matter of the other project."""
    (here / "pyproject.toml").write_text(PYTEST, "utf-8")
    (here / "pkg").mkdir()
    (here / "pkg" / "pyproject.toml").write_text(PYTEST + FUNCTIONS, "utf-8")
    (here / "pkg" / "test_it.py").write_text("def test_it(): pass\n", "utf-8")

    pytester.runpytest_inprocess("tests", "pkg").assert_outcomes(passed=2)


def test_settings_of_pytest_elsewhere_do_not_hide_the_table(
    pytester: pytest.Pytester, here: Path
) -> None:
    """``-c`` makes another folder the root; the next line names the option that mends it."""
    (here / "pyproject.toml").write_text(FUNCTIONS, "utf-8")
    (here / "ci").mkdir()
    (here / "ci" / "pytest.ini").write_text("[pytest]\n", "utf-8")

    refused(pytester, "nothing reads it", "-c", "ci/pytest.ini", "tests")
    result = pytester.runpytest_inprocess("-c", "ci/pytest.ini", "--rootdir", str(here), "tests")
    result.assert_outcomes(passed=1)


def test_a_file_that_makes_no_root_is_missed_from_below(
    pytester: pytest.Pytester, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pytest takes the folder it is started in; the next line makes the other one the root."""
    (here / ".pytest-regen.toml").write_text(FUNCTIONS, "utf-8")
    monkeypatch.chdir(here / "tests")

    refused(pytester, "nothing reads it")
    assert f"next: touch {here / 'pytest.ini'}" in command("validate").told
    (here / "pytest.ini").touch()
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


def test_stores_of_the_table_are_collected_wherever_pytest_has_its_settings(
    pytester: pytest.Pytester, here: Path
) -> None:
    """By plugin and commands, beside those of ``regen_stores``."""
    (here / "tox.ini").write_text("[pytest]\nregen_stores = old/*\n", "utf-8")
    (here / ".pytest-regen.toml").write_text(
        '[tool.pytest-regen]\nstores = ["generated/*"]\n', "utf-8"
    )
    make_store(here / "generated" / "GET_new")
    make_store(here / "old" / "GET_old")

    result = pytester.runpytest_inprocess("--collect-only", "-q")

    result.stdout.fnmatch_lines(["generated/GET_new::Owner", "old/GET_old::Owner"])
    assert {"generated/GET_new", "old/GET_old"} <= set(command("status").told.split())


def test_a_glob_of_the_table_that_matches_nothing_stops_pytest(
    pytester: pytest.Pytester, here: Path
) -> None:
    (here / "pyproject.toml").write_text("[tool.pytest-regen]\nstores = ['gone/*']\n", "utf-8")

    refused(pytester, "[[]tool.pytest-regen] stores: 'gone/[*]' matches no store")
    assert "[tool.pytest-regen] stores: 'gone/*' matches no store" in command("validate").told


def test_a_project_without_a_table_loads_nothing(pytester: pytest.Pytester, here: Path) -> None:
    (here / "pyproject.toml").write_text(
        "[project]\nname = 'x'\nversion = '1'\ndependencies = [\n  'pytest-regen[all]>=0.1',\n]\n",
        "utf-8",
    )
    code = "import sys, pytest; pytest.main(['-q']); print('pytest_regen.settings' in sys.modules)"

    result = pytester.run(sys.executable, "-c", code)

    assert result.outlines[-1] == "False"
