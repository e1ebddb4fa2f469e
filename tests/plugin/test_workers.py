"""What must be the same in one process and spread over two workers."""

from collections.abc import Callable
from xml.etree import ElementTree as ET

import pytest
from plugin_project import Project

from pytest_regen.stores import RegenStore

STORE = "generated/GET_v1_projects"


@pytest.mark.parametrize("spread", [(), ("-n", "2")], ids=["alone", "workers"])
def test_a_regeneration_is_told_alike(
    project: Project,
    in_ci: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    spread: tuple[str, ...],
) -> None:
    """Outcome, word, one JUnit case with properties, changed paths and exit code in CI.

    The page of a job says why the run is red although all pass.
    """
    in_ci()
    page = project.path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    path = project.broken()
    before = RegenStore.open(path)
    project.answered_by("Good")

    result = project.run("--regen", "-v", "--junitxml=report.xml", *spread)

    assert result.parseoutcomes() == {"passed": 2, "regenerated": 1}
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["*REGENERATED*", f"changed: *{STORE}/ProjectDataObject.cs*", "exit 1: *CI is set*"]
    )
    told = page.read_text("utf-8")
    assert "### pytest-regen: 1 regenerated, 2 passed" in told
    assert "pytest exits with 1: `a store was changed and CI is set" in told
    assert f"| `{STORE}::Owner` | regenerated | `clean` | 1 | 140 |" in told
    assert "1 request: 100 tokens of input, 0 read from the prompt cache, 40 of output." in told
    folded = told.partition(f"<details><summary>What changed: {STORE}::Owner</summary>")[2]
    assert "\n```diff\n" in folded
    assert '+    [JsonPropertyName("name")]\n' in folded
    after = RegenStore.open(path)
    changed = [key for key in after.pages if after.pages[key] != before.pages[key]]
    assert [(key.type_name, key.page) for key in changed] == [("Owner", 1)]
    cases = ET.parse(project.path / "report.xml").findall(".//testcase")
    assert len(cases) == 3
    owner = next(case for case in cases if case.get("name") == "Owner")
    found = [(one.get("name"), one.get("value")) for one in owner.iter("property")]
    assert len(found) == len(dict(found))
    assert set(found) >= {
        ("regen.outcome", "regenerated"),
        ("regen.stop_reason", "clean"),
        ("regen.attempts", "2"),
        ("regen.calls", "1"),
        ("regen.tokens", "140"),
    }


def test_one_budget_holds_over_all(project: Project) -> None:
    """What one worker spends the others cannot."""
    for number in range(4):
        project.broken(f"GET_{number}")
    project.answered_by("Good")

    result = project.run("--regen", "--regen-budget=2500", "-n", "2")

    outcomes = result.parseoutcomes()
    assert 1 <= outcomes["regenerated"] < 4
    assert outcomes["regenerated"] + outcomes["failed"] == 4
    result.stdout.fnmatch_lines(["*token budget of 2,500*"])


COUNTING = """
from pytest_regen.validation import store_cache

VALIDATE = store_cache.validate_store

def validate(store, **options):
    with open("validated.txt", "a") as file:
        print(store.path.name, file=file)
    return VALIDATE(store, **options)

def pytest_configure():
    # Another test of this process may have had other packages on its path.
    store_cache.code_version.cache_clear()
    store_cache.validate_store = validate

def pytest_unconfigure():
    store_cache.validate_store = VALIDATE
"""


def test_workers_validate_a_store_once(project: Project) -> None:
    """What one of them found the others show, and so does a later run without workers.

    The reports of both are the same, byte for byte: no clock, no place of the machine.
    """
    for name in ("GET_a", "GET_b"):
        project.broken(name)
    project.pytester.makeconftest(COUNTING)
    project.pytester.makepyfile(
        "import pytest\n\n\n@pytest.mark.regen\n@pytest.mark.parametrize('n', range(3))\n"
        "def test_own(n):\n    pytest.skip('late') if n == 2 else pytest.fail('not the same')\n"
    )
    reports = [project.path / name for name in ("one.json", "two.json")]

    results = [
        project.run(f"--regen-report={report.name}", *spread)
        for report, spread in zip(reports, (("-n", "2"), ()), strict=True)
    ]

    for result in results:
        result.assert_outcomes(passed=4, failed=4, skipped=1)
        result.stdout.fnmatch_lines(["*nmae*", "FAILED generated/GET_?::Owner - *"])
    validated = (project.path / "validated.txt").read_text().split()
    assert sorted(validated) == ["GET_a", "GET_b"]
    one, two = (report.read_text("utf-8") for report in reports)
    assert one == two
    assert str(project.path) not in one
