"""Units in pytest: items, ids, healing, marks that name them, places of a project."""

import json
from collections.abc import Iterator

import pytest
from plugin_project import emulated
from unit_project import KIND, SETTINGS, UnitProject, translate
from unit_work import ENGLISH, GERMAN

from pytest_regen.emulator import Emulator

WRONG = {**GERMAN, "berth": "Liegeplatz"}
LIVE = ("--regen", "--regen-record", "once")


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    """A model that knows the strings."""
    with emulated(monkeypatch, translate) as running:
        yield running


def test_a_wrong_unit_fails_with_its_line(units: UnitProject) -> None:
    """Units are chosen like tests; one that is not there is a usage error."""
    units.write(german=WRONG)

    result = units.recorded().run()
    chosen = [units.run(*args) for args in (["locales/de.json::leave"], ["-k", "leave or mooring"])]
    unknown = units.run("locales/de.json::bert")

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
    assert [run.parseoutcomes()["passed"] for run in chosen] == [1, 2]
    assert unknown.ret == pytest.ExitCode.USAGE_ERROR
    unknown.stderr.fnmatch_lines(["*the file has no unit 'bert'; it has berth, mooring, leave"])


def test_names_are_percent_encoded(units: UnitProject) -> None:
    """What pytest would take for something else, or a terminal; the id works as an argument."""
    name = "a::b[c] 100%\n\x1b[31m"
    units.write(english={name: "x {n}"}, german={name: "x"})

    listed = units.recorded().run("--collect-only", "-q").stdout.lines[0]
    named = units.run(listed, "-v")

    assert listed == "locales/de.json::a%3A%3Ab%5Bc%5D 100%25%0A%1B%5B31m"
    assert named.parseoutcomes() == {"failed": 1}
    assert "\x1b[31m" not in named.stdout.str()


def test_units_of_an_absent_file_survive_last_failed(units: UnitProject) -> None:
    """They fail until somebody generates them, and ``--lf`` finds them again."""
    units.german_file.unlink()

    result = units.run("-q")
    assert result.parseoutcomes() == {"failed": 3}
    assert "next: pytest-regen generate locales/de.json" in result.stdout.lines
    assert units.run("--lf").parseoutcomes() == {"failed": 3}
    assert units.run("locales/de.json::leave").parseoutcomes() == {"failed": 1}


MARKED = """
import json
from pathlib import Path

import pytest


@pytest.mark.regen(unit="locales/de.json::leave")
def test_tone():
    text = json.loads(Path("locales/de.json").read_text("utf-8"))["leave"]
    assert text.startswith("Ablegen"), "say Ablegen"
"""


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


def test_a_mistake_in_a_kind_asks_nobody(units: UnitProject, model: Emulator) -> None:
    """An exception has the user's traceback; a file without names has one item, which fails."""
    path = units.path / "regen_kinds.py"
    path.write_text(KIND.replace("if want != have", "if wnat != have"), "utf-8")
    before = units.german_file.read_bytes()

    result = units.run(*LIVE)
    path.write_text(KIND.replace("return english(file)", "return []"), "utf-8")
    nameless = units.run(*LIVE)

    assert set(result.parseoutcomes()) == {"failed"}
    assert nameless.parseoutcomes() == {"failed": 1}
    assert not model.requests
    assert units.german_file.read_bytes() == before
    result.stdout.fnmatch_lines(
        [
            "*KIND_ERROR: German.check raised NameError for berth",
            "*regen_kinds.py*, in check",
            "*NameError: name 'wnat' is not defined*",
        ]
    )
    nameless.stdout.fnmatch_lines(["*MISSING_UNIT: German names no unit of locales/de.json"])


TWICE = 'kinds = ["regen_kinds:German", "regen_kinds:German"]'


@pytest.mark.parametrize(
    ("settings", "files", "message"),
    [
        ('kinds = ["nowhere:Kind"]', "", "*the kind nowhere:Kind cannot be loaded*"),
        (TWICE, "locales/de.json", "*locales/de.json is claimed by regen_kinds:German and by *"),
        ("", "../de.json", "*files = '../de.json' claims nothing in the project"),
        ("", "locales/*.txt", "*files = 'locales/[*].txt' matches no file below *"),
        ("", "test_*.py", "*pytest collects it as a test module"),
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
