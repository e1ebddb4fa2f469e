"""Where a choice may come from, which source wins, and what stops pytest."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from command_line import command
from store_factory import make_store

from pytest_regen.errors import UsageError
from pytest_regen.modes import is_ci
from pytest_regen.pytest_plugin.choices import Choices, choices_of
from pytest_regen.settings import CassetteSettings, Price, Settings, read_settings


def choices(pytester: pytest.Pytester, *args: str) -> Choices:
    """Return the choices of a run with these arguments."""
    return choices_of(pytester.parseconfig(*args))


def test_option_beats_marker_beats_ini_beats_table(pytester: pytest.Pytester) -> None:
    """Precedence of attempts and record mode; by default nothing heals, whatever a marker says."""
    default = choices(pytester)
    pytester.makepyprojecttoml(
        """
        [tool.pytest.ini_options]
        regen_record = "once"
        [tool.pytest-regen]
        attempts = 5
        model = "table-model"
        """
    )
    plain = choices(pytester, "--regen")
    given = choices(
        pytester, "--regen", "--regen-attempts=7", "--regen-record=all", "--regen-model=m"
    )

    assert (default.heal, default.record_mode("all"), default.attempts()) == (False, "none", 2)
    assert (plain.attempts(), plain.attempts(3)) == (5, 3)
    assert (plain.record_mode(), plain.record_mode("rewrite")) == ("once", "rewrite")
    assert plain.model == "table-model"
    assert (given.attempts(3), given.record_mode("rewrite"), given.model) == (7, "all", "m")


@pytest.mark.parametrize("option", ["--regen", "--regen-record=once"])
def test_addopts_are_not_the_command_line(pytester: pytest.Pytester, option: str) -> None:
    """What addopts asks for is not done, and one line says so."""
    pytester.makeini(f"[pytest]\naddopts = {option}\n")

    chosen = choices(pytester)

    assert not chosen.heal
    assert chosen.record_mode() == "none"
    assert len(chosen.notes) == 1
    assert "addopts" in chosen.notes[0]


def test_live_calls_in_ci_need_a_budget(
    pytester: pytest.Pytester, in_ci: Callable[[], None]
) -> None:
    """Where no one watches, a mode that may call a model is refused until its cost is limited."""
    in_ci()

    with pytest.raises(pytest.UsageError, match="--regen-budget"):
        choices(pytester, "--regen", "--regen-record=once")
    assert choices(pytester, "--regen", "--regen-record=once", "--regen-budget=9").budget == 9


def test_what_ci_means(monkeypatch: pytest.MonkeyPatch) -> None:
    """``CI`` counts unless it is false, 0 or empty."""
    unattended = {"true": True, "": False, "0": False, "False": False}
    for value, is_unattended in unattended.items():
        monkeypatch.setenv("CI", value)

        assert is_ci() is is_unattended, value


@pytest.mark.parametrize(
    ("ini", "args", "named"),
    [
        ("regen_fail_on = sometimes", (), "auto, regenerated, never"),
        ("regen_attempts = many", (), "regen_attempts = many"),
        ("", ("--regen-attempts=0",), "--regen-attempts 0"),
        ("", ("--regen-only=Owner",), "add --regen"),
    ],
)
def test_a_wrong_choice_is_a_usage_error(
    pytester: pytest.Pytester, ini: str, args: tuple[str, ...], named: str
) -> None:
    """The message shows the value and what is allowed."""
    pytester.makeini(f"[pytest]\n{ini}\n")

    with pytest.raises(pytest.UsageError, match=named):
        choices(pytester, *args)


TABLE = """
    [tool.pytest-regen]
    attempts = 3
    model = "some-model"
    [tool.pytest-regen.ignore]
    "generated/GET_a::*" = ["STALE"]
    "generated/GET_[x]::Owner" = ["STRUCTURAL"]
    [tool.pytest-regen.price."some-model"]
    input = 3
    output = 15.5
    [tool.pytest-regen.cassettes]
    drift = "warn"
    ignore = ["$.metadata.user_id"]
    keep_headers = ["x-feature-*"]
    drop_headers = ["date"]
    passthrough_hosts = ["prices.example.com"]
"""


@pytest.mark.parametrize("file", ["pyproject.toml", ".pytest-regen.toml"])
def test_every_key_is_read(tmp_path: Path, file: str) -> None:
    """From either file; a pyproject.toml of other tools takes nothing away.

    A glob over STORE::Type limits what is ignored; STRUCTURAL is another word for SYNTAX.
    """
    before = read_settings(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[project]\nname='x'\n", "utf-8")
    assert before == read_settings(tmp_path) == Settings()
    (tmp_path / file).write_text(TABLE, "utf-8")

    settings = read_settings(tmp_path)

    assert settings.attempts == 3
    assert settings.model == "some-model"
    assert settings.price == {"some-model": Price(Decimal(3), Decimal("15.5"))}
    assert settings.ignored_codes("generated/GET_a::Owner") == {"STALE"}
    assert settings.ignored_codes("generated/GET_[x]::Owner") == {"SYNTAX"}
    assert settings.ignored_codes("generated/GET_b::Owner") == frozenset()
    paths, hosts = ("$.metadata.user_id",), ("prices.example.com",)
    headers = ("x-feature-*",), ("date",)
    assert settings.cassettes == CassetteSettings("warn", None, paths, *headers, hosts)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[tool", r"pyproject\.toml"),
        ("[tool]\npytest-regen = 3\n", r"pyproject\.toml"),
        ("[tool.pytest-regen]\ncassettes = {drfit = 'warn'}", "write drift"),
        ("[tool.pytest-regen]\nstores = 'generated/*'", "stores = 'generated/\\*' is wrong"),
        ("[tool.pytest-regen]\ndocs_url = 'docs.example'", "docs_url"),
        ("[tool.pytest-regen]\nprice = {m = {input = 'x', output = 1}}", "price"),
        ("[tool.pytest-regen.cassettes]\nignore = '$.a'", r"\[tool\.pytest-regen.*cassettes"),
        ("[tool.pytest_regen]\nattempts = 1\n", r"write \[tool.pytest-regen\]"),
    ],
)
def test_a_wrong_value_is_named(tmp_path: Path, text: str, told: str) -> None:
    """What is unknown, of the wrong kind, spelt otherwise or no TOML is a usage error."""
    (tmp_path / "pyproject.toml").write_text(text, "utf-8")

    with pytest.raises(UsageError, match=told):
        read_settings(tmp_path)


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({".pytest-regen.toml": "attempts = 1\n"}, "attempts stands outside"),
        ({"pytest-regen.toml": ""}, r"next: mv .*/pytest-regen.toml .*/.pytest-regen.toml"),
        (dict.fromkeys(("pyproject.toml", ".pytest-regen.toml"), TABLE), "both pyproject.toml and"),
    ],
)
def test_a_table_that_is_not_read_is_named(
    tmp_path: Path, files: dict[str, str], told: str
) -> None:
    """Without its header, in a file of another name, or a second time."""
    for name, text in files.items():
        (tmp_path / name).write_text(text, "utf-8")

    with pytest.raises(UsageError, match=told):
        read_settings(tmp_path)


FUNCTIONS = '[tool.pytest-regen]\nfunctions = ["src/*.py"]\n'
PYTEST = "[tool.pytest.ini_options]\n"


@pytest.fixture
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
        ('[tool.pytest_regen]\nfunctions = ["src/*.py"]\n', "[[]tool.pytest_regen] is not read"),
        ("[tool.pytest-regen]\nstores = ['gone/*']\n", "stores: 'gone/[*]' matches no store"),
    ],
)
def test_a_slip_in_the_table_stops_pytest(
    pytester: pytest.Pytester, here: Path, table: str, told: str
) -> None:
    """However the table is written, in a project that has nothing else of ours."""
    (here / "pyproject.toml").write_text(table, "utf-8")

    refused(pytester, told)
    assert told.replace("[[]", "[").replace("[*]", "*") in command("validate").told


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
