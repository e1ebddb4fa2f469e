"""Units in pytest: items, ids, healing, and marks that name them."""

import json
import sys
from collections.abc import Iterator

import pytest
from command_line import command
from plugin_project import emulated
from unit_project import KIND, SETTINGS, UnitProject, translate
from unit_work import ENGLISH, GERMAN

from pytest_regen.emulator import Emulator

WRONG = {**GERMAN, "berth": "Liegeplatz"}
LIVE = ("--regen", "--regen-record", "once")


@pytest.fixture
def units(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> UnitProject:
    """The project of the documentation."""
    # Tests of commands import the kinds of theirs.
    monkeypatch.delitem(sys.modules, "regen_kinds", raising=False)
    return UnitProject(pytester)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    """A model that knows the strings."""
    with emulated(monkeypatch, translate) as running:
        yield running


def test_a_wrong_unit_fails_with_its_line(units: UnitProject) -> None:
    units.write(german=WRONG)

    result = units.recorded().run()

    assert result.parseoutcomes() == {"passed": 2, "failed": 1}
    result.stdout.fnmatch_lines(
        [
            "*locales/de.json: berth*",
            "locales/de.json:2: PLACEHOLDER: has [[][]], the English text has [[]'{number}']",
            '  > 2 |   "berth": "Liegeplatz",',
            "  regenerate:    pytest locales/de.json::berth --regen --regen-record once",
            "  or:            pytest-regen regenerate locales/de.json --unit berth",
            "FAILED locales/de.json::berth - PLACEHOLDER: *",
        ]
    )


@pytest.mark.parametrize(
    ("args", "passed"),
    [
        (["locales/de.json::berth"], 1),
        (["locales/de.json"], 3),
        (["-k", "leave or berth"], 2),
        (["-n", "2"], 3),
    ],
)
def test_units_are_chosen_like_tests(units: UnitProject, args: list[str], passed: int) -> None:
    result = units.recorded().run(*args)

    assert result.parseoutcomes()["passed"] == passed


def test_an_unknown_unit_is_a_usage_error(units: UnitProject) -> None:
    result = units.run("locales/de.json::bert")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*the file has no unit 'bert'; it has berth, mooring, leave"])


def test_names_are_percent_encoded(units: UnitProject) -> None:
    """What pytest would take for something else; the id works as an argument."""
    name = "a::b[c] 100%\n"
    units.write(english={name: "x"}, german={name: "x"})

    listed = units.recorded().run("--collect-only", "-q").stdout.lines[0]

    assert listed == "locales/de.json::a%3A%3Ab%5Bc%5D 100%25%0A"
    assert units.run(listed).parseoutcomes() == {"passed": 1}
    assert units.run("--lf", "-v").ret == 0


def test_units_of_an_absent_file_survive_last_failed(units: UnitProject) -> None:
    """They fail until somebody generates them, and ``--lf`` finds them again."""
    units.german_file.unlink()

    result = units.run("-q")
    assert result.parseoutcomes() == {"failed": 3}
    assert "next: pytest-regen generate locales/de.json" in result.stdout.lines
    assert units.run("--lf").parseoutcomes() == {"failed": 3}
    assert units.run("locales/de.json::leave").parseoutcomes() == {"failed": 1}


def test_naming_a_unit_of_a_module_does_not_import_it(units: UnitProject) -> None:
    """The argument is taken off before pytest sees it."""
    units.settings(
        """
        [tool.pytest.ini_options]
        [tool.pytest-regen]
        kinds = ["regen_kinds:Functions"]
        """
    )
    (units.path / "regen_kinds.py").write_text(
        "from pytest_regen import Kind\n"
        "class Functions(Kind):\n"
        "    files = 'src/durations.py'\n"
        "    def prompt(self, unit):\n"
        "        return unit.name\n",
        "utf-8",
    )
    module = "raise SystemExit(7)\n# [REGEN:BEGIN parse]\nx = 1\n# [REGEN:END parse]\n"
    (units.path / "src").mkdir()
    (units.path / "src/durations.py").write_text(module, "utf-8")

    result = units.run("src/durations.py::parse")

    assert result.parseoutcomes() == {"passed": 1}


@pytest.mark.parametrize(("in_ci", "outcome"), [(True, "failed"), (False, "passed")])
def test_a_stale_unit_fails_in_ci(
    units: UnitProject, monkeypatch: pytest.MonkeyPatch, *, in_ci: bool, outcome: str
) -> None:
    units.recorded().write(english={**ENGLISH, "mooring": "Moor alongside"})
    monkeypatch.setenv("CI", "true" if in_ci else "")

    result = units.run("locales/de.json::mooring")

    assert result.parseoutcomes() == {outcome: 1}
    if not in_ci:
        result.stdout.fnmatch_lines(
            [
                "warning: locales/de.json::mooring: STALE: *(fails in CI; *--regen does not)",
                "next: *generate*",
            ]
        )
    else:
        result.stdout.fnmatch_lines(
            ["  generate: *", "  keep: *adopt locales/de.json --unit mooring"]
        )


MARKED = """
import json
from pathlib import Path

import pytest


@pytest.mark.regen(unit="locales/de.json::leave")
def test_tone():
    text = json.loads(Path("locales/de.json").read_text("utf-8"))["leave"]
    assert text.startswith("Ablegen"), "say Ablegen"
"""


def test_a_mark_that_names_no_unit_is_an_error(units: UnitProject) -> None:
    """Found while tests are collected, before anything is paid for."""
    (units.path / "test_tone.py").write_text(MARKED.replace("::leave", "::leaf"), "utf-8")

    result = units.run()

    result.stdout.fnmatch_lines(["*the file has no unit 'leaf'*"])


def test_installed_kinds_are_found(units: UnitProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """By their entry point, in any project; a glob without a match is no error then."""
    units.settings("[tool.pytest.ini_options]\n")
    site = units.path / "site"
    info = site / "regen_kinds-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: regen-kinds\nVersion: 1\n", "utf-8"
    )
    (info / "entry_points.txt").write_text(
        "[pytest_regen.kinds]\ngerman = regen_kinds:German\n", "utf-8"
    )
    (units.path / "regen_kinds.py").rename(site / "regen_kinds.py")
    monkeypatch.syspath_prepend(site)

    assert units.run().parseoutcomes() == {"passed": 3}


def test_what_many_units_share_is_counted(units: UnitProject) -> None:
    """A catalogue that nobody asks for any more is not a screen of warnings."""
    strings = {f"text{n}": "Text" for n in range(40)}
    units.write(english={"berth": "Berth"}, german={"berth": "Platz", **strings})

    result = units.run("-q")

    lines = [line for line in result.stdout.lines if "ORPHAN" in line]
    (line,) = lines
    assert line.startswith("warning: locales/de.json::text0, locales/de.json::text1, ")
    assert " and 34 more: ORPHAN: " in line


def test_functions_without_markers_are_told(pytester: pytest.Pytester) -> None:
    """A gate that checks nothing says so, and which command finds functions for it."""
    pytester.makepyprojecttoml('[tool.pytest-regen]\nfunctions = ["*.py"]\n')
    pytester.makepyfile(acme="def height(hour): return 2 * hour")

    result = pytester.runpytest_inprocess()

    result.stdout.fnmatch_lines(
        [
            (
                "note: [[]tool.pytest-regen] functions: no function of *.py has markers yet; "
                "next: pytest-regen init"
            )
        ]
    )


def last_next(result: pytest.RunResult) -> str:
    """Return the last line that says what comes next."""
    return [line for line in result.outlines if line.startswith("next: ")][-1]


def test_the_next_of_a_unit_that_fails_mends_it(units: UnitProject) -> None:
    """Though more units are only not recorded; ``status`` says the same."""
    units.write(german=WRONG)

    gate = last_next(units.run())

    assert gate == "next: pytest-regen regenerate locales/de.json --from-errors"
    assert command("status").out.splitlines()[-1].strip() == gate


def test_of_two_files_the_next_is_about_the_one_with_more_errors(units: UnitProject) -> None:
    units.settings(
        """
        [tool.pytest.ini_options]
        [tool.pytest-regen]
        functions = ["*.py"]
        """
    )
    good, bad = (
        "".join(
            f"def {name}():\n    # [REGEN:BEGIN {name}]\n    return {what}\n"
            f"    # [REGEN:END {name}]\n\n\n"
            for name in names
        )
        for names, what in (("abcd", "1"), ("ef", "unknown"))
    )
    (units.path / "one.py").write_text(good, "utf-8")
    (units.path / "two.py").write_text(bad, "utf-8")

    assert last_next(units.run()) == "next: pytest-regen regenerate two.py --from-errors"


def test_beside_an_edit_no_warning_has_the_last_word(units: UnitProject) -> None:
    """What to do about the edit somebody has to choose first."""
    units.recorded()
    units.write(german={**GERMAN, "leave": "Los um {time}", "gone": "Weg"})

    result = units.run()

    assert result.parseoutcomes() == {"passed": 2, "failed": 1}
    result.stdout.fnmatch_lines(["warning: *ORPHAN*"])
    assert not [line for line in result.outlines if line.startswith("next: ")]


def test_control_characters_of_a_name_stay_out_of_the_terminal(units: UnitProject) -> None:
    """The heading of a failure has them as the id has them."""
    units.write(english={"\x1b[31mred": "x {n}"}, german={"\x1b[31mred": "y"})

    result = units.run("-v")

    assert "\x1b[31mred" not in result.stdout.str()


def test_failing_units_heal_and_replay_offline(
    units: UnitProject, model: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``G``, only the unit at fault; then the recording answers, without a key."""
    units.write(german=WRONG)
    broken = units.german_file.read_bytes()
    result = units.recorded().run(*LIVE)
    assert result.parseoutcomes() == {"passed": 2, "regenerated": 1}
    assert units.german() == GERMAN
    result.stdout.fnmatch_lines(
        [
            "regenerated: locales/de.json::berth, 1 call, *",
            '  +  "berth": "Liegeplatz {number}",',
            "changed: locales/de.json, .regen, cassettes/regen/locales/de.json/berth.yaml",
            "next: pytest",
        ]
    )
    healed = units.german_file.read_bytes()

    units.german_file.write_bytes(broken)
    units.recorded().run().stdout.fnmatch_lines(["*regenerate:    pytest *::berth --regen"])
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    result = units.run("--regen")

    assert result.parseoutcomes() == {"passed": 2, "regenerated": 1}
    assert units.german_file.read_bytes() == healed
    assert len(model.requests) == 1
    assert units.run().parseoutcomes() == {"passed": 3}


@pytest.mark.usefixtures("model")
def test_workers_heal_units_of_one_file(units: UnitProject) -> None:
    """Each writes under the lock, none overwrites the others."""
    units.german_file.unlink()

    # Where hypothesis is loaded, trio may warn of its own random numbers.
    result = units.run(*LIVE, "-n", "2", "-p", "no:hypothesispytest")

    assert result.parseoutcomes() == {"regenerated": 3}
    assert units.german() == GERMAN


def test_an_edit_by_hand_is_not_healed(units: UnitProject, model: Emulator) -> None:
    """It is told first, with what keeps and what drops it; nobody is asked."""
    units.recorded().write(german=WRONG)

    result = units.run(*LIVE)

    assert not model.requests
    assert units.german() == WRONG
    result.stdout.fnmatch_lines(
        [
            "locales/de.json:2: DRIFT: *",
            "  keep:          pytest-regen adopt locales/de.json --unit berth",
            "  drop:          pytest-regen rebuild locales/de.json --unit berth",
            "not regenerated: locales/de.json::berth",
        ]
    )


def test_a_unit_that_fails_for_being_stale_is_asked_again(
    units: UnitProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the prompt of now; the new text replaces one that had no error either."""
    units.settings(SETTINGS + 'stale = "fail"\n')
    units.recorded().write(english={**ENGLISH, "mooring": "Moor alongside"})

    with emulated(monkeypatch, lambda _: "Laengsseits anlegen"):
        result = units.run(*LIVE)

    assert result.parseoutcomes() == {"passed": 2, "regenerated": 1}
    assert units.german()["mooring"] == "Laengsseits anlegen"
    result.stdout.no_fnmatch_line("*STALE*")


@pytest.mark.parametrize(("answer", "outcome"), [("Ablegen", "regenerated"), ("Weg", "failed")])
def test_a_marked_test_heals_its_unit(
    units: UnitProject, monkeypatch: pytest.MonkeyPatch, answer: str, outcome: str
) -> None:
    """It is tried with the candidate in the file; one that does not help is taken out."""
    before = units.recorded().german_file.read_bytes()
    (units.path / "test_tone.py").write_text(MARKED, "utf-8")

    with emulated(monkeypatch, lambda _: answer + " um {time}") as model:
        result = units.run(*LIVE, "test_tone.py")

    assert result.parseoutcomes() == {outcome: 1}
    assert "say Ablegen" in json.dumps(model.requests[0].body)
    if outcome == "failed":
        assert units.german_file.read_bytes() == before
        return
    assert units.german()["leave"] == "Ablegen um {time}"
    assert units.run().parseoutcomes() == {"passed": 4}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            "if want != have",
            "if wnat != have",
            [
                "*KIND_ERROR: German.check raised NameError for berth",
                "*regen_kinds.py*, in check",
                "*NameError: name 'wnat' is not defined*",
            ],
        ),
        (
            "return english(file)",
            "return []",
            ["*MISSING_UNIT: German names no unit of locales/de.json"],
        ),
    ],
)
def test_a_mistake_in_a_kind_asks_nobody(
    units: UnitProject, model: Emulator, old: str, new: str, told: list[str]
) -> None:
    """An exception has the user's traceback; a file without names has one item, which fails."""
    path = units.path / "regen_kinds.py"
    path.write_text(path.read_text("utf-8").replace(old, new), "utf-8")
    before = units.german_file.read_bytes()

    result = units.run(*LIVE)

    assert set(result.parseoutcomes()) == {"failed"}
    assert not model.requests
    assert units.german_file.read_bytes() == before
    result.stdout.fnmatch_lines(told)
    result.stdout.no_fnmatch_line("*INTERNALERROR*")


def test_what_cannot_be_read_fails_its_file(units: UnitProject) -> None:
    """A folder in its place, for one; a test of the user's own runs as ever."""
    units.pytester.makepyfile("def test_it(): pass")
    units.german_file.unlink()
    units.german_file.mkdir()

    result = units.run()

    assert result.parseoutcomes() == {"passed": 1, "failed": 1}
    result.stdout.fnmatch_lines(["*locales/de.json cannot be read: Is a directory"])
    result.stdout.no_fnmatch_line("*INTERNALERROR*")


TWICE = 'kinds = ["regen_kinds:German", "regen_kinds:German"]'


@pytest.mark.parametrize(
    ("settings", "files", "message"),
    [
        ('kinds = ["nowhere:Kind"]', "", "*the kind nowhere:Kind cannot be loaded*"),
        ('kinds = ["German"]', "", '*expected a list of "module:Class"*'),
        (TWICE, "locales/de.json", "*locales/de.json is claimed by regen_kinds:German and by *"),
        ("", "../de.json", "*files = '../de.json' leads out of the project"),
        ("", "locales/*.txt", "*files = 'locales/[*].txt' matches no file below *"),
        ("", "test_*.py", "*pytest collects it as a test module"),
        ("", "", "*files = '' claims nothing"),
    ],
)
def test_kinds_that_cannot_serve_are_usage_errors(
    units: UnitProject, settings: str, files: str, message: str
) -> None:
    """In three lines, without a traceback: a gate that checks nothing must not pass."""
    units.pytester.makepyfile("def test_it(): pass")
    if settings:
        units.settings(f"[tool.pytest.ini_options]\n[tool.pytest-regen]\n{settings}\n")
    path = units.path / "regen_kinds.py"
    path.write_text(KIND.replace('"locales/de.json"', repr(files)), "utf-8")

    result = units.run()

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])
    assert "Traceback" not in result.stderr.str()


def test_only_some_units_are_healed(units: UnitProject, model: Emulator) -> None:
    """``--regen-only`` names them by id or glob; one that matches nothing is a usage error."""
    units.write(german=dict.fromkeys(GERMAN, ""))

    result = units.run(*LIVE, "--regen-only", "locales/de.json::l*")
    refused = units.run(*LIVE, "--regen-only", "locales/de.json::x*")

    assert result.parseoutcomes() == {"failed": 2, "regenerated": 1}
    assert units.german()["leave"] == GERMAN["leave"]
    assert len(model.requests) == 1
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines(["*there is locales/de.json::berth, locales/de.json::mooring*"])
